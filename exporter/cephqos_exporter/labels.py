"""Rendered labels, kept: rendering them for each sample costs an exposition most."""

from cephqos_exporter.model import LabelText, extend_labels


class Labels:
    """Extensions of one daemon's labels, each rendered once."""

    def __init__(self, base: LabelText) -> None:
        self.base = base
        self._kept: dict[tuple[str, ...], LabelText] = {}

    def of(self, *pairs: str) -> LabelText:
        """Names and values in turn: `of("group", "log", "mode", "user")`."""
        try:
            return self._kept[pairs]
        except KeyError:
            more = dict(zip(pairs[::2], pairs[1::2], strict=True))
            text = self._kept[pairs] = extend_labels(self.base, more)
            return text
