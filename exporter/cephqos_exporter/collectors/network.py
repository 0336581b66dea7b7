"""How long heartbeats between OSDs take: the network as each OSD sees it.

Every OSD pings its peers every few seconds over both networks and keeps averages. A ping that takes
long means a slow network, or a peer (or this OSD) that is too busy to answer.

`dump_osd_network` gives {"entries": [{"interface": "back", "to osd": 3, "stale": false,
"average": {"1min": 0.4, "5min": 0.4, "15min": 0.4}, ...}]}, times in milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from cephqos_exporter.collectors.base import Clues, CollectorInputs, DaemonCollector
from cephqos_exporter.collectors.interval import ReadInterval
from cephqos_exporter.config import Settings, seconds
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family, gauge, single
from cephqos_exporter.labels import Labels, extend_labels
from cephqos_exporter.not_understood import MISREAD, NotUnderstood, listed

COMMAND: Final = "dump_osd_network"

INTERFACES: Final = ("front", "back")  # the networks to clients, and between OSDs

_Ping = Mapping[str, Any]  # an entry of the reply
# Ceph's names for the times that it averages over, and ours.
_WINDOWS: Final = (("1min", "1m"), ("5min", "5m"), ("15min", "15m"))
_MILLISECONDS: Final = 1e3

_ANSWERING: Final = (
    "cephqos_network_peers",
    "Heartbeat peers that answered lately, by network. Absent until a ping was answered.",
)
_SLOW: Final = (
    "cephqos_network_slow_peers",
    "Peers whose mean ping time over one minute reaches cephqos_network_slow_bound_seconds.",
)
_STALE: Final = (
    "cephqos_network_stale_peers",
    "Peers whose ping times are old. They are left out of all other figures of the network.",
)
_BOUND: Final = (
    "cephqos_network_slow_bound_seconds",
    "gauge",
    "Mean ping time at which cephqos_network_slow_peers counts a peer (--collector.network.slow).",
)


@dataclass(slots=True)
class _NetworkOsd:
    labels: Labels
    interval: ReadInterval
    families: Sequence[Family] = field(default_factory=tuple)


class NetworkCollector(
    DaemonCollector[_NetworkOsd],
    name="network",
    help="Heartbeat ping times between OSDs: the worst peer, the median, how many are slow.",
):
    """Heartbeat ping times of an OSD, over its peers."""

    # A reply has 270 bytes per peer and network.
    interval = seconds(
        "collector.network.interval",
        15.0,
        "Seconds between reads of an OSD's heartbeat ping times.",
    )
    slow = seconds(
        "collector.network.slow",
        0.1,
        "A peer counts as slow at this mean ping time over one minute, in seconds.",
        most=60,
    )

    def __init__(
        self, settings: Settings | None = None, *, clues: Clues | None = None, **given: Any
    ) -> None:
        super().__init__(settings, **given)
        self._clues = clues or Clues()

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        return cls(inputs.settings, clues=inputs.clues)

    def forget(self, daemon: Daemon) -> None:
        super().forget(daemon)
        self._clues.forget(daemon)

    def needed(self, daemon: Daemon, state: _NetworkOsd | None) -> Sequence[Command]:
        return (Command(COMMAND),) if state is None or state.interval.due else ()

    def first_seen(self, view: DaemonView) -> _NetworkOsd:
        return _NetworkOsd(Labels(view.labels), ReadInterval(self.interval))

    def families(self, view: DaemonView, state: _NetworkOsd) -> Iterable[Family]:
        asked = state.interval.due
        state.interval.scraped(view.time, read=COMMAND in view.replies)
        if asked:
            state.families = ()  # what is not known any more is not shown
            not_understood = view.not_understood
            reply = view.reply(COMMAND)
            pings = not_understood.all_of(COMMAND, lambda: listed(reply["entries"]))
            pings = [ping for ping in pings if _is_understood(ping, not_understood)]
            state.families = self._families_of(pings, state.labels)
            self._clues.of(view.daemon).ping = _median_seconds(pings)
        return state.families

    def _families_of(self, pings: Sequence[_Ping], labels: Labels) -> Sequence[Family]:
        by_interface = {name: [p for p in pings if p["interface"] == name] for name in INTERFACES}
        fresh = {name: [p for p in by_interface[name] if not p["stale"]] for name in INTERFACES}
        answering, slow, stale = gauge(*_ANSWERING), gauge(*_SLOW), gauge(*_STALE)
        slow_from = self.slow * _MILLISECONDS
        for name in INTERFACES:
            if by_interface[name]:
                text = labels.of("interface", name)
                answering.add(text, len(fresh[name]))
                slow.add(text, sum(ping["average"]["1min"] >= slow_from for ping in fresh[name]))
                stale.add(text, len(by_interface[name]) - len(fresh[name]))
        bound = single(*_BOUND, labels.base, self.slow)
        return [*_times(fresh, labels), _worst_peers(fresh, labels), answering, slow, stale, bound]


def _is_understood(entry: Any, not_understood: NotUnderstood) -> bool:
    """Whether an entry is a ping of the usual shape; one that is not is counted."""
    try:
        known = entry["interface"] in INTERFACES and type(entry["stale"]) is bool
        known &= isinstance(entry["to osd"], int)
        known &= all(isinstance(entry["average"][key], int | float) for key, _ in _WINDOWS)
    except MISREAD:
        known = False
    if not known:
        not_understood.add("reply", f"{COMMAND}: {entry}")
    return known


def _median_seconds(pings: Sequence[_Ping]) -> float:
    """The median ping time over the peers, on the network between OSDs; 0 without peers."""
    back = [p["average"]["1min"] for p in pings if p["interface"] == "back" and not p["stale"]]
    return _median(back) / _MILLISECONDS if back else 0.0


def _median(values: Sequence[float]) -> float:
    """As statistics.median, whose module takes half a megabyte of memory."""
    ordered, half = sorted(values), len(values) // 2
    return (ordered[half] + ordered[~half]) / 2


def _times(fresh: Mapping[str, Sequence[_Ping]], labels: Labels) -> Iterable[Family]:
    worst = gauge(
        "cephqos_network_ping_worst_seconds",
        "Mean heartbeat ping time to the slowest peer, by network and by window (the "
        "time over which Ceph averages). Absent until a ping was answered.",
    )
    middle = gauge(
        "cephqos_network_ping_median_seconds",
        "Median over all peers of the mean heartbeat ping time, by network and by "
        "window (the time over which Ceph averages). Absent until a ping was answered.",
    )
    for name, pings in fresh.items():
        for key, window in _WINDOWS if pings else ():
            times = [ping["average"][key] / _MILLISECONDS for ping in pings]
            text = labels.of("interface", name, "window", window)
            worst.add(text, max(times))
            middle.add(text, _median(times))
    return worst, middle


def _worst_peers(fresh: Mapping[str, Sequence[_Ping]], labels: Labels) -> Family:
    family = Family(
        "cephqos_network_worst_peer_info",
        "gauge",
        "The peer with the longest mean ping time over one minute, by network.",
    )
    for name, pings in fresh.items():
        if pings:
            worst = max(pings, key=lambda ping: float(ping["average"]["1min"]))
            pairs = {"interface": name, "peer": f"osd.{worst['to osd']}"}
            # Rendered each time: to keep the text of every peer that may come would cost memory.
            family.add(extend_labels(labels.base, pairs), 1)
    return family
