"""Samples to picture: pure arithmetic, and the only place where names from the cluster enter it.

The samples of a figure have a tuple of label values as their key. `figures.FIGURES` says which: the
key of "up" is (cluster, OSD, reason).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from cephqos_base.series import CLUSTER
from cephqos_base.tenant_shares import OsdSums, TenantFigures, TenantKey
from cephqos_base.terminal import printable
from cephqos_base.time_left import TimeLeft
from cephqos_base.units import osd_order
from cephqos_loadgen.top.figures import DAEMON, FIGURES, TENANTS_SECONDS, Key, Selection, Values
from cephqos_loadgen.top.missing import find_missing
from cephqos_loadgen.top.osd_states import class_totals, osd_states
from cephqos_loadgen.top.picture import (
    BusyDevice,
    BusyThread,
    FiringAlert,
    OsdDetail,
    OsdTenant,
    Percentiles,
    Picture,
    RecoveryState,
    RunState,
    ScrubState,
    TopSamples,
)
from cephqos_loadgen.top.quantile import quantile

_SEVERITIES: Final = ("critical", "warning", "info")
_QUANTILES: Final = (0.5, 0.95, 0.99, 0.999)
_TENANTS_OF_OSD: Final = 3  # of each OSD, so many of the largest have a row


def build_picture(samples: TopSamples, selection: Selection) -> Picture:
    """The picture of one cluster: the selected one, or the first."""
    printed = _made_printable(samples)
    up = (*printed.of("up"), *printed.of("cluster_up"))
    clusters = tuple(sorted({cluster for cluster, *_ in up}))
    cluster = _chosen(clusters, selection)
    mine = _of_cluster(printed, cluster)
    osds = osd_states(mine, cluster)
    return Picture(
        time=mine.time,
        clusters=clusters,
        cluster=cluster,
        rules=mine.rules,
        with_rates=mine.with_rates,
        classes=class_totals(osds),
        osds=osds,
        latency=(
            *_percentiles("osd", mine.of("latency")),
            *_percentiles("client", mine.of("client_latency")),
        ),
        recovery=_recovery(mine),
        recovery_end=TimeLeft.of(
            {bound: seconds for (_, bound), seconds in mine.of("recovery_left").items()}
        ),
        scrubs=_scrubs(mine),
        threads=_threads(mine),
        devices=_devices(mine),
        alerts=_alerts(mine, cluster),
        flags=tuple(sorted(flag for (_, flag), value in mine.of("flags").items() if value)),
        runs=_runs(mine),
        missing=find_missing(mine, selection),
        detail=_detail(mine, selection.osd) if selection.osd else None,
        tenants=_tenants(mine) if selection.tenants else None,
    )


def _made_printable(samples: TopSamples) -> TopSamples:
    """Without control characters: a pool could be called `\\x1b[2J`, which clears the screen."""
    printed_keys: dict[Key, Key] = {}

    def printed(key: Key) -> Key:
        if key not in printed_keys:
            printed_keys[key] = tuple(map(printable, key))
        return printed_keys[key]

    values = {
        name: {printed(key): value for key, value in of_figure.items()}
        for name, of_figure in samples.values.items()
    }
    alerts = tuple(
        {printable(name): printable(text) for name, text in alert.items()}
        for alert in samples.alerts
    )
    return replace(samples, values=values, alerts=alerts)


def _chosen(clusters: tuple[str, ...], selection: Selection) -> str:
    if selection.cluster is not None:
        return printable(selection.cluster)
    return clusters[0] if clusters else ""


def _of_cluster(samples: TopSamples, cluster: str) -> TopSamples:
    """Only what is about that cluster. A series without a cluster belongs to all of them."""
    values: dict[str, Values] = {}
    for name, of_figure in samples.values.items():
        labels = FIGURES[name].by
        if CLUSTER in labels:
            place, allowed = labels.index(CLUSTER), {cluster, ""}
            of_figure = {key: value for key, value in of_figure.items() if key[place] in allowed}
        values[name] = of_figure
    return replace(samples, values=values)


def _percentiles(who: str, values: Values) -> tuple[Percentiles, ...]:
    """Per operation, from the rates of cumulative buckets. Their keys end with op and le."""
    buckets_of: dict[str, dict[float, float]] = defaultdict(dict)
    for (*_, op, le), rate in values.items():
        try:
            bound = float(le)
        except ValueError:  # not a histogram of ours
            continue
        buckets_of[op][bound] = buckets_of[op].get(bound, 0.0) + rate
    percentiles = []
    for op, buckets in sorted(buckets_of.items()):
        ops_per_second = buckets[max(buckets)]  # the last bucket counts all operations
        if ops_per_second > 0:
            latencies = (quantile(buckets, q) for q in _QUANTILES)
            percentiles.append(Percentiles(who, op, ops_per_second, *latencies))
    return tuple(percentiles)


def _recovery(samples: TopSamples) -> tuple[RecoveryState, ...]:
    """Of pools with something to recover."""
    degraded, misplaced = samples.of("degraded"), samples.of("misplaced")
    unfound = samples.of("unfound")
    states = []
    for key in sorted(degraded.keys() | misplaced.keys() | unfound.keys()):
        _, pool = key
        state = RecoveryState(
            pool=pool,
            degraded=degraded.get(key, 0.0),
            misplaced=misplaced.get(key, 0.0),
            unfound=unfound.get(key, 0.0),
            objects_per_second=samples.of("recovery_rate").get(key),
            bytes_per_second=samples.of("recovery_bytes").get(key),
            eta=samples.of("recovery_eta").get(key),
        )
        if state.degraded or state.misplaced or state.unfound:
            states.append(state)
    return tuple(states)


def _scrubs(samples: TopSamples) -> tuple[ScrubState, ...]:
    """Of pools and levels whose scrubs run or are overdue."""
    running, overdue = samples.of("scrub_pgs"), samples.of("scrub_overdue")
    states = []
    for key in sorted(running.keys() | overdue.keys()):
        _, pool, level = key
        etas = samples.of("scrub_eta").items()
        left = {bound: seconds for (*of_pool, bound), seconds in etas if tuple(of_pool) == key}
        state = ScrubState(
            pool=pool,
            level=level,
            running_pgs=running.get(key, 0.0),
            objects_done=samples.of("scrub_done").get(key),
            objects_left=samples.of("scrub_left").get(key),
            objects_per_second=samples.of("scrub_rate").get(key),
            eta=left.get("likely"),
            left=TimeLeft.of(left),
            overdue_pgs=overdue.get(key),
        )
        if state.running_pgs or state.overdue_pgs:
            states.append(state)
    return tuple(states)


def _threads(samples: TopSamples) -> tuple[BusyThread, ...]:
    threads = [
        BusyThread(osd, group, share) for (_, osd, group), share in samples.of("threads").items()
    ]
    return tuple(sorted(threads, key=lambda thread: (-thread.cpu, thread.osd, thread.group)))


def _devices(samples: TopSamples) -> tuple[BusyDevice, ...]:
    times, ops = samples.of("device_time"), samples.of("device_ops")
    devices = []
    for key, busy in samples.of("device_busy").items():
        _, osd, device = key
        latency = times[key] / ops[key] if key in times and ops.get(key) else None
        depth = samples.of("device_depth").get(key)
        devices.append(BusyDevice(osd, device, busy, latency, depth))
    return tuple(sorted(devices, key=lambda device: (-device.busy, device.osd, device.device)))


def _tenants(samples: TopSamples) -> tuple[OsdTenant, ...]:
    """The largest tenants of each OSD and its others; OSDs with most waiting first."""
    sums: dict[str, OsdSums] = defaultdict(OsdSums)
    for (_, osd, kind, pool_id, name, state), seconds in samples.of("tenants").items():
        sums[osd].seconds[TenantKey(kind, pool_id, name), state] = seconds
    for (_, osd, state), rate in samples.of("tenant_squares").items():
        sums[osd].squares[state] = rate / TENANTS_SECONDS  # as the seconds, per second of it
    pools = {pool_id: pool for _, pool_id, pool in samples.of("pools")}
    rows_by_osd: dict[str, list[OsdTenant]] = {}
    for osd, of_osd in sums.items():
        shares = of_osd.shares("", osd)
        largest = sorted(shares.tenants, key=_busy_seconds, reverse=True)
        rows_by_osd[osd] = [
            OsdTenant(osd, tenant.key.named(pools), tenant.working, tenant.waiting)
            for tenant in (*largest[:_TENANTS_OF_OSD], shares.other)
            if _busy_seconds(tenant) > 0
        ]

    def most_waiting_first(osd: str) -> tuple[object, ...]:
        return (-sum(row.waiting.seconds for row in rows_by_osd[osd]), osd_order(osd))

    return tuple(row for osd in sorted(sums, key=most_waiting_first) for row in rows_by_osd[osd])


def _busy_seconds(tenant: TenantFigures) -> float:
    return tenant.working.seconds + tenant.waiting.seconds


class _AlertGroup(NamedTuple):
    """Alerts that agree in this are one row: they differ only in the OSD."""

    name: str
    severity: str
    what: str
    cause: str
    by: str


def _alerts(samples: TopSamples, cluster: str) -> tuple[FiringAlert, ...]:
    """Firing alerts of the cluster, critical ones first. Those of severity none only inhibit."""
    groups: dict[_AlertGroup, list[Mapping[str, str]]] = defaultdict(list)
    causes = {
        (of, osd, cls): (cause, by)
        for (of, osd, cls, cause, by), value in samples.of("cause").items()
        if value
    }
    for alert in samples.alerts:
        if alert.get("severity") == "none" or alert.get(CLUSTER, cluster) != cluster:
            continue
        what = ", ".join(alert[label] for label in ("class", "flag", "slo") if alert.get(label))
        osd_class = (cluster, alert.get(DAEMON, ""), alert.get("class", ""))
        cause, by = causes.get(osd_class, (alert.get("cause", ""), ""))
        group = _AlertGroup(
            name=alert.get("alertname", ""),
            severity=alert.get("severity", ""),
            what=what,
            cause=cause,
            by=by,
        )
        groups[group].append(alert)
    alerts = []
    for group, members in groups.items():
        osds = {alert[DAEMON] for alert in members if DAEMON in alert}
        since = [float(alert["since"]) for alert in members if alert.get("since")]
        alerts.append(
            FiringAlert(
                **group._asdict(),
                osds=tuple(sorted(osds, key=osd_order)),
                since=min(since, default=None),
            )
        )
    return tuple(sorted(alerts, key=lambda alert: (_urgency(alert), alert.name, alert.what)))


def _urgency(alert: FiringAlert) -> int:
    known = alert.severity in _SEVERITIES
    return _SEVERITIES.index(alert.severity) if known else len(_SEVERITIES)


def _runs(samples: TopSamples) -> tuple[RunState, ...]:
    """One for each run and phase: phases can overlap."""
    runs = []
    for key in sorted(samples.of("run")):
        run, cluster, scenario, point, repeat, phase = key
        runs.append(
            RunState(
                name=run,
                scenario=scenario,
                point=point,
                repeat=repeat,
                phase=phase,
                repeats_done=samples.of("run_repeats_done").get((run, cluster)),
                repeats=samples.of("run_repeats").get((run, cluster)),
                remaining=samples.of("run_remaining").get((run, cluster)),
            )
        )
    return tuple(runs)


def _detail(samples: TopSamples, opened: str) -> OsdDetail:
    """Of the opened OSD. The keys of these figures begin with the cluster and the OSD."""

    def of_osd(figure: str) -> Values:
        return {
            tuple(labels): value
            for (_, osd, *labels), value in samples.of(figure).items()
            if osd == opened
        }

    def only(figure: str) -> float | None:
        return next(iter(of_osd(figure).values()), None)

    return OsdDetail(
        name=opened,
        latency=_percentiles("osd", of_osd("osd_latency")),
        in_progress=only("in_progress"),
        oldest=only("oldest"),
        throttles={throttle: used for (throttle,), used in of_osd("throttle").items()},
        violated_seconds={cls: value for (cls,), value in of_osd("violated_seconds").items()},
    )
