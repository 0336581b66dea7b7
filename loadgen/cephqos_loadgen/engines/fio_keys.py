"""Reads keys of an fio load in a scenario that depend on each other or have a special form."""

from collections.abc import Mapping
from typing import Final

from cephqos_base.yamlfile import Value
from cephqos_loadgen.engines.fio_engine import FioEngine

MIXED: Final = ("rw", "randrw")


def refuse_unused(table: Mapping[str, Value], engine: FioEngine, *, curve: bool) -> None:
    """Refuse a key that the load would ignore. `curve`: it runs at several depths."""
    # By key: who uses it, if this load does not.
    users_of = {
        "volumes": "engines with images" if not engine.on_images else "",
        "pool": "" if "pool" in engine.needs else f"engines other than {engine.name}",
        "path": "" if "path" in engine.needs else f"engines other than {engine.name}",
        "depth": "a load of one depth" if curve else "",
        "read_percent": "" if table["rw"].text() in MIXED else " and ".join(MIXED),
    }
    for key, users in users_of.items():
        if users and key in table:
            table[key].fail(f"no {key!r}: it is for {users}")


def read_rate(table: Mapping[str, Value], jobs: int) -> int | None:
    """The limit of the whole phase, which is divided between jobs: at least one for each."""
    if "rate_iops" not in table:
        return None
    rate = table["rate_iops"].integer(1)
    if rate < jobs:
        table["rate_iops"].fail(f"at least one for each of the {jobs} jobs", str(rate))
    return rate


def read_size(value: Value) -> str:
    """How much of its target each job uses: bytes, or percent of it."""
    text = value.text()
    if text.endswith("%"):
        return value.text(r"([1-9][0-9]?|100)%", "1% to 100%, or a size")
    return str(value.size())
