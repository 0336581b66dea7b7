"""Faults that a person provokes in the demo, and whether the alerts found each.

Each is a staged situation, which `make truth` judges too. One is provoked at a time.
"""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from cephqos_alerts.slo.groups import SLO_ALERT
from cephqos_base.errors import CephqosError, UsageError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_stack.demo.story import CAPACITY_OPTION, AlertWatch, NotifiedAlert, Tell
from cephqos_stack.staged.faults import FAULTS, LOADS, LOW, SHARE, prepare, unset
from cephqos_stack.staged.judge import SETTLED, Heard, judge, matches, watch_failures
from cephqos_stack.staged.situation import HERE, ExpectedFinding, Situation, load
from cephqos_stack.staged.stage import Stage, StagedLab, clean, wait_until_clean
from cephqos_stack.staged.tenant import NAMED, Query, noisy_tenant

_LISTEN_SECONDS: Final = 0.5
_QUIET_WITHIN: Final = 40.0  # seconds after a fault, until its alerts have ended
_TO_END: Final = 10.0  # seconds for loads, when the demo ends
# True beside any fault where other programs keep the host busy; then it may hide the fault.
_BUSY: Final = "CephQosHostCpuTaken"
# True where a situation limits all devices, which were faster before.
_SLOWER: Final = ("CephQosDeviceSaturated", "CephQosCapacityUnderstated")


