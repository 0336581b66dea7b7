"""What rules, dashboards, top and reports read, and what the exporter shows of a release."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.contract.releases import CLUSTER_MOMENTS, Release, Replies

from cephqos_base import series
from cephqos_exporter.ceph.cluster import ClusterQuery, ClusterReader, Cost
from cephqos_exporter.cluster.cluster_source import ClusterSource
from cephqos_exporter.cluster.poller import Poller
from cephqos_exporter.collectors import COLLECTORS
from cephqos_exporter.collectors.cgroup import CgroupCollector
from cephqos_exporter.collectors.disks import DisksCollector
from cephqos_exporter.collectors.placement import PlacementCollector
from cephqos_exporter.collectors.threads import ThreadsCollector
from cephqos_exporter.daemon import Daemon, DaemonView, Host, ReplyMissing
from cephqos_exporter.daemon_errors import SourceUnavailable, UnknownCommand
from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels

# Series that are not made from Ceph's replies: of the exporter, the host, probes and test runs.
_NOT_OF_REPLIES: Final = (
    *(series.ExporterSeries, series.DaemonSeries, series.ThreadsSeries, series.DisksSeries),
    *(series.CgroupSeries, series.HostSeries),
    *(series.PlacementSeries, series.ProbeSeries, series.ClientSeries, series.RunSeries),
)
# Those of a policy file, of a device for the DB (no recorded OSD has one), of placement groups that
# were looked at twice while they moved or trimmed (no recording has that), and what the exporter
# measures.
_OF_OURS: Final = frozenset(
    {
        series.ClusterSeries.COMMAND_SECONDS,
        series.QosSeries.TARGET_RESERVATION_OPS,
        series.QosSeries.CLUSTER_TARGET_RESERVATION_OPS,
        series.QosSeries.STORE_DB_USED_BYTES,
        series.QosSeries.STORE_SPILLED_BYTES,
        series.RecoverySeries.CLUSTER_ETA_SECONDS,
        series.SnapTrimSeries.OSD_PGS,
        series.SnapTrimSeries.POOL_ETA_SECONDS,
        "cephqos_snaptrim_pool_trimmed_snapshots_total",
    }
)
_OF_THE_HOST: Final = (CgroupCollector, ThreadsCollector, DisksCollector, PlacementCollector)
_PARTS: Final = re.compile(r"_(?:bucket|sum|count)$")
_CLASS: Final = re.compile(r'\bclass="(\w+)"')
_OSD: Final = Daemon("osd", "3", "c0ffee00-0000-4000-8000-000000000001", Path("/run/osd.3.asok"))
_NOW: Final = 1_795_000_000.0
_STEP_SECONDS: Final = 10.0  # between scrapes: all that is kept is read again
_CLUSTER_OPTIONS: Final = {
    "osd_scrub_min_interval": 86400.0,
    "osd_scrub_max_interval": 604800.0,
    "osd_deep_scrub_interval": 604800.0,
    "mon_warn_pg_not_scrubbed_ratio": 0.5,
    "mon_warn_pg_not_deep_scrubbed_ratio": 0.75,
}
_FILES: Final = {"osd dump": "osd_dump", "osd tree": "osd_tree", "pg ls": "scrubbing"}
_DUMPS: Final = {"pools": "pools", "pgs_brief": "brief", "osds": "osd_use"}


@cache
def needed_series() -> frozenset[str]:
    """Every series made from replies of Ceph that something of ours reads.

    A class of names that is new in `cephqos_base.series` counts, unless it is listed above.
    """
    groups = [
        group
        for name, group in vars(series).items()
        if name.endswith("Series") and group not in _NOT_OF_REPLIES
    ]
    names = {text for group in groups for key, text in vars(group).items() if key.isupper()}
    return frozenset(names) - _OF_OURS


@dataclass(slots=True)
class Shown:
    """What the exporter makes of a release."""

    fields: set[str] = field(default_factory=set)  # `series`, or `series{class="client"}`
    not_understood: dict[str, str] = field(default_factory=dict)  # by collector and kind
    failed: dict[str, str] = field(default_factory=dict)  # collectors, and why
    asked: set[str] = field(default_factory=set)  # commands of an OSD
    help: dict[str, str] = field(default_factory=dict)  # by series

    def add(self, families: Iterable[Family]) -> None:
        for family in families:
            self.help[family.name] = family.help
            for suffix, labels, _ in family.samples:
                self._add(family.name + suffix, labels)

    def _add(self, name: str, labels: str) -> None:
        wanted = needed_series()
        name = name if name in wanted else _PARTS.sub("", name)
        if name in wanted:
            cls = _CLASS.search(labels)
            self.fields.add(f'{name}{{class="{cls[1]}"}}' if cls else name)


def shown_by(release: Release) -> Shown:
    """What an OSD and a cluster of that release show, from replies as the release gives them."""
    cluster = {moment: release.cluster_replies(moment) for moment in CLUSTER_MOMENTS}
    return shown(
        [release.osd_replies(m) for m in release.moments], cluster if release.cluster else {}
    )


def shown(
    osd: Iterable[Replies], cluster: Mapping[str, Replies], found: Shown | None = None
) -> Shown:
    found = found or Shown()
    collectors = [made() for made in COLLECTORS if made not in _OF_THE_HOST]
    for scrape, replies in enumerate(osd):
        for collector in collectors:
            _scrape(collector, replies, _NOW + _STEP_SECONDS * scrape, found)
    if cluster:
        asyncio.run(_poll(cluster, found))
    return found


def _scrape(collector: Any, replies: Replies, now: float, found: Shown) -> None:
    asked = [command.prefix for command in collector.commands(_OSD)]
    found.asked.update(asked)
    view = DaemonView(
        daemon=_OSD,
        labels=render_labels(_OSD.labels),
        replies={prefix: replies[prefix] for prefix in asked if prefix in replies},
        errors={p: UnknownCommand.reason for p in asked if p not in replies},
        time=now,
        host=Host(proc=Path("/nowhere"), sys=Path("/nowhere")),
    )
    try:
        found.add(collector.collect(view))
    except ReplyMissing as missing:
        if missing.reason != UnknownCommand.reason:
            found.failed[collector.name] = str(missing)
    except Exception as failure:
        found.failed[collector.name] = repr(failure)
    for what, (_, text) in view.not_understood.take():
        found.not_understood[f"{collector.name}: {what}"] = text


class _Reader(ClusterReader):
    """Answers from replies at hand."""

    def __init__(self, replies: Replies) -> None:
        self.replies = replies
        self.costs: dict[str, Cost] = {}

    @property
    def starts(self) -> int:
        return 1

    async def ask(self, query: ClusterQuery) -> Any:
        if query.prefix == "config get":
            return _CLUSTER_OPTIONS[query.arguments["key"]]
        if query.prefix == "pg dump":
            (content,) = query.arguments["dumpcontents"]
            return self.replies[_DUMPS[content]]
        if query.prefix == "pg ls-by-primary":
            return self.replies[f"primary_{query.arguments['osd']}"]
        return self.replies[_FILES.get(query.prefix, query.prefix)]

    async def close(self) -> None:
        pass


async def _poll(cluster: Mapping[str, Replies], found: Shown) -> None:
    now = _NOW

    def clock() -> float:
        return now

    reader = _Reader({})
    poller = Poller(reader, clock=clock, interval=5.0, schedule_interval=300.0, most_pgs=1000)
    source = ClusterSource(lambda: poller, clock=clock)
    for replies in _twice(cluster.values()):
        reader.replies = replies
        try:
            if not await poller.poll():
                found.failed["cluster"] = repr(poller.failure)
            found.add(await source.collect(float("inf")))
        except SourceUnavailable as failure:
            found.failed.setdefault("cluster", str(failure))
        for what, (_, text) in source.not_understood.take():
            found.not_understood[f"cluster: {what}"] = text
        now += _STEP_SECONDS
    await source.close()


def _twice(replies: Iterable[Replies]) -> Iterator[Replies]:
    """Rates need two polls."""
    for one in replies:
        yield from (one, one)
