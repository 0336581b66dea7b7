"""Log lines as logfmt or JSON on standard error."""

import json
import logging
import sys
from datetime import UTC, datetime

_NAMES = {"WARNING": "warn", "CRITICAL": "error"}


class _Lines(logging.Formatter):
    def fields(self, record: logging.LogRecord) -> dict[str, str]:
        moment = datetime.fromtimestamp(record.created, UTC)
        found = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": _NAMES.get(record.levelname, record.levelname.lower()),
            "source": record.name.removeprefix("cephqos_exporter."),
            "msg": record.getMessage(),
        }
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return found


class _Logfmt(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_quoted(value)}" for key, value in self.fields(record).items())


class _Json(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self.fields(record))


def _quoted(value: str) -> str:
    plain = value and all(c.isprintable() and c not in ' ="' for c in value)
    return value if plain else json.dumps(value, ensure_ascii=False)


def set_up(level: str, form: str) -> None:
    """Send the exporter's log to standard error, from `level` up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Logfmt())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel({"warn": "WARNING"}.get(level, level.upper()))
