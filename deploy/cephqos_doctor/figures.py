"""A check of OSDs: which options of Ceph stop counters and figures that cephqos needs?"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from cephqos_doctor.finding import Check, Finding, then_restart
from cephqos_doctor.host_facts import Osds


class _Blinding(NamedTuple):
    """A value of an option that takes figures away."""

    option: str
    value: str
    lost: str  # what is lost with it
    better: str
    needs_restart: bool = False


_BLINDING: Final = (
    _Blinding("perf", "false", "all counters stay at zero", "true", needs_restart=True),
    _Blinding(
        "throttler_perf_counter",
        "false",
        "waits in throttles are absent, so demand of clients is seen too low",
        "true",
        needs_restart=True,
    ),
    _Blinding(
        "osd_enable_op_tracker",
        "false",
        "operations in progress, their age and where they wait are absent",
        "true",
    ),
    _Blinding(
        "osd_op_history_slow_op_size",
        "0",
        "slow operations are counted without the stage in which they waited",
        "20",
    ),
)


def _blinding(facts: Osds) -> Iterator[Finding]:
    for osd in facts.osds:
        for blinding in _BLINDING:
            if osd.options.get(blinding.option) == blinding.value:
                restart = then_restart(osd.osd) if blinding.needs_restart else ""
                yield Finding(
                    osd.osd,
                    f"{blinding.option} is {blinding.value}: {blinding.lost}",
                    f"ceph config set {osd.osd} {blinding.option} {blinding.better}{restart}",
                )


CHECKS: Final = (Check("figures-not-blinded", _blinding),)
