"""What speaks against a cluster: settings other than planned, OSDs that went away, capacity."""

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from cephqos_base.series import SCHEDULED, DaemonSeries, QosSeries
from cephqos_loadgen.phase_kinds.osd_bench import OsdBenchResult
from cephqos_loadgen.plan.words import count
from cephqos_loadgen.report.arrays.windows import window_rates
from cephqos_loadgen.report.caveats.caveat import Caveat, rows_of
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.attained import WINDOW, hold_of
from cephqos_loadgen.report.figures.environment import on_a_file
from cephqos_loadgen.report.figures.observe import Observation
from cephqos_loadgen.report.words import listed

_REAL: Final = 0.5  # of the configured capacity
_APART: Final = 1.1  # between two measurements of it
# Findings of runs.
_SETTING: Final = "setting: "
_WENT_DOWN: Final = re.compile(r"osd\.\d+ went down")
# A shorter time with demand shows nothing about capacity.
_LEAST_DEMAND_SECONDS: Final = 10.0


def other_settings(run: ReportRun) -> Iterator[Caveat]:
    """What the daemons said is in force, against the plan; and the run's own warnings."""
    planned = {point["name"]: point for point in run.plan.get("points", [])}
    seen: set[tuple[str, str]] = set()
    for observed in run.observations:
        record = observed.record
        settings = planned.get(record.point, {}).get("settings", [])
        for line in _differences(observed, settings):
            if (record.point, line) not in seen:
                seen.add((record.point, line))
                yield Caveat(
                    "serious",
                    f"A setting of {record.point} was not as planned.",
                    line,
                    rows_of(run, record.point),
                )
        for line in record.in_force.warnings:
            if (record.point, line) not in seen:
                seen.add((record.point, line))
                yield Caveat("caution", f"{record.point}: {line}", "", rows_of(run, record.point))


def changed_settings(run: ReportRun) -> Iterator[Caveat]:
    """Settings that someone else changed under a repeat, as the run noted it."""
    for observed in run.finished:
        record = observed.record
        lines = [line for line in record.findings if line.startswith(_SETTING)]
        if lines:
            yield Caveat(
                "serious",
                f"Someone else changed settings during {record.point}, repeat {record.repeat}: a"
                " part of it ran with others than planned.",
                "; ".join(line.removeprefix(_SETTING) for line in lines),
                rows_of(run, record.point),
            )


def _differences(observed: Observation, settings: list[dict[str, Any]]) -> Iterator[str]:
    """Options of all OSDs whose value differs as text; the run reports numbers and sizes."""
    force = observed.record.in_force
    for option in settings:
        if option["section"] != "osd":
            continue
        name, wanted = option["name"], option["value"]
        if name == "osd_op_queue":
            wrong = {
                osd: scheduler for osd, scheduler in force.schedulers.items() if scheduler != wanted
            }
        elif name == "osd_mclock_profile":
            wrong = {
                osd: values[name]
                for osd, values in force.options.items()
                if name in values and values[name] != wanted
            }
        else:
            continue
        if wrong:
            osds = listed(sorted(wrong))
            yield f"{name}: planned {wanted}, in force {next(iter(wrong.values()))} on {osds}"


def restarts(run: ReportRun) -> Iterator[Caveat]:
    """OSDs that went down, or whose counters restarted, other than planned."""
    for observed in run.finished:
        record = observed.record
        planned = {phase.kind for phase in record.phases.values()} & {"osd_out", "osd_in"}
        noted = [line for line in record.findings if _WENT_DOWN.match(line)]
        up = [int(look.get("osds_up", 0)) for look in observed.looks]
        began = [
            series.labels.get("ceph_daemon", "")
            for series in observed.samples.of(DaemonSeries.CPU_SECONDS)
            if series.labels.get("ceph_daemon", "").startswith("osd.")
            and bool(np.any(np.diff(series.values) < 0))
        ]
        if planned:  # of other OSDs the run knows
            began, up = [], []
        if not (noted or began or (up and min(up) < max(up))):
            continue
        evidence = f"{listed(sorted(set(began)))} restarted. " if began else ""
        evidence += f"{listed(noted)}. " if noted else ""
        if up and min(up) < max(up):
            evidence += f"{min(up)} of {max(up)} OSDs were up at least."
        yield Caveat(
            "serious",
            f"An OSD restarted or went down in {record.point}, repeat {record.repeat}.",
            evidence.strip(),
            rows_of(run, record.point),
        )


