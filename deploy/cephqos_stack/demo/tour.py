"""`cephqos demo --tour`: a quarter of an hour through what cephqos shows, one step at a time.

`STEPS` is the tour. For each step, `Tour.walk` provokes what there is to see, prints where to look,
and gives time. The last steps run recovery under four policies, and their figures end the tour.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final

from cephqos_base.errors import CephqosError
from cephqos_base.series import OpSeries, count, total
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import REGIMES
from cephqos_stack.demo.provoke import Provoker, find
from cephqos_stack.demo.story import Tell
from cephqos_stack.staged.situation import Situation
from cephqos_stack.staged.stage import StagedLab, wait_until_clean

WPQ: Final = "wpq"
RECOVERY: Final = "recovery-flood"
_ATTEMPTS: Final = 3  # to restart the OSDs
_RECOVERY_PANEL: Final = "Client latency, and the work of recovery and scrub under it"


@dataclass(frozen=True, slots=True)
class TourStep:
    """One thing to see: what goes on, and the panel that shows it."""

    title: str
    words: str  # what goes on
    board: str
    panel: str
    seconds: float = 40.0  # to look, once it is shown
    provoke: str = ""  # the provocation that goes on; the next step may keep it
    policy: str = ""  # WPQ or a profile of mClock: what orders recovery and clients
    command: str = ""  # of `cephqos`, for another terminal


def _recovery_under(policy: str, words: str) -> TourStep:
    return TourStep(
        title=f"RECOVERY AGAINST CLIENTS: {policy}",
        words=words,
        board="Scrub & recovery",
        panel=_RECOVERY_PANEL,
        seconds=60.0,
        provoke=RECOVERY,
        policy=policy,
    )


STEPS: Final = (
    TourStep(
        "PROMISE",
        "mClock reserves a share of each OSD for each class. All classes get theirs now",
        "OSD",
        "Work, reservation and limit by class",
    ),
    TourStep(
        "VIOLATION",
        "a device gets slow. Clients have unmet demand and get less than their reservation",
        "QoS overview",
        "Worst OSDs",
        provoke="slow-device",
    ),
    TourStep(
        "CAUSE",
        "the alert names the device. Requests of osd.1's device take much longer than the others'",
        "Devices & I/O schedulers",
        "Time per request, slowest devices",
        provoke="slow-device",
    ),
    TourStep(
        "MENDED",
        "the device is fast again, and the alert ends",
        "QoS overview",
        "Firing alerts",
    ),
    TourStep(
        "TENANT",
        "one image writes more than all others. No reservation is violated: all clients are one"
        " class",
        "QoS overview",
        "Tenants with most of the work",
        provoke="noisy-neighbour",
        command="who --since 30s",  # a new tenant counts as `other` at first
    ),
    _recovery_under(WPQ, "no class has a reservation. Recovery has a low priority"),
    _recovery_under("high_client_ops", "clients have the larger reservation"),
    _recovery_under("balanced", "clients and recovery have equal reservations"),
    _recovery_under("high_recovery_ops", "recovery has the larger reservation"),
)

_CAPACITY: Final = 80.0  # operations per second that an OSD delivers on a device of that regime
# Figures count only while more than one object per second is recovered: while placement groups
# peer, clients stand still.
_RECOVERED: Final = "(sum(rate(cephqos_recovery_pushes_total[5s])) > 1)"
_OPS: Final = f"sum(rate({count(OpSeries.LATENCY_SECONDS)}[5s]))"
_SECONDS: Final = f"sum(rate({total(OpSeries.LATENCY_SECONDS)}[5s]))"
FIGURES: Final = {  # what is printed, and the query
    "clients {:.0f} operations/s": f"({_OPS} and {_RECOVERED})",
    "{:.0f} ms each": f"({_SECONDS} * 1000 / ({_OPS} > 0) and {_RECOVERED})",
    "recovery {:.0f} objects/s": _RECOVERED,
}

Query = Callable[[str], Awaitable[list[dict[str, Any]]]]


@dataclass
class Tour:
    """Walks the steps."""

    lab: RunningLab
    provoker: Provoker
    query: Query
    tell: Tell
    phase: Callable[[str], AbstractContextManager[None]]
    prometheus: str
    queue: str = ""  # the scheduler that the tour has set; empty: none yet

    async def walk(self) -> None:
        results = []  # of each policy
        for number, step in enumerate(STEPS, 1):
            self.tell(f"{number} of {len(STEPS)}  {step.title}: {step.words}")
            with self.phase(step.title.lower()):
                if not await self._succeeds(self._stage(step)):
                    continue
                await self._until_found(step)
                self.tell(self.where_to_look(step))
                began = asyncio.get_running_loop().time()
                await asyncio.sleep(step.seconds)
                if step.policy:
                    seconds = asyncio.get_running_loop().time() - began
                    results.append(f"{step.policy}: {await self._figures(seconds)}")
        await self.provoker.end()
        if self.queue:
            self.tell("the OSDs restart with the demo's own settings")
            await self._succeeds(self._restart("mclock_scheduler", {}))
        self.tell("The tour is over. While objects were recovered:")
        for result in results:
            self.tell(f"  {result}")

    async def _succeeds(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do the work. If it fails, say so: the tour goes on without it."""
        try:
            await work
        except (CephqosError, OSError, TimeoutError) as error:
            self.tell(f"SKIPPED: {error or 'the cluster did not recover in time'}")
            return False
        return True

    def where_to_look(self, step: TourStep) -> str:
        words = f"LOOK: dashboard {step.board}, panel {step.panel}"
        if step.command:
            words += f"; or `cephqos {step.command} --prometheus {self.prometheus}`"
        return words

    async def _stage(self, step: TourStep) -> None:
        """Provoke what the step needs, unless it goes on already."""
        name = f"{step.provoke} {step.policy}".strip()
        if self.provoker.going_on == name:
            return
        await self.provoker.end()
        if not step.provoke:
            return
        situation = find(step.provoke).load(self.lab.spec.osds)
        if step.policy:
            await self._order_by(step.policy)
            situation = _as_comparison(step.policy, situation)
        await self.provoker.begin(name, situation)

    async def _until_found(self, step: TourStep) -> None:
        """Wait until alerts have found the fault: a panel is worth a look only then."""
        if step.provoke and not step.policy:
            await self.provoker.found()

    async def _order_by(self, policy: str) -> None:
        """Let the OSDs run the scheduler of this policy."""
        queue = WPQ if policy == WPQ else "mclock_scheduler"
        if queue != self.queue:
            self.tell(f"the OSDs restart with {queue}, slow devices and one queue each")
            await self._restart(queue, REGIMES["scheduler"].options)
            self.queue = queue

    async def _restart(self, queue: str, options: dict[str, str]) -> None:
        """Restart the OSDs with this scheduler and these options of the regime `scheduler`."""
        conf = self.lab.paths.conf
        text = conf.read_text(encoding="utf-8")
        conf.write_text(re.sub(r"(?m)^(osd_op_queue *= *)\w+", rf"\g<1>{queue}", text))
        on = StagedLab(self.lab)
        for name in REGIMES["scheduler"].options:
            if name in options:
                await on.config(name, options[name])
            else:
                await on.unset(name)
        await self._restart_osds()
        await wait_until_clean(on)

    async def _restart_osds(self) -> None:
        """Kill all, then start all: data written while one is down would have to be recovered."""
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                running = await self.lab.pids()
                for osd in range(self.lab.spec.osds):
                    if f"osd.{osd}" in running:
                        await self.lab.faults.kill(osd)
                for osd in range(self.lab.spec.osds):
                    await self.lab.faults.restart(osd)
                return
            except LabError:  # a busy host may not answer in time
                if not attempts_left:
                    raise

    async def _figures(self, seconds: float) -> str:
        """What clients and recovery got, on average."""
        figures = []
        for words, expr in FIGURES.items():
            answer = await self.query(f"avg_over_time({expr}[{seconds:.0f}s:1s])")
            if answer:
                figures.append(words.format(float(answer[0]["value"][1])))
        return ", ".join(figures) or "nothing was recovered: the machine is too busy"


def _as_comparison(policy: str, situation: Situation) -> Situation:
    """The situation under a policy. No alert is expected: policies are compared."""
    config = {} if policy == WPQ else {"osd_mclock_profile": policy}
    cluster = replace(situation.cluster, device_iops=REGIMES["scheduler"].lab["device_iops"])
    return replace(
        situation, cluster=cluster, config=config, capacity=_CAPACITY, expect=(), allow=()
    )
