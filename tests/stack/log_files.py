"""What tests of the log pipeline share: the tools, recorded logs moved to now, entries."""

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cephqos_loadgen.lab.builds import last_lines
from cephqos_stack.tools import TOOLS, find_tool, log_of

RECORDED = Path(__file__).parents[1] / "recordings" / "logs"
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}")
# As the collector's configuration has it; tests/unit/alerts/test_logs_lines.py compares the two.
ENTRY = re.compile(
    r"^(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+[+-]\d{4} |--- begin dump)", re.MULTILINE
)


def need_tools() -> None:
    """Skip, saying why, where Loki or the collector cannot be had."""
    for name in ("cephqos-collector", "loki", "logcli"):
        if find_tool(name) is None:
            log = log_of(TOOLS[name])
            why = f"its build failed:\n{last_lines(log)}" if log.is_file() else "`make tools`"
            pytest.skip(f"no {name}: {why}")


def recorded_to(folder: Path, release: str) -> None:
    """A release's recorded logs, the last line a moment ago: Loki wants none from the future."""
    shutil.copytree(RECORDED / release, folder)
    texts = {file: file.read_text() for file in folder.glob("*.log")}
    newest = max(datetime.fromisoformat(m) for t in texts.values() for m in STAMP.findall(t))
    shift = datetime.now(UTC).replace(tzinfo=None) - newest - timedelta(seconds=20)

    def moved(match: re.Match[str]) -> str:
        later = datetime.fromisoformat(match[0]) + shift
        return later.isoformat(timespec="milliseconds")

    for file, text in texts.items():
        file.write_text(STAMP.sub(moved, text))


def entries(text: str) -> list[str]:
    """A log's entries, each with the lines that belong to it; no space at the end of any."""
    begins = [match.start() for match in ENTRY.finditer(text)]
    return [text[a:b].rstrip() for a, b in zip(begins, [*begins[1:], None], strict=True)]
