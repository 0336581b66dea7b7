"""Samples to picture: pure arithmetic, and the only place where names from the cluster enter it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from cephqos_base.judge import UNKNOWN, Hold
from cephqos_base.series import CLASSES, CLUSTER
from cephqos_base.tenant_shares import OsdSums, TenantKey
from cephqos_base.terminal import printable
from cephqos_base.units import osd_order
from cephqos_loadgen.top.figures import (
    DAEMON,
    FIGURES,
    TENANTS_SECONDS,
    Key,
    Selection,
    Values,
)
from cephqos_loadgen.top.missing import find_missing
from cephqos_loadgen.top.picture import (
    BusyDevice,
    BusyThread,
    ClassTotal,
    FiringAlert,
    OsdClass,
    OsdDetail,
    OsdState,
    OsdTenant,
    Percentiles,
    Picture,
    RecoveryState,
    RunState,
    ScrubState,
    State,
    TopSamples,
)
from cephqos_loadgen.top.quantile import quantile

_SEVERITIES = ("critical", "warning", "info")


def build_picture(samples: TopSamples, selection: Selection) -> Picture:
    """The picture of one cluster: the selected one, or the first."""
    safe = _harmless(samples)
    clusters = tuple(sorted({key[0] for name in ("up", "cluster_up") for key in safe.of(name)}))
    cluster = _chosen(clusters, selection)
    mine = _of_cluster(safe, cluster)
    osds = _osds(mine, cluster)
    return Picture(
        time=mine.time,
        clusters=clusters,
        cluster=cluster,
        rules=mine.rules,
        with_rates=mine.with_rates,
        classes=_classes(osds),
        osds=osds,
        latency=(
            *_percentiles("osd", mine.of("latency")),
            *_percentiles("client", mine.of("client_latency")),
        ),
        recovery=_recovery(mine),
        scrubs=_scrubs(mine),
        threads=_threads(mine),
        devices=_devices(mine),
        alerts=_alerts(mine, cluster),
        flags=tuple(sorted(key[1] for key, value in mine.of("flags").items() if value)),
        runs=_runs(mine),
        missing=find_missing(mine, selection),
        detail=_detail(mine, selection.osd) if selection.osd else None,
        tenants=_tenants(mine) if selection.tenants else None,
    )


def _harmless(samples: TopSamples) -> TopSamples:
    """No text of the cluster goes further than this with a control character in it."""
    known: dict[Key, Key] = {}

    def safe(key: Key) -> Key:
        if key not in known:
            known[key] = tuple(map(printable, key))
        return known[key]

    values = {
        name: {safe(key): value for key, value in found.items()}
        for name, found in samples.values.items()
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
    """Only what is about that cluster. What does not say whose it is belongs to all of them."""
    values: dict[str, Values] = {}
    for name, found in samples.values.items():
        by = FIGURES[name].by
        if CLUSTER in by:
            place, allowed = by.index(CLUSTER), {cluster, ""}
            found = {key: value for key, value in found.items() if key[place] in allowed}
        values[name] = found
    return replace(samples, values=values)


def _osds(samples: TopSamples, cluster: str) -> tuple[OsdState, ...]:
    up = {key[1]: (value == 1, key[2]) for key, value in samples.of("up").items()}
    per_class = _by_osd(samples)
    schedulers = {key[1]: key[2:] for key in samples.of("scheduler")}
    in_map = {key[1] for key in samples.of("osd_in_map")}
    osds = []
    for name in sorted(up.keys() | per_class.keys() | in_map, key=osd_order):
        if not name.startswith("osd."):
            continue
        is_up, reason = up.get(name, (False, "no exporter sees it"))
        scheduler, profile, *_ = schedulers.get(name, ("", "", "", ""))
        of_osd = (cluster, name)
        # Rates outlive an OSD by their window: they say nothing of one that does not answer.
        parts = per_class.get(name, []) if is_up else []
        osds.append(
            OsdState(
                name=name,
                up=is_up,
                reason=reason,
                scheduler=scheduler,
                profile=profile,
                capacity=samples.of("capacity").get(of_osd),
                delivered=samples.of("delivered").get(of_osd),
                blocked=samples.of("blocked").get(of_osd),
                classes=tuple(sorted(parts, key=lambda it: (it.badness, CLASSES.index(it.name)))),
            )
        )
    return tuple(osds)


def _by_osd(samples: TopSamples) -> Mapping[str, list[OsdClass]]:
    causes = {key[:3]: key[3:] for key, value in samples.of("cause").items() if value}
    media = {key[:2]: key[4] for key in samples.of("scheduler")}
    keys = samples.of("attained").keys() | samples.of("reserved").keys()
    keys |= samples.of("queued").keys() | samples.of("violated").keys()
    by_osd: dict[str, list[OsdClass]] = defaultdict(list)
    for key in keys:
        if key[2] in CLASSES:
            cause = causes.get(key, ("", ""))
            by_osd[key[1]].append(_osd_class(samples, key, cause, media.get(key[:2], "")))
    return by_osd


def _osd_class(samples: TopSamples, key: Key, cause: Key, media: str) -> OsdClass:
    attained, reserved = samples.of("attained").get(key), samples.of("reserved").get(key)
    part = OsdClass(
        name=key[2],
        state="unknown",
        attained=attained,
        reserved=reserved,
        limit=samples.of("limit").get(key),
        queued=samples.of("queued").get(key),
        lag=samples.of("lag").get(key),
        shortfall=samples.of("shortfall").get(key),
        cause=cause[0],
        by=cause[1],
    )
    violated, demand = samples.of("violated").get(key), samples.of("demand").get(key)
    if violated is None:
        state = _judged(part, _hold(samples, key, media))
    else:
        state = _by_rules(part, violated, demand)
    shortfall = part.shortfall
    if shortfall is None and state == "behind" and attained is not None and reserved is not None:
        shortfall = max(0.0, reserved - attained)
    return replace(part, state=state, shortfall=shortfall)


def _by_rules(part: OsdClass, violated: float, demand: float | None) -> State:
    if violated:
        return "violated"
    if not part.reserved:
        return "unreserved" if part.attained else "idle"
    return "kept" if demand or part.attained else "idle"


def _hold(samples: TopSamples, key: Key, media: str) -> Hold:
    """For the judge: without rules, this one moment is all that is known.

    In which shards a class has demand is seen over minutes only: all of them count.
    """

    def of(figure: str, key: Key = key) -> float:
        return samples.of(figure).get(key, UNKNOWN)

    osd = key[:2]
    return Hold(
        work=key[2],
        attained=of("attained"),
        reserved=of("reserved"),
        limit=of("limit"),
        queued=of("queued"),
        lag=of("lag"),
        in_progress=of("client_present", osd) + samples.of("queued").get(key, 0.0),
        waiting=of("client_waiting", osd) + samples.of("throttle_waiting").get(osd, 0.0),
        store_seconds=of("store_seconds", osd),
        store_ended=of("store_transactions", osd),
        store_used=of("store_used", osd),
        on_disk=media == "hdd",
    )


def _judged(part: OsdClass, hold: Hold) -> State:
    if part.attained is None:
        return "unknown"
    if not part.reserved:
        return "unreserved" if part.attained or hold.has_demand else "idle"
    if hold.violated:
        return "behind"
    return "kept" if part.attained or hold.has_demand else "idle"


def _classes(osds: Iterable[OsdState]) -> tuple[ClassTotal, ...]:
    parts: dict[str, list[OsdClass]] = defaultdict(list)
    for osd in osds:
        for part in osd.classes:
            parts[part.name].append(part)
    return tuple(
        ClassTotal(
            name=name,
            attained=_total(part.attained for part in parts[name]),
            reserved=_total(part.reserved for part in parts[name]),
            violated_osds=sum(part.state == "violated" for part in parts[name]),
            behind_osds=sum(part.state == "behind" for part in parts[name]),
        )
        for name in CLASSES
        if name in parts
    )


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _percentiles(who: str, values: Values) -> tuple[Percentiles, ...]:
    """Of buckets whose key ends with op, le."""
    ops: dict[str, dict[float, float]] = defaultdict(dict)
    for key, rate in values.items():
        try:
            bound = float(key[-1])
        except ValueError:  # not a histogram of ours
            continue
        ops[key[-2]][bound] = ops[key[-2]].get(bound, 0.0) + rate
    return tuple(
        Percentiles(who, op, buckets[max(buckets)], *(quantile(buckets, q) for q in _QUANTILES))
        for op, buckets in sorted(ops.items())
        if buckets[max(buckets)] > 0
    )


_QUANTILES = (0.5, 0.95, 0.99, 0.999)


def _recovery(samples: TopSamples) -> tuple[RecoveryState, ...]:
    degraded, misplaced = samples.of("degraded"), samples.of("misplaced")
    unfound = samples.of("unfound")
    return tuple(
        RecoveryState(
            pool=key[1],
            degraded=degraded.get(key, 0.0),
            misplaced=misplaced.get(key, 0.0),
            unfound=unfound.get(key, 0.0),
            objects_per_second=samples.of("recovery_rate").get(key),
            bytes_per_second=samples.of("recovery_bytes").get(key),
            eta=samples.of("recovery_eta").get(key),
        )
        for key in sorted(degraded.keys() | misplaced.keys() | unfound.keys())
        if degraded.get(key) or misplaced.get(key) or unfound.get(key)
    )


def _scrubs(samples: TopSamples) -> tuple[ScrubState, ...]:
    running, overdue = samples.of("scrub_pgs"), samples.of("scrub_overdue")
    return tuple(
        ScrubState(
            pool=key[1],
            level=key[2],
            running_pgs=running.get(key, 0.0),
            objects_done=samples.of("scrub_done").get(key),
            objects_left=samples.of("scrub_left").get(key),
            objects_per_second=samples.of("scrub_rate").get(key),
            eta=samples.of("scrub_eta").get(key),
            overdue_pgs=overdue.get(key),
        )
        for key in sorted(running.keys() | overdue.keys())
        if running.get(key) or overdue.get(key)
    )


def _threads(samples: TopSamples) -> tuple[BusyThread, ...]:
    threads = [BusyThread(key[1], key[2], share) for key, share in samples.of("threads").items()]
    return tuple(sorted(threads, key=lambda thread: (-thread.cpu, thread.osd, thread.group)))


def _devices(samples: TopSamples) -> tuple[BusyDevice, ...]:
    time, ops, depth = (samples.of(f"device_{name}") for name in ("time", "ops", "depth"))
    devices = [
        BusyDevice(
            osd=key[1],
            device=key[2],
            busy=busy,
            latency=time[key] / ops[key] if time.get(key) is not None and ops.get(key) else None,
            depth=depth.get(key),
        )
        for key, busy in samples.of("device_busy").items()
    ]
    return tuple(sorted(devices, key=lambda device: (-device.busy, device.osd, device.device)))


_TENANTS_OF_OSD = 3


def _tenants(samples: TopSamples) -> tuple[OsdTenant, ...]:
    """The largest of each OSD and its others, of OSDs with most waiting first."""
    sums: dict[str, OsdSums] = defaultdict(OsdSums)
    for (_, osd, kind, pool, name, state), seconds in samples.of("tenants").items():
        sums[osd].seconds[TenantKey(kind, pool, name), state] = seconds
    for (_, osd, state), rate in samples.of("tenant_samples").items():
        sums[osd].samples[state] = rate * TENANTS_SECONDS
    pools = {key[1]: key[2] for key in samples.of("pools")}
    tenants = []
    for osd, its in sums.items():
        shares = its.shares("", osd)
        first = sorted(shares.tenants, key=lambda it: -it.working.seconds - it.waiting.seconds)
        rows = [
            OsdTenant(osd, it.key.named(pools), it.working, it.waiting)
            for it in (*first[:_TENANTS_OF_OSD], shares.other)
            if it.working.seconds + it.waiting.seconds > 0
        ]
        tenants.append((-sum(row.waiting.seconds for row in rows), osd_order(osd), rows))
    return tuple(row for *_, rows in sorted(tenants) for row in rows)


def _alerts(samples: TopSamples, cluster: str) -> tuple[FiringAlert, ...]:
    """Firing alerts of the cluster, pages first; those that differ in the OSD only are one."""
    groups: dict[tuple[str, ...], list[Mapping[str, str]]] = defaultdict(list)
    culprits = {key[:3]: key[4] for key, value in samples.of("cause").items() if value}
    for alert in samples.alerts:
        name, severity = alert.get("alertname", ""), alert.get("severity", "")
        if severity == "none":
            continue
        if alert.get(CLUSTER, cluster) != cluster:
            continue
        words = (alert.get(label, "") for label in ("class", "flag", "slo"))
        what = ", ".join(filter(None, words))
        of = (cluster, alert.get(DAEMON, ""), alert.get("class", ""))
        groups[(name, severity, what, alert.get("cause", ""), culprits.get(of, ""))].append(alert)
    alerts = [
        FiringAlert(
            name=name,
            severity=severity,
            osds=tuple(sorted({a[DAEMON] for a in group if DAEMON in a}, key=osd_order)),
            what=what,
            cause=cause,
            by=by,
            since=min((float(a["since"]) for a in group if a.get("since")), default=None),
        )
        for (name, severity, what, cause, by), group in groups.items()
    ]
    return tuple(sorted(alerts, key=lambda alert: (_urgency(alert), alert.name, alert.what)))


def _urgency(alert: FiringAlert) -> int:
    known = alert.severity in _SEVERITIES
    return _SEVERITIES.index(alert.severity) if known else len(_SEVERITIES)


def _runs(samples: TopSamples) -> tuple[RunState, ...]:
    """One for each run and phase: phases can overlap."""
    runs = []
    for key in sorted(samples.of("run")):
        run, cluster, scenario, point, repeat, phase = key
        place = (run, cluster)
        runs.append(
            RunState(
                run,
                scenario,
                point,
                repeat,
                phase,
                samples.of("run_repeats_done").get(place),
                samples.of("run_repeats").get(place),
                samples.of("run_remaining").get(place),
            )
        )
    return tuple(runs)


def _detail(samples: TopSamples, osd: str) -> OsdDetail:
    def of_osd(figure: str) -> Values:
        return {key: value for key, value in samples.of(figure).items() if key[1] == osd}

    def only(figure: str) -> float | None:
        return next(iter(of_osd(figure).values()), None)

    return OsdDetail(
        name=osd,
        latency=_percentiles("osd", of_osd("osd_latency")),
        in_progress=only("in_progress"),
        oldest=only("oldest"),
        throttles={key[2]: value for key, value in of_osd("throttle").items()},
        violated_seconds={key[2]: value for key, value in of_osd("violated_seconds").items()},
    )
