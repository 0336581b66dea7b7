"""The effective configuration of an OSD, read cheaply.

`config show` has every option (77 kB). `config diff` has those that differ from their default, and
which source set each (4 kB, a quarter of the time). So the first is read once per daemon start, and
the second at every scrape: it shows changes by `ceph config set`, a profile or a benchmark, and
also the defaults that a built-in profile rewrites.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Origin = Literal["default", "mon", "local"]

_TRACKED_PREFIXES = (
    "osd_mclock_",
    "osd_op_queue",
    "osd_op_num_shards",
    "osd_data",
)

# Keys of an entry of the difference that are no local source.
_NOT_SOURCES = frozenset({"default", "final", "mon"})


def _tracked(key: str) -> bool:
    return key.startswith(_TRACKED_PREFIXES)


@dataclass(frozen=True, slots=True)
class EffectiveConfig:
    """The QoS options of an OSD as they are in force, and where each came from."""

    values: Mapping[str, str]
    differences: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str) -> str | None:
        """The value as text; None where this release has no such option."""
        return self.values.get(key)

    def number(self, key: str) -> float | None:
        """The value as a number; None where there is no such option or it is not a number."""
        value = self.values.get(key)
        if value is None:
            return None
        try:
            return float(value)
        except ValueError:
            return None

    def default(self, key: str) -> float | None:
        """The default of the option; a profile may have written it."""
        try:
            return float(self.differences[key]["default"])
        except (KeyError, TypeError, ValueError):
            return self.number(key)

    def origin(self, key: str) -> Origin:
        """Where the value came from. `mon`: an administrator, or the OSD's own benchmark."""
        sources = self.differences.get(key, {}).keys()
        if sources - _NOT_SOURCES:
            return "local"
        return "mon" if "mon" in sources else "default"


class ConfigTracker:
    """Keeps one OSD's effective QoS options up to date from two replies.

    `update` returns the same object for as long as nothing changed, so that what is derived from
    it can be kept.
    """

    def __init__(self) -> None:
        self._defaults: dict[str, str] | None = None
        self._current: EffectiveConfig | None = None
        self._last_diff: Mapping[str, Any] | None = None

    @property
    def needs_full(self) -> bool:
        """Whether `config show` is still needed."""
        return self._defaults is None

    def update(self, diff: Mapping[str, Any], show: Mapping[str, Any] | None) -> EffectiveConfig:
        """Take in this scrape's `config diff`, and `config show` if it was asked for.

        Raises ValueError while `config show` has never come.
        """
        if diff == self._last_diff and self._current is not None:
            return self._current
        differences = {key: entry for key, entry in diff["diff"].items() if _tracked(key)}
        if self._defaults is None:
            if show is None:
                raise ValueError("config show has not been read yet")
            self._defaults = _defaults(show, differences)
            self._current = None
        if self._current is None or self._current.differences != differences:
            changed = {key: str(entry["final"]) for key, entry in differences.items()}
            values = {**self._defaults, **changed}
            self._current = EffectiveConfig(values=values, differences=differences)
        self._last_diff = diff
        return self._current


def _defaults(
    show: Mapping[str, Any], differences: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """The value of each option that nothing sets. It is in force while the difference lacks it."""
    defaults = {key: str(value) for key, value in show.items() if _tracked(key)}
    for key, entry in differences.items():
        if "default" in entry:
            defaults[key] = str(entry["default"])
    return defaults
