"""What speaks against how a run went: failed repeats, a busy host, samples that are missing."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from cephqos_loadgen.report.caveats.caveat import Caveat, Severity, all_rows, each_repeat, rows_of
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.words import listed
from cephqos_loadgen.results.findings import reasons_of
from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.results.host_load import cpu_by_others, disks_by_others, words_of
from cephqos_loadgen.results.repeat import Gap

_COSTLY_CORES: Final = 0.03  # of a core, for recording
_SERIOUS_SHARE: Final = 0.25  # of the CPUs' or disks' time for others
# What others may take of a host while a load runs. _TOO_MUCH has the share that is too much.
_STEAL: Final = "Another virtual machine took CPU time (steal): more than 1% of all CPU time"
_THROTTLED: Final = (
    "CPUs were throttled, by heat or by a limit of the control group: more than 1% of all CPU time"
)
_PROGRAMS: Final = (
    "Other processes than those of the run used the host's CPUs: more than 10% of all CPU time"
)
_DISKS: Final = "Other programs used the OSDs' disks: more than 5% of their time"
_TOO_MUCH: Final = {_STEAL: 0.01, _THROTTLED: 0.01, _PROGRAMS: 0.10, _DISKS: 0.05}
# Findings of a repeat that speak against its figures, by how they begin.
_GRAVE: Final[dict[str, tuple[Severity, str]]] = {
    "clock: ": (
        "serious",
        "The clock was set during {}: durations of phases, scrub and recovery, and what ran at the"
        " same time, may be wrong.",
    ),
    "setting: ": (
        "serious",
        "Someone else changed settings during {}: a part of it ran with others than planned.",
    ),
    "cluster: not seen ": (
        "caution",
        "The cluster was not always seen in {}: recovery at that time is known by its sums only.",
    ),
    "cluster: still deleted ": (
        "caution",
        "OSDs still deleted what removed pools had held when {} began: that may have slowed it.",
    ),
}
# Findings that a check of this report says more closely.
_CHECKED_HERE: Final = re.compile(
    r"other programs used|the hypervisor took|no metrics of|cut off by|: failed:"
    r"|used \d+% of a core|^osd\.\d+ went down"
)


def not_whole(run: ReportRun) -> Iterator[Caveat]:
    """The run, or repeats of it, did not finish."""
    manifest = run.manifest
    if manifest.status != "complete":
        yield Caveat(
            "serious",
            f"The run is {manifest.status}: {len(run.finished)} of {manifest.repeats_planned}"
            " repeats finished. Points without a finished repeat have no rows.",
            manifest.error,
        )
    if run.problems:
        yield Caveat(
            "serious",
            f"{len(run.problems)} files of the archive are not as they were recorded. Figures from"
            " them may be wrong or missing.",
            "; ".join(run.problems[:8]),
            all_rows(run),
        )
    for observed in run.observations:
        record = observed.record
        if record.status != "finished":
            yield Caveat(
                "caution",
                f"Repeat {record.repeat} of {record.point} {record.status} and is left out.",
                record.error,
            )
        if observed.absent:
            yield Caveat(
                "caution",
                f"Repeat {record.repeat} of {record.point} lacks {listed(observed.absent)}:"
                " what comes from there is missing or incomplete.",
                "",
                rows_of(run, record.point),
            )


@each_repeat
def cut_off(observed: Observation) -> Iterator[Caveat]:
    """Phases that did not end by themselves."""
    point = observed.record.point
    for name, phase in observed.record.phases.items():
        if phase.ended_by in ("cut_off", "failed"):
            word = "was cut off by at_most" if phase.ended_by == "cut_off" else "failed"
            yield Caveat(
                "serious",
                f"Phase {name} of {observed.where}, {word}.",
                phase.error or "Its figures cover a part of its work.",
            )
        if phase.recovery and phase.recovery.objects and not phase.recovery.finished:
            yield Caveat(
                "caution",
                f"Recovery was not finished when phase {name} of {point} ended.",
                f"{phase.recovery.objects:,} objects in {phase.recovery.seconds:.0f} s.",
            )


def busy_host(run: ReportRun) -> Iterator[Caveat]:
    """Steal, throttling, CPUs and disks that neither OSDs nor clients used."""
    nothing = _Taken(0.0, "")
    worst: dict[str, dict[str, _Taken]] = {kind: {} for kind in _TOO_MUCH}  # by kind and point
    for observed in run.finished:
        point = observed.record.point
        for use in observed.hosts_of_loads:
            for kind, taken in _taken_by_others(use):
                worst[kind][point] = max(worst[kind].get(point, nothing), taken)
    for kind, of_points in worst.items():
        too_much = {p: taken for p, taken in of_points.items() if taken.share > _TOO_MUCH[kind]}
        if too_much:
            point = max(too_much, key=lambda name: too_much[name])
            share, by_whom = too_much[point]
            yield Caveat(
                "serious" if share > _SERIOUS_SHARE else "caution",
                f"{kind} in {len(too_much)} of {len(of_points)} points.",
                f"Most: {share:.0%}, {point}{by_whom}.",
                rows_of(run, *too_much),
            )


class _Taken(NamedTuple):
    """What others took of a host while a load ran. The larger share compares as larger."""

    share: float
    by_whom: str  # the end of the evidence


def _taken_by_others(use: HostUse) -> Iterator[tuple[str, _Taken]]:
    """By kind, which is one of _TOO_MUCH."""
    if cpu := cpu_by_others(use):
        yield _STEAL, _Taken(cpu.stolen, "")
        yield _THROTTLED, _Taken(cpu.throttled, "")
        yield _PROGRAMS, _Taken(cpu.others, f", most of it by {cpu.most}" if cpu.most else "")
    if disks := disks_by_others(use):
        yield _DISKS, _Taken(disks.time_share, f": {words_of(use, disks)}")


@each_repeat
def lost_samples(observed: Observation) -> Iterator[Caveat]:
    """Scrapes that failed or did not happen, and daemons that did not answer."""
    metrics = observed.record.metrics
    failed = sum(metrics.failures.values())
    missing = int(metrics.seconds * 0.95) - metrics.scrapes
    silent = [_silence(source, gaps) for source, gaps in metrics.all_gaps.items()]
    if failed or missing > 2 or silent:
        yield Caveat(
            "caution",
            f"Samples of the exporters are missing in {observed.where}.",
            f"They were asked {metrics.scrapes} times in {metrics.seconds:.0f} s, {failed}"
            f" scrapes failed."
            + (f" Without figures: {listed(silent)}." if silent else "")
            + f" {metrics.last_error}".rstrip(),
        )


def _silence(source: str, gaps: Sequence[Gap]) -> str:
    """`osd.3 12 s (refused)`, of an exporter or a daemon; without reasons if none is known."""
    reasons = reasons_of(gaps)
    seconds = sum(gap.seconds for gap in gaps)
    return f"{source} {seconds:.0f} s" + (f" ({reasons})" if reasons else "")


@each_repeat
def lost_seconds(observed: Observation) -> Iterator[Caveat]:
    """The clients' seconds that are missing from a load of one step."""
    table = observed.intervals
    for part in observed.loads:
        chosen = table.of(part.phase, part.depth)
        jobs = len(np.unique(table.job[chosen]))
        if not part.is_whole or part.several_depths or not jobs:
            continue
        covered = float(table.seconds[chosen].sum()) / jobs
        if covered < 0.95 * part.seconds - 1.5:
            yield Caveat(
                "caution",
                f"Seconds of the clients are missing in {part.phase} of {observed.where}.",
                f"{covered:.0f} of {part.seconds:.0f} s are recorded.",
            )


@each_repeat
def grave_findings(observed: Observation) -> Iterator[Caveat]:
    for beginning, (severity, words) in _GRAVE.items():
        findings = [line for line in observed.record.findings if line.startswith(beginning)]
        if findings:
            evidence = "; ".join(line.partition(": ")[2] for line in findings)
            yield Caveat(severity, words.format(observed.where), evidence)


@each_repeat
def other_findings(observed: Observation) -> Iterator[Caveat]:
    """What the run itself found, besides what other checks of this report say more closely."""
    lines = [
        line
        for line in observed.record.findings
        if not _CHECKED_HERE.search(line) and not line.startswith(tuple(_GRAVE))
    ]
    if lines:
        more = f"; and {len(lines) - 5} more" if len(lines) > 5 else ""
        yield Caveat(
            "note", f"The run noted in {observed.where}: {lines[0]}.", "; ".join(lines[1:5]) + more
        )


@each_repeat
def costly_recording(observed: Observation) -> Iterator[Caveat]:
    if (share := observed.record.cost.core_share) > _COSTLY_CORES:
        yield Caveat(
            "note",
            f"Recording took more than {_COSTLY_CORES:.0%} of a core in {observed.where}.",
            f"{share:.1%}.",
        )
