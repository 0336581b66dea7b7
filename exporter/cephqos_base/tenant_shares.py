"""Shares of tenants in the waiting and the work of an OSD, each with its interval."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cephqos_base.series import TENANT_STATES, WAITING, WORKING

_Z: Final = 1.96  # of an interval that holds the true share in 95 of 100 cases
_VICTIMS: Final = 3
_MATTERS: Final = 0.02  # of the waiting: less is no victim worth a name


@dataclass(frozen=True, slots=True)
class TenantShare:
    """A part of the whole, and between which bounds it is."""

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
    square = _Z * _Z / samples
    middle = share + square / 2
    half = _Z * math.sqrt(max(share * (1 - share), 0.0) / samples + square / samples / 4)
    return max((middle - half) / (1 + square), 0.0), min((middle + half) / (1 + square), 1.0)


@dataclass(frozen=True, slots=True, order=True)
class TenantKey:
    """A tenant as its series name it; `other` has no name."""

    kind: str
    pool_id: str = ""
    tenant: str = ""

    def named(self, pools: Mapping[str, str]) -> str:
        """With the pool's name, by the number of the pool, where that is known."""
        if not self.tenant:
            return self.kind
        return f"{self.kind} {pools.get(self.pool_id) or f'pool {self.pool_id}'}/{self.tenant}"


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """What one tenant has of each."""

    key: TenantKey
    waiting: TenantShare
    working: TenantShare

    @property
    def mostly_waits(self) -> bool:
        return self.waiting.seconds >= self.working.seconds


@dataclass(frozen=True, slots=True)
class OsdTenants:
    """One OSD, or a whole cluster with the name "". Those who have most of the work come first."""

    cluster: str
    osd: str
    samples: Mapping[str, float]
    tenants: Sequence[TenantFigures]
    other: TenantFigures
    shortfall: float | None = None

    @property
    def largest(self) -> TenantFigures | None:
        return self.tenants[0] if self.tenants and self.tenants[0].working.seconds else None

    @property
    def victims(self) -> Sequence[TenantFigures]:
        """Those whose operations mostly wait, without the one that has most of the work."""
        rest = [it for it in self.tenants[1:] if it.mostly_waits and it.waiting.share >= _MATTERS]
        return sorted(rest, key=lambda it: -it.waiting.seconds)[:_VICTIMS]


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

    def merged(self, name: Callable[[TenantKey], TenantKey]) -> "OsdSums":
        """With one key for all that have the same name; `other` stays what it is."""
        merged = OsdSums(samples=dict(self.samples))
        for (key, state), seconds in self.seconds.items():
            place = (name(key) if key.tenant else key, state)
            merged.seconds[place] = merged.seconds.get(place, 0.0) + seconds
        return merged

    def shares(self, cluster: str, osd: str, shortfall: float | None = None) -> OsdTenants:
        totals = {
            state: sum(v for (_, of), v in self.seconds.items() if of == state)
            for state in TENANT_STATES
        }

        def share(key: TenantKey, state: str) -> TenantShare:
            seconds = self.seconds.get((key, state), 0.0)
            part = seconds / totals[state] if totals[state] > 0 else 0.0
            low, high = interval(part, self.samples.get(state, 0.0))
            return TenantShare(seconds, part, low, high)

        def shares(key: TenantKey) -> TenantFigures:
            return TenantFigures(key, share(key, WAITING), share(key, WORKING))

        keys = sorted({key for (key, _), v in self.seconds.items() if key.tenant and v > 0})
        tenants = sorted(map(shares, keys), key=lambda it: -it.working.seconds)
        return OsdTenants(
            cluster, osd, dict(self.samples), tenants, shares(TenantKey("other")), shortfall
        )
