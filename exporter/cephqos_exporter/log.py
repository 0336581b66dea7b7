"""Log lines as logfmt or JSON on standard error."""

import json
import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from cephqos_base.terminal import json_text, printable_lines

_LONGEST = 8000
_NAMES = {"WARNING": "warn", "CRITICAL": "error"}


class _Lines(logging.Formatter):
    """What both formats have in common."""

    def fields(self, record: logging.LogRecord) -> dict[str, str]:
        moment = datetime.fromtimestamp(record.created, UTC)
        fields = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": _NAMES.get(record.levelname, record.levelname.lower()),
            "source": record.name.removeprefix("cephqos_exporter."),
            "msg": _cut(record.getMessage()),
        }
        if record.exc_info:
            fields["error"] = _cut(self.formatException(record.exc_info))
        return fields


def _cut(text: str) -> str:
    """The text, of bounded length: parts of it may come from daemons and clients."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"


class _Logfmt(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_quoted(value)}" for key, value in self.fields(record).items())


class _Json(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        return json_text(self.fields(record))


class Bounded(logging.Filter):
    """Lets `lines` lines of a kind pass in `seconds`, then only counts them: a bad client cannot
    fill a disk.

    A kind is a logger and a message without its arguments. asyncio and aiohttp put details into the
    message itself, so all of their lines are one kind. Debug lines are not bounded.
    """

    def __init__(
        self, *, lines: int = 10, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._lines = lines
        self._seconds = seconds
        self._clock = clock
        self._began = clock()
        self._kinds: dict[tuple[str, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG:
            return True
        logger = record.name.partition(".")[0]
        is_library = logger in ("asyncio", "aiohttp")
        kind = (logger, "") if is_library else (record.name, str(record.msg)[:200])
        left_out = 0
        if self._clock() - self._began >= self._seconds:
            left_out = max(0, self._kinds.get(kind, 0) - self._lines)
            self._began = self._clock()
            self._kinds.clear()
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self._kinds[kind] > self._lines:
            return False
        if left_out or self._kinds[kind] == self._lines:
            record.msg = f"{record.getMessage()} ({self._more(left_out)})"
            record.args = ()
        return True

    def _more(self, left_out: int) -> str:
        if left_out:
            return f"{left_out} more like it were left out"
        return f"more like it are left out for up to {self._seconds:g} s"


def _quoted(value: str) -> str:
    plain = value and all(c.isprintable() and c not in ' ="' for c in value)
    if plain:
        return value
    # Letters of other languages stay readable. What a terminal would obey is escaped.
    harmless = printable_lines(value) == value
    return json.dumps(value, ensure_ascii=False) if harmless else json_text(value)


def set_up(level: str, form: str) -> None:
    """Send the exporter's log to standard error, from `level` up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(Bounded())
    handler.setFormatter(_Json() if form == "json" else _Logfmt())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel({"warn": "WARNING"}.get(level, level.upper()))
