"""Labels as text, rendered once and kept: rendering them for each sample would cost most."""

from collections.abc import Mapping
from typing import Final, NewType

# Rendered once and used for every sample of every scrape: `ceph_daemon="osd.3",cluster="…"`.
# Rendering labels for each sample was the largest cost of writing an exposition.
LabelText = NewType("LabelText", str)

# What is kept of one daemon: ten times the usual. One that has new names at each scrape would fill
# the memory otherwise.
KEPT_BYTES: Final = 4 << 20
_BYTES_EACH: Final = 250  # besides the characters: keys, entries


def escape_label_value(value: str) -> str:
    """Escape a label value as text format 0.0.4 and OpenMetrics want it.

    Halves of characters, as names of files may have, are replaced.
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
