"""What speaks against the figures of a run: checks of how it went and of the repeats."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from cephqos_loadgen.report import metrics
from cephqos_loadgen.report.analysis import Key, ReportRow, ReportRun
from cephqos_loadgen.report.document import Doubt
from cephqos_loadgen.report.doubts_of_cluster import CLUSTER_CHECKS
from cephqos_loadgen.report.doubts_of_load import LOAD_CHECKS
from cephqos_loadgen.report.observe import WHOLE, LoadPart, Observation
from cephqos_loadgen.report.words import listed

_ORDER: Final = {"serious": 0, "caution": 1, "note": 2}
_ENOUGH_REPEATS: Final = 3
_UNSTABLE: Final = 0.10
_DRIFT: Final = 0.10
_STEAL: Final = 0.01
_OTHERS: Final = 0.10  # of all CPU time
_RECORDING: Final = 0.03
_CHECKED_HERE: Final = re.compile(
    r"other programs used|steal|no metrics of|cut off by|: failed:|used \d+% of a core"
)
_ALIKE: Final = 3  # findings that are listed one by one

Check = Callable[[ReportRun], Iterator[Doubt]]


def doubts(run: ReportRun) -> list[Doubt]:
    """All findings, the gravest first."""
    found = gathered([finding for check in CHECKS for finding in check(run)], run)
    return sorted(found, key=lambda finding: _ORDER[finding.severity])


def gathered(findings: Iterable[Doubt], run: ReportRun) -> Iterator[Doubt]:
    """What is said alike of many points and repeats is said once, and how often."""
    points = sorted({o.record.point for o in run.observations}, key=len, reverse=True)
    names = re.compile("|".join([*map(re.escape, points), r"\d+"]))
    groups: dict[tuple[str, str], list[Doubt]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, names.sub("", finding.text)), []).append(finding)
    for group in groups.values():
        if len(group) <= _ALIKE:
            yield from group
            continue
        rows = dict.fromkeys(key for finding in group for key in finding.rows)
        text = f"{group[0].text} The same {len(group) - 1} times more."
        yield replace(group[0], text=text, rows=tuple(rows))


def _keys(run: ReportRun, points: Iterable[str]) -> tuple[Key, ...]:
    wanted = set(points)
    return tuple(row.key for row in run.rows if row.key.point in wanted)


def not_whole(run: ReportRun) -> Iterator[Doubt]:
    """The run, or repeats of it, did not finish."""
    manifest = run.manifest
    if manifest.status != "complete":
        yield Doubt(
            "serious",
            f"The run is {manifest.status}: {len(run.finished)} of {manifest.repeats_planned}"
            " repeats finished. Points without a finished repeat have no rows.",
            manifest.error,
        )
    if run.problems:
        yield Doubt(
            "serious",
            f"{len(run.problems)} files of the archive are not as they were recorded. Figures from"
            " them may be wrong or missing.",
            "; ".join(run.problems[:8]),
            tuple(row.key for row in run.rows),
        )
    for observed in run.observations:
        record = observed.record
        if record.status != "finished":
            yield Doubt(
                "caution",
                f"Repeat {record.repeat} of {record.point} {record.status} and is left out.",
                record.error,
            )
        if observed.absent:
            yield Doubt(
                "caution",
                f"Repeat {record.repeat} of {record.point} lacks {listed(observed.absent)}:"
                " what comes from there is missing or incomplete.",
                "",
                _keys(run, [record.point]),
            )


def cut_off(run: ReportRun) -> Iterator[Doubt]:
    """Phases that did not end by themselves."""
    for observed in run.finished:
        record = observed.record
        for name, phase in record.phases.items():
            if phase.ended_by in ("cut_off", "failed"):
                word = "was cut off by at_most" if phase.ended_by == "cut_off" else "failed"
                yield Doubt(
                    "serious",
                    f"Phase {name} of {record.point}, repeat {record.repeat}, {word}.",
                    phase.error or "Its figures cover a part of its work.",
                    _keys(run, [record.point]),
                )
            if phase.recovery and phase.recovery.objects and not phase.recovery.finished:
                yield Doubt(
                    "caution",
                    f"Recovery was not finished when phase {name} of {record.point} ended.",
                    f"{phase.recovery.objects:,} objects in {phase.recovery.seconds:.0f} s.",
                    _keys(run, [record.point]),
                )


def few_repeats(run: ReportRun) -> Iterator[Doubt]:
    rows = [row for row in run.rows if row.repeats < _ENOUGH_REPEATS]
    if rows:
        least = min(row.repeats for row in rows)
        words = "one repeat" if least == 1 else f"{least} repeats"
        yield Doubt(
            "serious" if least == 1 else "caution",
            f"Too few repeats: {words} of some points, {_ENOUGH_REPEATS} are the least that show"
            " a spread." + (" Of one repeat no interval can be given." if least == 1 else ""),
            f"{len({row.key.point for row in rows})} of "
            f"{len({row.key.point for row in run.rows})} points.",
            tuple(row.key for row in rows),
        )


def unstable(run: ReportRun) -> Iterator[Doubt]:
    """The spread over repeats is large."""
    rows = []
    for row in run.rows:
        iops = row.figures.get(metrics.IOPS.key)
        if iops and row.key.window == WHOLE and (iops.variation or 0.0) > _UNSTABLE:
            rows.append((iops.variation or 0.0, row))
    if rows:
        worst, row = max(rows, key=lambda pair: pair[0])
        yield Doubt(
            "caution",
            f"Throughput differs much between repeats: the deviation is above {_UNSTABLE:.0%} of"
            f" the mean in {len(rows)} of {_loads(run)} rows.",
            f"Most: {worst:.0%}, {_named(row)}.",
            tuple(found.key for _, found in rows),
        )


def _loads(run: ReportRun) -> int:
    return sum(metrics.IOPS.key in row.figures and row.key.window == WHOLE for row in run.rows)


def _named(row: ReportRow) -> str:
    depth = "" if row.key.depth is None else f" at depth {row.key.depth}"
    return f"{row.key.phase}{depth} of {row.key.point}"


def drift(run: ReportRun) -> Iterator[Doubt]:
    """The first third of a load differs from its last, without background work to explain it."""
    found: dict[Key, tuple[float, str]] = {}
    for observed in run.finished:
        for part in observed.loads:
            if part.op != "total" or part.window != WHOLE:
                continue
            moved = _moved(observed, part)
            if moved is not None and abs(moved) > _DRIFT:
                key = _row_key(run, observed, part)
                if key and abs(moved) > abs(found.get(key, (0.0, ""))[0]):
                    found[key] = (moved, f"repeat {observed.record.repeat}")
    if found:
        key, (moved, where) = max(found.items(), key=lambda item: abs(item[1][0]))
        yield Doubt(
            "caution",
            f"Throughput drifts: the last third of a load differs from its first by more than"
            f" {_DRIFT:.0%} in {len(found)} of {_loads(run)} rows, in seconds without background"
            " work.",
            f"Most: {moved:+.0%}, {key.phase} of {key.point}, {where}.",
            tuple(found),
        )


def _moved(observed: Observation, part: LoadPart) -> float | None:
    """Last third against first, of the quiet seconds; None of fewer than nine."""
    table = observed.intervals
    chosen = table.of(part.phase, part.depth) & table.within([(part.start, part.end)])
    for stretches in observed.stretches.values():
        chosen &= ~table.within(stretches)
    if not chosen.any():
        return None
    start = float(table.middles[chosen].min())
    seconds = np.floor(table.middles[chosen] - start).astype(np.int64)
    per_second = np.bincount(seconds, table.ios[chosen].astype(np.float64))
    per_second = per_second[np.bincount(seconds) > 0]
    third = len(per_second) // 3
    first = float(per_second[:third].mean()) if third >= 3 else 0.0
    return float(per_second[-third:].mean()) / first - 1 if first else None


def _row_key(run: ReportRun, observed: Observation, part: LoadPart) -> Key | None:
    for row in run.rows:
        key = row.key
        if (key.point, key.phase, key.op, key.window) == (
            observed.record.point,
            part.phase,
            part.op,
            part.window,
        ) and key.depth in (None, part.depth):
            return key
    return None


def busy_host(run: ReportRun) -> Iterator[Doubt]:
    """Steal, throttling, and CPU that neither OSDs nor clients used."""
    stolen: dict[str, float] = {}
    throttled: dict[str, float] = {}
    others: dict[str, float] = {}
    for observed in run.finished:
        for phase, use in observed.host.items():
            cpu = use.cpu
            if cpu is None or phase not in {part.phase for part in observed.loads}:
                continue
            busy = cpu.user_seconds + cpu.system_seconds + cpu.irq_seconds
            total = busy + cpu.iowait_seconds + cpu.steal_seconds + cpu.idle_seconds
            ours = sum(
                thread.user_seconds + thread.system_seconds
                for process in use.processes.values()
                for thread in process.threads.values()
            )
            if total <= 0:
                continue
            point = observed.record.point
            stolen[point] = max(stolen.get(point, 0.0), cpu.steal_seconds / total)
            throttled[point] = max(throttled.get(point, 0.0), cpu.throttled_seconds / total)
            others[point] = max(others.get(point, 0.0), (busy - ours) / total)
    yield from _host(run, stolen, _STEAL, "Another virtual machine took CPU time (steal)")
    yield from _host(
        run, throttled, _STEAL, "CPUs were throttled, by heat or by a limit of the control group"
    )
    yield from _host(
        run, others, _OTHERS, "Other processes than OSDs and clients used the host's CPUs"
    )


def _host(run: ReportRun, shares: dict[str, float], bound: float, words: str) -> Iterator[Doubt]:
    above = {point: share for point, share in shares.items() if share > bound}
    if above:
        point = max(above, key=lambda name: above[name])
        yield Doubt(
            "serious" if above[point] > 0.25 else "caution",
            f"{words}: more than {bound:.0%} of all CPU time in {len(above)} of"
            f" {len(shares)} points.",
            f"Most: {above[point]:.0%}, {point}.",
            _keys(run, above),
        )


def lost_samples(run: ReportRun) -> Iterator[Doubt]:
    """Scrapes that failed or did not happen, and seconds of clients that are missing."""
    for observed in run.finished:
        record = observed.record
        failed = sum(record.metrics.failures.values())
        missing = int(record.cost.wall_seconds * 0.95) - record.metrics.scrapes
        if failed or missing > 2:
            yield Doubt(
                "caution",
                f"Samples of the exporters are missing in {record.point}, repeat {record.repeat}.",
                f"{record.metrics.scrapes} samples in {record.cost.wall_seconds:.0f} s, {failed}"
                f" scrapes failed. {record.metrics.last_error}".strip(),
                _keys(run, [record.point]),
            )
        yield from _client_gaps(run, observed)


def _client_gaps(run: ReportRun, observed: Observation) -> Iterator[Doubt]:
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
            yield Doubt(
                "caution",
                f"Seconds of the clients are missing in {part.phase} of"
                f" {observed.record.point}, repeat {observed.record.repeat}.",
                f"{covered:.0f} of {part.seconds:.0f} s are recorded.",
                _keys(run, [observed.record.point]),
            )


def costly_recording(run: ReportRun) -> Iterator[Doubt]:
    above = [o.record for o in run.finished if o.record.cost.core_share > _RECORDING]
    if above:
        most = max(above, key=lambda record: record.cost.core_share)
        yield Doubt(
            "note",
            f"Recording took more than {_RECORDING:.0%} of a core in {len(above)} of"
            f" {len(run.finished)} repeats.",
            f"Most: {most.cost.core_share:.1%}, {most.point}.",
            _keys(run, [record.point for record in above]),
        )


def noted_by_the_run(run: ReportRun) -> Iterator[Doubt]:
    """What the run itself found, besides what is checked here more closely."""
    for observed in run.finished:
        record = observed.record
        lines = [line for line in record.findings if not _CHECKED_HERE.search(line)]
        if lines:
            yield Doubt(
                "note",
                f"The run noted in {record.point}, repeat {record.repeat}: {lines[0]}.",
                "; ".join(lines[1:5]),
                _keys(run, [record.point]),
            )


CHECKS: Final[tuple[Check, ...]] = (
    not_whole,
    cut_off,
    few_repeats,
    *CLUSTER_CHECKS,
    *LOAD_CHECKS,
    unstable,
    drift,
    busy_host,
    lost_samples,
    costly_recording,
    noted_by_the_run,
)
