"""The collectors: which there are, their options, and how each is made from the settings.

A collector is one file, one class and one entry here. `--collector.NAME` and `--no-collector.NAME`
switch it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cephqos_exporter.config import Option, Settings, flag
from cephqos_exporter.model import Collector


@dataclass(frozen=True, kw_only=True)
class Registration:
    """How the spine knows a collector."""

    name: str
    help: str
    build: Callable[[Settings], Collector]
    options: tuple[Option[Any], ...] = ()
    on: bool = True

    @property
    def switch(self) -> Option[bool]:
        return flag(f"collector.{self.name}", self.on, self.help)


REGISTRY: Final[tuple[Registration, ...]] = ()


def all_options() -> tuple[Option[Any], ...]:
    """The switches and options of every collector."""
    found: list[Option[Any]] = []
    for registration in REGISTRY:
        found += [registration.switch, *registration.options]
    return tuple(found)


def build_enabled(settings: Settings) -> list[Collector]:
    """New instances of the collectors that the settings switch on."""
    return [r.build(settings) for r in REGISTRY if settings[r.switch]]
