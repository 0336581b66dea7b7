"""The account of waiting as a second judge, in shadow: no rule reads it.

The cause is where the most of the excess time goes: seconds per second during the fault, beyond
what as many operations needed there before, by that OSD or by the median of all, whichever is less.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from tests.stack.conftest import Watched

from cephqos_base.prometheus import Sample
from cephqos_base.series import CLIENT, IMMEDIATE, AccountSeries, OpSeries, count
from cephqos_insight.blame import Root, roots, waits
from cephqos_stack.staged.judge import osd_name
from cephqos_stack.staged.situation import ExpectedFinding, Situation
from cephqos_stack.staged.stage import Stage

_OF_STATE: Final = {
    "store_device": "device",
    "store_commit": "device",
    "store_throttle": "device",
    "cpu": "cpu",
    "store_cpu": "cpu",
    "network": "network",
}
_OF_QUEUE: Final = {
    "limit": "limit",
    "cpu": "cpu",
    IMMEDIATE: "replica_writes",
    CLIENT: "capacity",  # behind other client operations: there is more work than time
}
# What an alert says whose finding has no cause.
_OF_ALERT: Final = {
    "CephQosCapacityOverstated": "capacity",
    "CephQosAtLimitWhileIdle": "limit",
}


@dataclass(frozen=True)
class Waited:
    """What clients waited for in a time, by place, in seconds per second; their operations."""

    places: Sequence[Root]
    ops: float

    def per_op(self) -> Mapping[tuple[str, str], Mapping[str, float]]:
        """Seconds of each operation of the cluster, by kind of place, then by OSD."""
        found: dict[tuple[str, str], dict[str, float]] = {}
        for it in self.places if self.ops else ():
            found.setdefault((it.state, it.by), {})[it.osd] = it.seconds / self.ops
        return found


def cause_of(place: Root) -> str:
    if place.state == "queue":
        return _OF_QUEUE.get(place.by, "other_class")
    return _OF_STATE.get(place.state, place.state)


def excess(before: Waited, during: Waited) -> Sequence[tuple[Root, float]]:
    """The places where more time goes than as many operations needed before, the worst first."""
    needed = before.per_op()

    def beyond(place: Root) -> float:
        own = needed.get((place.state, place.by), {})
        usual = median(own.values() or [0.0])
        return place.seconds - during.ops * min(own.get(place.osd, usual), usual)

    found = [(place, more) for place in during.places if (more := beyond(place)) > 0]
    return sorted(found, key=lambda it: -it[1])


def said(before: Waited, during: Waited) -> tuple[str, str, float]:
    """The cause with the most excess, the OSD with the most of that, and its share of all waiting.

    Also where nothing is wrong: the account cannot say whether a reservation is violated.
    """
    sums: dict[str, dict[str, float]] = {}
    for place, more in excess(before, during):
        osds = sums.setdefault(cause_of(place), {})
        osds[place.osd] = osds.get(place.osd, 0.0) + more
    if not sums:
        return "nothing", "", 0.0
    cause, osds = max(sums.items(), key=lambda it: sum(it[1].values()))
    share = sum(osds.values()) / sum(place.seconds for place in during.places)
    return cause, max(osds, key=lambda it: osds[it]), share


def right(situation: Situation, turn: int, cause: str, osd: str) -> bool | None:
    """Whether that is what was staged. None where no finding of it has a cause."""
    wanted = [(it, c) for it in situation.expect if (c := it.cause or _cause_of_alert(it))]
    if not wanted:
        return None
    return any(
        cause in c.split("|") and _place(it, turn, situation.cluster.osds) in (None, osd)
        for it, c in wanted
    )


def _cause_of_alert(finding: ExpectedFinding) -> str | None:
    return next((_OF_ALERT[it] for it in finding.alert if it in _OF_ALERT), None)


def _place(finding: ExpectedFinding, turn: int, osds: int) -> str | None:
    if finding.by and finding.by.startswith("osd."):
        return osd_name(int(finding.by.removeprefix("osd.")), turn, osds)
    return None if finding.osd is None else osd_name(finding.osd, turn, osds)


@dataclass(frozen=True)
class Shadow:
    """What the account says of a run."""

    text: str
    right: bool | None  # None: no cause was staged
    off: float | None  # its sum, beside the OSDs' own latency of the same time: 0.01 is 1 % more
    unknown: float | None  # share


async def shadow(stage: Stage, on: Watched, began: float) -> Shadow:
    """What the account says of the fault, and whether that is right. Shares of the account look
    back for half a minute, so the later half of the fault counts. `began`: before the first load.
    """
    now = time.time()
    during = await _waited(on, max(2.0, (now - stage.staged) / 2), now)
    before = await _waited(on, max(2.0, stage.staged - began), stage.staged)
    cause, osd, share = said(before, during)
    text = f"{cause} {osd} {share:.0%}" if osd else cause
    is_right = right(stage.situation, stage.turn, cause, osd)
    return Shadow(text, is_right, *await _conserved(on, stage.staged, now))


async def _conserved(on: Watched, begin: float, end: float) -> tuple[float | None, float | None]:
    """By which part the account's sum differs from the OSDs' latency, and the share not known.

    Of the OSDs that answered at both times and did not restart between them.
    """

    async def gained(series: str) -> dict[str, float]:
        then, now = (f"sum by (ceph_daemon) ({series} @ {at:.3f})" for at in (begin, end))
        found = await on.stack.query(f"{now} - {then} or {now}")  # a series may be new
        return {it["metric"]["ceph_daemon"]: float(it["value"][1]) for it in found}

    whole = await gained(AccountSeries.SECONDS)
    latency = await gained("ceph_osd_op_latency_sum")
    osds = [it for it, grew in latency.items() if grew > 0 and whole.get(it, -1) >= 0]
    account = sum(whole[it] for it in osds)
    if not account:
        return None, None
    unknown = await gained(f'{AccountSeries.SECONDS}{{state="unknown"}}')
    not_known = sum(max(0.0, unknown.get(it, 0.0)) for it in osds)
    return account / sum(latency[it] for it in osds) - 1, not_known / account


async def _waited(on: Watched, seconds: float, end: float) -> Waited:
    async def rates(name: str, by: str) -> Sequence[Sample]:
        query = f"max by ({by}) (rate({name}[{seconds:.0f}s] @ {end:.3f}))"
        return [(it["metric"], float(it["value"][1])) for it in await on.stack.query(query)]

    states = "cluster, ceph_daemon, state, by"
    account = await rates(AccountSeries.SECONDS, states)
    replicas = await rates(AccountSeries.REPLICA_SECONDS, states)
    ops = await rates(count(OpSeries.LATENCY_SECONDS), "cluster, ceph_daemon, op")
    return Waited(roots(waits(account, replicas)), sum(value for _, value in ops))
