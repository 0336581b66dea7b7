"""Shares of tenants in the waiting and the work of an OSD, each with its confidence interval.

`top`, reports and the doctor fill an OsdSums with seconds and samples, and ask it for shares():
"image rbd/vm-7 has 71 % of the work (65 to 77 %)".
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cephqos_base.series import TENANT_STATES, WAITING, WORKING

_Z: Final = 1.96  # standard deviations: the interval holds the true share in 95 of 100 cases
_MOST_VICTIMS: Final = 3  # that are named
_LEAST_VICTIM_SHARE: Final = 0.02  # of the waiting; who has less is not named


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
    samples: Mapping[str, float]  # by state
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
    """Seconds by tenant and state, and samples by state, of an OSD or of several."""

    seconds: dict[tuple[TenantKey, str], float] = field(default_factory=dict)
    samples: dict[str, float] = field(default_factory=dict)

    def add(self, others: Iterable["OsdSums"]) -> "OsdSums":
        for other in others:
            for key, value in other.seconds.items():
                self.seconds[key] = self.seconds.get(key, 0.0) + value
            for state, count in other.samples.items():
                self.samples[state] = self.samples.get(state, 0.0) + count
        return self

    def merged(self, key_of: Callable[[TenantKey], TenantKey]) -> "OsdSums":
        """The sums of tenants to which `key_of` gives the same key, as one; `other` stays."""
        merged = OsdSums(samples=dict(self.samples))
        for (key, state), seconds in self.seconds.items():
            new_key = (key_of(key) if key.tenant else key, state)
            merged.seconds[new_key] = merged.seconds.get(new_key, 0.0) + seconds
        return merged

    def shares(self, cluster: str, osd: str, shortfall: float | None = None) -> OsdTenants:
        totals = {
            state: sum(seconds for (_, of), seconds in self.seconds.items() if of == state)
            for state in TENANT_STATES
        }

        def share_of(key: TenantKey, state: str) -> TenantShare:
            seconds = self.seconds.get((key, state), 0.0)
            share = seconds / totals[state] if totals[state] > 0 else 0.0
            low, high = interval(share, self.samples.get(state, 0.0))
            return TenantShare(seconds, share, low, high)

        def figures_of(key: TenantKey) -> TenantFigures:
            return TenantFigures(key, share_of(key, WAITING), share_of(key, WORKING))

        keys = {key for (key, _), seconds in self.seconds.items() if key.tenant and seconds > 0}
        tenants = sorted(map(figures_of, sorted(keys)), key=lambda tenant: -tenant.working.seconds)
        other = figures_of(TenantKey("other"))
        return OsdTenants(cluster, osd, dict(self.samples), tenants, other, shortfall)
