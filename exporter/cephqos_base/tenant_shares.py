"""Shares of tenants in the waiting and the work of an OSD, each with its confidence interval.

`who`, `top` and reports fill an OsdSums with seconds and their squares, and ask it for shares():
"image rbd/vm-7 has 71 % of the work (65 to 77 %)".

Seconds come from samples. What one tenant has in one sample says no more than one draw, so S
seconds are as sure as S * S / squares draws. That also holds for several OSDs, whose sums are
added. A burst between two samples is not in them, but the OSD's own counters have it (the account
of waiting). As far as both differ, the time may be anyone's, and the interval is wider by that.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from cephqos_base.prometheus import OsdKey, Sample, osd_of
from cephqos_base.series import TENANT_STATES, WAITING, WORKING

K = TypeVar("K")

_Z: Final = 1.96  # standard deviations: the interval holds the true share in 95 of 100 cases
_MOST_VICTIMS: Final = 3  # that are named
_LEAST_VICTIM_SHARE: Final = 0.02  # of the waiting; who has less is not named
# The states of the account that belong to a tenant's work or waiting.
COUNTED_STATES: Final[Mapping[str, Sequence[str]]] = {
    WAITING: ("receive", "queue", "blocked", "replica", "network"),
    WORKING: ("cpu", "store_throttle", "store_device", "store_commit", "store_cpu"),
}
_STATE_OF: Final = {part: state for state, parts in COUNTED_STATES.items() for part in parts}


@dataclass(frozen=True, slots=True)
class TenantShare:
    """A tenant's part of the seconds; the true share is between `low` and `high`."""

    seconds: float
    share: float
    low: float
    high: float


def interval(share: float, samples: float) -> tuple[float, float]:
    """Wilson's interval of a share of this many samples.

    >>> low, high = interval(0.71, 214)
    >>> round(low, 2), round(high, 2)
    (0.65, 0.77)
    """
    if samples <= 0:
        return 0.0, 1.0
    shrink = _Z * _Z / samples
    middle = share + shrink / 2
    margin = _Z * math.sqrt(max(share * (1 - share), 0.0) / samples + shrink / samples / 4)
    low, high = (middle - margin) / (1 + shrink), (middle + margin) / (1 + shrink)
    return max(low, 0.0), min(high, 1.0)


def widened(bounds: tuple[float, float], sampled: float, counted: float) -> tuple[float, float]:
    """The bounds of a share of `sampled` seconds, where the OSD `counted` so many.

    Time that samples missed may be all the tenant's, or none of it; so may time that they saw too
    often.

    >>> widened((0.2, 0.4), sampled=10.0, counted=20.0)
    (0.1, 0.7)
    >>> widened((0.5, 0.6), sampled=20.0, counted=16.0)
    (0.375, 0.75)
    """
    low, high = bounds
    most_missed, most_extra = max(counted - sampled, 0.0), max(sampled - counted, 0.0)
    return (
        max(low * sampled - most_extra, 0.0) / counted,
        min((high * sampled + most_missed) / counted, 1.0),
    )


def counted_by_osd(
    account: Iterable[Sample], for_others: Iterable[Sample]
) -> Mapping[OsdKey, dict[str, float]]:
    """The seconds that each OSD counted, by state, from its account. Of the writes that it carries
    out `for_others` only the work is a tenant's here: their clients wait on the primary."""
    counted = defaultdict[OsdKey, dict[str, float]](lambda: dict.fromkeys(TENANT_STATES, 0.0))
    for labels, seconds in account:
        if state := _STATE_OF.get(labels.get("state", "")):
            counted[osd_of(labels)][state] += seconds
    for labels, seconds in for_others:
        if _STATE_OF.get(labels.get("state", "")) == WORKING:
            counted[osd_of(labels)][WORKING] += seconds
    return counted


@dataclass(frozen=True, slots=True, order=True)
class TenantKey:
    """A tenant by the labels of its series. Kind `other` stands for all others: it has no name."""

    kind: str  # image, bucket, cephfs, client, other
    pool_id: str = ""
    tenant: str = ""

    def named(self, pools: Mapping[str, str]) -> str:
        """With the pool's name, by the number of the pool, where that is known."""
        if not self.tenant:
            return self.kind
        return f"{self.kind} {pools.get(self.pool_id) or f'pool {self.pool_id}'}/{self.tenant}"


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """What one tenant has of the waiting and of the work."""

    key: TenantKey
    waiting: TenantShare
    working: TenantShare

    @property
    def mostly_waits(self) -> bool:
        return self.waiting.seconds >= self.working.seconds


