"""What speaks against a cluster: settings other than planned, OSDs that went away, capacity."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from cephqos_base.profiles import PROFILE_OPTION
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

# An OSD that delivers less than this share of its configured capacity does not have that capacity.
_REAL_SHARE: Final = 0.5
# Two measurements of a capacity differ when one is more than this many times the other.
_APART: Final = 1.1
_WENT_DOWN: Final = re.compile(r"osd\.\d+ went down")
# A shorter time with demand shows nothing about capacity.
_LEAST_DEMAND_SECONDS: Final = 10.0


def other_settings(run: ReportRun) -> Iterator[Caveat]:
    """What the daemons said is in force, against the plan; and the run's own warnings."""
    planned = {point["name"]: point.get("settings", []) for point in run.plan.get("points", [])}
    caveats: dict[str, Caveat] = {}  # once for all repeats of a point
    for observed in run.observations:
        point, rows = observed.record.point, rows_of(run, observed.record.point)
        text = f"A setting of {point} was not as planned."
        for line in _differences(observed, planned.get(point, [])):
            caveats.setdefault(point + line, Caveat("serious", text, line, rows))
        for line in observed.record.in_force.warnings:
            caveats.setdefault(point + line, Caveat("caution", f"{point}: {line}", "", rows))
    yield from caveats.values()


def _differences(observed: Observation, settings: list[dict[str, Any]]) -> Iterator[str]:
    """Scheduler and profile of all OSDs, where they differ; the run reports other options."""
    in_force = observed.record.in_force
    profiles = {osd: of_osd.get(PROFILE_OPTION) for osd, of_osd in in_force.options.items()}
    by_option = {
        "osd_op_queue": in_force.schedulers,
        PROFILE_OPTION: {osd: profile for osd, profile in profiles.items() if profile is not None},
    }
    for option in settings:
        if option["section"] != "osd":
            continue
        name, planned = option["name"], option["value"]
        values = by_option.get(name, {})
        differing = {osd: value for osd, value in values.items() if value != planned}
        if differing:
            osds = listed(sorted(differing))
            yield f"{name}: planned {planned}, in force {next(iter(differing.values()))} on {osds}"


@each_repeat
def restarts(observed: Observation) -> Iterator[Caveat]:
    """OSDs that went down, or whose counters restarted, other than planned."""
    record = observed.record
    noted_by_run = [line for line in record.findings if _WENT_DOWN.match(line)]
    restarted: set[str] = set()
    osds_up: list[int] = []
    # Where a phase takes an OSD down, only the run itself knows which others were not to go down.
    if not {phase.kind for phase in record.phases.values()} & {"osd_out", "osd_in"}:
        osds_up = [int(look.get("osds_up", 0)) for look in observed.looks]
        restarted = {
            series.labels["ceph_daemon"]
            for series in of_osds(observed.samples, DaemonSeries.CPU_SECONDS)
            if bool(np.any(np.diff(series.values) < 0))
        }
    fewest, most = min(osds_up, default=0), max(osds_up, default=0)
    if noted_by_run or restarted or fewest < most:
        evidence = [f"{listed(sorted(restarted))} restarted."] if restarted else []
        evidence += [f"{listed(noted_by_run)}."] if noted_by_run else []
        evidence += [f"{fewest} of {most} OSDs were up at least."] if fewest < most else []
        yield Caveat(
            "serious", f"An OSD restarted or went down in {observed.where}.", " ".join(evidence)
        )


def capacity(run: ReportRun) -> Iterator[Caveat]:
    """Capacity that no OSD with demand ever delivered."""
    unreal: dict[str, _Delivered] = {}  # by point
    for observed in run.finished:
        for delivered in _delivered(observed):
            if delivered.best_rate < _REAL_SHARE * delivered.configured:
                unreal.setdefault(observed.record.point, delivered)
    if unreal:
        point, example = next(iter(unreal.items()))
        yield Caveat(
            "serious",
            f"The capacity that OSDs are configured with was never real in {len(unreal)} points:"
            f" under demand they delivered less than {_REAL_SHARE:.0%} of it. Reservations are"
            " shares of that capacity, so they are more than the device can give.",
            f"{example.osd} of {point}: capacity {example.configured:,.0f}, delivered at most"
            f" {example.best_rate:,.0f} normalised operations/s over 10 s.",
            rows_of(run, *unreal),
        )


def other_capacities(run: ReportRun) -> Iterator[Caveat]:
    """OSDs whose capacity was measured more than once: by a resumed run, or for each lab. Those of
    different kinds of labs are meant to differ."""
    labs = {str(point["name"]): repr(point.get("lab")) for point in run.plan.get("points", [])}
    # by lab and OSD: the capacities that were measured, each with the repeat
    measured: dict[tuple[str, str], dict[float, str]] = {}
    for observed in run.finished:
        for osd, iops in observed.record.in_force.capacity_iops.items():
            if iops > 0:
                lab = labs.get(observed.record.point, "")
                measured.setdefault((lab, osd), {})[iops] = observed.where
    ratios = {key: max(repeats) / min(repeats) for key, repeats in measured.items()}
    apart = [key for key, ratio in ratios.items() if ratio > _APART]
    if apart:
        worst = max(apart, key=lambda key: ratios[key])
        repeats = measured[worst]
        ends = [f"{iops:,.0f} IOPS in {repeats[iops]}" for iops in (min(repeats), max(repeats))]
        yield Caveat(
            "caution",
            f"The capacity of {count(len({osd for _, osd in apart}), 'OSD')} was measured more than"
            " once, and differs. Reservations and limits are shares of it.",
            f"Most: {worst[1]}, {'; '.join(ends)}.",
            all_rows(run),
        )


class _Delivered(NamedTuple):
    """What an OSD delivered at most, and the capacity that it is configured with."""

    osd: str
    configured: float  # normalised operations/s
    best_rate: float  # the same, over WINDOW


def _delivered(observed: Observation) -> Iterator[_Delivered]:
    """Of each OSD that had demand long enough."""
    start, end = observed.record.start_unix_seconds, observed.record.end_unix_seconds
    for series in observed.samples.of(QosSeries.DELIVERED_OPS):
        osd = series.labels.get("ceph_daemon", "")
        gauges = observed.samples.of(QosSeries.CAPACITY_OPS, ceph_daemon=osd)
        configured = gauges[0].at(end, start) if gauges else None
        times, rates = window_rates(series, start, end, WINDOW)
        if not configured or not len(times):
            continue
        holds = [hold_of(observed.samples, osd, work, times, rates) for work in SCHEDULED]
        if sum(np.any([hold.has_demand for hold in holds], axis=0)) >= _LEAST_DEMAND_SECONDS:
            yield _Delivered(osd, configured, float(rates.max()))


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
        benchmarks = phase.result.osds if isinstance(phase.result, OsdBenchResult) else {}
        for osd, benchmark in benchmarks.items():
            for series in observed.samples.of(QosSeries.CAPACITY_OPS, ceph_daemon=osd):
                start, end = observed.record.start_unix_seconds, observed.record.end_unix_seconds
                configured = series.at(end, start) or 0.0
                if benchmark.iops < _REAL_SHARE * configured:
                    yield Caveat(
                        "caution",
                        f"The benchmark of {osd} in {observed.record.point} is far below its"
                        " configured capacity.",
                        f"{benchmark.iops:,.0f} IOPS, capacity {configured:,.0f}.",
                    )


CLUSTER_CHECKS: Final = (
    other_settings,
    restarts,
    capacity,
    slow_benchmarks,
    other_capacities,
    files_as_devices,
)
