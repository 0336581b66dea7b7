"""Checks of OSDs: does the scheduler reserve anything, and is its capacity believable?"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

from cephqos_base.profiles import CAPACITY_OPTION, PROFILE_OPTION
from cephqos_base.recorded import PerOsd
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.host_facts import OsdFacts, Osds, of_each
from cephqos_exporter.qos.cost_models import DEFAULT_CAPACITY, Media, QosState, has_model, read_qos
from cephqos_exporter.qos.tags import MCLOCK

_QUEUE: Final = "osd_op_queue"
# IOPS that Ceph's boot benchmark may find, where the release has no option for these bounds.
_LOWEST: Final[Mapping[Media, float]] = {"hdd": 50, "ssd": 1000}
_HIGHEST: Final[Mapping[Media, float]] = {"hdd": 500, "ssd": 80_000}


def _not_in_force(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    configured = osd.config.text(_QUEUE)
    running = osd.queues.scheduler if osd.queues else "unknown"
    if configured in ("wpq", MCLOCK) and running not in ("unknown", configured):
        yield Finding(
            osd.osd,
            f"{_QUEUE} is {configured}, but {running} runs: the OSD was not restarted since, or it"
            " is a FileStore, which always runs wpq",
            f"ceph osd ok-to-stop {osd.osd} && ceph orch daemon restart {osd.osd}   # one host at a"
            " time, all placement groups clean before the next; packages: systemctl restart"
            f" {quoted('ceph-osd@' + osd.osd.removeprefix('osd.'))}",
        )


def _no_reservation(osd: OsdFacts, facts: Osds) -> Iterator[Finding]:
    if osd.queues and osd.queues.scheduler == "wpq" and not facts.policy:
        yield Finding(
            osd.osd,
            "its scheduler is WPQ, which reserves nothing: no reservation can be judged",
            f"cephqos-exporter --qos.policy=FILE   # targets of your own; or: ceph config set osd"
            f" {_QUEUE} {MCLOCK}, and restart the OSDs, one host after the other",
        )
    if osd.scheduler == MCLOCK and not has_model(osd.config):
        yield Finding(
            osd.osd,
            "its release (16.2 or an early 17.2) has an mClock that is not supported: no"
            " reservation can be judged",
            f"ceph config set osd {_QUEUE} wpq   # and restart the OSDs; or upgrade Ceph to 18.2",
        )
    qos = _mclock_state(osd)
    if qos is not None and not qos.classes:
        yield Finding(
            osd.osd,
            f"this cephqos does not know what profile {osd.config.text('osd_mclock_profile')} of"
            f" Ceph {osd.release or 'of unknown release'} reserves, and the OSD's options do not"
            " say it: no reservation can be judged",
            "pip install --upgrade cephqos   # or a policy: cephqos-exporter --qos.policy=FILE",
        )


def _mclock_state(osd: OsdFacts) -> QosState | None:
    """What the OSD's mClock reserves; None with another scheduler, or without known media."""
    if osd.queues is None or osd.queues.scheduler != MCLOCK:
        return None
    shards, media = len(osd.queues.shards), osd.media
    try:
        return media and read_qos(osd.config, media=media, shards=shards, release=osd.release)
    except ValueError:
        return None


def _implausible_capacity(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    media = osd.media
    if media is None or osd.scheduler != MCLOCK or not has_model(osd.config):
        return
    option = f"{CAPACITY_OPTION}{media}"
    iops = osd.config.number(option) or DEFAULT_CAPACITY[media]
    mend = (
        f"ceph config set {osd.osd} {option} IOPS   # what it has delivered under full load:\n"
        f'# {PerOsd.DELIVERED_OPS_MAX1D}{{ceph_daemon="{osd.osd}",when="saturated"}} in Prometheus,'
        " or fio on its device\n"
        f"# while it is stopped. `ceph tell {osd.osd} bench` measures caches: it writes 12 MB."
    )
    low = osd.config.number(f"osd_mclock_iops_capacity_low_threshold_{media}")
    high = osd.config.number(f"osd_mclock_iops_capacity_threshold_{media}")
    # A release with a threshold does not take over what it measured above it. So an administrator
    # set a higher capacity of an SSD on purpose, and alerts judge it by what the OSD delivers.
    set_on_purpose = high is not None and media == "ssd"
    low = low or _LOWEST[media]
    high = math.inf if set_on_purpose else high or _HIGHEST[media]
    plausible_end = "or more" if high == math.inf else f"to {high:g}"
    if osd.config.origin(option) == "default":
        yield Finding(
            osd.osd,
            f"its capacity is the default of {iops:g} IOPS and was never measured (or the"
            " measurement at boot was rejected): reservations and limits are shares of a guess",
            mend,
        )
    elif not low <= iops <= high:
        yield Finding(
            osd.osd,
            f"its capacity of {iops:g} IOPS is not plausible for an {media.upper()}"
            f" ({low:g} {plausible_end})",
            mend,
        )


def _over_reserved(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    qos = _mclock_state(osd)
    # The built-in profiles of 20.2 reserve 105 % by design.
    if qos is None or osd.config.text(PROFILE_OPTION) != "custom":
        return
    total = sum(settings.reservation_ratio or 0.0 for settings in qos.classes.values())
    if round(total, 2) > 1:
        yield Finding(
            osd.osd,
            f"its classes have reservations of {total:.0%} of its capacity: not all can be met",
            "ceph config rm osd osd_mclock_scheduler_client_res   # or a smaller value; so for the"
            " other classes,\n# and only then, if at all, another osd_mclock_profile",
        )


def _limit_below_reservation(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    qos = _mclock_state(osd)
    for name, settings in qos.classes.items() if qos else ():
        if settings.limit is not None and settings.limit < (settings.reservation or 0.0):
            yield Finding(
                osd.osd,
                f"the limit of {name} ({settings.limit:g} ops/s) is below its reservation"
                f" ({settings.reservation:g} ops/s)",
                f"ceph config set osd osd_mclock_scheduler_{name}_lim 0   # 0: no limit",
            )


CHECKS: Final = (
    Check("scheduler-in-force", of_each(_not_in_force)),
    Check("scheduler-reservations", of_each(_no_reservation)),
    Check("capacity-plausible", of_each(_implausible_capacity)),
    Check("reservations-possible", of_each(_over_reserved)),
    Check("limits-possible", of_each(_limit_below_reservation)),
)
