"""What `cephqos capacity` asks a Prometheus, and how the answers become records of OSDs.

The time is divided into pieces, such as the 168 hours of a week. `gather` asks how each OSD is set
up now, and what it did in each piece. `with_cluster_facts` adds what only the cluster knows.
`cephqos advise` uses `gather` and `over_time`, too.
"""

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from cephqos_base.profiles import CAPACITY_OPTION
from cephqos_base.prometheus import OsdKey, Prometheus, Sample, of_osds, osd_of
from cephqos_base.recorded import PerOsd
from cephqos_base.series import OSD, OSD_CLASS, QosSeries
from cephqos_base.servers import NoAnswer
from cephqos_base.units import duration
from cephqos_insight.capacity.estimate import OsdRecord, Piece
from cephqos_insight.shared import HOSTS

# A week in hours; any other time is divided into as many pieces.
PIECES: Final = 168
SHORTEST: Final = 60.0  # seconds of a piece: rates look back that far
_PIECES_AT_ONCE: Final = 24  # of one request: an engine limits the samples of an answer
# Without rules: the window of a rate, long enough for scrapes a minute apart.
_RATE_SECONDS: Final = 300.0


def _condition(name: str) -> str:
    return f'{PerOsd.CONDITION}{{condition=~"{name}"}}'


def _over_piece(function: str, series: str) -> str:
    """A query for one value of each OSD and piece. PIECE stands for the length of the piece."""
    return f"max by ({OSD}) ({function}_over_time({series}[PIECE]))"


# By field of a Piece. `count`: in how many samples. What a saturated OSD does is an average: the
# highest of many rates is a lucky one.
_FIELDS: Final[Mapping[str, str]] = {
    "delivered": _over_piece("max", PerOsd.DELIVERED_OPS),
    "requests": _over_piece("max", f'{PerOsd.DEVICE_WORK}{{unit="requests"}}'),
    "saturated_ops": _over_piece("avg", PerOsd.SATURATED_OPS),
    "saturated_samples": _over_piece("count", PerOsd.SATURATED_OPS),
    "cpu_samples": _over_piece("count", _condition("cpu_short")),
    "depth": _over_piece("max", PerOsd.DEVICE_DEPTH),
    "piling_up": _over_piece("max", PerOsd.STORE_PILING_UP),
    "large": _over_piece("max", _condition("large_ops")),
    "failing": _over_piece("max", _condition("device_failing|store_failing")),
    "capacity": _over_piece("last", PerOsd.CAPACITY_OPS),
}
_BOOLEAN_FIELDS: Final = ("piling_up", "large", "failing")

