"""The collector: asks for Seastar's metrics, and chooses those to report."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.crimson.families import CrimsonOsd, ReplyFamilies
from cephqos_exporter.collectors.crimson.names import LEFT_OUT, USUAL
from cephqos_exporter.collectors.crimson.reply import METRICS
from cephqos_exporter.config import Settings, flag, texts
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family


class CrimsonCollector(
    DaemonCollector[CrimsonOsd], name="crimson", help="Metrics of Crimson OSDs."
):
    """Metrics of Crimson OSDs; nothing for classic ones, which do not know the command."""

    include = texts(
        "collector.crimson.include",
        (),
        "Metrics of Crimson to report as well, by Seastar's names, such as cache_*. * is all: "
        "1,600 to 2,600 series per shard and store.",
        allowed="patterns of names",
    )
    shard_histograms = flag(
        "collector.crimson.shard-histograms",
        False,
        "Report histograms of each Crimson shard rather than of the whole OSD.",
    )

    def __init__(self, settings: Settings | None = None, **given: Any) -> None:
        super().__init__(settings, **given)
        patterns = (*USUAL, *self.include)

        @lru_cache(maxsize=4096)
        def wanted(name: str) -> bool:
            return name not in LEFT_OUT and any(fnmatchcase(name, pattern) for pattern in patterns)

        self._wanted = wanted

    def needed(self, daemon: Daemon, state: CrimsonOsd | None) -> Sequence[Command]:
        return (Command(METRICS),)

    def first_seen(self, view: DaemonView) -> CrimsonOsd:
        return CrimsonOsd(view.labels)

    def families(self, view: DaemonView, state: CrimsonOsd) -> Iterable[Family]:
        reply = view.reply(METRICS)
        not_understood = view.not_understood
        families = ReplyFamilies(
            state, self._wanted, not_understood, by_shard=self.shard_histograms
        )
        return families.families(reply)
