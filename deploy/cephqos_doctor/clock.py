"""Checks of clocks: of this host, and of Prometheus against it."""

from collections.abc import Iterator
from typing import Final

from cephqos_doctor.finding import Check, Finding
from cephqos_doctor.host_facts import HostFacts
from cephqos_doctor.prometheus_facts import PrometheusFacts

# Rates are taken over a minute, holds are five: a second of difference changes nothing.
_SECONDS_APART: Final = 2.0


def _host(facts: HostFacts) -> Iterator[Finding]:
    if facts.clock_synchronised is False:
        yield Finding(
            "this host",
            "the kernel says that its clock is not synchronised: its figures may not fit those of"
            " other hosts",
            "timedatectl set-ntp true   # or install chrony\n"
            "chronyc tracking   # in step all the same? `rtcsync` in chrony.conf tells the kernel",
        )


def _prometheus(facts: PrometheusFacts) -> Iterator[Finding]:
    apart = facts.seconds_apart
    if apart is not None and abs(apart) > _SECONDS_APART:
        ahead = "ahead of" if apart > 0 else "behind"
        yield Finding(
            "Prometheus",
            f"its clock is {abs(apart):.1f} s {ahead} the clock of this host",
            "timedatectl status   # on both hosts; timedatectl set-ntp true where it is off",
        )


def _kernel_silent(facts: HostFacts) -> str:
    return "the kernel does not say" if facts.clock_synchronised is None else ""


HOST_CHECKS: Final = (Check("clock-synchronised", _host, _kernel_silent),)
PROMETHEUS_CHECKS: Final = (Check("clocks-agree", _prometheus),)
