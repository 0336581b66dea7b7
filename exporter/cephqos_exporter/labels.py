"""Labels as text, rendered once and kept.

To render them for each sample of each scrape was the largest cost of writing a page.
"""

from collections.abc import Mapping
from typing import Final, NewType

# Such as `ceph_daemon="osd.3",cluster="…"`.
LabelText = NewType("LabelText", str)

# Of one daemon's texts, at most: ten times the usual. A daemon with new names at each scrape would
# fill the memory otherwise.
KEPT_BYTES: Final = 4 << 20
_BYTES_EACH: Final = 250  # besides the characters: keys, entries


def escape_label_value(value: str) -> str:
    """Escape a label value as text format 0.0.4 and OpenMetrics want it.

    Surrogates, which names of files may have, are replaced.
    """
    if not value.isascii():
        value = value.encode(errors="replace").decode()
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def render_labels(labels: Mapping[str, str]) -> LabelText:
    """Render labels in the order given; the caller keeps the result."""
    return LabelText(",".join(f'{k}="{escape_label_value(v)}"' for k, v in labels.items()))


def extend_labels(base: LabelText, labels: Mapping[str, str]) -> LabelText:
    """Add labels behind those already rendered."""
    more = render_labels(labels)
    return LabelText(f"{base},{more}") if base and more else LabelText(base or more)


class Labels:
    """Extensions of one daemon's labels, each rendered once; `most` bytes of them are kept."""

    def __init__(self, base: LabelText, most: int = KEPT_BYTES) -> None:
        self.base = base
        self._kept: dict[tuple[str, ...], LabelText] = {}
        self._most = most
        self._bytes = 0

    def of(self, *pairs: str) -> LabelText:
        """Names and values in turn: `of("group", "log", "mode", "user")`."""
        try:
            return self._kept[pairs]
        except KeyError:
            more = dict(zip(pairs[::2], pairs[1::2], strict=True))
            text = extend_labels(self.base, more)
            self._bytes += 2 * len(text) + _BYTES_EACH
            if self._bytes > self._most:
                self._kept.clear()
                self._bytes = 0
            self._kept[pairs] = text
            return text
