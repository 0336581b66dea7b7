"""The pages of the documentation, and what stands in them."""

import re
from pathlib import Path
from typing import Final

# Those that people write: `cephqos report` writes a report.md.
PAGES: Final = sorted(
    path
    for path in Path().glob("**/*.md")
    if not {"tests", "build", "dist", "report.md"} & set(path.parts)
    and not any(part.startswith(".") for part in path.parts)
)
FENCE: Final = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    return FENCE.sub("", read(page))


def block_lines(page: Path) -> list[str]:
    """Lines of blocks, with those that go on joined."""
    blocks = [text.replace("\\\n", " ") for _, text in FENCE.findall(read(page))]
    return "".join(blocks).splitlines()


def spans(page: Path) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def code(page: Path) -> list[str]:
    return [*block_lines(page), *spans(page)]