@dataclass(frozen=True, slots=True)
class Provocation:
    """A key of the screen, a name for the command line, and the situation behind them."""

    key: str
    name: str
    situation: str

    def load(self, osds: int, pace: float = 1.0) -> Situation:
        """The situation on a lab with so many OSDs, whose rules take `pace` times as long."""
        situation = load(HERE / f"{self.situation}.yaml")
        cluster = replace(situation.cluster, osds=osds)
        also = (_BUSY, *_SLOWER) if cluster.device_iops else (_BUSY,)
        return replace(
            situation,
            cluster=cluster,
            size=min(situation.size, osds),
            seconds=situation.seconds * pace,
            # The demo's clients go on: what a capacity is too small for shows in their work first.
            expect=tuple(replace(finding, seen=None) for finding in situation.expect),
            allow=(*situation.allow, ExpectedFinding(alert=also)),
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
    """The provocation of this key or name."""
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
    before: dict[str, NotifiedAlert]  # alerts that fired already, and still do
    began: float
    pace: float = 1.0  # that of the rules: 1 in the demo, where all is fast
    heard: dict[str, Heard] = field(default_factory=dict)
    staged: bool = False  # wholly
    found: float | None = None  # when what was expected had come

    def hear(self, alerts: Sequence[NotifiedAlert], now: float) -> bool:
        """Whether what was expected came just now. A fault that goes on has consequences, and an
        SLO is of the clients: neither speaks against what was found."""
        if self.found is not None and now > self.found + SETTLED * self.pace:
            return False
        fires = {_which(alert): alert for alert in alerts}
        self.before = {which: it for which, it in self.before.items() if which in fires}
        for which, alert in fires.items():
            known = which in self.before or which in self.heard
            if not known and alert.labels["alertname"] != SLO_ALERT:
                self.heard[which] = _heard((now - self.began) / self.pace, alert)
        expect = self.situation.expect
        if self.found is None and expect and all(map(self._came, expect)):
            self.found = now
            return True
        return False

    def _came(self, finding: ExpectedFinding) -> bool:
        osds = self.situation.cluster.osds
        return any(matches(finding, it, 0, osds) for it in self.heard.values())

    def line(self, now: float) -> str:
        """A line of the score card."""
        verdict, first, others = judge(self.situation, list(self.heard.values()), 0)
        words = f"{self.name}: {verdict}"
        seconds = f"{now - self.began:.0f} s"
        if verdict == "not run":
            words = f"{self.name}: not judged, because scrapes failed. The machine is too busy"
        elif first is not None:
            words += f" after {first * self.pace:.0f} s"
            if NAMED in self.heard:
                words += f", image {self.heard[NAMED].labels['by']}"
        elif verdict == "missed":
            words += f", in {seconds}"
            words += ". Scrapes failed" if watch_failures(list(self.heard.values())) else ""
            words += f". It needs {self.situation.needs}" if self.situation.needs else ""
        elif self.situation.healthy and verdict == "right":
            words += f": no alert in {seconds}, and none was due"
        words += f"; beside it {', '.join(map(str, others))}" if others else ""
        return words + self._busy(verdict)

    def _busy(self, verdict: str) -> str:
        """What other programs on the host have to do with it."""
        osds = self.situation.cluster.osds
        before = [_heard(0, it) for it in self.before.values()]
        if any(matches(f, it, 0, osds) for f in self.situation.expect for it in before):
            return ". What is due fired before: end what causes it, and try again"
        if not any(it.labels["alertname"] == _BUSY for it in (*before, *self.heard.values())):
            return ""
        if any(_BUSY in it.alert for it in self.situation.expect):
            return ""
        hides = "" if verdict == "right" else " That may hide the fault: try again when they rest"
        return f". {_BUSY} is true: other programs take this host's CPUs.{hides}"


def _heard(after: float, alert: NotifiedAlert) -> Heard:
    return Heard.of(after, alert.labels, alert.annotations.get("description", ""))


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
        self._ended = -math.inf  # when a fault was ended
        self._before: set[str] = set()  # alerts that fired before that fault
        self._pressed: set[asyncio.Task[str]] = set()
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
            self._tell(f"FOUND: {attempt.line(now)}{self._how_to_end}")

    async def look(self, query: Query) -> None:
        """Whether the noisy image, if there is one, is seen by now."""
        attempt, stage = self._attempt, self._stage
        if attempt is None or stage is None or attempt.found is not None:
            return
        seconds = asyncio.get_running_loop().time() - attempt.began
        if (seen := await noisy_tenant(query, stage.noisy, seconds, self._pace)) is not None:
            attempt.heard[NAMED] = seen
            self.hear(self._alerts)

    def press(self, name: str) -> asyncio.Task[str]:
        """As `toggle`, for who does not wait for the answer."""
        task = asyncio.create_task(self._toggle(find(name)))
        self._pressed.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[str]) -> None:
        self._pressed.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(f"FAILED: {type(error).__name__}: {error}")

    async def toggle(self, name: str) -> str:
        """Provoke it, or end it if it is the one that goes on; the answer to who asked."""
        return await self.press(name)

    async def _toggle(self, wanted: Provocation) -> str:
        if self.closed:
            return self._say(self.closed)
        if self._turn.locked():
            return self._say("the step before is not done yet: try again in a moment")
        async with self._turn:
            if self._attempt is None:
                situation = wanted.load(self._lab.spec.osds, self._pace)
                return await self.begin(wanted.name, situation)
            if self._attempt.name == wanted.name:
                return await self.end()
            return self._say(f"{self._attempt.name} goes on: end it first, with its key or name")

    async def begin(self, name: str, situation: Situation) -> str:
        """Provoke it; what cannot be provoked is said, and is undone."""
        try:
            await self._quiet()
            if self.delivered is None:
                self.delivered = await self._measure()
            return await self._begin(name, situation)
        except (CephqosError, OSError, TimeoutError) as error:
            await self._clean_up()
            return self._say(f"NOT PROVOKED: {name}: {error or 'not done in time'}")

    async def _quiet(self) -> None:
        """Wait until recovery and alerts of the fault before have ended: they are not of the next
        one."""
        on = StagedLab(self._lab)
        if not await clean(on):
            self._tell("WAITING: not all placement groups are clean")
            await wait_until_clean(on)
        loop, told = asyncio.get_running_loop(), False
        while loop.time() < self._ended + _QUIET_WITHIN * self._pace:
            if not {_which(it) for it in self._alerts} - self._before:
                return
            if not told:
                self._tell("WAITING: alerts of the fault before still fire")
            told = True
            await asyncio.sleep(_LISTEN_SECONDS)

    async def _begin(self, name: str, situation: Situation) -> str:
        self._say(f"STAGING: {name}: {situation.about}")
        pool = await self._pool(situation.size)
        self._stage = stage = Stage(StagedLab(self._lab), situation, 0, pool)
        stage.undo += [partial(stage.on.config, CAPACITY_OPTION, self.delivered)]
        stage.undo += [partial(unset, stage)]
        await self._fit(stage)
        delivered = self.delivered or LOW
        if situation.cluster.device_iops and (situation.capacity or 0) <= SHARE:
            delivered = await self._measure()
        await prepare(stage, float(delivered))
        loop = asyncio.get_running_loop()
        for load_ in situation.loads:
            stage.run(LOADS[load_.kind](stage, load_, stage.load_seconds))
        before = {_which(it): it for it in self._alerts}
        self._attempt = Attempt(name, situation, before, loop.time(), self._pace)
        for fault in sorted(situation.faults, key=lambda it: it.after):
            await asyncio.sleep(max(0.0, self._attempt.began + fault.after - loop.time()))
            await FAULTS[fault.kind](stage, fault)
        self._attempt.began, self._attempt.staged = loop.time(), True
        due = "no alert is due" if situation.healthy else "an alert is due"
        if any(NAMED in it.alert for it in situation.expect):
            due = "no alert is due, but `cephqos who` has to name the image"
        return self._say(f"PROVOKED: {name}; {due}{self._how_to_end}")

    async def found(self) -> None:
        """Wait until what is expected has come, or is late by as much again."""
        while self._attempt and self._attempt.found is None:
            last = max((it.within for it in self._attempt.situation.expect), default=0.0)
            if asyncio.get_running_loop().time() > self._attempt.began + 2 * last * self._pace:
                return
            await asyncio.sleep(0.5)

    async def end(self) -> str:
        """End what goes on; its line of the score card."""
        if self._attempt is None:
            return "nothing is provoked"
        words = self._scored(self._attempt)
        await self._clean_up()
        return self._say(f"ENDED: {words}")

    def _scored(self, attempt: Attempt) -> str:
        """A key's line of the score card; a step of the tour with a policy of its own has none."""
        if attempt.name not in {each.name for each in PROVOCATIONS}:
            return attempt.name
        self.card.append(attempt.line(asyncio.get_running_loop().time()))
        return self.card[-1]

    async def close(self) -> None:
        """The lab ends now, and its faults with it. Programs of the host end with this process."""
        tasks = {*self._pressed, *(self._stage.tasks if self._stage else ())}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_TO_END)
        if self._attempt is not None and self._attempt.staged:
            self._scored(self._attempt)

    async def _clean_up(self) -> None:
        stage, self._stage = self._stage, None
        if self._attempt is not None:
            self._before = set(self._attempt.before)
        self._attempt = None
        self._ended = asyncio.get_running_loop().time()
        if stage is None:
            return
        try:
            await stage.close()
        except (CephqosError, OSError, TimeoutError) as error:
            self._tell(f"NOT ALL ENDED: {error}")

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
    def _how_to_end(self) -> str:
        return "" if self.closed else ". The same key ends it"  # keys are closed during the tour

    @property
    def going_on(self) -> str:
        """The name of what is provoked now, or nothing."""
        return self._attempt.name if self._attempt else ""


async def listen(provoker: Provoker, watch: AlertWatch, query: Query) -> None:
    """To the alerts, until this is cancelled, because the demo ends."""
    try:
        while True:
            with contextlib.suppress(OSError):
                provoker.hear(await watch.look())
                await provoker.look(query)
            await asyncio.sleep(_LISTEN_SECONDS)
    finally:
        await provoker.close()