Progress = Callable[[str], None]  # gets a line after each answer


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a Prometheus has of all OSDs. Times are Unix seconds."""

    records: tuple[OsdRecord, ...]
    rules: bool  # whether it has the series of our rules
    start: float
    end: float
    step: float  # the length of a piece in seconds


class SeriesOverTime(NamedTuple):
    """A series that a query gave, with its value at the end of each piece that has one."""

    query: str  # its name
    labels: Mapping[str, str]
    values: Sequence[tuple[float, float]]  # Unix seconds, value


def range_queries(step: float, rules: bool) -> Mapping[str, str]:
    """A query per field of a Piece, for pieces of `step` seconds; without rules one field only."""
    piece = duration(step)
    if rules:
        return {name: query.replace("PIECE", piece) for name, query in _FIELDS.items()}
    window, every = duration(_RATE_SECONDS), duration(min(step, _RATE_SECONDS))
    rate = f"max by ({OSD}) (rate({QosSeries.DELIVERED_OPS}[{window}]))"
    return {"delivered": f"max_over_time(({rate})[{piece}:{every}])"}


# How an OSD is set up now.
_ABOUT: Final = f"{OSD}, media, capacity_origin, in_force"
NOW: Final[Mapping[str, str]] = {
    "capacity": f"max by ({OSD}) {of_osds(QosSeries.CAPACITY_OPS)}",
    "reservations": f"max by ({OSD_CLASS}) {of_osds(QosSeries.RESERVATION_RATIO)}",
    "limits": f"max by ({OSD_CLASS}) {of_osds(QosSeries.LIMIT_RATIO)}",
    "info": f"max by ({_ABOUT}) {of_osds(QosSeries.SCHEDULER_INFO)}",
    "lower_bound": f"max by ({OSD}) {of_osds(QosSeries.DELIVERED_IS_LOWER_BOUND)}",
    "host": HOSTS,
}


async def gather(
    api: Prometheus, since: float, step: float | None, progress: Progress = lambda _: None
) -> History:
    """Ask about all OSDs. Raises NoAnswer if an answer is missing or is not understood."""
    end = await api.now()
    step = step or max(SHORTEST, math.ceil(since / PIECES))
    now = await api.vectors(NOW, end)
    rules = bool(await api.vector(f"group(last_over_time({PerOsd.DELIVERED_OPS}[1h]))", end))
    # By OSD and the end of the piece: fields of a Piece.
    pieces: dict[OsdKey, dict[float, dict[str, float]]] = {}
    for query, labels, values in await over_time(
        api, range_queries(step, rules), end - since, end, step, progress
    ):
        of_osd = pieces.setdefault(osd_of(labels), {})
        for time, value in values:
            of_osd.setdefault(time, {})[query] = value
    settings = {name: _by_osd(samples) for name, samples in now.items()}
    # An OSD that is down now, but did something in the time, is shown too.
    osds = sorted({*pieces, *settings["host"], *settings["capacity"]})
    records = tuple(_record(osd, settings, pieces.get(osd, {})) for osd in osds)
    return History(records=records, rules=rules, start=end - since, end=end, step=step)


async def over_time(
    api: Prometheus,
    queries: Mapping[str, str],
    start: float,
    end: float,
    step: float,
    progress: Progress = lambda _: None,
) -> Sequence[SeriesOverTime]:
    """What each query, by its name, gives at the end of each piece of the time."""
    spans = list(_spans(start, end, step))
    found: list[SeriesOverTime] = []
    for number, (first, last) in enumerate(spans, start=1):
        answers = await asyncio.gather(
            *(_range(api, name, query, first, last, step) for name, query in queries.items())
        )
        for answer in answers:
            found += answer
        progress(f"asked {number * len(queries)} of {len(spans) * len(queries)} questions")
    return found


def _spans(start: float, end: float, step: float) -> Iterator[tuple[float, float]]:
    """The ends of the first and the last piece of each request."""
    count = max(1, math.floor((end - start) / step))
    first = end - (count - 1) * step
    for at in range(0, count, _PIECES_AT_ONCE):
        last = min(at + _PIECES_AT_ONCE, count) - 1
        yield first + at * step, first + last * step


async def _range(
    api: Prometheus, name: str, query: str, start: float, end: float, step: float
) -> list[SeriesOverTime]:
    matrix = await api.result(
        "query_range", query=query, start=f"{start:.3f}", end=f"{end:.3f}", step=f"{step:g}"
    )
    try:
        return [
            SeriesOverTime(
                name,
                series["metric"],
                [(float(time), float(value)) for time, value in series["values"] if value != "NaN"],
            )
            for series in matrix
        ]
    except (KeyError, TypeError, ValueError) as exc:
        raise NoAnswer("/api/v1/query_range: an answer of another shape") from exc


def _by_osd(samples: Sequence[Sample]) -> dict[OsdKey, list[Sample]]:
    by_osd: dict[OsdKey, list[Sample]] = {}
    for labels, value in samples:
        by_osd.setdefault(osd_of(labels), []).append((labels, value))
    return by_osd


def _record(
    osd: OsdKey,
    settings: Mapping[str, Mapping[OsdKey, list[Sample]]],
    pieces: Mapping[float, Mapping[str, float]],
) -> OsdRecord:
    """An OSD from the answers to NOW, and from the fields of its pieces."""
    samples = {name: by_osd.get(osd, []) for name, by_osd in settings.items()}
    info = _first_labels(samples["info"])
    return OsdRecord(
        cluster=osd.cluster,
        osd=osd.osd,
        host=_first_labels(samples["host"]).get("instance", ""),
        media=info.get("media", ""),
        origin=info.get("capacity_origin", ""),
        in_force=info.get("in_force", ""),
        capacity=samples["capacity"][0][1] if samples["capacity"] else None,
        lower_bound=any(value > 0 for _, value in samples["lower_bound"]),
        reservations={labels.get("class", ""): value for labels, value in samples["reservations"]},
        limits={labels.get("class", ""): value for labels, value in samples["limits"]},
        pieces=tuple(
            _piece(end, fields) for end, fields in sorted(pieces.items()) if "delivered" in fields
        ),
    )


def _first_labels(samples: Sequence[Sample]) -> Mapping[str, str]:
    return samples[0][0] if samples else {}


def _piece(end: float, fields: Mapping[str, float]) -> Piece:
    booleans = {name: fields.get(name, 0) > 0 for name in _BOOLEAN_FIELDS}
    given: dict[str, Any] = {**fields, **booleans}
    return Piece(end=end, **given)


def with_cluster_facts(history: History, metadata: Any, dump: Any) -> History:
    """The same history with devices, hosts and origins of capacities as the cluster says them.

    `metadata`, `dump`: the replies to `ceph osd metadata` and `ceph config dump`.
    """
    by_osd = {f"osd.{row.get('id')}": row for row in metadata if isinstance(row, dict)}
    values = {
        (str(row.get("section", "")), str(row.get("name", ""))): str(row.get("value", ""))
        for row in dump
        if isinstance(row, dict) and not row.get("mask")
    }

    def with_facts(record: OsdRecord) -> OsdRecord:
        about = by_osd.get(record.osd, {})
        return replace(
            record,
            host=str(about.get("hostname", "")) or record.host,
            model=model_of(about),
            cpu=str(about.get("cpu", "")),
            origin=_origin(record, values),
        )

    return replace(history, records=tuple(map(with_facts, history.records)))


def model_of(metadata: Mapping[str, Any]) -> str:
    """The models of an OSD's devices.

    >>> model_of({"device_ids": "sda=VENDOR_MODEL_SERIAL,sdb=VENDOR_OTHER_SERIAL"})
    'VENDOR_MODEL + VENDOR_OTHER'
    """
    ids = [entry.partition("=")[2] for entry in str(metadata.get("device_ids", "")).split(",")]
    models = {device_id.rpartition("_")[0] for device_id in ids}
    return " + ".join(sorted(models - {""}))


def _origin(record: OsdRecord, values: Mapping[tuple[str, str], str]) -> str:
    """Where the capacity of an OSD comes from. `values`: by section and option.

    The benchmark at boot writes six decimals into the section of its OSD. People write fewer.
    """
    option = f"{CAPACITY_OPTION}{record.media}"
    set_for_osd = values.get((record.osd, option))
    if set_for_osd is not None:
        decimals = set_for_osd.partition(".")[2]
        return "boot benchmark" if len(decimals) >= 6 and decimals.strip("0") else "set for it"
    if any((section, option) in values for section in ("osd", "global")):
        return "set for all"
    return record.origin