def unreachable(run: ReportRun) -> Iterator[Caveat]:
    """Seconds in which the run could not look at the cluster."""
    for observed in run.finished:
        times = [float(look["time"]) for look in observed.looks]
        longest = max(np.diff(times), default=0.0) if len(times) > 1 else 0.0
        if longest > 10:
            yield Caveat(
                "caution",
                f"The cluster was not seen for {longest:.0f} s in {observed.record.point}, repeat"
                f" {observed.record.repeat}.",
                "Recovery in that time is known by its sums only.",
                rows_of(run, observed.record.point),
            )


def capacity(run: ReportRun) -> Iterator[Caveat]:
    """Capacity that no OSD with demand ever delivered, or that its own benchmark denies."""
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
    yield from _benches(run)


def other_capacities(run: ReportRun) -> Iterator[Caveat]:
    """OSDs whose capacity was measured more than once: by a resumed run, or for each lab. Those of
    different kinds of labs are meant to differ."""
    labs = {str(point["name"]): point.get("lab") or {} for point in run.plan.get("points", [])}
    seen: dict[tuple[str, str], dict[float, Observation]] = {}
    for observed in run.finished:
        lab = labs.get(observed.record.point, {})
        measured = observed.record.in_force.capacity_iops
        for osd, iops in ((osd, iops) for osd, iops in measured.items() if iops > 0):
            seen.setdefault((repr(sorted(lab.items())), osd), {})[iops] = observed
    apart = {
        key: measurements
        for key, measurements in seen.items()
        if max(measurements) > _APART * min(measurements)
    }
    if apart:
        (_, osd), measurements = max(apart.items(), key=lambda item: max(item[1]) / min(item[1]))
        ends = [
            (iops, measurements[iops].record) for iops in (min(measurements), max(measurements))
        ]
        words = [f"{iops:,.0f} IOPS in {r.point}, repeat {r.repeat}" for iops, r in ends]
        yield Caveat(
            "caution",
            f"The capacity of {count(len({osd for _, osd in apart}), 'OSD')} was measured more than"
            " once, and differs. Reservations and limits are shares of it.",
            f"Most: {osd}, {'; '.join(words)}.",
            tuple(row.key for row in run.rows),
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


def _benches(run: ReportRun) -> Iterator[Caveat]:
    for observed, osd, iops in _benched(run):
        for series in observed.samples.of(QosSeries.CAPACITY_OPS, ceph_daemon=osd):
            configured = series.at(observed.record.end_unix_seconds) or 0.0
            if iops < _REAL * configured:
                yield Caveat(
                    "caution",
                    f"The benchmark of {osd} in {observed.record.point} is far below its"
                    " configured capacity.",
                    f"{iops:,.0f} IOPS, capacity {configured:,.0f}.",
                    rows_of(run, observed.record.point),
                )


def _benched(run: ReportRun) -> Iterator[tuple[Observation, str, float]]:
    """Every benchmark of an OSD: its repeat, the OSD, its IOPS."""
    for observed in run.finished:
        for phase in observed.record.phases.values():
            if isinstance(phase.result, OsdBenchResult):
                for osd, figures in phase.result.osds.items():
                    yield observed, osd, figures.iops


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
            tuple(row.key for row in run.rows),
        )


CLUSTER_CHECKS: Final = (
    *(other_settings, changed_settings, restarts, unreachable),
    *(capacity, other_capacities, files_as_devices),
)
