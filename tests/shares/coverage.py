"""How often intervals of tenants' shares hold, on simulated loads with known shares:

    python -m tests.shares.coverage         # the table of docs/internals/qos.md

Samples go through the exporter's meter and the sums of `cephqos who`. A run is an hour: the first
ten minutes, in which tenants get their names, and five windows of ten minutes. A tenant of which
nothing was sampled in a window has no interval there. The OSD's own count of the time is off by up
to 5 %, as measured. Bursts begin at random times, or at a fixed pace, which a sample every ten
seconds meets each time or never.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import exp
from typing import Final

from cephqos_base.series import WORKING
from cephqos_base.tenant_shares import OsdSums, TenantKey
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.tenants import TenantMeter
from cephqos_exporter.qos.waits import CLIENT, EXECUTE, OperationWait, SampledOperations

WINDOW: Final = 600.0
_COUNT_OFF: Final = 0.05
ONE: Final = (1.0,)
MOSTLY_ONE: Final = (0.77, *(0.23 / 9 for _ in range(9)))


@dataclass(frozen=True, slots=True)
class Load:
    """Tenants a, b, c with so many operations in progress on average, and d, which comes in bursts
    of `ops` operations that last `length` seconds, one in `every` seconds."""

    name: str
    steady: Sequence[float] = (2.0, 4.0)
    ops: float = 0.0
    length: float = 0.0
    every: float = 60.0
    paced: bool = False  # at a fixed pace, else at irregular times
    osds: Sequence[float] = ONE  # the part of the load that each has

    def bursts(self, drawn: random.Random, until: float) -> Sequence[float]:
        starts, at = [], -drawn.uniform(0, self.every)
        while self.ops and at < until:
            starts.append(at)
            at += self.every * (1.0 if self.paced else drawn.uniform(0.5, 1.5))
        return starts


LOADS: Final = (
    Load("steady", steady=(2.0, 4.0, 8.0)),
    Load("100 operations for 2 s each minute", ops=100, length=2, every=60),
    Load("the same, at a fixed pace", ops=100, length=2, every=60, paced=True),
    Load("60 operations for 2 s each 2 minutes", ops=60, length=2, every=120),
    Load("the same, at a fixed pace", ops=60, length=2, every=120, paced=True),
    Load("steady, 77 % on one of ten OSDs", steady=(2.0, 4.0, 8.0), osds=MOSTLY_ONE),
    Load("100 for 2 s, 77 % on one of ten", ops=100, length=2, every=60, osds=MOSTLY_ONE),
    Load("300 for 1 s each 3 minutes", ops=300, length=1, every=180),
)


@dataclass(slots=True)
class _Osd:
    """One OSD while it is sampled, and the truth."""

    load: Load
    weight: float
    bursts: Sequence[float]
    meter: TenantMeter = field(default_factory=TenantMeter)

    def sample(self, drawn: random.Random, now: float, length: float) -> None:
        found = []
        depths = [depth * self.weight for depth in self.load.steady]
        in_burst = any(start <= now < start + self.load.length for start in self.bursts)
        depths.append(self.load.ops * self.weight if in_burst else 0.0)
        wait = OperationWait(CLIENT, EXECUTE)
        for tenant, depth in enumerate(depths):
            if number := poisson(drawn, depth):
                described = [_described(tenant)] * number
                found.append(SampledOperations(CLIENT, ((wait, length),), described))
        if found:
            self.meter.sample(found, now, NotUnderstood())

    def true_seconds(self, start: float, end: float) -> Sequence[float]:
        parts = [depth * self.weight * (end - start) for depth in self.load.steady]
        length = self.load.length
        in_bursts = sum(max(0.0, min(s + length, end) - max(s, start)) for s in self.bursts)
        return [*parts, in_bursts * self.load.ops * self.weight]


def _described(tenant: int) -> str:
    return (
        f"osd_op(client.{tenant + 1}.0:77 3.1f 3:f81c2d4a:::rbd_data.{tenant + 1}a.0000000000000001"
        ":head [write 0~4096] snapc 0=[] ondisk+write e123)"
    )


def poisson(drawn: random.Random, mean: float) -> int:
    """A number of operations in progress."""
    if mean > 30:
        return max(0, round(drawn.gauss(mean, mean**0.5)))
    bound, number, product = exp(-mean), 0, drawn.random()
    while product > bound:
        number, product = number + 1, product * drawn.random()
    return number


@dataclass(frozen=True, slots=True)
class Covered:
    shares: int
    held: int
    width: float  # of the intervals, on average

    @property
    def part(self) -> float:
        return self.held / self.shares


def covered(load: Load, interval: float, *, runs: int, counted: bool = True) -> Covered:
    """How many intervals hold the true share, in windows of `runs` runs of an hour."""
    drawn = random.Random(f"{load}{interval}")  # noqa: S311 - no secret
    found = [
        bounds for _ in range(runs) for bounds in _of_run(load, interval, drawn, counted=counted)
    ]
    held = sum(low <= true <= high for low, true, high in found)
    width = sum(high - low for low, _, high in found) / len(found)
    return Covered(len(found), held, width)


def _of_run(
    load: Load, interval: float, drawn: random.Random, *, counted: bool
) -> Iterator[tuple[float, float, float]]:
    """Low, true and high of each tenant in each window after the first."""
    ends = [WINDOW * number for number in range(1, 7)]
    bursts = load.bursts(drawn, ends[-1])
    osds = [_Osd(load, weight, bursts) for weight in load.osds]
    now, states = drawn.uniform(0, interval), [_state(osds)]
    for end in ends:
        while now < end:
            for osd in osds:
                osd.sample(drawn, now, interval)
            now += interval
        states.append(_state(osds))
    for end, (before, after) in zip(ends[1:], list(pairwise(states))[1:], strict=True):
        sums = OsdSums().add(_grown(*pair) for pair in zip(before, after, strict=True))
        true = [osd.true_seconds(end - WINDOW, end) for osd in osds]
        by_tenant = [sum(parts) for parts in zip(*true, strict=True)]
        total = sum(by_tenant)
        off = drawn.uniform(1 - _COUNT_OFF, 1 + _COUNT_OFF)
        sums.counted = {WORKING: total * off} if counted else {}
        tenants = {it.key.tenant: it.working for it in sums.shares("", "").tenants}
        for number, seconds in enumerate(by_tenant):
            share = tenants.get(f"{number + 1}a")
            if share is not None:
                yield share.low, seconds / total, share.high


def _state(osds: Sequence[_Osd]) -> Sequence[OsdSums]:
    return [
        OsdSums(
            seconds={
                (TenantKey(who.kind, who.pool, who.name), state): seconds
                for (who, state), seconds in osd.meter.seconds.items()
            },
            squares={str(state): it for state, it in osd.meter.squares.items()},
        )
        for osd in osds
    ]


def _grown(before: OsdSums, after: OsdSums) -> OsdSums:
    return OsdSums(
        seconds={key: it - before.seconds.get(key, 0.0) for key, it in after.seconds.items()},
        squares={key: it - before.squares[key] for key, it in after.squares.items()},
    )


def main(runs: int) -> None:
    print("| load | sample every | held | without what the OSD counted | width, points |")
    print("|---|---|---|---|---|")
    for load in LOADS:
        for interval in (1.0, 10.0):
            it = covered(load, interval, runs=runs)
            blind = covered(load, interval, runs=runs, counted=False)
            print(
                f"| {load.name} | {interval:g} s | {it.part:.0%} of {it.shares} |"
                f" {blind.part:.0%} | {it.width * 100:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
