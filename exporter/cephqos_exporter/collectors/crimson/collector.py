"""The collector: which of Seastar's metrics are wanted, and what is kept of an OSD."""

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Self

from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.collectors.crimson.families import Kept, ReplyFamilies
from cephqos_exporter.collectors.crimson.names import LEFT_OUT, USUAL
from cephqos_exporter.collectors.crimson.reply import METRICS
from cephqos_exporter.config import flag, texts
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family

INCLUDE: Final = texts(
    "collector.crimson.include",
    (),
    "Metrics of Crimson to report as well, by Seastar's names, such as cache_*. * is all: 1,600 to "
    "2,600 series per shard and store.",
    allowed="patterns of names",
)
SHARD_HISTOGRAMS: Final = flag(
    "collector.crimson.shard-histograms",
    False,
    "Report histograms of each Crimson shard rather than of the whole OSD.",
)


class CrimsonCollector(DaemonCollector[Kept], name="crimson", help="Metrics of Crimson OSDs."):
    """Metrics of Crimson OSDs; nothing for classic ones, which do not know the command.

    Options: `include`, patterns of what is shown beside the usual; `shard_histograms`, histograms
    of each shard rather than of the OSD.
    """

    options = (INCLUDE, SHARD_HISTOGRAMS)

    def __init__(self, *, include: Collection[str] = (), shard_histograms: bool = False) -> None:
        super().__init__()
        patterns = (*USUAL, *include)

        @lru_cache(maxsize=4096)
        def wanted(name: str) -> bool:
            return name not in LEFT_OUT and any(fnmatchcase(name, one) for one in patterns)

        self._wanted = wanted
        self._apart = shard_histograms

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        settings = inputs.settings
        return cls(include=settings[INCLUDE], shard_histograms=settings[SHARD_HISTOGRAMS])

    def needed(self, daemon: Daemon, state: Kept | None) -> Sequence[Command]:
        return (Command(METRICS),)

    def first_seen(self, view: DaemonView) -> Kept:
        return Kept(view.labels)

    def families(self, view: DaemonView, state: Kept) -> Iterable[Family]:
        return ReplyFamilies(state, self._wanted, self._apart).families(view.reply(METRICS))
