"""What could be set instead, and the commands that set it and take it back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from cephqos_base.profiles import PROFILES, Share, shares_of, shares_of_any
from cephqos_base.series import CLIENT, RECOVERY, SCHEDULED
from cephqos_loadgen.advise.facts import MCLOCK, WPQ, AdvisedOsd, Facts

_PROFILE: Final = "osd_mclock_profile"
_CUSTOM: Final = "custom"
_WEIGHTS: Final = "Note the weights (osd_mclock_scheduler_*_wgt) first: they are not known here."


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A setting of a cluster. Classes that `shares` lacks have an unknown reservation."""

    name: str
    scheduler: str = MCLOCK
    profile: str = ""
    shares: Mapping[str, Share] | None = None  # None: those that each OSD has now
    capacities: Mapping[str, float] = field(default_factory=dict)  # by OSD, where they change
    now: bool = False

    def shares_on(self, osd: AdvisedOsd) -> Mapping[str, Share]:
        if self.scheduler != MCLOCK:
            return {}
        return osd.present if self.shares is None else self.shares

    def capacity_of(self, osd: AdvisedOsd) -> float | None:
        return self.capacities.get(osd.osd, osd.capacity)


def candidates(facts: Facts) -> Iterator[Candidate]:
    """What is now, the built-in profiles, the capacity put right, and WPQ."""
    wpq = Candidate(name=WPQ, scheduler=WPQ, now=facts.in_force == WPQ)
    if wpq.now:
        yield wpq
    else:
        yield Candidate(name=facts.profile or "mClock", profile=facts.profile, now=True)
    if facts.osds[0].model == "bandwidth":
        release = facts.release
        for profile in PROFILES:
            if wpq.now or profile != facts.profile:
                shares = shares_of(release, profile) or shares_of_any(profile)
                yield Candidate(name=profile, profile=profile, shares=shares)
    present = Candidate(name=facts.profile or "mClock", profile=facts.profile)
    yield from capacity_right(facts, present)
    if not wpq.now:
        yield wpq


def capacity_right(facts: Facts, *those: Candidate) -> Iterator[Candidate]:
    """Those with the capacities that `cephqos capacity` would set, if there are any."""
    right = {osd.osd: osd.suggested for osd in facts.osds if osd.suggested}
    for it in those if right else ():
        yield replace(it, name=f"{it.name}, capacity right", capacities=right, now=False)


def custom(client: float) -> Candidate:
    """So much reserved for clients and the rest for recovery, with equal weights."""
    shares = {cls: Share(0.0, 1, 0) for cls in SCHEDULED}
    shares[CLIENT] = Share(round(client, 2), 1, 0)
    shares[RECOVERY] = Share(round(1 - client, 2), 1, 0)
    return Candidate(name=f"custom, client {client:.0%}", profile=_CUSTOM, shares=shares)


@dataclass(frozen=True, slots=True)
class Commands:
    """What sets a candidate, and what takes it back; `after`: what else it needs."""

    apply: tuple[str, ...]
    back: tuple[str, ...]
    after: str = ""


def commands(candidate: Candidate, facts: Facts) -> Commands:
    if candidate.now:
        return Commands((), ())
    if candidate.scheduler != facts.in_force:
        return _scheduler(candidate, facts)
    apply, back = _capacities(candidate, facts)
    if candidate.profile != facts.profile or candidate.shares:
        more, undo = _profile(candidate)
        apply += more
        own = facts.profile == _CUSTOM
        undo = _options(facts.osds[0].present) if own else undo
        back += [*_set_or_remove(_PROFILE, facts.profile), *undo]
        if own:
            return Commands(tuple(apply), tuple(back), _WEIGHTS)
    return Commands(tuple(apply), tuple(back))


def _profile(candidate: Candidate) -> tuple[list[str], list[str]]:
    """What sets the profile, and what removes the options that only a custom one uses."""
    apply = [f"ceph config set osd {_PROFILE} {candidate.profile}"]
    if candidate.profile != _CUSTOM:
        return apply, []
    options = _options(candidate.shares or {})
    removed = [f"ceph config rm osd {line.split()[4]}" for line in options]
    return [*apply, *options], removed


def _options(shares: Mapping[str, Share]) -> list[str]:
    """What sets them, as far as they are known."""
    values = {
        f"{cls}_{name}": value
        for cls, share in shares.items()
        for name, value in (("res", share.reservation), ("wgt", share.weight), ("lim", share.limit))
    }
    return [
        f"ceph config set osd osd_mclock_scheduler_{name} {value:g}"
        for name, value in values.items()
        if value is not None
    ]


def _set_or_remove(option: str, before: str) -> list[str]:
    return (
        [f"ceph config set osd {option} {before}"] if before else [f"ceph config rm osd {option}"]
    )


def _scheduler(candidate: Candidate, facts: Facts) -> Commands:
    apply = [f"ceph config set osd osd_op_queue {candidate.scheduler}"]
    back = [f"ceph config set osd osd_op_queue {facts.in_force}"]
    if candidate.profile:
        more, undo = _profile(candidate)
        apply, back = [*apply, *more], [*back, f"ceph config rm osd {_PROFILE}", *undo]
    return Commands(tuple(apply), tuple(back), "Restart each OSD after it, and after going back.")


def _capacities(candidate: Candidate, facts: Facts) -> tuple[list[str], list[str]]:
    apply: list[str] = []
    back: list[str] = []
    for osd in facts.osds:
        ops = candidate.capacities.get(osd.osd)
        if ops is None or osd.media not in ("hdd", "ssd"):
            continue
        option = f"osd_mclock_max_capacity_iops_{osd.media}"
        apply.append(f"ceph config set {osd.osd} {option} {ops:g}")
        kept = osd.origin == "default" or osd.capacity is None
        back.append(
            f"ceph config rm {osd.osd} {option}"
            if kept
            else f"ceph config set {osd.osd} {option} {osd.capacity:g}"
        )
    return apply, back
