"""Checks of OSDs: which options of Ceph take figures away?"""

from collections.abc import Iterator
from typing import Final

from cephqos_doctor.finding import Check, Finding
from cephqos_doctor.host_facts import Osds

# Option, the values that blind, what is lost, the value to set, whether a restart is needed.
_BLINDING: Final = (
    ("perf", ("false",), "all counters stay at zero", "true", True),
    (
        "throttler_perf_counter",
        ("false",),
        "waits in throttles are absent, so demand of clients is seen too low",
        "true",
        True,
    ),
    (
        "osd_enable_op_tracker",
        ("false",),
        "operations in progress, their age and where they wait are absent",
        "true",
        False,
    ),
    (
        "osd_op_history_slow_op_size",
        ("0",),
        "slow operations are counted without the stage in which they waited",
        "20",
        False,
    ),
)


def _blinding(facts: Osds) -> Iterator[Finding]:
    for osd in facts.osds:
        for option, blind, lost, value, restart in _BLINDING:
            present = osd.options.get(option)
            if present in blind:
                after = f"   # then restart {osd.osd}" if restart else ""
                yield Finding(
                    osd.osd,
                    f"{option} is {present}: {lost}",
                    f"ceph config set {osd.osd} {option} {value}{after}",
                )


CHECKS: Final = (Check("figures-not-blinded", _blinding),)
