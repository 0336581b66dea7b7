"""Faults that a person provokes in the demo, and whether the alerts found each.

Each is a staged situation, which `make truth` judges too. One is provoked at a time.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from cephqos_alerts.slo.groups import SLO_ALERT
from cephqos_base.errors import CephqosError, UsageError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_stack.demo.story import CAPACITY_OPTION, AlertWatch, NotifiedAlert, Tell
from cephqos_stack.staged.faults import FAULTS, LOADS, LOW, prepare, unset
from cephqos_stack.staged.judge import SETTLED, Heard, judge
from cephqos_stack.staged.situation import HERE, Situation, load
from cephqos_stack.staged.stage import Stage, StagedLab
from cephqos_stack.staged.tenant import NAMED, Query, named

_LISTEN_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Provocation:
    """A key of the screen, a name for the command line, and the situation behind them."""

    key: str
    name: str
    situation: str

    def load(self, osds: int, pace: float = 1.0) -> Situation:
        """The situation on a lab with so many OSDs, whose rules take `pace` times as long."""
        found = load(HERE / f"{self.situation}.yaml")
        cluster = replace(found.cluster, osds=osds)
        return replace(
            found, cluster=cluster, size=min(found.size, osds), seconds=found.seconds * pace
        )


PROVOCATIONS: Final = (
    Provocation("1", "slow-device", "device-size3"),
    Provocation("2", "stopped-osd", "stopped-osd"),
    Provocation("3", "cpu-limit", "cpu-limit"),
    Provocation("4", "busy-host", "cpu-strangers"),
    Provocation("5", "recovery-flood", "interference-recovery"),
    Provocation("6", "scrub-flood", "calm-deep-scrub"),
    Provocation("7", "slow-network", "network-messages"),
    Provocation("8", "capacity-too-high", "capacity-all"),
    Provocation("9", "low-limit", "limit-small"),
    Provocation("0", "capacity-too-low", "capacity-too-low"),
    Provocation("w", "noisy-neighbour", "noisy-neighbour"),
)


def find(name: str) -> Provocation:
    """By its key or its name."""
    for each in PROVOCATIONS:
        if name in (each.key, each.name):
            return each
    known = ", ".join(each.name for each in PROVOCATIONS)
    raise UsageError(f"--provoke {name!r}: expected one of {known}")


@dataclass(slots=True)
class Attempt:
    """One provocation, and what was heard since."""

    name: str
    situation: Situation
    before: frozenset[str]  # alerts that fired already
    began: float
    pace: float = 1.0  # that of the rules: 1 in the demo, where all is fast
    heard: dict[str, Heard] = field(default_factory=dict)
    found: float | None = None  # when what was expected had come

    def hear(self, alerts: Sequence[NotifiedAlert], now: float) -> bool:
        """Whether what was expected came just now. A fault that goes on has consequences, and an
        SLO is of the clients: neither speaks against what was found."""
        if self.found is not None and now > self.found + SETTLED * self.pace:
            return False
        for alert in alerts:
            which = _which(alert)
            known = which in self.before or which in self.heard
            if not known and alert.labels["alertname"] != SLO_ALERT:
                description = alert.annotations.get("description", "")
                after = (now - self.began) / self.pace
                self.heard[which] = Heard.of(after, alert.labels, description)
        verdict, *_ = judge(self.situation, list(self.heard.values()), 0)
        nothing = verdict in ("missed", "not run")
        if self.found is None and not self.situation.healthy and not nothing:
            self.found = now
            return True
        return False

    def line(self, now: float) -> str:
        """A line of the score card."""
        verdict, first, others = judge(self.situation, list(self.heard.values()), 0)
        words = f"{self.name}: {verdict}"
        if verdict == "not run":
            return f"{self.name}: not judged, because scrapes failed. The machine is too busy"
        if first is not None:
            words += f" after {first * self.pace:.0f} s"
            if NAMED in self.heard:
                words += f", image {self.heard[NAMED].labels['by']}"
        elif verdict == "missed":
            words += f", in {now - self.began:.0f} s"
            words += f". It needs {self.situation.needs}" if self.situation.needs else ""
        if self.situation.healthy and verdict == "right":
            words += f": no alert in {now - self.began:.0f} s, and none was due"
        beside = f"; beside it {', '.join(map(str, others))}" if others else ""
        return words + beside


def _which(alert: NotifiedAlert) -> str:
    return str(sorted(alert.labels.items()))


class Provoker:
    """Provokes, listens to what the alerts say, and ends it again."""

    def __init__(
        self,
        lab: RunningLab,
        measure: Callable[[], Awaitable[int]],
        tell: Tell,
        pace: float = 1.0,
    ) -> None:
        """`measure`: what an OSD delivers at its end. `pace`: how many times as long as in the
        demo the rules take."""
        self._lab = lab
        self._pace = pace
        self._measure = measure
        self._tell = tell
        self._turn = asyncio.Lock()
        self._alerts: Sequence[NotifiedAlert] = ()
        self._pools: set[str] = set()
        self._stage: Stage | None = None
        self._attempt: Attempt | None = None
        self.closed = "the story goes on: wait until it is over, or start with --calm"
        self.delivered: int | None = None  # None until it was measured
        self.card: list[str] = []

    def hear(self, alerts: Sequence[NotifiedAlert]) -> None:
        """What fires now; several times a second."""
        self._alerts = alerts
        attempt = self._attempt
        if attempt is None:
            return
        now = asyncio.get_running_loop().time()
        if attempt.hear(alerts, now):
            self._tell(f"FOUND: {attempt.line(now)}. The same key ends it")

    async def look(self, query: Query) -> None:
        """Whether the noisy image, if there is one, is seen by now."""
        attempt, stage = self._attempt, self._stage
        if attempt is None or stage is None or attempt.found is not None:
            return
        seconds = asyncio.get_running_loop().time() - attempt.began
        if (seen := await named(query, stage.noisy, seconds, self._pace)) is not None:
            attempt.heard[NAMED] = seen
            self.hear(self._alerts)

    async def toggle(self, name: str) -> str:
        """Provoke it, or end it if it is the one that goes on; the answer to who asked."""
        wanted = find(name)
        if self.closed:
            return self._say(self.closed)
        if self._turn.locked():
            return self._say("the step before is not done yet: try again in a moment")
        async with self._turn:
            if self._attempt is not None:
                going_on = self._attempt.name
                if going_on != wanted.name:
                    return self._say(f"{going_on} goes on: end it first, with its key or name")
                return await self.end()
            return await self.begin(wanted.name, wanted.load(self._lab.spec.osds, self._pace))

    async def begin(self, name: str, situation: Situation) -> str:
        """Provoke it; what cannot be provoked is said, and is undone."""
        try:
            if self.delivered is None:
                self.delivered = await self._measure()
            return await self._begin(name, situation)
        except (CephqosError, OSError, TimeoutError) as error:
            await self._clean_up()
            return self._say(f"NOT PROVOKED: {name}: {error}")

    async def _begin(self, name: str, situation: Situation) -> str:
        self._say(f"STAGING: {name}: {situation.about}")
        pool = await self._pool(situation.size)
        self._stage = stage = Stage(StagedLab(self._lab), situation, 0, pool)
        await self._fit(stage)
        await prepare(stage, float(self.delivered or LOW))
        loop = asyncio.get_running_loop()
        for load_ in situation.loads:
            stage.run(LOADS[load_.kind](stage, load_, stage.load_seconds))
        before = frozenset(map(_which, self._alerts))
        self._attempt = Attempt(name, situation, before, loop.time(), self._pace)
        for fault in sorted(situation.faults, key=lambda it: it.after):
            await asyncio.sleep(max(0.0, self._attempt.began + fault.after - loop.time()))
            await FAULTS[fault.kind](stage, fault)
        self._attempt.began = loop.time()
        due = "no alert is due" if situation.healthy else "an alert is due"
        if any(NAMED in it.alert for it in situation.expect):
            due = "no alert is due, but `cephqos who` has to name the image"
        return self._say(f"PROVOKED: {name}; {due}. The same key ends it")

    async def found(self) -> None:
        """Wait until what is expected has come, or is late by as much again."""
        while self._attempt and self._attempt.found is None:
            last = max((it.within for it in self._attempt.situation.expect), default=0.0)
            if asyncio.get_running_loop().time() > self._attempt.began + 2 * last * self._pace:
                return
            await asyncio.sleep(0.5)

    async def end(self, *, counts: bool = True) -> str:
        """End what goes on; its line of the score card, where it counts."""
        if self._attempt is None:
            return "nothing is provoked"
        words = self._attempt.line(asyncio.get_running_loop().time())
        if counts:
            self.card.append(words)
        else:
            words = self._attempt.name
        self._attempt = None
        await self._clean_up()
        return self._say(f"ENDED: {words}")

    async def _clean_up(self) -> None:
        stage, self._stage, self._attempt = self._stage, None, None
        if stage is None:
            return
        try:
            await stage.close()
        except (CephqosError, OSError, TimeoutError) as error:
            self._tell(f"NOT ALL ENDED: {error}")
        await unset(stage)
        await stage.on.config(CAPACITY_OPTION, self.delivered)

    async def _fit(self, stage: Stage) -> None:
        """What the situation's own lab would have been started with."""
        on, cluster = stage.on, stage.situation.cluster
        for name, value in cluster.settings:
            stage.undo.append(partial(on.unset, name))
            await on.config(name, value)
        if cluster.device_iops:
            limits = {"riops": cluster.device_iops, "wiops": cluster.device_iops}
            for osd in range(cluster.osds):
                stage.undo.append(partial(on.lab.faults.throttle, osd))
                await on.lab.faults.throttle(osd, **limits)

    async def _pool(self, size: int) -> str:
        """Made when it is first needed; it stays."""
        name, ceph = f"provoked-{size}", ["ceph", "osd", "pool"]
        if name not in self._pools:
            await self._lab.exec([*ceph, "create", name, "32"])
            sure = ["--yes-i-really-mean-it"] if size == 1 else []
            await self._lab.exec([*ceph, "set", name, "size", str(size), *sure])
            self._pools.add(name)
        return name

    def _say(self, words: str) -> str:
        self._tell(words)
        return words

    @property
    def going_on(self) -> str:
        """The name of what is provoked now, or nothing."""
        return self._attempt.name if self._attempt else ""


async def listen(provoker: Provoker, watch: AlertWatch, query: Query) -> None:
    """To the alerts, until this is cancelled; what goes on then is ended."""
    try:
        while True:
            with contextlib.suppress(OSError):
                provoker.hear(await watch.look())
                await provoker.look(query)
            await asyncio.sleep(_LISTEN_SECONDS)
    finally:
        await provoker.end()
