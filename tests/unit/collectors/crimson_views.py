"""Replies of Crimson OSDs of four builds, and what the collector makes of them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
from tests.recorded import CRIMSON
from tests.replay.daemons import RecordedDaemon

from cephqos_exporter.collectors.crimson import METRICS, CrimsonCollector
from cephqos_exporter.daemon import Daemon, DaemonView, Host
from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels

from .. import osd_views

DOCUMENTATION = Path(__file__).parents[3] / "docs/internals/crimson.md"
SEGMENTS, BLOCKS, BLUESTORE = "spring-segments", "autumn-random-blocks", "spring-bluestore"
NEWEST = "autumn-segments"
BUILDS = (SEGMENTS, BLOCKS, NEWEST, BLUESTORE)


def view(reply: object, *, kind: str = "osd", error: str = "") -> DaemonView:
    daemon = Daemon(kind, "0", "c", Path("/run/osd.0.asok"))
    replies: dict[str, Any] = {} if error else {METRICS: reply}
    errors = {METRICS: error} if error else {}
    return DaemonView(daemon, render_labels(daemon.labels), replies, errors, 1.0, Host())


def samples(families: Iterable[Family]) -> dict[str, float]:
    """Without the count of what was unread."""
    shown = (family for family in families if not family.name.endswith("_unread"))
    return osd_views.samples(shown, 'ceph_daemon="osd.0",cluster="c"')


def collected(reply: object, **options: Any) -> dict[str, float]:
    return samples(CrimsonCollector(**options).collect(view(reply)))


def unread(reply: object, **options: Any) -> float:
    families = CrimsonCollector(**options).collect(view(reply))
    return next(f.samples[0][2] for f in families if f.name == "cephqos_crimson_metrics_unread")


def recorded(build: str) -> Any:
    return orjson.loads(RecordedDaemon.load(CRIMSON / build).replies[METRICS])


def entry(name: str, value: object, **labels: object) -> dict[str, Any]:
    return {name: {**labels, "value": value}}


def one(name: str, value: object, **labels: object) -> dict[str, Any]:
    return {"metrics": [entry(name, value, **labels)]}


def histogram(
    counts: Mapping[float, int] | Mapping[int, int], count: int, total: float = 0
) -> dict[str, Any]:
    buckets: list[dict[str, Any]] = [{"le": le, "count": n} for le, n in counts.items()]
    return {"sum": total, "count": count, "buckets": [*buckets, {"le": "+Inf", "count": count}]}


def buckets(found: dict[str, float], name: str) -> list[float]:
    return [value for key, value in found.items() if key.startswith(f"{name}_bucket")]
