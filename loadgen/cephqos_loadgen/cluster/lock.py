"""One run per cluster: a key of the monitors says who runs, whether they live, and the way back.

Rules for a run that finds the key:
- The other run lives if its heartbeat is younger than 60 s, and it is refused to take its place.
  Only a process of this host that is gone counts as dead before.
- The heartbeat is older: the other run is dead. If it ran on another host, whose clock may be
  wrong, this run waits for a heartbeat first.
- A dead run wrote down a way back: the cluster is still changed. Then `--take-over` is needed. It
  takes the lock, carries out the way back, and then runs. `--restore-only` does the same and ends.
"""

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from cephqos_base.errors import CephqosError
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.cluster import run_keys, this_host
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.run_keys import HEARTBEAT, KEY, Holder, KeysFound, step_key
from cephqos_loadgen.cluster.steps.registry import stored
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.this_host import ThisProcess
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.plan.errors import ClusterBusy, RunError

HEARTBEAT_SECONDS = 10.0
STALE_SECONDS = 60.0
# If two runs start at once, both write. After this time only the last one finds its own token.
_SETTLE_SECONDS = 1.0
_ENOENT = -2
_WATCHED_BEATS = 2.5  # heartbeats to wait for one of a run of another host
# A run whose heartbeat the monitors refuse so often, one after the other, ends.
_REFUSED_BEATS = 2
LOST = "another run took this cluster over"


@dataclass(frozen=True, slots=True)
class GivenBack:
    """What was done about a dead run's changes."""

    run: str  # who it was
    undone: tuple[str, ...]  # commands
    left: tuple[str, ...]  # what someone else had changed since
    kept: tuple[str, ...]  # steps that could not be carried out, or are refused, and why

    def lines(self) -> list[str]:
        """For a person."""
        return [
            *(f"undone: {line}" for line in self.undone),
            *(f"left as it is: {line}" for line in self.left),
            *(f"kept: {line}" for line in self.kept),
        ]


