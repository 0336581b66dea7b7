"""Faults that a person provokes in the demo, and whether the alerts found each.

Each is a staged situation, which `make truth` judges too. One is provoked at a time. `screen`
binds keys to `Provoker.press`, `remote` lets another terminal call `Provoker.toggle`, and `listen`
passes on the alerts. Each provocation is an Attempt, which ends with a line such as

    slow-device: right after 7 s
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

_LISTEN_SECONDS: Final = 0.5  # between two looks at the alerts
_QUIET_SECONDS: Final = 40.0  # after a fault, until its alerts have ended
_CANCEL_SECONDS: Final = 10.0  # for loads to end, when the demo ends
# Fires beside any fault where other programs keep the host busy; then it may hide the fault.
_HOST_BUSY: Final = "CephQosHostCpuTaken"
# Fire where a situation limits all devices, which were faster before.
_DEVICES_SLOWER: Final = ("CephQosOsdSlow", "CephQosCapacityUnderstated")


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
        allowed = (_HOST_BUSY, *_DEVICES_SLOWER) if cluster.device_iops else (_HOST_BUSY,)
        return replace(
            situation,
            cluster=cluster,
            size=min(situation.size, osds),
            seconds=situation.seconds * pace,
            # The demo's clients go on, and a capacity that is too small shows in their work first.
            expect=tuple(replace(finding, seen=None) for finding in situation.expect),
            allow=(*situation.allow, ExpectedFinding(alert=allowed)),
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
    for provocation in PROVOCATIONS:
        if name in (provocation.key, provocation.name):
            return provocation
    known = ", ".join(provocation.name for provocation in PROVOCATIONS)
    raise UsageError(f"--provoke {name!r}: expected one of {known}")


@dataclass(slots=True)
class Attempt:
    """One provocation, and the alerts that came since."""

    name: str
    situation: Situation
    before: dict[str, NotifiedAlert]  # alerts that fired before it and still fire, by labels
    began: float  # of the event loop's clock
    pace: float = 1.0  # how many times as long as in the demo the rules take
    heard: dict[str, Heard] = field(default_factory=dict)  # alerts since, by labels
    staged: bool = False  # the whole fault is there
    found: float | None = None  # when all expected alerts had come

    def hear(self, alerts: Sequence[NotifiedAlert], now: float) -> bool:
        """Note the alerts that fire. Returns whether the last of the expected ones came just now.

        Alerts that come later than SETTLED after the fault was found are its consequences, and an
        alert of the clients' SLO is always one. They do not speak against the verdict.
        """
        if self.found is not None and now > self.found + SETTLED * self.pace:
            return False
        firing = {_labels_key(alert): alert for alert in alerts}
        self.before = {key: alert for key, alert in self.before.items() if key in firing}
        for key, alert in firing.items():
            known = key in self.before or key in self.heard
            if not known and alert.labels["alertname"] != SLO_ALERT:
                self.heard[key] = _heard((now - self.began) / self.pace, alert)
        expected = self.situation.expect
        if self.found is None and expected and all(map(self._came, expected)):
            self.found = now
            return True
        return False

    def _came(self, finding: ExpectedFinding) -> bool:
        return any(self._is(finding, alert) for alert in self.heard.values())

    def _is(self, finding: ExpectedFinding, alert: Heard) -> bool:
        return matches(finding, alert, 0, self.situation.cluster.osds)

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
        return words + self._note_on_host(verdict)

    def _note_on_host(self, verdict: str) -> str:
        """What else, besides the fault, may explain the verdict; empty: nothing."""
        before = [_heard(0, alert) for alert in self.before.values()]
        expected = self.situation.expect
        if any(self._is(finding, alert) for finding in expected for alert in before):
            return ". What is due fired before: end what causes it, and try again"
        names = {alert.labels["alertname"] for alert in (*before, *self.heard.values())}
        if _HOST_BUSY not in names or any(_HOST_BUSY in finding.alert for finding in expected):
            return ""
        hides = "" if verdict == "right" else " That may hide the fault: try again when they rest"
        return f". {_HOST_BUSY} is true: other programs take this host's CPUs.{hides}"


def _heard(after: float, alert: NotifiedAlert) -> Heard:
    return Heard.of(after, alert.labels, alert.annotations.get("description", ""))


def _labels_key(alert: NotifiedAlert) -> str:
    return str(sorted(alert.labels.items()))


class Provoker:
    """Provokes one fault at a time, hears the alerts, and ends the fault again."""

    def __init__(
        self,
        lab: RunningLab,
        measure: Callable[[], Awaitable[int]],
        tell: Tell,
        pace: float = 1.0,
    ) -> None:
        """`measure`: gives what a saturated OSD delivers, in operations per second.

        `pace`: how many times as long as in the demo the rules take. 1 in the demo, where all is
        fast.
        """
        self._lab = lab
        self._pace = pace
        self._measure = measure
        self._tell = tell
        self._turn = asyncio.Lock()
        self._alerts: Sequence[NotifiedAlert] = ()  # that fire now
        self._pools: set[str] = set()  # that were created for situations
        self._stage: Stage | None = None
        self._attempt: Attempt | None = None
        self._ended = -math.inf  # when the last fault was ended
        self._fired_before: set[str] = set()  # alerts that fired before that fault
        self._pressed: set[asyncio.Task[str]] = set()
        # Why nothing can be provoked now; empty: it can.
        self.closed = "the story goes on: wait until it is over, or start with --calm"
        self.delivered: int | None = None  # by a saturated OSD; None until it was measured
        self.card: list[str] = []  # the lines of the attempts that ended

    def hear(self, alerts: Sequence[NotifiedAlert]) -> None:
        """Take the alerts that fire now; `listen` calls this several times a second."""
        self._alerts = alerts
        attempt = self._attempt
        if attempt is None:
            return
        now = asyncio.get_running_loop().time()
        if attempt.hear(alerts, now):
            self._tell(f"FOUND: {attempt.line(now)}{self._how_to_end}")

    async def look(self, query: Query) -> None:
        """Ask Prometheus whether the noisy image, if there is one, is seen by now."""
        attempt, stage = self._attempt, self._stage
        if attempt is None or stage is None or attempt.found is not None:
            return
        seconds = asyncio.get_running_loop().time() - attempt.began
        named = await noisy_tenant(query, stage.noisy, seconds, self._pace)
        if named is not None:
            attempt.heard[NAMED] = named
            self.hear(self._alerts)

    def press(self, name: str) -> asyncio.Task[str]:
        """As `toggle`, for a key of the screen, which does not wait for the answer."""
        task = asyncio.create_task(self._toggle(find(name)))
        self._pressed.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[str]) -> None:
        self._pressed.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(f"FAILED: {type(error).__name__}: {error}")

    async def toggle(self, name: str) -> str:
        """Provoke a fault, or end it if it goes on. Returns an answer for a person."""
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
        """Provoke a fault. If that fails, the answer says so, and all is undone."""
        try:
            await self._until_quiet()
            if self.delivered is None:
                self.delivered = await self._measure()
            return await self._begin(name, situation)
        except (CephqosError, OSError, TimeoutError) as error:
            await self._clean_up()
            return self._say(f"NOT PROVOKED: {name}: {error or 'not done in time'}")

    async def _until_quiet(self) -> None:
        """Wait until recovery and alerts of the last fault have ended, so that none is taken for
        one of the next fault."""
        on = StagedLab(self._lab)
        if not await clean(on):
            self._tell("WAITING: not all placement groups are clean")
            await wait_until_clean(on)
        loop, announced = asyncio.get_running_loop(), False
        while loop.time() < self._ended + _QUIET_SECONDS * self._pace:
            if not {_labels_key(alert) for alert in self._alerts} - self._fired_before:
                return
            if not announced:
                self._tell("WAITING: alerts of the fault before still fire")
            announced = True
            await asyncio.sleep(_LISTEN_SECONDS)

    async def _begin(self, name: str, situation: Situation) -> str:
        self._say(f"STAGING: {name}: {situation.about}")
        pool = await self._pool(situation.size, situation.groups)
        self._stage = stage = Stage(StagedLab(self._lab), situation, 0, pool)
        stage.undo += [partial(stage.on.config, CAPACITY_OPTION, self.delivered)]
        stage.undo += [partial(unset, stage)]
        await self._set_up_cluster(stage)
        delivered = self.delivered or LOW
        if situation.cluster.device_iops and (situation.capacity or 0) <= SHARE:
            delivered = await self._measure()
        await prepare(stage, float(delivered))
        loop = asyncio.get_running_loop()
        for action in situation.loads:
            stage.run(LOADS[action.kind](stage, action, stage.load_seconds))
        before = {_labels_key(alert): alert for alert in self._alerts}
        self._attempt = Attempt(name, situation, before, loop.time(), self._pace)
        for fault in sorted(situation.faults, key=lambda fault: fault.after):
            await asyncio.sleep(max(0.0, self._attempt.began + fault.after - loop.time()))
            await FAULTS[fault.kind](stage, fault)
        self._attempt.began, self._attempt.staged = loop.time(), True
        due = "no alert is due" if situation.healthy else "an alert is due"
        if any(NAMED in finding.alert for finding in situation.expect):
            due = "no alert is due, but `cephqos who` has to name the image"
        return self._say(f"PROVOKED: {name}; {due}{self._how_to_end}")

    async def found(self) -> None:
        """Wait until the expected alerts have come, or twice their time is over."""
        while self._attempt and self._attempt.found is None:
            expected = self._attempt.situation.expect
            within = max((finding.within for finding in expected), default=0.0)
            if asyncio.get_running_loop().time() > self._attempt.began + 2 * within * self._pace:
                return
            await asyncio.sleep(_LISTEN_SECONDS)

    async def end(self) -> str:
        """End the fault that goes on. Returns its line of the score card."""
        if self._attempt is None:
            return "nothing is provoked"
        words = self._scored(self._attempt)
        await self._clean_up()
        return self._say(f"ENDED: {words}")

    def _scored(self, attempt: Attempt) -> str:
        """Put a line on the score card. A step of the tour with a policy of its own has none."""
        if attempt.name not in {provocation.name for provocation in PROVOCATIONS}:
            return attempt.name
        self.card.append(attempt.line(asyncio.get_running_loop().time()))
        return self.card[-1]

    async def close(self) -> None:
        """End tasks. Faults end with the lab, which ends now; host programs with this process."""
        tasks = {*self._pressed, *(self._stage.tasks if self._stage else ())}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_SECONDS)
        if self._attempt is not None and self._attempt.staged:
            self._scored(self._attempt)

    async def _clean_up(self) -> None:
        stage, self._stage = self._stage, None
        if self._attempt is not None:
            self._fired_before = set(self._attempt.before)
        self._attempt = None
        self._ended = asyncio.get_running_loop().time()
        if stage is None:
            return
        try:
            await stage.close()
        except (CephqosError, OSError, TimeoutError) as error:
            self._tell(f"NOT ALL ENDED: {error}")

    async def _set_up_cluster(self, stage: Stage) -> None:
        """Set what a lab of the situation's own would have had from its start."""
        on, cluster = stage.on, stage.situation.cluster
        for name, value in cluster.settings:
            stage.undo.append(partial(on.unset, name))
            await on.config(name, value)
        if cluster.device_iops:
            limits = {"riops": cluster.device_iops, "wiops": cluster.device_iops}
            for osd in range(cluster.osds):
                stage.undo.append(partial(on.lab.faults.throttle, osd))
                await on.lab.faults.throttle(osd, **limits)

    async def _pool(self, size: int, groups: int) -> str:
        """A pool with so many copies and placement groups. It is created when it is first needed,
        and stays."""
        name, ceph = f"provoked-{size}-{groups}", ["ceph", "osd", "pool"]
        if name not in self._pools:
            await self._lab.exec([*ceph, "create", name, str(groups)])
            confirmed = ["--yes-i-really-mean-it"] if size == 1 else []
            await self._lab.exec([*ceph, "set", name, "size", str(size), *confirmed])
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
    """Pass alerts on to the provoker, until this is cancelled because the demo ends."""
    try:
        while True:
            with contextlib.suppress(OSError):
                provoker.hear(await watch.look())
                await provoker.look(query)
            await asyncio.sleep(_LISTEN_SECONDS)
    finally:
        await provoker.close()
