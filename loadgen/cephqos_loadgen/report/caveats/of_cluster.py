"""What speaks against a cluster: settings other than planned, OSDs that went away, capacity."""

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from cephqos_base.series import SCHEDULED, DaemonSeries, QosSeries
from cephqos_loadgen.phase_kinds.osd_bench import OsdBenchResult
from cephqos_loadgen.plan.words import count
from cephqos_loadgen.report.arrays.windows import window_rates
from cephqos_loadgen.report.caveats.caveat import Caveat, all_rows, each_repeat, rows_of
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.attained import WINDOW, hold_of
from cephqos_loadgen.report.figures.cost import of_osds
from cephqos_loadgen.report.figures.environment import on_a_file
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.words import listed

_REAL: Final = 0.5  # of the configured capacity
_APART: Final = 1.1  # between two measurements of it
_PROFILE: Final = "osd_mclock_profile"
_WENT_DOWN: Final = re.compile(r"osd\.\d+ went down")
# A shorter time with demand shows nothing about capacity.
_LEAST_DEMAND_SECONDS: Final = 10.0


def other_settings(run: ReportRun) -> Iterator[Caveat]:
    """What the daemons said is in force, against the plan; and the run's own warnings."""
    planned = {point["name"]: point.get("settings", []) for point in run.plan.get("points", [])}
    said: dict[str, Caveat] = {}  # once for all repeats of a point
    for observed in run.observations:
        point, rows = observed.record.point, rows_of(run, observed.record.point)
        text = f"A setting of {point} was not as planned."
        for line in _differences(observed, planned.get(point, [])):
            said.setdefault(point + line, Caveat("serious", text, line, rows))
        for line in observed.record.in_force.warnings:
            said.setdefault(point + line, Caveat("caution", f"{point}: {line}", "", rows))
    yield from said.values()


def _differences(observed: Observation, settings: list[dict[str, Any]]) -> Iterator[str]:
    """Scheduler and profile of all OSDs, where they differ; the run reports other options."""
    force = observed.record.in_force
    in_force = {
        "osd_op_queue": force.schedulers,
        _PROFILE: {osd: own[_PROFILE] for osd, own in force.options.items() if _PROFILE in own},
    }
    for option in settings:
        if option["section"] != "osd":
            continue
        name, wanted = option["name"], option["value"]
        wrong = {osd: value for osd, value in in_force.get(name, {}).items() if value != wanted}
        if wrong:
            osds = listed(sorted(wrong))
            yield f"{name}: planned {wanted}, in force {next(iter(wrong.values()))} on {osds}"


@each_repeat
def restarts(observed: Observation) -> Iterator[Caveat]:
    """OSDs that went down, or whose counters restarted, other than planned."""
    record = observed.record
    noted = [line for line in record.findings if _WENT_DOWN.match(line)]
    began: set[str] = set()
    up: list[int] = []
    # Of OSDs that are not to go down while others do, only the run knows.
    if not {phase.kind for phase in record.phases.values()} & {"osd_out", "osd_in"}:
        up = [int(look.get("osds_up", 0)) for look in observed.looks]
        began = {
            series.labels["ceph_daemon"]
            for series in of_osds(observed.samples, DaemonSeries.CPU_SECONDS)
            if bool(np.any(np.diff(series.values) < 0))
        }
    fewest, most = min(up, default=0), max(up, default=0)
    if noted or began or fewest < most:
        evidence = [f"{listed(sorted(began))} restarted."] if began else []
        evidence += [f"{listed(noted)}."] if noted else []
        evidence += [f"{fewest} of {most} OSDs were up at least."] if fewest < most else []
        yield Caveat(
            "serious",
            f"An OSD restarted or went down in {observed.where}.",
            " ".join(evidence),
        )