class ClusterLock:
    """The lock of a cluster, held inside the block."""

    def __init__(
        self, cluster: ClusterConnection, run: str, *, take_over: bool, restore_only: bool = False
    ) -> None:
        self._cluster = cluster
        self._take_over = take_over or restore_only
        self._restore_only = restore_only
        self._holder = Holder(
            run=run,
            token=secrets.token_hex(8),
            host=this_host.name(),
            process=ThisProcess.now(),
            began=time.time(),
        )
        # The steps that the monitors have. None: one is being written, and may be there.
        self._stored: dict[int, StepBack | None] = {}
        self._refused: tuple[str, ...] = ()  # what they have beside these
        self._beating: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self.lost = False  # another run has taken the lock
        self.failure = ""  # why the lock is not held any more
        self.given_back: GivenBack | None = None  # of a dead run

    async def __aenter__(self) -> Self:
        found = await run_keys.look(self._cluster)
        dead = await self._refuse(found)
        try:
            await self._claim()
            if dead or found.left_changes:
                await self._give_back(dead or "an unknown run", await run_keys.look(self._cluster))
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._leave()

    async def _claim(self) -> None:
        await self._set(KEY, self._holder.to_text())
        await self._write_beat(time.time())
        await asyncio.sleep(_SETTLE_SECONDS)
        holder = await run_keys.read_holder(self._cluster, patience=30.0)
        if holder is None or holder.token != self._holder.token:
            who = f"run {holder.run} on {holder.host}" if holder else "another run"
            raise ClusterBusy(f"{who} took this cluster in the same moment")
        self._beating = asyncio.create_task(self._beat(), name="lock heartbeat")

    async def _leave(self) -> None:
        """Stop the heartbeat. Remove the keys if they are ours, unless steps are kept there: then
        the next run need not wait until the heartbeat is old."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        with contextlib.suppress(CephqosError, CommandFailed):
            holder = await run_keys.read_holder(self._cluster, patience=20.0)
            if holder is None or holder.token != self._holder.token:
                return
            if self._stored or self._refused:
                await self._write_beat(0.0, patience=20.0)
                return
            await self._remove(HEARTBEAT, patience=20.0)
            await self._remove(KEY, patience=20.0)

    # -- the way back ---------------------------------------------------------------------------

    async def save(self, steps: Mapping[int, StepBack]) -> None:
        """Have the monitors keep these steps; RunError where another run has the lock."""
        await self.look(patience=30.0)
        if self.lost:
            raise RunError(LOST)
        for number in [number for number in self._stored if number not in steps]:
            await self._remove(step_key(number))
            del self._stored[number]
        for number, step in steps.items():
            if self._stored.get(number) != step:
                self._stored[number] = None  # cancelled now, it arrives all the same
                await self._set(step_key(number), stored(step))
                self._stored[number] = step

    async def _give_back(self, run: str, found: KeysFound) -> None:
        """Carry out the steps that a dead run left. ClusterBusy if some cannot be, unless that is
        all that is wanted: they stay."""
        self._stored, self._refused = dict(found.steps), found.refused
        journal = Journal(self.save, found.steps)
        commands = journal.commands()
        failures = await journal.roll_back(self._cluster)
        remaining = journal.commands()
        self.given_back = GivenBack(
            run=run,
            undone=tuple(line for line in commands if line not in remaining),
            left=tuple(journal.left),
            kept=(*failures, *found.refused),
        )
        if self.given_back.kept and not self._restore_only:
            lines = "".join(f"\n  {line}" for line in self.given_back.kept)
            raise ClusterBusy(f"what {run} left cannot all be undone; these steps are kept:{lines}")

    # -- other runs -----------------------------------------------------------------------------

    async def look(self, patience: float = 0.0) -> None:
        """Set `lost` if another run has the lock now. While the monitors are away, it stays."""
        with contextlib.suppress(CephqosError, CommandFailed, ClusterUnreachable):
            holder = await run_keys.read_holder(self._cluster, patience)
            if holder is not None and holder.token != self._holder.token:
                self.lost = True
                self._end(LOST)

    async def until_ended(self) -> str:
        """Wait until the lock is lost, or cannot be held any more; says why."""
        await self._ended.wait()
        return self.failure

    def _end(self, why: str) -> None:
        self.failure = self.failure or why
        self._ended.set()

    async def _refuse(self, found: KeysFound) -> str:
        """ClusterBusy if another run lives, or has left changes that are not to be undone. Returns
        the dead run in words; empty if there is none."""
        holder = found.holder
        if holder is None:
            text = "a run whose key was removed left changes of this cluster"
        else:
            age = time.time() - found.beat
            text = describe(holder, age)
            if await self._is_alive(holder, found.beat):
                raise ClusterBusy(
                    f"{text}. Wait for it, or end it; {STALE_SECONDS:.0f} s after its last"
                    " heartbeat it counts as dead, and cephqos run --take-over takes its place"
                )
        if found.left_changes and not self._take_over:
            steps = "".join(f"\n  {line}" for line in found.shown())
            raise ClusterBusy(
                f"{text}{': it is dead' if holder else ''}. cephqos run --restore-only undoes its"
                f" changes; cephqos run --take-over undoes them first, then runs:{steps}"
            )
        return text if holder else ""

    async def _is_alive(self, holder: Holder, beat: float) -> bool:
        """Whether a run lives. One with an old heartbeat, or one from the future, does if it writes
        another one. A run of this host has this host's clock: an old heartbeat needs no second
        look."""
        if holder.host == this_host.name() and holder.process.is_gone():
            return False
        age = time.time() - beat
        if abs(age) < STALE_SECONDS:
            return True
        if holder.host == this_host.name() and age > 0:
            return False
        await asyncio.sleep(_WATCHED_BEATS * HEARTBEAT_SECONDS)
        now = await run_keys.look(self._cluster)
        return now.holder is not None and now.beat != beat

    # -- the heartbeat --------------------------------------------------------------------------

    async def _beat(self) -> None:
        """Write heartbeats. The run is to end when the monitors refuse them, or when they have been
        away for so long that another run may take its place."""
        last, refused = time.monotonic(), 0
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await self.look()
            if self.lost:
                return
            try:
                await self._write_beat(time.time(), patience=0.0)
                last, refused = time.monotonic(), 0
                continue
            except CommandFailed as error:
                refused += 1
                why = f"the monitors refuse the heartbeat: {error}"
            except (CephqosError, ClusterUnreachable) as error:
                why = f"the heartbeat could not be written: {error}"
            silent = time.monotonic() - last
            if refused >= _REFUSED_BEATS or silent > _LONGEST_SILENCE_SECONDS:
                self._end(f"{why}. Its last one is {silent:.0f} s old, so this run ends")

    async def _write_beat(self, at: float, patience: float = 30.0) -> None:
        beat = {"token": self._holder.token, "time": at}
        await self._set(HEARTBEAT, json.dumps(beat), patience)

    async def _set(self, key: str, value: str, patience: float = 30.0) -> None:
        await self._cluster.command("config-key set", key=key, val=value, patience=patience)

    async def _remove(self, key: str, patience: float = 30.0) -> None:
        try:
            await self._cluster.command("config-key rm", key=key, patience=patience)
        except CommandFailed as error:
            if error.code != _ENOENT:
                raise


# Monitors that are away for everybody end no run before commands give up.
_LONGEST_SILENCE_SECONDS = 2 * STALE_SECONDS


def describe(holder: Holder, age: float) -> str:
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(holder.began))
    beat = f"its last heartbeat was {age:.0f} s ago" if age < 1e8 else "it gave up its heartbeat"
    return (
        f"run {holder.run} (pid {holder.process.pid} on {holder.host}) holds this cluster since"
        f" {started}; {beat}"
    )
