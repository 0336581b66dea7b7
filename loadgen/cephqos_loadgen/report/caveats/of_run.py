"""What speaks against how a run went: failed repeats, a busy host, samples that are missing."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from cephqos_loadgen.report.caveats.caveat import Caveat, rows_of
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.words import listed
from cephqos_loadgen.results.findings import reasons_of
from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.results.host_load import (
    CpuByOthers,
    cpu_by_others,
    disks_by_others,
    words_of,
)
from cephqos_loadgen.results.repeat import Gap

_MUCH: Final = 0.25  # of the CPUs' or disks' time for others
_RECORDING: Final = 0.03
_CHECKED_HERE: Final = re.compile(
    r"other programs used|the hypervisor took|no metrics of|cut off by|: failed:"
    r"|used \d+% of a core|^clock: |^setting: |^osd\.\d+ went down|^cluster: not seen"
)
_CLOCK: Final = "clock: "


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
            tuple(row.key for row in run.rows),
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


def cut_off(run: ReportRun) -> Iterator[Caveat]:
    """Phases that did not end by themselves."""
    for observed in run.finished:
        record = observed.record
        for name, phase in record.phases.items():
            if phase.ended_by in ("cut_off", "failed"):
                word = "was cut off by at_most" if phase.ended_by == "cut_off" else "failed"
                yield Caveat(
                    "serious",
                    f"Phase {name} of {record.point}, repeat {record.repeat}, {word}.",
                    phase.error or "Its figures cover a part of its work.",
                    rows_of(run, record.point),
                )
            if phase.recovery and phase.recovery.objects and not phase.recovery.finished:
                yield Caveat(
                    "caution",
                    f"Recovery was not finished when phase {name} of {record.point} ended.",
                    f"{phase.recovery.objects:,} objects in {phase.recovery.seconds:.0f} s.",
                    rows_of(run, record.point),
                )


def clock_set(run: ReportRun) -> Iterator[Caveat]:
    """Durations that were taken from a clock that was set in that time."""
    for observed in run.finished:
        record = observed.record
        moved = [line.partition(": ")[2] for line in record.findings if line.startswith(_CLOCK)]
        if moved:
            yield Caveat(
                "serious",
                f"The clock was set during {record.point}, repeat {record.repeat}: durations of"
                " phases, scrub and recovery, and what ran at the same time, may be wrong.",
                "; ".join(moved),
                rows_of(run, record.point),
            )


class _Taken(NamedTuple):
    """Something of the host that others may take while a load runs."""

    words: str
    of: str  # what the share is of
    bound: float
    share: Callable[[HostUse], tuple[float, str] | None]  # and whose it was


def _of_cpu(share: Callable[[CpuByOthers], tuple[float, str]]) -> Any:
    def of(use: HostUse) -> tuple[float, str] | None:
        cpu = cpu_by_others(use)
        return share(cpu) if cpu else None

    return of


def _of_disks(use: HostUse) -> tuple[float, str] | None:
    disks = disks_by_others(use)
    return (disks.time_share, f": {words_of(use, disks)}") if disks else None


_TAKEN: Final = (
    _Taken(
        "Another virtual machine took CPU time (steal)",
        *("all CPU time", 0.01, _of_cpu(lambda cpu: (cpu.stolen, ""))),
    ),
    _Taken(
        "CPUs were throttled, by heat or by a limit of the control group",
        *("all CPU time", 0.01, _of_cpu(lambda cpu: (cpu.throttled, ""))),
    ),
    _Taken(
        "Other processes than those of the run used the host's CPUs",
        *("all CPU time", 0.10, _of_cpu(lambda cpu: (cpu.others, _most_by(cpu.most)))),
    ),
    _Taken("Other programs used the OSDs' disks", "their time", 0.05, _of_disks),
)


def _most_by(name: str) -> str:
    return f", most of it by {name}" if name else ""


def busy_host(run: ReportRun) -> Iterator[Caveat]:
    """Steal, throttling, CPUs and disks that neither OSDs nor clients used."""
    for taken in _TAKEN:
        worst: dict[str, tuple[float, str]] = {}
        for observed in run.finished:
            point = observed.record.point
            for share in filter(None, map(taken.share, observed.hosts_of_loads)):
                worst[point] = max(worst.get(point, share), share)
        above = {point: share for point, share in worst.items() if share[0] > taken.bound}
        if above:
            point = max(above, key=lambda name: above[name])
            most, whose = above[point]
            yield Caveat(
                "serious" if most > _MUCH else "caution",
                f"{taken.words}: more than {taken.bound:.0%} of {taken.of} in {len(above)} of"
                f" {len(worst)} points.",
                f"Most: {most:.0%}, {point}{whose}.",
                rows_of(run, *above),
            )


def lost_samples(run: ReportRun) -> Iterator[Caveat]:
    """Scrapes that failed or did not happen, daemons that did not answer, and seconds of clients
    that are missing."""
    for observed in run.finished:
        record = observed.record
        failed = sum(record.metrics.failures.values())
        seconds = record.metrics.seconds
        missing = int(seconds * 0.95) - record.metrics.scrapes
        silent = [_silence(source, gaps) for source, gaps in record.metrics.all_gaps.items()]
        if failed or missing > 2 or silent:
            yield Caveat(
                "caution",
                f"Samples of the exporters are missing in {record.point}, repeat {record.repeat}.",
                f"They were asked {record.metrics.scrapes} times in {seconds:.0f} s, {failed}"
                f" scrapes failed."
                + (f" Without figures: {listed(silent)}." if silent else "")
                + f" {record.metrics.last_error}".rstrip(),
                rows_of(run, record.point),
            )
        yield from _client_gaps(run, observed)


def _silence(source: str, gaps: Sequence[Gap]) -> str:
    """Of an exporter or a daemon: how long, and why where that is known."""
    why = reasons_of(gaps)
    return f"{source} {sum(gap.seconds for gap in gaps):.0f} s{f' ({why})' if why else ''}"


def _client_gaps(run: ReportRun, observed: Observation) -> Iterator[Caveat]:
    """The clients' seconds that are missing from a load of one step."""
    for part in observed.loads:
        if part.op != "total" or part.window != WHOLE or part.several_depths:
            continue
        table = observed.intervals
        chosen = table.of(part.phase, part.depth)
        jobs = len(np.unique(table.job[chosen]))
        if not jobs:
            continue
        covered = float(table.seconds[chosen].sum()) / jobs
        if covered < 0.95 * part.seconds - 1.5:
            yield Caveat(
                "caution",
                f"Seconds of the clients are missing in {part.phase} of"
                f" {observed.record.point}, repeat {observed.record.repeat}.",
                f"{covered:.0f} of {part.seconds:.0f} s are recorded.",
                rows_of(run, observed.record.point),
            )


def costly_recording(run: ReportRun) -> Iterator[Caveat]:
    above = [o.record for o in run.finished if o.record.cost.core_share > _RECORDING]
    if above:
        most = max(above, key=lambda record: record.cost.core_share)
        yield Caveat(
            "note",
            f"Recording took more than {_RECORDING:.0%} of a core in {len(above)} of"
            f" {len(run.finished)} repeats.",
            f"Most: {most.cost.core_share:.1%}, {most.point}.",
            rows_of(run, *(record.point for record in above)),
        )


def noted_by_the_run(run: ReportRun) -> Iterator[Caveat]:
    """What the run itself found, besides what is checked here more closely."""
    for observed in run.finished:
        record = observed.record
        lines = [line for line in record.findings if not _CHECKED_HERE.search(line)]
        if lines:
            yield Caveat(
                "note",
                f"The run noted in {record.point}, repeat {record.repeat}: {lines[0]}.",
                "; ".join(lines[1:5]) + (f"; and {len(lines) - 5} more" if len(lines) > 5 else ""),
                rows_of(run, record.point),
            )
