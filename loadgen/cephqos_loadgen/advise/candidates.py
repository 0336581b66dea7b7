"""What could be set instead, and the commands that set it and take it back."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from cephqos_base.profiles import (
    CAPACITY_OPTION,
    PROFILE_OPTION,
    PROFILES,
    Share,
    release_independent_shares,
    shares_of,
)
from cephqos_base.series import CLIENT, RECOVERY, SCHEDULED
from cephqos_loadgen.advise.facts import MCLOCK, WPQ, AdvisedOsd, Facts

# The defaults of `cephqos trial`.
TRIAL_BLOCK_SECONDS: Final = 300.0
TRIAL_ROUNDS: Final = (6, 12)
_TRIAL: Final = ("cephqos", "trial", "--conf", "/etc/ceph/ceph.conf", "--i-know-this-cluster")
_HOST: Final = "HOST"  # for the operator to name
# A custom profile that is guessed reserves this much more than the best built-in one, and this at
# most: the other class must go on.
_MORE: Final = 0.2
_MOST_RESERVED: Final = 0.9
_MOST_NAMED: Final = 8  # OSDs in one candidate of a command
_CUSTOM: Final = "custom"
_PREFIX: Final = "osd_mclock_scheduler_"
_PARTS: Final = ("res", "wgt", "lim")
_SHARE_OPTIONS: Final = tuple(f"{_PREFIX}{cls}_{part}" for cls in SCHEDULED for part in _PARTS)
_WEIGHTS: Final = "Note the weights (osd_mclock_scheduler_*_wgt) first: they are not known here."


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A setting of a cluster. Classes that `shares` lacks have an unknown reservation."""

    name: str
    scheduler: str = MCLOCK
    profile: str = ""
    shares: Mapping[str, Share] | None = None  # by class; None: those that each OSD has now
    capacities: Mapping[str, float] = field(default_factory=dict)  # by OSD, where they change
    now: bool = False  # this is what is set now

    def shares_on(self, osd: AdvisedOsd) -> Mapping[str, Share]:
        if self.scheduler != MCLOCK:
            return {}
        return osd.shares if self.shares is None else self.shares

    def capacity_of(self, osd: AdvisedOsd) -> float | None:
        return self.capacities.get(osd.osd, osd.capacity)


def candidates(facts: Facts) -> Iterator[Candidate]:
    """What is set now, the built-in profiles, right capacities, and WPQ."""
    wpq = Candidate(name=WPQ, scheduler=WPQ, now=facts.in_force == WPQ)
    mclock = Candidate(name=facts.profile or "mClock", profile=facts.profile)
    yield wpq if wpq.now else replace(mclock, now=True)
    release = facts.release
    for profile in PROFILES:
        if wpq.now or profile != facts.profile:
            shares = shares_of(release, profile) or release_independent_shares(profile)
            yield Candidate(name=profile, profile=profile, shares=shares)
    yield from with_right_capacities(facts, [mclock])
    if not wpq.now:
        yield wpq


def with_right_capacities(facts: Facts, among: Iterable[Candidate]) -> Iterator[Candidate]:
    """The same settings with the capacities that `cephqos capacity` would set, if it would."""
    right = {osd.osd: osd.suggested_capacity for osd in facts.osds if osd.suggested_capacity}
    if not right:
        return
    for candidate in among:
        name = f"{candidate.name}, capacity right"
        yield replace(candidate, name=name, capacities=right, now=False)


@dataclass(frozen=True, slots=True)
class ProposedTrial:
    """The command of a trial that measures what arithmetic does not say."""

    command: str
    seconds: tuple[float, float]  # at least and at most, if no guard rail ends it
    on_host: bool = False  # the operator has to name a host, whose OSDs are restarted


def trial(facts: Facts, for_class: str = "", by: str = "") -> ProposedTrial:
    """Of other profiles, and under WPQ of mClock on one host. `for_class`: the best guess for this
    class first, which reserves more for it than what is set now; `by`: the figure that decides."""
    tries = _guesses(facts, for_class) if for_class else []
    decides = [f"--by={by}"] if by else []
    block, (least, most) = TRIAL_BLOCK_SECONDS, TRIAL_ROUNDS
    if facts.in_force != MCLOCK:
        setting = " ".join([f"scheduler={MCLOCK}", *tries[:1]])
        words = [*_TRIAL, facts.cluster, "--host", _HOST, f"--try={setting}", *decides]
        seconds = 3 * least * block  # before, with and after the setting
        return ProposedTrial(shlex.join(words), (seconds, seconds), on_host=True)
    tries = tries or [_profile_tried(name, facts) for name in PROFILES if name != facts.profile][:2]
    words = [*_TRIAL, facts.cluster, *(f"--try={one}" for one in tries), *decides]
    times = (block * (1 + rounds * (1 + len(tries))) for rounds in (least, most))
    return ProposedTrial(shlex.join(words), (next(times), next(times)))


def _profile_tried(profile: str, facts: Facts) -> str:
    """A built-in profile as `cephqos trial` reads it. Shares that are set under a custom one would
    stay in force: there its shares are tried."""
    if facts.profile != _CUSTOM:
        return f"profile={profile}"
    shares = shares_of(facts.release, profile) or release_independent_shares(profile)
    named = (
        f"{cls.removeprefix('background_')}_{part}={value:g}"
        for cls, share in shares.items()
        for part, value in _parts(share)
    )
    return " ".join([f"profile={_CUSTOM}", *named])


