"""Checks of OSDs that experts make first: settings that do nothing, or fit another machine.

A check gets the facts and yields findings. `CHECKS` at the end names the checks. `cli` runs them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Final

from cephqos_base.profiles import (
    CAPACITY_OPTION,
    CUSTOM,
    FIRST_WITHOUT_SET_SHARES,
    OVERRIDE_OPTION,
    PROFILE_OPTION,
    SHARE_OPTIONS,
)
from cephqos_base.terminal import first_names
from cephqos_doctor.finding import Check, Finding, then_restart
from cephqos_doctor.host_facts import HostFacts, OsdFacts, Osds, of_each
from cephqos_exporter.qos.cost_models import MEDIA, has_model, needs_release
from cephqos_exporter.qos.tags import MCLOCK

# Under mClock an OSD undoes a change of these while it runs, unless OVERRIDE_OPTION is true.
_RECOVERY: Final = ("osd_max_backfills", "osd_recovery_max_active")
# Under WPQ each of these paces the work that its name begins with; mClock sets them to 0.
_SLEEPS: Final = (
    "osd_recovery_sleep",
    "osd_delete_sleep",
    "osd_snap_trim_sleep",
    "osd_scrub_sleep",
)
# mClock computes these costs itself, from late 17.2 on.
_COSTS: Final = ("osd_scrub_cost", "osd_recovery_cost", "osd_snap_trim_cost")
# Ceph's hardware recommendations: one core at least. They also say how many operations a core can
# do, but an OSD need not do all that its device could. An alert shows a limit that really hurts.
_LEAST_CPUS: Final = 1.0
# The default of osd_memory_target_cgroup_limit_ratio. An OSD exceeds its target in recovery and
# while it starts: at 0.8 others were killed, and stay alive at 0.6.
_MEMORY_SHARE: Final = 0.8
_SAFE_MEMORY_SHARE: Final = 0.6
_THROTTLES: Final = (
    "bluestore_throttle_bytes",
    "bluestore_throttle_cost_per_io",
    *(f"bluestore_throttle_cost_per_io_{media}" for media in MEDIA),
)
# mClock cannot order what BlueStore has accepted. More than a second of work is too much.
_ACCEPTED_SECONDS: Final = 1.0
_WRITE_BYTES: Final = 4096  # of a small write
# Among this many OSDs on the same devices, a capacity that differs by this factor is an outlier.
_LEAST_EQUALS: Final = 4
_OUTLIER_FACTOR: Final = 3.0
# A CPU that sleeps deeper than this wakes later than a flash device answers.
_WAKE_SECONDS: Final = 100e-6
# A controller or a virtual machine may say that such a device turns.
_SSD_IN_NAME: Final = re.compile(r"ssd|nvme", re.IGNORECASE)
# The profile with the smallest reservation for clients.
_RECOVERY_PROFILE: Final = "high_recovery_ops"


def _is_set(osd: OsdFacts, option: str) -> bool:
    """Whether an administrator set it, even if that has no effect."""
    return bool(osd.config.differences.get(option, {}).keys() - {"default", "final", "override"})


def _without_effect(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    """Options that were set, but that another setting or mClock replaces."""
    yield from _hidden_by_ceph_conf(osd)
    if osd.scheduler != MCLOCK:
        return
    names = sorted(name for name in osd.config.differences if _is_set(osd, name))
    sleeps = [name for name in names if name.startswith(_SLEEPS) and osd.config.number(name) == 0]
    yield from _ignored(osd, sleeps, "mClock replaces every sleep by 0")
    if has_model(osd.config):
        costs = [name for name in names if name in _COSTS]
        yield from _ignored(osd, costs, "mClock takes the size of the work")
    profile = osd.config.text(PROFILE_OPTION)
    if profile and profile != CUSTOM:
        yield from _shares_without_custom(osd, [n for n in names if n in SHARE_OPTIONS], profile)
    recovery = [name for name in names if name.startswith(_RECOVERY)]
    # A release without that option (16.2) has nothing to set.
    if recovery and osd.config.text(OVERRIDE_OPTION) == "false":
        yield Finding(
            osd.osd,
            f"{', '.join(recovery)} {_are(recovery)} set, and {OVERRIDE_OPTION} is not true: an OSD"
            " takes the value when it starts, and undoes every later change",
            f"ceph config set osd {OVERRIDE_OPTION} true   # if the values are meant, otherwise:\n"
            + _removal(recovery),
        )


def _shares_without_custom(osd: OsdFacts, names: Sequence[str], profile: str) -> Iterator[Finding]:
    """Up to 20.2 it is the profile that has no effect on them."""
    if not has_model(osd.config) or (
        osd.release >= FIRST_WITHOUT_SET_SHARES
        if osd.release is not None
        else needs_release(osd.config)
    ):
        yield from _ignored(osd, names, f"the profile {profile} decides")
    elif names:
        shown = ", ".join(f"{name} = {osd.config.text(name)}" for name in names)
        yield Finding(
            osd.osd,
            f"{shown} {_are(names)} set for a custom profile, and in force in place of what the"
            f" profile {profile} gives",
            f"{_removal(names)}\n# removed, they stay in force until the profile changes:\n"
            f"ceph config set osd {PROFILE_OPTION} {CUSTOM}\n"
            f"ceph config set osd {PROFILE_OPTION} {profile}",
        )


def _hidden_by_ceph_conf(osd: OsdFacts) -> Iterator[Finding]:
    for name, values in sorted(osd.config.differences.items()):
        in_cluster, in_file = values.get("mon"), values.get("file")
        if None not in (in_cluster, in_file) and str(in_cluster) != str(in_file):
            yield Finding(
                osd.osd,
                f"{name} is {in_cluster} in the cluster's configuration, but ceph.conf sets"
                f" {in_file}, which comes first",
                f"sed -i -E '/^ *{name.replace('_', '[_ ]')} *=/d' /etc/ceph/ceph.conf"
                + then_restart(osd.osd),
            )


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _removal(names: Sequence[str]) -> str:
    """Commands that remove these options."""
    return "\n".join(f"ceph config rm osd {name}" for name in names) + (
        "   # or the section that `ceph config dump` shows, or the line in ceph.conf"
    )


def _ignored(osd: OsdFacts, names: Sequence[str], why: str) -> Iterator[Finding]:
    if names:
        yield Finding(
            osd.osd,
            f"{', '.join(names)} {_are(names)} set without effect: {why}",
            _removal(names),
        )


def _wrong_media(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    """Ceph takes an SSD for a disk, or a disk for an SSD."""
    if osd.rotational is None:
        return
    taken_for = "a disk (HDD)" if osd.rotational else "an SSD"
    if osd.device_class in (*MEDIA, "nvme") and (osd.device_class == "hdd") != osd.rotational:
        evidence = f"its CRUSH class is {osd.device_class}"
    elif osd.disks_rotate not in (None, osd.rotational):
        evidence = "there is a disk (HDD) below it" if osd.disks_rotate else "all below it are SSDs"
    elif osd.rotational and _SSD_IN_NAME.search(osd.model):
        evidence = f"its model is {osd.model}"
    else:
        return
    hidden = osd.disks_rotate and not osd.rotational
    yield Finding(
        osd.osd,
        f"Ceph takes its device for {taken_for}, but {evidence}: it uses the mClock options of"
        " the wrong medium",
        "cat /sys/block/*/queue/rotational   # 1: disk. A controller, bcache or a virtual"
        f" machine can hide the truth: correct it there or by udev, then restart {osd.osd}, after"
        f" ceph osd ok-to-stop {osd.osd}"
        + (
            f"\nceph config set {osd.osd} bluefs_buffered_io false   # if it is bcache: while it is"
            " true, older kernels read the DB around the cache. Compare with the others for a day"
            if hidden and osd.options.get("bluefs_buffered_io") == "true"
            else ""
        ),
    )


def _nothing_to_compare(facts: Osds) -> str:
    known = any(osd.device_class or osd.model or osd.disks_rotate is not None for osd in facts.osds)
    return "" if known else "neither CRUSH classes nor disks are known"


def _several_shards(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    shards = len(osd.queues.shards) if osd.queues else 0
    if osd.scheduler == MCLOCK and osd.media == "hdd" and shards > 1:
        yield Finding(
            osd.osd,
            f"it is a disk with {shards} shards: each shard schedules by itself and gets"
            f" 1/{shards} of what is reserved, so classes are served unevenly",
            f"ceph config set {osd.osd} osd_op_num_shards_hdd 1\n"
            f"ceph config set {osd.osd} osd_op_num_threads_per_shard_hdd 5{then_restart(osd.osd)}",
        )


def _wide_throttles(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    media = osd.media
    changed = any(_is_set(osd, option) for option in _THROTTLES)
    # Ceph's defaults are wide for a slow SSD, too, but so many writes at a time are rare.
    if media is None or osd.scheduler != MCLOCK or not changed:
        return
    limit = osd.config.number("bluestore_throttle_bytes")
    cost = osd.config.number("bluestore_throttle_cost_per_io") or osd.config.number(
        f"bluestore_throttle_cost_per_io_{media}"
    )
    capacity = osd.config.number(f"{CAPACITY_OPTION}{media}")
    if not (limit and cost and capacity):
        return
    accepted = limit / (cost + _WRITE_BYTES)  # small writes
    if accepted / capacity > _ACCEPTED_SECONDS:
        half_second = int(_ACCEPTED_SECONDS / 2 * capacity * (cost + _WRITE_BYTES))
        yield Finding(
            osd.osd,
            f"BlueStore accepts {accepted:,.0f} small writes at a time, which is"
            f" {accepted / capacity:.1f} s of work at its capacity of {capacity:g} IOPS: mClock"
            " cannot order what waits there",
            f"ceph config set {osd.osd} bluestore_throttle_bytes {half_second}"
            "   # half a second of work",
        )


def _recovery_profile_left(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    if (
        osd.scheduler == MCLOCK
        and osd.config.text(PROFILE_OPTION) == _RECOVERY_PROFILE
        and osd.recovering is False
    ):
        yield Finding(
            osd.osd,
            f"its profile is {_RECOVERY_PROFILE}, and no recovery runs or waits: clients have the"
            " smallest reservation for nothing",
            f"ceph config rm osd {PROFILE_OPTION}   # or the section that `ceph config dump` shows",
        )


def _more_than_one(facts: Osds) -> Iterator[Finding]:
    """OSDs that have another scheduler than most, or another profile than most on their media."""
    schedulers = {osd.osd: osd.scheduler for osd in facts.osds}
    yield from _differing("scheduler", "osd_op_queue", schedulers)
    mclock = [osd for osd in facts.osds if osd.scheduler == MCLOCK]
    for media in MEDIA:
        profiles = {
            osd.osd: osd.config.text(PROFILE_OPTION) for osd in mclock if osd.media == media
        }
        yield from _differing("profile", PROFILE_OPTION, profiles)


def _differing(what: str, option: str, values: Mapping[str, str | None]) -> Iterator[Finding]:
    by_value: dict[str, list[str]] = {}  # the OSDs with each value
    for osd, value in values.items():
        if value:
            by_value.setdefault(value, []).append(osd)
    if len(by_value) < 2:
        return
    most, *others = sorted(by_value, key=lambda value: -len(by_value[value]))
    for other in others:
        shown = first_names(by_value[other])
        yield Finding(
            "the OSDs",
            f"they have more than one {what}: {other} on {shown}, {most} on {len(by_value[most])}."
            " Clients get the weakest of these settings",
            f"ceph config dump | grep {option}   # and remove what is set for single OSDs",
        )


def _outliers(facts: Osds) -> Iterator[Finding]:
    """Capacities far from those of OSDs on the same devices: NVMe and SATA are one medium."""
    equals: dict[tuple[str, str], dict[str, float]] = {}  # by option and device model
    for osd in facts.osds:
        option = f"{CAPACITY_OPTION}{osd.media}"
        capacity = osd.config.number(option)
        if capacity and osd.model and _is_set(osd, option):
            equals.setdefault((option, osd.model), {})[osd.osd] = capacity
    for (option, model), capacities in equals.items():
        if len(capacities) < _LEAST_EQUALS:
            continue
        for name, capacity in capacities.items():
            middle = median(other for osd, other in capacities.items() if osd != name)
            if capacity > _OUTLIER_FACTOR * middle or capacity * _OUTLIER_FACTOR < middle:
                yield Finding(
                    name,
                    f"its capacity is {capacity:g} IOPS, and the middle of {len(capacities) - 1}"
                    f" others of model {model} is {middle:g}",
                    f"ceph config set {name} {option} {middle:.0f}   # if its device is well;"
                    " `cephqos capacity` shows what it delivered",
                )


def _small_limits(osd: OsdFacts, _: Osds) -> Iterator[Finding]:
    if osd.cpu_limit is not None and osd.cpu_limit < _LEAST_CPUS:
        yield Finding(
            osd.osd,
            f"its container may use {osd.cpu_limit:g} CPUs; an OSD needs {_LEAST_CPUS:g} at least",
            "kubectl -n rook-ceph edit cephcluster   # spec.resources.osd.limits.cpu: remove it;"
            " systemd: CPUQuota= of the unit",
        )
    target = osd.config.number("osd_memory_target")
    if osd.memory_limit is not None and target and target > _MEMORY_SHARE * osd.memory_limit:
        yield Finding(
            osd.osd,
            f"its container may use {osd.memory_limit / 2**30:.1f} GiB of memory, and"
            f" osd_memory_target is {target / 2**30:.1f} GiB: an OSD exceeds its target in recovery"
            " and at its start, and is killed at the limit",
            f"ceph config set {osd.osd} osd_memory_target"
            f" {int(_SAFE_MEMORY_SHARE * osd.memory_limit)}   # leaves"
            f" {(1 - _SAFE_MEMORY_SHARE) * osd.memory_limit / 2**30:.1f} GiB; Ceph's own default,"
            f" {_MEMORY_SHARE:g} of the limit, leaves"
            f" {(1 - _MEMORY_SHARE) * osd.memory_limit / 2**30:.1f} GiB. Or raise the limit."
            " On Rook only a ratio counts: docs/operate/runbooks/hosts.md, CephQosMemoryNearLimit",
        )


def _much_memory(facts: HostFacts) -> Iterator[Finding]:
    """OSDs that together may take more memory than their host can give them."""
    memory, option = facts.machine.memory, "osd_memory_target"
    targets = {osd.osd: target for osd in facts.osds if (target := osd.config.number(option))}
    if memory is None or sum(targets.values()) <= _MEMORY_SHARE * memory:
        return
    fair = int(_SAFE_MEMORY_SHARE * memory / len(targets))
    by_file = any("file" in osd.config.differences.get(option, {}) for osd in facts.osds)
    where = (
        f"{option} = {fair} in ceph.conf of this host, which comes first (ceph-ansible:"
        " ceph_conf_overrides); then restart the OSDs, one at a time"
        if by_file
        else f"ceph config set osd/host:HOST {option} {fair}   # this host, as `ceph osd tree` has"
        f" it. cephadm: first ceph config set osd {option}_autotune false"
    )
    yield Finding(
        "this host",
        f"its {len(targets)} OSDs may take {sum(targets.values()) / 2**30:.1f} GiB ({option}), and"
        f" it has {memory / 2**30:.1f} GiB: an OSD exceeds its target in recovery, and the kernel"
        " kills one of them",
        where,
    )


def _memory_unknown(facts: HostFacts) -> str:
    return "" if facts.machine.memory else "/proc/meminfo does not say"


def _slow_cpus(facts: HostFacts) -> Iterator[Finding]:
    if facts.governor:
        yield Finding(
            "this host",
            f"its CPUs run by the governor {facts.governor}, which lowers their clock: operations"
            " take longer while little is to do",
            "cpupower frequency-set -g performance   # and in tuned: throughput-performance",
        )
    has_flash = any(osd.media == "ssd" for osd in facts.osds)
    if has_flash and facts.wake_seconds is not None and facts.wake_seconds > _WAKE_SECONDS:
        yield Finding(
            "this host",
            f"its CPUs may sleep so deeply that they need {facts.wake_seconds * 1e6:.0f} µs to"
            " wake, longer than a flash device needs for an answer",
            "tuned-adm profile network-latency   # or the kernel's intel_idle.max_cstate=1",
        )


def _swaps(facts: HostFacts) -> Iterator[Finding]:
    if facts.swapped_bytes:
        yield Finding(
            "this host",
            f"{facts.swapped_bytes / 2**20:,.0f} MiB of its memory lie in swap: an OSD that waits"
            " for its own memory is slow, and stays up",
            "free -m   # is more available than swap is used? Then: swapoff -a, and remove swap"
            " from /etc/fstab. Otherwise lower osd_memory_target first",
        )


def _swap_unknown(facts: HostFacts) -> str:
    return "/proc/meminfo does not say" if facts.swapped_bytes is None else ""


CHECKS: Final[tuple[Check[Osds], ...]] = (
    Check("options-in-effect", of_each(_without_effect)),
    Check("media-as-it-is", of_each(_wrong_media), _nothing_to_compare),
    Check("one-shard-per-disk", of_each(_several_shards)),
    Check("throttles-narrow", of_each(_wide_throttles)),
    Check("profile-needed", of_each(_recovery_profile_left)),
    Check("one-scheduler", _more_than_one),
    Check("capacity-like-equals", _outliers),
)
HOST_CHECKS: Final[tuple[Check[HostFacts], ...]] = (
    Check("limits-sufficient", of_each(_small_limits)),
    Check("memory-for-targets", _much_memory, _memory_unknown),
    Check("cpus-awake", _slow_cpus),
    Check("swap-off", _swaps, _swap_unknown),
)
