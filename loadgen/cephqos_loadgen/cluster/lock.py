"""One run per cluster: a key of the monitors says who runs, whether they live, and the way back.

Rules for a run that finds the key:
- The heartbeat is younger than 60 s: the other run lives, and this run is refused.
- It is older: the other run is dead. If it ran on another host, whose clock may be wrong, this run
  waits for a heartbeat first.
- A dead run wrote down a way back: the cluster is still changed. Then `--take-over` is needed, and
  carries out the way back first.
"""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import socket
import time
from pathlib import Path
from typing import Any, Self

from cephqos_base.errors import CephqosError
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.cluster import undo
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.plan.errors import ClusterBusy, RunError

KEY = "cephqos/run"
HEARTBEAT_SECONDS = 10.0
STALE_SECONDS = 60.0
# If two runs start at once, both write. After this time only the last one finds its own token.
_SETTLE_SECONDS = 1.0
_ENOENT = -2
_WATCHED_BEATS = 2.5  # heartbeats to wait for one of a run of another host
LOST = "another run took this cluster over"
_ENTRY_KEYS = {"run", "token", "pid", "host", "started", "heartbeat", "undo"}


def describe(holder: dict[str, Any], age: float) -> str:
    return (
        f"run {holder['run']} (pid {holder['pid']} on {holder['host']}) holds this cluster since"
        f" {holder['started']}; its last heartbeat was {age:.0f} s ago"
    )


def _read_entry(value: Any) -> dict[str, Any]:
    """What a run wrote into the key. ClusterBusy if it holds something else."""
    try:
        entry = dict(json.loads(value) if isinstance(value, str) else value)
        if entry.keys() >= _ENTRY_KEYS and isinstance(entry["heartbeat"], int | float):
            return entry
    except (TypeError, ValueError):
        pass
    raise ClusterBusy(
        f"the monitors' key {KEY} is not what a run writes there. If no run is under way, remove it"
        f" (ceph config-key rm {KEY})"
    )


def _remove_work(holder: dict[str, Any]) -> None:
    """Remove the folder of a dead run with its conf and sockets. No other program would."""
    work = Path(holder.get("work", ""))
    if holder["host"] == socket.gethostname() and work.name == holder["run"]:
        shutil.rmtree(work, ignore_errors=True)


class ClusterLock:
    """The lock of a cluster, held inside the block."""

    def __init__(
        self, cluster: ClusterConnection, run: str, *, take_over: bool, work: str = ""
    ) -> None:
        self._cluster = cluster
        self._take_over = take_over
        self._token = secrets.token_hex(8)
        self._entry: dict[str, Any] = {
            "run": run,
            "token": self._token,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "work": work,  # the run's folder of temporary files, on its host
            "undo": [],
        }
        self._beating: asyncio.Task[None] | None = None
        self.lost = False  # another run has taken the lock
        self.taken_over: list[str] = []  # the dead run, and the commands that undid its changes

    async def __aenter__(self) -> Self:
        holder = await self._read()
        if holder is not None:
            await self._refuse_or_take_over(holder)
        try:
            await self._write()
            await asyncio.sleep(_SETTLE_SECONDS)
            holder = await self._read()
            if holder is None or holder["token"] != self._token:
                who = f"run {holder['run']} on {holder['host']}" if holder else "another run"
                raise ClusterBusy(f"{who} took this cluster in the same moment")
        except BaseException:
            await self._release()
            raise
        self._beating = asyncio.create_task(self._beat(), name="lock heartbeat")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        # If some changes could not be undone, the key stays: it has the commands.
        if not self.lost and not self._entry["undo"]:
            await self._release()

    async def _release(self) -> None:
        """Remove the key if it is ours."""
        with contextlib.suppress(RunError, CommandFailed):
            holder = await self._read(patience=20.0)
            if holder and holder["token"] == self._token:
                await self._cluster.command("config-key rm", key=KEY, patience=20.0)

    async def save_undo(self, entries: list[undo.Undo]) -> None:
        """Write into the key how to undo all changes; RunError where another run has the lock."""
        await self.look(patience=30.0)
        if self.lost:
            raise RunError(LOST)
        self._entry["undo"] = undo.to_json(entries)
        await self._write()

    async def look(self, patience: float = 0.0) -> None:
        """Set `lost` if another run has the lock now. While the monitors are away, it stays."""
        with contextlib.suppress(CephqosError, CommandFailed, ClusterUnreachable):
            holder = await self._read(patience)
            self.lost = self.lost or (holder is not None and holder["token"] != self._token)

    async def _refuse_or_take_over(self, holder: dict[str, Any]) -> None:
        age = time.time() - holder["heartbeat"]
        text = describe(holder, age)
        if abs(age) < STALE_SECONDS or await self._is_alive(holder):
            raise ClusterBusy(
                f"{text}. Wait for it, or end it; {STALE_SECONDS:.0f} s after its last heartbeat"
                " it can be taken over with --take-over"
            )
        to_undo = undo.from_json(holder["undo"])
        commands = [entry.shown for entry in reversed(to_undo)]
        if to_undo and not self._take_over:
            steps = "".join(f"\n  {line}" for line in commands)
            raise ClusterBusy(
                f"{text}: it is dead. --take-over undoes its changes first, then runs:{steps}"
            )
        await self._undo(holder, to_undo)
        _remove_work(holder)
        self.taken_over = [text, *commands]

    async def _is_alive(self, holder: dict[str, Any]) -> bool:
        """Whether a run with an old heartbeat, or one from the future, writes another one.

        A run of this host has this host's clock: an old heartbeat needs no second look.
        """
        if holder["host"] == socket.gethostname() and time.time() > holder["heartbeat"]:
            return False
        await asyncio.sleep(_WATCHED_BEATS * HEARTBEAT_SECONDS)
        now = await self._read()
        return now is not None and now["heartbeat"] != holder["heartbeat"]

    async def _undo(self, holder: dict[str, Any], to_undo: list[undo.Undo]) -> None:
        """Undo what a dead run changed. If that fails: ClusterBusy, and its entries stay."""
        of_its_host = [entry.shown for entry in to_undo if undo.of_this_host(entry)]
        if of_its_host and holder["host"] != socket.gethostname():
            raise ClusterBusy(
                f"run {holder['run']} changed its own host too: --take-over on {holder['host']},"
                f" where these can be undone: {'; '.join(of_its_host)}"
            )
        for entry in reversed(to_undo):
            try:
                await undo.carry_out(entry, self._cluster)
            except (CephqosError, CommandFailed, OSError) as error:
                raise ClusterBusy(
                    f"what run {holder['run']} left cannot be undone: {entry.shown}: {error}"
                ) from error

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await self.look()
            if self.lost:
                return
            # If the monitors are away now, the next beat may reach them.
            with contextlib.suppress(RunError, CommandFailed, ClusterUnreachable):
                await self._write(patience=0.0)

    async def _read(self, patience: float = 30.0) -> dict[str, Any] | None:
        try:
            holder = await self._cluster.command("config-key get", key=KEY, patience=patience)
        except CommandFailed as error:
            if error.code == _ENOENT:
                return None
            raise
        return _read_entry(holder)

    async def _write(self, patience: float = 30.0) -> None:
        self._entry["heartbeat"] = time.time()
        await self._cluster.command(
            "config-key set", key=KEY, val=json.dumps(self._entry), patience=patience
        )
