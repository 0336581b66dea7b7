"""What a reader of a repeat must know before they trust its figures. Pure."""

from collections.abc import Iterator, Mapping

from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.results.phase import LoadResult, PhaseRecord
from cephqos_loadgen.results.repeat import MetricsRecording

# Others than the OSDs and clients of a run use CPU too: monitors, the manager, the exporter.
_OTHERS_SHARE = 0.25
_STEAL_SHARE = 0.05
_APART_SECONDS = 2.0


def findings(
    phases: Mapping[str, PhaseRecord], hosts: Mapping[str, HostUse], metrics: MetricsRecording
) -> tuple[str, ...]:
    """One line each; nothing where all is as planned."""
    found = [f"{name}: {text}" for name, phase in phases.items() for text in _of_phase(phase)]
    found += _of_scrubs(phases)
    for name, use in hosts.items():
        found += [f"{name}: {text}" for text in _of_host(use)]
    for source, gaps in (*metrics.gaps.items(), *metrics.daemon_gaps.items()):
        missing = sum(gap.seconds for gap in gaps)
        times = f"{len(gaps)} gap{'s' if len(gaps) != 1 else ''}"
        found.append(f"recording: no metrics of {source} for {missing:.0f} s ({times})")
    return tuple(found)


def _of_phase(phase: PhaseRecord) -> Iterator[str]:
    if phase.ended_by == "cut_off":
        yield "cut off by at_most before its end came"
    if phase.ended_by == "failed":
        yield f"failed: {phase.error}"
    if phase.result:
        yield from phase.result.findings()
    if phase.recovery and not phase.recovery.objects:
        yield "no recovery was seen"


def _of_scrubs(phases: Mapping[str, PhaseRecord]) -> Iterator[str]:
    """Where a load and a scrub ran at the same time for a part of the time only."""
    for name, scrub in phases.items():
        if scrub.kind != "scrub" or scrub.result is None:
            continue
        for load_name, load in phases.items():
            together = min(scrub.end_unix_seconds, load.end_unix_seconds) - max(
                scrub.start_unix_seconds, load.start_unix_seconds
            )
            if not isinstance(load.result, LoadResult) or together <= 0:
                continue
            left = load.end_unix_seconds - scrub.end_unix_seconds
            if left > _APART_SECONDS:
                yield f"{load_name}: {name} ended {left:.0f} s before it, after {together:.0f} s"
            elif left < -_APART_SECONDS:
                yield f"{name}: went on for {-left:.0f} s after {load_name} had ended"


def _of_host(use: HostUse) -> Iterator[str]:
    if use.cpu is None or use.seconds <= 0:
        return
    whole = use.cpu.cpus * use.seconds
    others = others_cpu_seconds(use) / whole
    if others > _OTHERS_SHARE:
        yield f"other programs used {others:.0%} of this host's CPUs"
    if use.cpu.steal_seconds / whole > _STEAL_SHARE:
        yield f"the hypervisor took {use.cpu.steal_seconds / whole:.0%} of this host's CPUs"


def others_cpu_seconds(use: HostUse) -> float:
    """CPU time of all but the OSDs and the clients of the phase."""
    if use.cpu is None:
        return 0.0
    busy = use.cpu.user_seconds + use.cpu.system_seconds + use.cpu.irq_seconds
    own = sum(
        thread.user_seconds + thread.system_seconds
        for process in use.processes.values()
        for thread in process.threads.values()
    )
    return max(0.0, busy - own)
