"""What Alertmanager would send: its grouping, inhibition and repetition, on a timeline of alerts.

A small model of one Alertmanager that reads the configuration as generated. Alerts are intervals of
seconds. As in Alertmanager, a group is looked at after group_wait and then each group_interval; it
is sent if an alert of it is new, if one has resolved, or if repeat_interval has passed. What is
inhibited is not sent and inhibits all the same.
"""

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_MATCHER: Final = re.compile(r'(\w+)(=~|=)"(.*)"')

Labels = Mapping[str, str]
Interval = tuple[float, float]


@dataclass(frozen=True)
class AlertTimeline:
    """An alert, and when it fires: in order, and apart."""

    labels: Labels
    fires: Sequence[Interval]


@dataclass(frozen=True)
class Sent:
    """A notification with something that fires; `opens` if nothing of its group was firing."""

    at: float
    receiver: str
    group: tuple[str, ...]
    alerts: int
    opens: bool


@dataclass(frozen=True)
class RouteTo:
    """Where an alert goes, and how it is grouped there."""

    receiver: str
    by: tuple[str, ...]
    wait: float
    interval: float
    repeat: float


@dataclass
class _Group:
    route: RouteTo
    members: list[AlertTimeline] = field(default_factory=list)


def _seconds(text: str) -> float:
    return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+)(ms|s|m|h|d)", text))


def _match(matchers: Iterable[str], labels: Labels) -> bool:
    for matcher in matchers:
        found = _MATCHER.fullmatch(matcher)
        assert found, matcher
        name, operator, value = found.groups()
        own = labels.get(name, "")
        if not (own == value if operator == "=" else re.fullmatch(value, own)):
            return False
    return True


def route_of(config: Mapping[str, Any], labels: Labels) -> RouteTo:
    """The route that an alert takes: the first that matches, the innermost."""
    route = config["route"]
    settled = dict(route)
    while inner := next(
        (it for it in route.get("routes", ()) if _match(it["matchers"], labels)), None
    ):
        settled |= inner
        route = inner
    return RouteTo(
        receiver=settled["receiver"],
        by=tuple(settled["group_by"]),
        wait=_seconds(settled["group_wait"]),
        interval=_seconds(settled["group_interval"]),
        repeat=_seconds(settled["repeat_interval"]),
    )


class _Inhibitions:
    """At a moment: which alerts are silent because another one fires."""

    def __init__(self, config: Mapping[str, Any], alerts: Sequence[AlertTimeline]) -> None:
        # By rule: the sources and the targets, by the labels that must be equal.
        self._rules: list[tuple[dict[Any, list[AlertTimeline]], dict[int, Any]]] = []
        self._at = -1.0
        self._found: dict[tuple[int, Any], bool] = {}
        for rule in config["inhibit_rules"]:
            equal = rule["equal"]
            sources: dict[Any, list[AlertTimeline]] = defaultdict(list)
            targets: dict[int, Any] = {}
            for alert in alerts:
                key = tuple(alert.labels.get(name, "") for name in equal)
                is_source = _match(rule["source_matchers"], alert.labels)
                if is_source:
                    sources[key].append(alert)
                # One that is both does not inhibit itself.
                if _match(rule["target_matchers"], alert.labels) and not is_source:
                    targets[id(alert)] = key
            if sources and targets:
                self._rules.append((sources, targets))

    def silent(self, alert: AlertTimeline, at: float) -> bool:
        for number, (_, targets) in enumerate(self._rules):
            key = targets.get(id(alert))
            if key is not None and self._fires(number, key, at):
                return True
        return False

    def _fires(self, number: int, key: Any, at: float) -> bool:
        """Whether a source with these labels fires; many targets have the same."""
        if at != self._at:
            self._at, self._found = at, {}
        if (number, key) not in self._found:
            sources = self._rules[number][0].get(key, ())
            self._found[number, key] = any(firing(it, at) for it in sources)
        return self._found[number, key]


def firing(alert: AlertTimeline, at: float) -> bool:
    return _within(alert.fires, at)


def _within(spans: Sequence[Interval], at: float) -> bool:
    number = bisect.bisect_right(spans, (at, float("inf"))) - 1
    return number >= 0 and at < spans[number][1]


def notifications(
    config: Mapping[str, Any], alerts: Sequence[AlertTimeline], until: float
) -> list[Sent]:
    """All that is sent until then, the oldest first."""
    inhibitions = _Inhibitions(config, alerts)
    groups: dict[tuple[str, ...], _Group] = {}
    for alert in alerts:
        route = route_of(config, alert.labels)
        key = (route.receiver, *(alert.labels.get(name, "") for name in route.by), *route.by)
        groups.setdefault(key, _Group(route)).members.append(alert)
    sent = [
        one for key, group in groups.items() for one in _of_group(key, group, inhibitions, until)
    ]
    return sorted(sent, key=lambda one: one.at)


def _of_group(
    key: tuple[str, ...], group: _Group, inhibitions: _Inhibitions, until: float
) -> Iterable[Sent]:
    told: set[int] = set()
    last = float("-inf")
    times = {id(it.fires): it.fires for it in group.members}  # many alerts share theirs
    for at in _looked_at(group, until):
        live = {number for number, spans in times.items() if _within(spans, at)}
        fire = [it for it in group.members if id(it.fires) in live]
        now = {id(it) for it in fire if not inhibitions.silent(it, at)}
        # Alerts that are told and no longer fire are sent as resolved.
        changed = bool(now - told) or bool(told - {id(it) for it in fire})
        if changed or (now and at - last >= group.route.repeat):
            if now:
                yield Sent(at, group.route.receiver, key, len(now), opens=not told)
            told, last = now, at  # what is inhibited later stays told until then


def _looked_at(group: _Group, until: float) -> Iterable[float]:
    """The moments at which the group is flushed: while it has alerts, and once after."""
    spans = _joined(sorted({span for it in group.members for span in it.fires}))
    end = float("-inf")
    for begin, over in spans:
        at = begin + group.route.wait if begin >= end else end
        while at < min(over + group.route.interval, until):
            yield at
            at += group.route.interval
        end = at


def _joined(spans: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for begin, end in spans:
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
