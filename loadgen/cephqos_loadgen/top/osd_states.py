"""The OSDs of the picture: what each class of each OSD gets, and whether it is violated.

With the recording rules their verdict counts ("violated"). Without them, `cephqos_base.judge`
decides from this one moment ("behind").
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from cephqos_base.judge import UNKNOWN, Hold
from cephqos_base.series import CLASSES
from cephqos_base.units import osd_order
from cephqos_loadgen.top.figures import Key
from cephqos_loadgen.top.picture import ClassTotal, OsdClass, OsdState, State, TopSamples


def osd_states(samples: TopSamples, cluster: str) -> tuple[OsdState, ...]:
    """Every OSD that an exporter sees or that is in the map. `samples` are those of one cluster."""
    up = {osd: (value == 1, reason) for (_, osd, reason), value in samples.of("up").items()}
    classes = _classes_by_osd(samples)
    schedulers = {
        osd: (in_force, profile) for _, osd, in_force, profile, *_ in samples.of("scheduler")
    }
    in_map = {osd for _, osd in samples.of("osd_in_map")}
    states = []
    for osd in sorted(up.keys() | classes.keys() | in_map, key=osd_order):
        if not osd.startswith("osd."):
            continue
        is_up, reason = up.get(osd, (False, "no exporter sees it"))
        scheduler, profile = schedulers.get(osd, ("", ""))
        key = (cluster, osd)
        # Rates outlive an OSD by their window: they say nothing of one that does not answer.
        of_osd = classes.get(osd, []) if is_up else []
        states.append(
            OsdState(
                name=osd,
                up=is_up,
                reason=reason,
                scheduler=scheduler,
                profile=profile,
                capacity=samples.of("capacity").get(key),
                delivered=samples.of("delivered").get(key),
                blocked=samples.of("blocked").get(key),
                classes=tuple(sorted(of_osd, key=lambda it: (it.badness, CLASSES.index(it.name)))),
            )
        )
    return tuple(states)


def _classes_by_osd(samples: TopSamples) -> Mapping[str, list[OsdClass]]:
    causes = {
        (cluster, osd, cls): (cause, by)
        for (cluster, osd, cls, cause, by), value in samples.of("cause").items()
        if value
    }
    medias = {(cluster, osd): media for cluster, osd, _, _, media, _ in samples.of("scheduler")}
    keys = samples.of("attained").keys() | samples.of("reserved").keys()
    keys |= samples.of("queued").keys() | samples.of("violated").keys()
    by_osd: dict[str, list[OsdClass]] = defaultdict(list)
    for key in keys:
        cluster, osd, cls = key
        if cls in CLASSES:
            cause, by = causes.get((cluster, osd, cls), ("", ""))
            media = medias.get((cluster, osd), "")
            by_osd[osd].append(_osd_class(samples, key, cause=cause, by=by, media=media))
    return by_osd


def _osd_class(samples: TopSamples, key: Key, *, cause: str, by: str, media: str) -> OsdClass:
    attained, reserved = samples.of("attained").get(key), samples.of("reserved").get(key)
    *_, cls = key
    osd_class = OsdClass(
        name=cls,
        state="unknown",
        attained=attained,
        reserved=reserved,
        limit=samples.of("limit").get(key),
        queued=samples.of("queued").get(key),
        lag=samples.of("lag").get(key),
        shortfall=samples.of("shortfall").get(key),
        cause=cause,
        by=by,
    )
    violated, demand = samples.of("violated").get(key), samples.of("demand").get(key)
    if violated is None:
        state = _judged(osd_class, _this_moment(samples, key, media))
    else:
        state = _by_rules(osd_class, violated, demand)
    shortfall = osd_class.shortfall
    if shortfall is None and state == "behind" and attained is not None and reserved is not None:
        shortfall = max(0.0, reserved - attained)
    return replace(osd_class, state=state, shortfall=shortfall)


def _by_rules(osd_class: OsdClass, violated: float, demand: float | None) -> State:
    if violated:
        return "violated"
    if not osd_class.reserved:
        return "unreserved" if osd_class.attained else "idle"
    return "kept" if demand or osd_class.attained else "idle"


def _judged(osd_class: OsdClass, moment: Hold) -> State:
    if osd_class.attained is None:
        return "unknown"
    if not osd_class.reserved:
        return "unreserved" if osd_class.attained or moment.has_demand else "idle"
    if moment.violated:
        return "behind"
    return "kept" if osd_class.attained or moment.has_demand else "idle"


def _this_moment(samples: TopSamples, key: Key, media: str) -> Hold:
    """What the judge decides from. It is meant for a hold of minutes; without rules, this one
    moment is all that is known. In which shards a class has demand shows over minutes only, so all
    shards count.
    """

    def figure(name: str, key: Key = key) -> float:
        return samples.of(name).get(key, UNKNOWN)

    cluster, name, cls = key
    osd = (cluster, name)
    return Hold(
        work=cls,
        attained=figure("attained"),
        reserved=figure("reserved"),
        limit=figure("limit"),
        queued=figure("queued"),
        lag=figure("lag"),
        in_progress=figure("client_present", osd) + samples.of("queued").get(key, 0.0),
        waiting=figure("client_waiting", osd) + samples.of("throttle_waiting").get(osd, 0.0),
        store_seconds=figure("store_seconds", osd),
        store_ended=figure("store_transactions", osd),
        store_used=figure("store_used", osd),
        on_disk=media == "hdd",
    )


def class_totals(osds: Iterable[OsdState]) -> tuple[ClassTotal, ...]:
    """Each class summed over the OSDs."""
    by_class: dict[str, list[OsdClass]] = defaultdict(list)
    for osd in osds:
        for osd_class in osd.classes:
            by_class[osd_class.name].append(osd_class)
    return tuple(
        ClassTotal(
            name=name,
            attained=_total(osd_class.attained for osd_class in by_class[name]),
            reserved=_total(osd_class.reserved for osd_class in by_class[name]),
            violated_osds=sum(osd_class.state == "violated" for osd_class in by_class[name]),
            behind_osds=sum(osd_class.state == "behind" for osd_class in by_class[name]),
        )
        for name in CLASSES
        if name in by_class
    )


def _total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
