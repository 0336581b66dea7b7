"""The collector; what it shows stands in tables.

The reply carries no types, and Crimson registers many a gauge as a counter; so what is shown under
a proper name and type stands in tables, and everything else, on request, is `unknown`.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, Self

from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.collectors.crimson.families import TABLE, Kept, ReplyFamilies
from cephqos_exporter.collectors.crimson.reply import METRICS
from cephqos_exporter.collectors.crimson.shown import GROUPS
from cephqos_exporter.config import Option, flag, texts
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family

_NAMES: Final = texts("", (), "")


def _groups(value: Any) -> tuple[str, ...]:
    names = _NAMES.parse(value)
    if not set(names) <= set(GROUPS):
        raise ValueError(value)
    return names


SHOWN_GROUPS: Final[Option[tuple[str, ...]]] = Option(
    name="collector.crimson.groups",
    default=(),
    help="Groups of Crimson's metrics to report as well.",
    parse=_groups,
    allowed=f"any of {', '.join(GROUPS)}",
    repeatable=True,
)
SHARD_HISTOGRAMS: Final = flag(
    "collector.crimson.shard-histograms",
    False,
    "Report histograms of each Crimson shard rather than of the whole OSD.",
)
EVERYTHING: Final = flag(
    "collector.crimson.everything",
    False,
    "Report all groups, and the other metrics under Seastar's names: 1,600 to 2,600 series per "
    "shard and store.",
)


class CrimsonCollector(DaemonCollector[Kept], name="crimson", help="Metrics of Crimson OSDs."):
    """Metrics of Crimson OSDs; nothing for classic ones, which do not know the command.

    Options: `groups`, more of what the tables have; `everything`, all that the reply has: what no
    table knows as `unknown` under Seastar's names; `shard_histograms`, histograms of each shard
    rather than of the OSD.
    """

    options = (SHOWN_GROUPS, SHARD_HISTOGRAMS, EVERYTHING)

    def __init__(
        self,
        *,
        groups: Collection[str] = (),
        everything: bool = False,
        shard_histograms: bool = False,
    ) -> None:
        super().__init__()
        wanted = {"", *(GROUPS if everything else groups)}
        self._table = {
            name: tuple(one for one in shown if one.group in wanted)
            for name, shown in TABLE.items()
        }
        self._everything = everything
        self._apart = shard_histograms

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        settings = inputs.settings
        return cls(
            groups=settings[SHOWN_GROUPS],
            everything=settings[EVERYTHING],
            shard_histograms=settings[SHARD_HISTOGRAMS],
        )

    def needed(self, daemon: Daemon, state: Kept | None) -> Sequence[Command]:
        return (Command(METRICS),)

    def first_seen(self, view: DaemonView) -> Kept:
        return Kept(view.labels)

    def families(self, view: DaemonView, state: Kept) -> Iterable[Family]:
        scrape = ReplyFamilies(state, self._table, self._everything, self._apart)
        return scrape.families(view.reply(METRICS))
