"""What `cephqos capacity` asks a Prometheus, in pieces of a day at most, and how it reads that."""

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cephqos_base.recorded import PerOsd
from cephqos_base.series import OSD, OSD_CLASS, DaemonSeries, QosSeries
from cephqos_base.units import duration
from cephqos_doctor.capacity.estimate import OsdRecord, Piece
from cephqos_doctor.json_api import ApiFailed, JsonApi, Sample

# A week in hours, and as many pieces of any other time.
PIECES: Final = 168
SHORTEST: Final = 60.0  # rates look back that far
_AT_ONCE: Final = 24  # pieces of one question: an engine limits the samples of an answer
_RAW_SECONDS: Final = 300.0  # survives scrapes a minute apart

Osd = tuple[str, str]


def _condition(name: str) -> str:
    return f'{PerOsd.CONDITION}{{condition="{name}"}}'


# Of the rules, by the field of a Piece. `count`: in how many samples. What a saturated OSD does is
# its average: the most of many rates is a lucky one.
_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "delivered": ("max", PerOsd.DELIVERED_OPS),
    "requests": ("max", f'{PerOsd.DEVICE_WORK}{{unit="requests"}}'),
    "saturated": ("avg", PerOsd.SATURATED_OPS),
    "saturated_samples": ("count", PerOsd.SATURATED_OPS),
    "cpu_samples": ("count", _condition("cpu_short")),
    "depth": ("max", PerOsd.DEVICE_DEPTH),
    "piling_up": ("max", PerOsd.STORE_PILING_UP),
    "large": ("max", _condition("large_ops")),
    "failing": ("max", _condition("device_failing")),
    "capacity": ("last", PerOsd.CAPACITY_OPS),
}
_TRUTHS: Final = ("piling_up", "large", "failing")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a Prometheus has of all OSDs."""

    records: tuple[OsdRecord, ...]
    rules: bool  # it has what our rules record
    start: float
    end: float
    step: float


def range_queries(step: float, rules: bool) -> Mapping[str, str]:
    """A query per field of a Piece, for pieces of `step` seconds."""
    piece, every = duration(step), duration(min(step, _RAW_SECONDS))
    window = duration(_RAW_SECONDS)
    if rules:
        return {
            name: f"max by ({OSD}) ({how}_over_time({series}[{piece}]))"
            for name, (how, series) in _FIELDS.items()
        }
    rate = f"max by ({OSD}) (rate({QosSeries.DELIVERED_OPS}[{window}]))"
    return {"delivered": f"max_over_time(({rate})[{piece}:{every}])"}


NOW: Final[Mapping[str, str]] = {
    "capacity": f"max by ({OSD}) ({QosSeries.CAPACITY_OPS})",
    "reservations": f"max by ({OSD_CLASS}) ({QosSeries.RESERVATION_RATIO})",
    "limits": f"max by ({OSD_CLASS}) ({QosSeries.LIMIT_RATIO})",
    "info": f"max by ({OSD}, media, capacity_origin, in_force) ({QosSeries.SCHEDULER_INFO})",
    "lower_bound": f"max by ({OSD}) ({QosSeries.DELIVERED_IS_LOWER_BOUND})",
    "host": f"max by ({OSD}, instance) ({DaemonSeries.UP}{{ceph_daemon=~'osd.*'}})",
}


async def gather(
    api: JsonApi, since: float, step: float | None, note: Callable[[str], None] = lambda _: None
) -> History:
    """Ask for all OSDs. Raises ApiFailed if an answer is missing or odd."""
    end = float((await api.result("query", query="time()"))[0])
    step = step or max(SHORTEST, math.ceil(since / PIECES))
    # An OSD that was down a moment ago is an OSD all the same.
    now = await api.vectors(NOW)
    rules = bool(await api.vector(f"group(last_over_time({PerOsd.DELIVERED_OPS}[1h]))"))
    pieces: dict[Osd, dict[float, dict[str, float]]] = {}
    for name, labels, values in await over_time(
        api, range_queries(step, rules), end - since, end, step, note
    ):
        osd = pieces.setdefault(osd_of(labels), {})
        for time, value in values:
            osd.setdefault(time, {})[name] = value
    known = {name: _by_osd(samples) for name, samples in now.items()}
    osds = sorted({*pieces, *known["host"], *known["capacity"]})
    records = tuple(_record(osd, known, pieces.get(osd, {})) for osd in osds)
    return History(records=records, rules=rules, start=end - since, end=end, step=step)


async def over_time(
    api: JsonApi,
    queries: Mapping[str, str],
    start: float,
    end: float,
    step: float,
    note: Callable[[str], None] = lambda _: None,
) -> Sequence[tuple[str, Mapping[str, str], Sequence[tuple[float, float]]]]:
    """What each query, by its name, gives at the end of each piece of the time."""
    spans = list(_spans(start, end, step))
    ranges = []
    for number, (first, last) in enumerate(spans, start=1):
        answers = await asyncio.gather(
            *(_range(api, query, first, last, step) for query in queries.values())
        )
        for name, answer in zip(queries, answers, strict=True):
            ranges += [(name, labels, values) for labels, values in answer]
        note(f"asked {number * len(queries)} of {len(spans) * len(queries)} questions")
    return ranges


def _spans(start: float, end: float, step: float) -> Iterator[tuple[float, float]]:
    """From the end of the first piece to that of the last, in parts that an engine answers."""
    count = max(1, math.floor((end - start) / step))
    first = end - (count - 1) * step
    for at in range(0, count, _AT_ONCE):
        last = min(at + _AT_ONCE, count) - 1
        yield first + at * step, first + last * step


async def _range(
    api: JsonApi, query: str, start: float, end: float, step: float
) -> list[tuple[Mapping[str, str], list[tuple[float, float]]]]:
    matrix = await api.result(
        "query_range", query=query, start=f"{start:.3f}", end=f"{end:.3f}", step=f"{step:g}"
    )
    try:
        return [
            (it["metric"], [(float(at), float(v)) for at, v in it["values"] if v != "NaN"])
            for it in matrix
        ]
    except (KeyError, TypeError, ValueError) as exc:
        raise ApiFailed("/api/v1/query_range: an answer of another shape") from exc


def osd_of(labels: Mapping[str, str]) -> Osd:
    return (str(labels.get("cluster", "")), str(labels.get("ceph_daemon", "")))


def _by_osd(samples: Sequence[Sample]) -> dict[Osd, list[Sample]]:
    by_osd: dict[Osd, list[Sample]] = {}
    for labels, value in samples:
        by_osd.setdefault(osd_of(labels), []).append((labels, value))
    return by_osd


def _record(
    osd: Osd,
    now: Mapping[str, Mapping[Osd, list[Sample]]],
    pieces: Mapping[float, Mapping[str, float]],
) -> OsdRecord:
    of_it = {name: samples.get(osd, []) for name, samples in now.items()}
    info = of_it["info"][0][0] if of_it["info"] else {}
    host = of_it["host"][0][0].get("instance", "") if of_it["host"] else ""
    return OsdRecord(
        cluster=osd[0],
        osd=osd[1],
        host=host,
        media=info.get("media", ""),
        origin=info.get("capacity_origin", ""),
        in_force=info.get("in_force", ""),
        capacity=of_it["capacity"][0][1] if of_it["capacity"] else None,
        lower_bound=any(value > 0 for _, value in of_it["lower_bound"]),
        reservations={labels.get("class", ""): value for labels, value in of_it["reservations"]},
        limits={labels.get("class", ""): value for labels, value in of_it["limits"]},
        pieces=tuple(
            _piece(at, values) for at, values in sorted(pieces.items()) if "delivered" in values
        ),
    )


def _piece(at: float, values: Mapping[str, float]) -> Piece:
    given: dict[str, Any] = dict(values)
    given |= {name: given.get(name, 0) > 0 for name in _TRUTHS}
    return Piece(end=at, **given)


def told_by_cluster(history: History, metadata: Any, dump: Any) -> History:
    """The same with what the cluster says of devices, hosts and origins."""
    told = {f"osd.{it.get('id')}": it for it in metadata if isinstance(it, dict)}
    sections = {
        (str(it.get("section", "")), str(it.get("name", ""))): str(it.get("value", ""))
        for it in dump
        if isinstance(it, dict) and not it.get("mask")
    }

    def better(record: OsdRecord) -> OsdRecord:
        its = told.get(record.osd, {})
        return replace(
            record,
            host=str(its.get("hostname", "")) or record.host,
            model=model_of(its),
            kind=str(its.get("cpu", "")),
            origin=_origin(record, sections),
        )

    return replace(history, records=tuple(map(better, history.records)))


def model_of(metadata: Mapping[str, Any]) -> str:
    """The models of its devices: `device_ids` has `sda=VENDOR_MODEL_SERIAL`."""
    ids = [it.partition("=")[2] for it in str(metadata.get("device_ids", "")).split(",")]
    return " + ".join(sorted({it.rpartition("_")[0] for it in ids} - {""}))


def _origin(record: OsdRecord, sections: Mapping[tuple[str, str], str]) -> str:
    """The benchmark writes six decimals into the section of its OSD. People write fewer."""
    name = f"osd_mclock_max_capacity_iops_{record.media}"
    own = sections.get((record.osd, name))
    if own is not None:
        decimals = own.partition(".")[2]
        return "boot benchmark" if len(decimals) >= 6 and decimals.strip("0") else "set for it"
    if any((section, name) in sections for section in ("osd", "global")):
        return "set for all"
    return record.origin