def _guesses(facts: Facts, cls: str) -> list[str]:
    """Settings to try, as `cephqos trial` reads them."""
    now = facts.osds[0].shares.get(cls)
    reserved = now.reservation if now and now.reservation is not None else 0.0
    shares = {name: release_independent_shares(name)[cls].reservation or 0.0 for name in PROFILES}
    more = sorted((-share, name) for name, share in shares.items() if share > reserved)
    tries = [_profile_tried(name, facts) for _, name in more[:1]]
    best = max([reserved, *(-share for share, _ in more)])
    if (client := min(_MOST_RESERVED, best + _MORE)) > best:
        parts = {CLIENT: client, RECOVERY: 1 - client} if cls == CLIENT else {RECOVERY: client}
        parts.setdefault(CLIENT, 1 - client)
        tries.append(
            f"profile={_CUSTOM} client_res={parts[CLIENT]:.2g} recovery_res={parts[RECOVERY]:.2g}"
        )
    right = [f"{osd.osd}/capacity={osd.suggested_capacity:g}" for osd in facts.osds
             if osd.suggested_capacity]  # fmt: skip
    return [*tries, *([" ".join(right)] if 0 < len(right) <= _MOST_NAMED else [])]


def custom(client: float) -> Candidate:
    """This share is reserved for clients and the rest for recovery, with equal weights."""
    shares = {cls: Share(0.0, 1, 0) for cls in SCHEDULED}
    shares[CLIENT] = Share(round(client, 2), 1, 0)
    shares[RECOVERY] = Share(round(1 - client, 2), 1, 0)
    return Candidate(name=f"custom, client {client:.0%}", profile=_CUSTOM, shares=shares)


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines for a shell: what sets a candidate, and what takes it back."""

    apply: tuple[str, ...]
    back: tuple[str, ...]
    after: str = ""  # a sentence: what the operator must do besides


def commands(candidate: Candidate, facts: Facts) -> Commands:
    if candidate.now:
        return Commands((), ())
    if candidate.scheduler != facts.in_force:
        return _change_scheduler(candidate, facts)
    apply, back = _change_capacities(candidate, facts)
    if candidate.profile == facts.profile and not candidate.shares:
        return Commands(tuple(apply), tuple(back))
    set_profile, remove_options = _change_profile(candidate)
    to_profile = f"ceph config rm osd {PROFILE_OPTION}"
    if facts.profile:  # else it was not set
        to_profile = f"ceph config set osd {PROFILE_OPTION} {facts.profile}"
    if facts.profile != _CUSTOM:
        return Commands((*apply, *set_profile), (*back, *remove_options, to_profile))
    if candidate.profile != _CUSTOM:
        apply += [f"ceph config rm osd {option}" for option in _SHARE_OPTIONS]
    # The operator's own reservations are replaced, so the way back sets them again.
    back += [to_profile, *_set_options(facts.osds[0].shares)]
    return Commands((*apply, *set_profile), tuple(back), _WEIGHTS)


_RESTART = (
    "OSDs read it when they start. Restart them after it and after going back, one host after the"
    " other: each when ceph osd ok-to-stop allows it, with all placement groups clean before."
)


def _change_scheduler(candidate: Candidate, facts: Facts) -> Commands:
    apply = [f"ceph config set osd osd_op_queue {candidate.scheduler}"]
    back = [f"ceph config set osd osd_op_queue {facts.in_force}"]
    if candidate.profile:
        set_profile, remove_options = _change_profile(candidate)
        apply += set_profile
        back += [*remove_options, f"ceph config rm osd {PROFILE_OPTION}"]
    return Commands(tuple(apply), tuple(back), _RESTART)


def _change_profile(candidate: Candidate) -> tuple[list[str], list[str]]:
    """What sets the profile, and what removes the options that only a custom one uses. These go
    before the profile does: up to 20.2 they stay in force when removed after it."""
    set_profile = f"ceph config set osd {PROFILE_OPTION} {candidate.profile}"
    if candidate.profile != _CUSTOM:
        return [set_profile], []
    set_options = _set_options(candidate.shares or {})
    # Of "ceph config set osd OPTION VALUE", the fifth word is the option.
    remove_options = [f"ceph config rm osd {line.split()[4]}" for line in set_options]
    return [set_profile, *set_options], remove_options


def _set_options(shares: Mapping[str, Share]) -> list[str]:
    """What sets the shares of a custom profile, as far as they are known."""
    lines = []
    for cls, share in shares.items():
        for part, value in _parts(share):
            lines.append(f"ceph config set osd {_PREFIX}{cls}_{part} {value:g}")
    return lines


def _parts(share: Share) -> Iterator[tuple[str, float]]:
    """Those of a share that are known, as options name them."""
    parts = zip(_PARTS, (share.reservation, share.weight, share.limit), strict=True)
    return ((part, value) for part, value in parts if value is not None)


def _change_capacities(candidate: Candidate, facts: Facts) -> tuple[list[str], list[str]]:
    """What sets the capacities of a candidate, and what takes them back."""
    apply: list[str] = []
    back: list[str] = []
    for osd in facts.osds:
        ops = candidate.capacities.get(osd.osd)
        if ops is None or osd.media not in ("hdd", "ssd"):
            continue
        option = f"{CAPACITY_OPTION}{osd.media}"
        apply.append(f"ceph config set {osd.osd} {option} {ops:g}")
        if osd.capacity_origin == "default" or osd.capacity is None:
            back.append(f"ceph config rm {osd.osd} {option}")
        else:
            back.append(f"ceph config set {osd.osd} {option} {osd.capacity:g}")
    return apply, back
