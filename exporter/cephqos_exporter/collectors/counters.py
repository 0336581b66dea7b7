"""Perf counters of a daemon, from the one of two commands that its release has.

From 17.2 on `counter dump` gives for each logger a list of sets, each with its labels:
    {"osd": [{"labels": {}, "counters": {"op_wip": 3, "op_latency": {"avgcount": 9, "sum": 0.1}}}]}
Before that, `perf dump` gives one set per logger, without labels: {"osd": {"op_wip": 3, ...}}.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cephqos_exporter.daemon import Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.daemon_errors import UnknownCommand
from cephqos_exporter.families import Family, single
from cephqos_exporter.labels import LabelText
from cephqos_exporter.not_understood import MISREAD, NotUnderstood

LABELLED = "counter"
PLAIN = "perf"

# By what is asked for, and by the command that the daemon has. None: not known yet, so both.
_COMMANDS: Final[Mapping[str, Mapping[str | None, Sequence[Command]]]] = {
    what: {
        None: (Command(f"{LABELLED} {what}"), Command(f"{PLAIN} {what}")),
        LABELLED: (Command(f"{LABELLED} {what}"),),
        PLAIN: (Command(f"{PLAIN} {what}"),),
    }
    for what in ("dump", "schema")
}


_NUMBERS: Final = (int, float)  # the types themselves: a third of what isinstance takes


class CounterCommands:
    """Knows which of the two commands each daemon has; asks for both until it does."""

    def __init__(self) -> None:
        self._known: dict[Daemon, str] = {}

    def commands(self, daemon: Daemon, what: str = "dump") -> Sequence[Command]:
        """The commands for a daemon's counters (`dump`) or their description (`schema`)."""
        return _COMMANDS[what][self._known.get(daemon)]

    def kind(self, view: DaemonView) -> str:
        """Which of the two answered in this scrape; ReplyMissing if neither did."""
        known = self._known.get(view.daemon)
        if known is None:
            if "counter dump" in view.replies:
                known = self._known[view.daemon] = LABELLED
            elif (
                view.errors.get("counter dump") == UnknownCommand.reason
                and "perf dump" in view.replies
            ):
                known = self._known[view.daemon] = PLAIN
            else:
                raise ReplyMissing("counter dump", view.errors.get("counter dump", "not fetched"))
        return known

    def forget(self, daemon: Daemon) -> None:
        self._known.pop(daemon, None)

    def loggers(self, view: DaemonView) -> "Loggers":
        """The unlabelled counters of a daemon."""
        kind = self.kind(view)
        reply = view.reply(f"{kind} dump")
        return Loggers(reply, labelled=kind == LABELLED, not_understood=view.not_understood)


def figure(
    counters: Mapping[str, Any], key: str, not_understood: NotUnderstood, part: str = ""
) -> float | None:
    """A counter, or a part of an average (`sum`, `avgcount`).

    None if it is not there or not a number; that is counted as not understood.
    """
    value = counters.get(key)
    if part:
        value = value.get(part) if type(value) is dict else None
    if type(value) in _NUMBERS:
        return value
    not_understood.add("counter", f"{key} {part}".rstrip())
    return None


def average(
    counters: Mapping[str, Any], key: str, not_understood: NotUnderstood
) -> tuple[float, float] | None:
    """The sum and the count of an average; None as for `figure`."""
    value = counters.get(key)
    if type(value) is dict:
        total: Any = value.get("sum")
        count: Any = value.get("avgcount")
        if type(total) in _NUMBERS and type(count) in _NUMBERS:
            return total, count
    not_understood.add("counter", key)
    return None


def timed(
    counters: Mapping[str, Any],
    key: str,
    families: Sequence[tuple[str, str]],
    labels: LabelText,
    not_understood: NotUnderstood,
) -> Iterable[Family]:
    """An average as two counters. `families`: (name, help) of its sum and of its count."""
    for part, (name, text) in zip(("sum", "avgcount"), families, strict=True):
        value = figure(counters, key, not_understood, part)
        if value is not None:
            yield single(name, "counter", text, labels, value)


class Loggers:
    """Looks up a daemon's counters by logger, in a reply of either command."""

    def __init__(
        self, reply: Mapping[str, Any], *, labelled: bool, not_understood: NotUnderstood
    ) -> None:
        self._reply = reply
        self._labelled = labelled
        self._not_understood = not_understood

    def total(self, prefix: str, counter: str) -> float | None:
        """A counter summed over the sets of all loggers whose names begin with `prefix`.

        None if there is no such set, or if one of them lacks the counter.
        """

        def read() -> Iterator[float | None]:
            for logger, sets in self._reply.items():
                for one in sets if logger.startswith(prefix) else ():
                    if self._labelled:
                        yield figure(one["counters"], counter, self._not_understood)

        values = self._not_understood.all_of(prefix, read)
        known = [value for value in values if value is not None]
        return sum(known) if known and len(known) == len(values) else None

    def required(self, logger: str) -> Mapping[str, Any]:
        """The counters of a logger; ReplyMissing without it, as on Crimson, whose names differ."""
        counters = self.get(logger)
        if counters is None:
            raise ReplyMissing("counters", f"no logger {logger}")
        return counters

    def get(self, logger: str) -> Mapping[str, Any] | None:
        """The unlabelled counters of a logger; None if there is no such logger, or if it is not
        understood."""
        counters: Any = self._reply.get(logger)
        if counters is None and logger not in self._reply:
            return None
        try:
            if self._labelled:
                first = counters[0]  # the others have labels
                if first["labels"]:
                    first = next(entry for entry in counters if not entry["labels"])
                counters = first["counters"]
        except (*MISREAD, StopIteration):
            counters = None
        if type(counters) is dict:
            return counters
        self._not_understood.add("counter", logger)
        return None
