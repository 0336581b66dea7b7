"""The pages of docs/operate/runbooks, and the entry of each alert in them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cephqos_alerts.rules.runbooks import RUNBOOKS, WARNING_SUFFIX

FOLDER: Final = Path("docs/operate/runbooks")
INDEX: Final = (FOLDER / "index.md").read_text(encoding="utf-8")
PAGES: Final[Mapping[str, str]] = {
    page: (FOLDER / f"{page}.md").read_text(encoding="utf-8") for page in RUNBOOKS
}
# Choices to which several alerts lead.
_CHOICES: Final = (FOLDER / "devices.md").read_text(encoding="utf-8")
TEXT: Final = "\n".join([INDEX, _CHOICES, *PAGES.values()])
# The first lines of an entry, in this order.
FIRST: Final = ("Who suffers", "Can it wait", "Where", "Look at this", "Do this")
_HEADING: Final = re.compile(r"^## (.+)\n", re.MULTILINE)


def entries(page: str) -> dict[str, str]:
    """By alert, what stands under its heading."""
    parts = _HEADING.split(PAGES[page])
    return dict(zip(parts[1::2], parts[2::2], strict=True))


ENTRIES: Final[Mapping[str, str]] = {
    name: text
    for page in PAGES
    for alert, text in entries(page).items()
    for name in (alert, alert + WARNING_SUFFIX)
}
