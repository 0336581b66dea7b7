"""What a reader of a repeat must know before they trust its figures. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.results.host_load import cpu_by_others, disks_by_others, words_of
from cephqos_loadgen.results.phase import LoadResult, PhaseRecord
from cephqos_loadgen.results.repeat import Gap, MetricsRecording

_OTHERS_SHARE = 0.10  # of all CPU time
_STEAL_SHARE = 0.05  # the same
# Of the time of the OSDs' disks. What a quiet host writes beside a lab, its logs, is far below.
_DISKS_SHARE = 0.05
# A load and a scrub that end within this time of each other ran together.
_APART_SECONDS = 2.0


def findings(
    phases: Mapping[str, PhaseRecord], hosts: Mapping[str, HostUse], metrics: MetricsRecording
) -> tuple[str, ...]:
    """One line each; nothing where all is as planned."""
    lines = [f"{name}: {text}" for name, phase in phases.items() for text in _of_phase(phase)]
    lines += _of_scrubs(phases)
    for name, use in hosts.items():
        lines += [f"{name}: {text}" for text in (*_of_host(use), *_of_disks(use))]
    for source, gaps in metrics.all_gaps.items():
        missing = sum(gap.seconds for gap in gaps)
        reasons = reasons_of(gaps)
        details = f"{len(gaps)} gap{'s' if len(gaps) != 1 else ''}"
        details += f": {reasons}" if reasons else ""
        lines.append(f"recording: no metrics of {source} for {missing:.0f} s ({details})")
    for source, restarts in metrics.restarts.items():
        times = f"{restarts} time{'s' if restarts != 1 else ''}"
        meaning = "what it counts itself began at zero again"
        lines.append(f"recording: {source} was restarted ({times}): {meaning}")
    return tuple(lines)


def reasons_of(gaps: Sequence[Gap]) -> str:
    """Why there were gaps, each reason once."""
    return ", ".join(dict.fromkeys(gap.reason for gap in gaps if gap.reason))


def _of_phase(phase: PhaseRecord) -> Iterator[str]:
    if phase.ended_by == "cut_off":
        yield "cut off by at_most before its end came"
    if phase.ended_by == "failed":
        yield f"failed: {phase.error}"
    if phase.result:
        yield from phase.result.findings()
    if phase.result and phase.against and not phase.changes:
        yield f"not compared with {phase.against}, which had no figures when it ended"
    if phase.recovery and not phase.recovery.objects:
        yield "no recovery was seen"


def _of_scrubs(phases: Mapping[str, PhaseRecord]) -> Iterator[str]:
    """Where a load and a scrub ran at the same time for a part of the time only."""
    for name, scrub in phases.items():
        if scrub.kind != "scrub" or scrub.result is None:
            continue
        for load_name, load in phases.items():
            (scrub_start, scrub_end), (load_start, load_end) = scrub.worked, load.worked
            together = min(scrub_end, load_end) - max(scrub_start, load_start)
            if not isinstance(load.result, LoadResult) or together <= 0:
                continue
            load_longer = load_end - scrub_end
            if load_longer > _APART_SECONDS:
                before = f"{load_longer:.0f} s before it, after {together:.0f} s"
                yield f"{load_name}: {name} ended {before}"
            elif load_longer < -_APART_SECONDS:
                yield f"{name}: went on for {-load_longer:.0f} s after {load_name} had ended"


def _of_host(use: HostUse) -> Iterator[str]:
    cpu = cpu_by_others(use)
    if cpu and cpu.others > _OTHERS_SHARE:
        by = f", most of it by {cpu.most}" if cpu.most else ""
        yield f"other programs used {cpu.others:.0%} of this host's CPUs{by}"
    if cpu and cpu.stolen > _STEAL_SHARE:
        yield f"the hypervisor took {cpu.stolen:.0%} of this host's CPUs"


def _of_disks(use: HostUse) -> Iterator[str]:
    disks = disks_by_others(use)
    if disks and disks.time_share > _DISKS_SHARE:
        yield (
            f"other programs used {disks.time_share:.0%} of the time of the OSDs' disks,"
            f" {words_of(use, disks)}"
        )
