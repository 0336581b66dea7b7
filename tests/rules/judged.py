"""What is demand and what is a violation: the rules and the judge in Python must both say so."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

from cephqos_base.recorded import PerClass
from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY

from .cases import RuleCase
from .series import BUSY, Series, SimulatedOsd, State, selector

MINUTES: Final = 10
_BEHIND: Final = (3, 3, 4, 3)
# Nothing is reserved in shards without work; nothing piles up, and so much waits in a queue.
_QUEUED: Final = State(in_progress=(6,), waiting=5, queue=_BEHIND, store=1)
_RECOVERS: Final = State(recovery_queue=8)


@dataclass(frozen=True)
class Judged:
    """What an OSD does for ten minutes, and the verdict; None: nothing is reserved."""

    name: str
    state: State
    wants: bool
    violated: bool | None
    work: str = CLIENT
    osd: SimulatedOsd = field(default_factory=lambda: SimulatedOsd(()))

    def series(self, cluster: str) -> Series:
        osd = replace(self.osd, cluster=cluster, timeline=((MINUTES + 1, self.state),))
        of = {BEST_EFFORT: RECOVERY}.get(self.work, self.work)
        return {name.replace(of, self.work): text for name, text in osd.series().items()}


def _osd(**how: Any) -> SimulatedOsd:
    return SimulatedOsd((), **how)


def _recovery(name: str, wants: bool, violated: bool, **more: Any) -> Judged:
    osd, work = more.pop("osd", _osd()), more.pop("work", RECOVERY)
    return Judged(name, replace(_RECOVERS, **more), wants, violated, work, osd)


_DISK: Final = _osd(media="hdd")

# Clients have a reservation of 1,000 operations a second, recovery 500.
TABLE: Final = (
    Judged("clients that get all of it", BUSY, True, False),
    Judged("just enough", replace(BUSY, client=901), True, False),
    Judged("just too little", replace(BUSY, client=899), True, True),
    Judged(
        "one operation at a time", replace(BUSY, in_progress=(1,), queue=(0,) * 4), False, False
    ),
    Judged("nothing reserved", BUSY, True, None, osd=_osd(reserved={})),
    Judged("little waits", replace(_QUEUED, waiting=0.9, client=100), False, False),
    Judged("enough waits", replace(_QUEUED, waiting=1.1, client=100), True, True),
    Judged("quick in the store", replace(BUSY, waiting=0, store_latency=0.004), False, False),
    Judged("few in the store", replace(BUSY, waiting=0, store=7), False, False),
    Judged("slow in the store", replace(BUSY, waiting=0, client=500), True, True),
    Judged(
        "as slow as a disk",
        replace(BUSY, waiting=0, client=500),
        False,
        False,
        osd=_DISK,
    ),
    Judged(
        "slow for a disk",
        replace(BUSY, waiting=0, client=500, store_latency=0.06),
        True,
        True,
        osd=_DISK,
    ),
    Judged("a store that ends nothing", replace(BUSY, client=0, waiting=0, store=0), True, True),
    Judged("one shard of four", replace(_QUEUED, queue=(9, 0, 0, 0), client=300), True, False),
    Judged("less in one shard", replace(_QUEUED, queue=(9, 0, 0, 0), client=200), True, True),
    Judged("piled up in one shard", replace(BUSY, queue=(9, 0, 0, 0), client=300), True, True),
    Judged("late in one shard", replace(BUSY, lag=(0, 0.3, 0, 0)), True, True),
    Judged("not yet late", replace(BUSY, lag=(0.2,) * 4), True, False),
    _recovery("recovery that gets less", True, True, recovery=300),
    _recovery("recovery that gets enough", True, False, recovery=460),
    _recovery("recovery with nothing to do", False, False, recovery=300, recovery_queue=0),
    _recovery("recovery that is late", True, True, recovery=460, recovery_lag=0.3),
    _recovery("recovery at its limit", True, False, recovery=300, osd=_osd(limit={RECOVERY: 320})),
    _recovery("recovery below it", True, True, recovery=300, osd=_osd(limit={RECOVERY: 340})),
    _recovery("best effort is counted as a lower bound", True, False, work=BEST_EFFORT),
    _recovery("best effort that is late", True, True, work=BEST_EFFORT, recovery_lag=0.3),
)


def rules_case() -> RuleCase:
    """All of it for promtool at once, each row in a cluster of its own."""
    series: Series = {}
    values = []
    for row in TABLE:
        series |= row.series(row.name)
        of = {"cluster": row.name, "class": row.work}
        wants, violated = (selector(name, of) for name in (PerClass.DEMAND, PerClass.VIOLATED))
        verdict = -1.0 if row.violated is None else float(row.violated)
        values += [
            (MINUTES, f"sum({wants})", float(row.wants)),
            (MINUTES, f"sum({violated}) or vector(-1)", verdict),
        ]
    return RuleCase("judged", "", series, (), values)