def capacity(run: ReportRun) -> Iterator[Caveat]:
    """Capacity that no OSD with demand ever delivered."""
    unreal: dict[str, tuple[str, float, float]] = {}
    for observed in run.finished:
        for osd, configured, best in _delivered(observed):
            if best < _REAL * configured:
                unreal.setdefault(observed.record.point, (osd, configured, best))
    if unreal:
        point, (osd, configured, best) = next(iter(unreal.items()))
        yield Caveat(
            "serious",
            f"The capacity that OSDs are configured with was never real in {len(unreal)} points:"
            f" under demand they delivered less than {_REAL:.0%} of it. Reservations are shares"
            " of that capacity, so they are more than the device can give.",
            f"{osd} of {point}: capacity {configured:,.0f}, delivered at most {best:,.0f}"
            " normalised operations/s over 10 s.",
            rows_of(run, *unreal),
        )


def other_capacities(run: ReportRun) -> Iterator[Caveat]:
    """OSDs whose capacity was measured more than once: by a resumed run, or for each lab. Those of
    different kinds of labs are meant to differ."""
    labs = {str(point["name"]): repr(point.get("lab")) for point in run.plan.get("points", [])}
    measured: dict[tuple[str, str], dict[float, str]] = {}  # by lab and OSD: where it was so much
    for observed in run.finished:
        for osd, iops in observed.record.in_force.capacity_iops.items():
            if iops > 0:
                lab = labs.get(observed.record.point, "")
                measured.setdefault((lab, osd), {})[iops] = observed.where
    apart = {key: its for key, its in measured.items() if max(its) > _APART * min(its)}
    if apart:
        (_, osd), its = max(apart.items(), key=lambda item: max(item[1]) / min(item[1]))
        ends = [f"{iops:,.0f} IOPS in {its[iops]}" for iops in (min(its), max(its))]
        yield Caveat(
            "caution",
            f"The capacity of {count(len({osd for _, osd in apart}), 'OSD')} was measured more than"
            " once, and differs. Reservations and limits are shares of it.",
            f"Most: {osd}, {'; '.join(ends)}.",
            all_rows(run),
        )


def _delivered(observed: Observation) -> Iterator[tuple[str, float, float]]:
    """OSD, configured capacity, and the best rate, of OSDs that had demand long enough."""
    start, end = observed.record.start_unix_seconds, observed.record.end_unix_seconds
    for series in observed.samples.of(QosSeries.DELIVERED_OPS):
        osd = series.labels.get("ceph_daemon", "")
        configured = [
            s.at(end) for s in observed.samples.of(QosSeries.CAPACITY_OPS, ceph_daemon=osd)
        ]
        times, rates = window_rates(series, start, end, WINDOW)
        if not configured or not configured[0] or not len(times):
            continue
        holds = [hold_of(observed.samples, osd, work, times, rates) for work in SCHEDULED]
        if sum(np.any([hold.has_demand for hold in holds], axis=0)) >= _LEAST_DEMAND_SECONDS:
            yield osd, configured[0], float(rates.max())


def files_as_devices(run: ReportRun) -> Iterator[Caveat]:
    """OSDs that share this host's disk, as in a lab."""
    osds = run.environment.get("cluster", {}).get("osds") or []
    shared = [osd for osd in osds if on_a_file(osd)]
    if shared:
        cpus = run.environment.get("host", {}).get("cpus")
        yield Caveat(
            "caution",
            f"{len(shared)} of {len(osds)} OSDs are on files of one host: they share its disk"
            f" and its {cpus} CPUs, with the clients. Trends may hold elsewhere, figures do not.",
            "The environment names the store of each OSD.",
            all_rows(run),
        )


@each_repeat
def slow_benchmarks(observed: Observation) -> Iterator[Caveat]:
    """OSDs whose own benchmark denies their capacity."""
    for phase in observed.record.phases.values():
        if isinstance(phase.result, OsdBenchResult):
            for osd, figures in phase.result.osds.items():
                for series in observed.samples.of(QosSeries.CAPACITY_OPS, ceph_daemon=osd):
                    configured = series.at(observed.record.end_unix_seconds) or 0.0
                    if figures.iops < _REAL * configured:
                        yield Caveat(
                            "caution",
                            f"The benchmark of {osd} in {observed.record.point} is far below its"
                            " configured capacity.",
                            f"{figures.iops:,.0f} IOPS, capacity {configured:,.0f}.",
                        )


CLUSTER_CHECKS: Final = (
    *(other_settings, restarts, capacity, slow_benchmarks, other_capacities, files_as_devices),
)
