"""What speaks against a load: limited by its client or its plan, or never a test of the
reservation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cephqos_base.series import CLIENT, QosSeries
from cephqos_loadgen.phase_kinds.scrub import ScrubResult
from cephqos_loadgen.plan.words import count
from cephqos_loadgen.report.caveats.caveat import Caveat, load_name, rows_of
from cephqos_loadgen.report.figures.analysis import Key, ReportRun
from cephqos_loadgen.report.figures.attained import attained_by_class
from cephqos_loadgen.report.figures.environment import on_a_file
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.words import listed
from cephqos_loadgen.results.host import HostUse, step_name
from cephqos_loadgen.results.phase import LoadResult, Step

_CEILING: Final = 0.90  # of one core, by the busiest thread of a client
_SPREAD: Final = 0.20  # between the slowest and the fastest job
_COVERED: Final = 0.80  # of a load's time, by background work
# Options of fio: the load waits, so that it does less than it could; it syncs.
_LIMITING: Final = ("rate", "thinktime")
_SYNCING: Final = ("fsync", "fdatasync")


def _rows(run: ReportRun, point: str, phase: str, depth: int | None = None) -> tuple[Key, ...]:
    """Of a phase, or of one step of its curve."""
    return tuple(
        row.key
        for row in run.rows
        if (row.key.point, row.key.phase) == (point, phase) and depth in (None, row.key.depth)
    )


_Place = tuple[str, str, int | None]  # point, phase and depth of a load


@dataclass(frozen=True, slots=True)
class _RanLoad:
    """A load, or one step of a curve, as it ran in one repeat."""

    observed: Observation
    phase: str
    depth: int | None  # of a step
    step: Step
    host: HostUse | None  # what the host did

    @property
    def name(self) -> str:
        return f"{load_name(self.phase, self.depth)} of {self.observed.record.point}"

    @property
    def place(self) -> _Place:
        """The same in all repeats."""
        return self.observed.record.point, self.phase, self.depth


def _loads_that_ran(run: ReportRun) -> Iterator[_RanLoad]:
    for observed in run.finished:
        for phase, record in observed.record.phases.items():
            if isinstance(record.result, LoadResult):
                for step in record.result.steps:
                    depth = step.depth if record.result.is_curve else None
                    key = phase if depth is None else step_name(phase, depth)
                    yield _RanLoad(observed, phase, depth, step, observed.host.get(key))


def nothing_completed(run: ReportRun) -> Iterator[Caveat]:
    """A load that stood still: no figure of it is a figure of the cluster at work."""
    for load in _loads_that_ran(run):
        if not load.step.total.ios:
            seconds = load.step.end_unix_seconds - load.step.start_unix_seconds
            yield Caveat(
                "serious",
                f"Nothing completed in the load {load.name}, repeat {load.observed.record.repeat}.",
                f"0 I/Os in {seconds:.0f} s.",
                _rows(run, *load.place),
            )


def client_at_its_ceiling(run: ReportRun) -> Iterator[Caveat]:
    """A thread of a client used a core almost entirely."""
    worst: dict[_Place, tuple[_BusyThread, str]] = {}  # with the name of the load
    for load in _loads_that_ran(run):
        for busy in _busiest_threads(load.host):
            before = worst[load.place][0].share if load.place in worst else 0.0
            if busy.share > max(_CEILING, before):
                worst[load.place] = (busy, load.name)
    for place, (busy, name) in worst.items():
        yield Caveat(
            "serious",
            f"The client limits the load {name}: one of its threads is at its ceiling.",
            f"Thread {busy.thread} used {busy.share:.0%} of a core. The cluster may be able to do"
            " more.",
            _rows(run, *place),
        )


class _BusyThread(NamedTuple):
    """The busiest client thread of one name."""

    thread: str
    share: float  # of a core


def _busiest_threads(use: HostUse | None) -> Iterator[_BusyThread]:
    """Of each client process, and of each name of its threads."""
    if use is None or use.seconds <= 0:
        return
    for name, process in use.processes.items():
        if not name.startswith("osd."):
            for thread, spent in process.threads.items():
                yield _BusyThread(thread, spent.busiest_seconds / use.seconds)


def unequal_jobs(run: ReportRun) -> Iterator[Caveat]:
    for load in _loads_that_ran(run):
        rates = {job: figures.iops for job, figures in load.step.jobs.items()}
        low, high = min(rates.values(), default=0.0), max(rates.values(), default=0.0)
        if low < (1 - _SPREAD) * high:
            slowest = min(rates, key=lambda job: rates[job])
            yield Caveat(
                "caution",
                f"The jobs of {load.name}, repeat {load.observed.record.repeat}, differ by more"
                f" than {_SPREAD:.0%}.",
                f"{low:,.0f} to {high:,.0f} IOPS, slowest {slowest}.",
                _rows(run, *load.place),
            )


def limited_rate(run: ReportRun) -> Iterator[Caveat]:
    """The plan sets a rate: throughput cannot show what the cluster can do."""
    for name, action, rows in _planned_loads(run):
        rate, options = action.get("rate_iops"), dict(action.get("options") or ())
        limits = [f"rate_iops is {rate:,}, for reads and writes each"] if rate else []
        limits += [f"{option} is {options[option]}" for option in _LIMITING if option in options]
        if limits:
            yield Caveat(
                "caution",
                f"The plan limits the load {name}: its throughput says what was asked for, not what"
                " the cluster can do.",
                f"{listed(limits)}.",
                rows,
            )


def syncs_apart(run: ReportRun) -> Iterator[Caveat]:
    """fio counts the time of a sync apart from that of the write before it."""
    for name, action, rows in _planned_loads(run):
        options = dict(action.get("options") or ())
        syncs = [f"{name} is {options[name]}" for name in _SYNCING if options.get(name, "0") != "0"]
        if syncs:
            yield Caveat(
                "caution",
                f"The load {name} syncs: latencies are of its writes, without the syncs that follow"
                " them.",
                f"{listed(syncs)} in the plan.",
                rows,
            )


def _planned_loads(run: ReportRun) -> Iterator[tuple[str, Mapping[str, Any], tuple[Key, ...]]]:
    """Name, planned action and rows of each phase that has rows."""
    for point, phase in run.planned_phases:
        if rows := _rows(run, point, phase["name"]):
            yield f"{phase['name']} of {point}", phase["action"], rows


def not_prefilled(run: ReportRun) -> Iterator[Caveat]:
    """Images that were not written before: reads of them reach no device."""
    for point in run.plan.get("points", []):
        for pool in point.get("pools", []):
            images = pool.get("images")
            rows = tuple(row.key for row in run.rows if row.key.point == point["name"])
            if images and images.get("prefill") is False and rows:
                yield Caveat(
                    "caution",
                    f"The images of pool {pool['name']} were not written before the load of"
                    f" {point['name']}. First writes and reads of holes cost less or more than"
                    " usual.",
                    "prefill is off in the plan.",
                    rows,
                )


def not_in_steady_state(run: ReportRun) -> Iterator[Caveat]:
    """Writes to flash without a phase before that goes on until figures are steady."""
    osds = (run.environment.get("cluster") or {}).get("osds") or []
    flash = [osd for osd in osds if str(osd.get("rotational")) == "0" and not on_a_file(osd)]
    names = [str(p["name"]) for p in run.plan.get("points", []) if flash and _writes_unprepared(p)]
    unsteady = {name: rows for name in names if (rows := rows_of(run, name))}
    if unsteady:
        yield Caveat(
            "caution",
            f"Nothing brought flash devices into a steady state in {count(len(unsteady), 'point')}:"
            " a fresh device writes faster than one in use.",
            f"{len(flash)} OSDs are on flash. No phase before the load ends by a steady state"
            " (steady_state, or fio's own steadystate).",
            tuple(key for rows in unsteady.values() for key in rows),
        )


def _writes_unprepared(point: Mapping[str, Any]) -> bool:
    """Whether the point's first load that writes comes before any phase that waits for a steady
    state."""
    for phase in point.get("phases", []):
        action = phase["action"]
        options = dict(action.get("options") or ())
        if (phase.get("until") or {}).get("steady") or "steadystate" in options:
            return False
        if action.get("kind") == "fio" and "read" not in str(action.get("rw")):
            return True
    return False


def background_too_short(run: ReportRun) -> Iterator[Caveat]:
    """Background work that covers a small part of the load that it was to disturb."""
    short: dict[tuple[str, str], tuple[float, str]] = {}  # by point and phase: share and work
    for observed in run.finished:
        for work, stretches in observed.stretches.items():
            for part in observed.loads:
                if not part.is_whole or part.several_depths:
                    continue
                inside = sum(
                    max(0.0, min(end, part.end) - max(start, part.start))
                    for start, end in stretches
                )
                share = inside / (part.end - part.start) if part.end > part.start else 0.0
                if 0 < share < _COVERED:
                    key = (observed.record.point, part.phase)
                    short[key] = min(short.get(key, (1.0, "")), (share, work))
    if short:
        point, phase = min(short, key=lambda key: short[key])
        share, work = short[point, phase]
        yield Caveat(
            "note",
            f"Background work covers less than {_COVERED:.0%} of {count(len(short), 'load')}."
            ' Compare the rows "during" it: the rows of the whole time mix both.',
            f"Least: {work} during {share:.0%} of {phase} of {point}.",
            tuple(
                row.key
                for row in run.rows
                if (row.key.point, row.key.phase) in short and row.key.window == WHOLE
            ),
        )


def never_put_to_the_test(run: ReportRun) -> Iterator[Caveat]:
    """Clients never had more demand than their reservation."""
    # by point and phase: what clients attained at most, and their largest reservation
    untested: dict[tuple[str, str], tuple[float, float]] = {}
    tested: set[tuple[str, str]] = set()
    for observed in run.finished:
        for phase, record in observed.record.phases.items():
            if not isinstance(record.result, LoadResult):
                continue
            key = (observed.record.point, phase)
            by_class = attained_by_class(observed.samples, *record.worked)
            clients = [osd for osd in by_class if osd.work == CLIENT and osd.reservation]
            reservations = [osd.reservation or 0.0 for osd in clients]
            attained = [osd.attained_most for osd in clients]
            used_up = any(
                most >= reservation
                for most, reservation in zip(attained, reservations, strict=True)
            )
            if used_up or any(osd.demand_seconds for osd in clients):
                tested.add(key)
            elif clients:
                untested[key] = max(attained), max(reservations)
    untested = {key: value for key, value in untested.items() if key not in tested}
    if untested:
        (point, phase), (most, reservation) = next(iter(untested.items()))
        yield Caveat(
            "serious",
            f"Nothing was put to the test in {count(len(untested), 'load')}: the clients never"
            " had unmet demand on any OSD.",
            f"{phase} of {point}: at most {most:,.0f} of {reservation:,.0f} reserved normalised"
            " operations/s on one OSD, and nothing piled up.",
            tuple(row.key for row in run.rows if (row.key.point, row.key.phase) in untested),
        )


def reservations_unknown(run: ReportRun) -> Iterator[Caveat]:
    """No OSD reported a reservation: attainment cannot be judged."""
    unknown: dict[str, str] = {}
    for observed in run.finished:
        reported = [s for s in observed.samples.of(QosSeries.RESERVATION_OPS) if len(s.values)]
        if not reported:
            queues = sorted(set(observed.record.in_force.schedulers.values()))
            unknown[observed.record.point] = ", ".join(queues) or "not recorded"
    if unknown:
        point, queue = next(iter(unknown.items()))
        yield Caveat(
            "note",
            f"No OSD reported reservations in {count(len(unknown), 'point')}: whether reservations"
            " were kept there is not known.",
            f"Scheduler of {point}: {queue}.",
            rows_of(run, *unknown),
        )


def no_scrub_seen(run: ReportRun) -> Iterator[Caveat]:
    """Scrubs that met no object."""
    for observed in run.finished:
        for name, phase in observed.record.phases.items():
            if isinstance(phase.result, ScrubResult) and not phase.result.objects:
                yield Caveat(
                    "serious",
                    f"The scrub {name} of {observed.record.point} found no objects.",
                    f"{phase.result.placement_groups} placement groups.",
                    _rows(run, observed.record.point, name),
                )


LOAD_CHECKS: Final = (
    nothing_completed,
    client_at_its_ceiling,
    unequal_jobs,
    limited_rate,
    syncs_apart,
    not_prefilled,
    not_in_steady_state,
    background_too_short,
    never_put_to_the_test,
    reservations_unknown,
    no_scrub_seen,
)