@dataclass(frozen=True, slots=True)
class OsdTenants:
    """The tenants of one OSD, or of a whole cluster if `osd` is "". Most work comes first."""

    cluster: str
    osd: str
    samples: Mapping[str, float]  # by state: as many independent ones would be as sure
    bursts_known: Mapping[str, bool]  # by state: intervals hold for what no sample saw, too
    tenants: Sequence[TenantFigures]
    other: TenantFigures
    shortfall: float | None = None  # normalised operations per second

    @property
    def largest(self) -> TenantFigures | None:
        return self.tenants[0] if self.tenants and self.tenants[0].working.seconds else None

    @property
    def victims(self) -> Sequence[TenantFigures]:
        """Those whose operations mostly wait, without the one that has most of the work."""
        waiting = [
            tenant
            for tenant in self.tenants[1:]
            if tenant.mostly_waits and tenant.waiting.share >= _LEAST_VICTIM_SHARE
        ]
        return sorted(waiting, key=lambda tenant: -tenant.waiting.seconds)[:_MOST_VICTIMS]


@dataclass(slots=True)
class OsdSums:
    """Seconds by tenant and state, their squares by state, of an OSD or of several."""

    seconds: dict[tuple[TenantKey, str], float] = field(default_factory=dict)
    squares: dict[str, float] = field(default_factory=dict)
    counted: dict[str, float] = field(default_factory=dict)  # by the OSD; a state may be missing

    def add(self, others: Iterable["OsdSums"]) -> "OsdSums":
        """What an OSD with samples did not count is not known of the sum either."""
        parts = [self, *others]
        sampled = [part.counted for part in parts if any(part.seconds.values())]
        self.counted = {
            state: sum(part.counted.get(state, 0.0) for part in parts)
            for state in set(TENANT_STATES).intersection(*sampled)
        }
        self.squares = _added(part.squares for part in parts)
        self.seconds = _added(part.seconds for part in parts)
        return self

    def merged(self, key_of: Callable[[TenantKey], TenantKey]) -> "OsdSums":
        """The sums of tenants to which `key_of` gives the same key, as one; `other` stays."""
        merged = OsdSums(squares=dict(self.squares), counted=dict(self.counted))
        for (key, state), seconds in self.seconds.items():
            new_key = (key_of(key) if key.tenant else key, state)
            merged.seconds[new_key] = merged.seconds.get(new_key, 0.0) + seconds
        return merged

    def shares(self, cluster: str, osd: str, shortfall: float | None = None) -> OsdTenants:
        totals = {
            state: sum(seconds for (_, of), seconds in self.seconds.items() if of == state)
            for state in TENANT_STATES
        }
        samples = {state: self._samples(state, total) for state, total in totals.items()}

        def share_of(key: TenantKey, state: str) -> TenantShare:
            seconds, total = self.seconds.get((key, state), 0.0), totals[state]
            share = seconds / total if total > 0 else 0.0
            bounds = interval(share, samples[state])
            if counted := self.counted.get(state):
                bounds = widened(bounds, total, counted)
            return TenantShare(seconds, share, *bounds)

        def figures_of(key: TenantKey) -> TenantFigures:
            return TenantFigures(key, share_of(key, WAITING), share_of(key, WORKING))

        keys = {key for (key, _), seconds in self.seconds.items() if key.tenant and seconds > 0}
        tenants = sorted(map(figures_of, sorted(keys)), key=lambda tenant: -tenant.working.seconds)
        return OsdTenants(
            cluster=cluster,
            osd=osd,
            samples=samples,
            bursts_known={state: bool(self.counted.get(state)) for state in TENANT_STATES},
            tenants=tenants,
            other=figures_of(TenantKey("other")),
            shortfall=shortfall,
        )

    def _samples(self, state: str, total: float) -> float:
        squares = self.squares.get(state, 0.0)
        return total * total / squares if squares > 0 else 0.0


def _added(parts: Iterable[Mapping[K, float]]) -> dict[K, float]:
    sums: dict[K, float] = {}
    for part in parts:
        for key, value in part.items():
            sums[key] = sums.get(key, 0.0) + value
    return sums
