"""Rendered labels, kept: rendering them for each sample costs an exposition most."""

from typing import Final

from cephqos_exporter.model import LabelText, extend_labels

# What is kept of one daemon: ten times the usual. One that has new names at each scrape would fill
# the memory otherwise.
KEPT_BYTES: Final = 4 << 20
_BYTES_EACH: Final = 250  # besides the characters: keys, entries


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
