"""Regimes of a lab: settings under which its operations wait where an operator wants to look.

In the ordinary lab BlueStore takes all work at once, eight shards never have a queue, and the
processors end before the devices: no scheduler has anything to decide.
"""

from dataclasses import dataclass
from typing import Any, Final

from cephqos_loadgen.ceph_option import CephOption


@dataclass(frozen=True, slots=True)
class Regime:
    """What it is, and what it stands for."""

    about: str
    lab: dict[str, Any]  # fields of LabSpec, for those that are not given
    options: dict[str, str]  # of every OSD

    @property
    def settings(self) -> tuple[CephOption, ...]:
        return tuple(CephOption("osd", name, value) for name, value in self.options.items())


REGIMES: Final = {
    "scheduler": Regime(
        about="the scheduler decides: slow devices, one shard, narrow throttles",
        lab={"backing": "loop", "rotational": False, "device_iops": 300},
        options={
            # One queue, so that all that waits is in it; several threads, so that one operation
            # that waits for the device does not stop the others.
            "osd_op_num_shards": "1",
            "osd_op_num_threads_per_shard": "4",
            # BlueStore takes no more than the device works off in a few milliseconds.
            "bluestore_throttle_bytes": "32768",
            "bluestore_throttle_deferred_bytes": "32768",
        },
    )
}


def within(asked: dict[str, Any]) -> dict[str, Any]:
    """The fields of a LabSpec that are given, and those that its regime decides beside them."""
    given = {key: value for key, value in asked.items() if value is not None}
    regime = REGIMES.get(given.get("regime", ""))
    if regime is None:  # LabSpec refuses a name that there is not
        return given
    return {**regime.lab, **given, "settings": (*regime.settings, *given["settings"])}
