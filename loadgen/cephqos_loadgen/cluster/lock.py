"""One run per cluster: a key of the monitors says who runs, whether they live, and the way back.

Rules for a run that finds it. While the heartbeat is younger than 60 s, the other run lives and the
cluster is refused. If it is older, the other run is dead. The clock of another host may be wrong:
its run is dead only if no heartbeat arrives while we wait for one. If the dead run wrote down a way
back, the cluster is still changed. Then `--take-over` is needed, and carries out the way back
first.
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
# If two runs start at once, both write. After this time the last writer finds its own token.
_SETTLE_SECONDS = 1.0
_ENOENT = -2
# A run of another host that writes none in the time of so many heartbeats is dead.
_WATCHED_BEATS = 2.5
LOST = "another run took this cluster over"
_KEYS = {"run", "token", "pid", "host", "started", "heartbeat", "undo"}


def describe(held: dict[str, Any], age: float) -> str:
    return (
        f"run {held['run']} (pid {held['pid']} on {held['host']}) holds this cluster since"
        f" {held['started']}; its last heartbeat was {age:.0f} s ago"
    )


def _entry(value: Any) -> dict[str, Any]:
    """What a run wrote; ClusterBusy where the key holds something else."""
    try:
        entry = dict(json.loads(value) if isinstance(value, str) else value)
        if entry.keys() >= _KEYS and isinstance(entry["heartbeat"], int | float):
            return entry
    except (TypeError, ValueError):
        pass
    raise ClusterBusy(
        f"the monitors' key {KEY} is not what a run writes there. If no run is under way, remove it"
        f" (ceph config-key rm {KEY})"
    )


def _remove_work(held: dict[str, Any]) -> None:
    """Remove the folder of a dead run with its conf and sockets. No other program would."""
    work = Path(held.get("work", ""))
    if held["host"] == socket.gethostname() and work.name == held["run"]:
        shutil.rmtree(work, ignore_errors=True)


class ClusterLock:
    """Held inside the block. `lost` says whether another run took it."""

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
            "work": work,  # its folder on its host
            "undo": [],
        }
        self._beating: asyncio.Task[None] | None = None
        self.lost = False
        self.taken_over: list[str] = []

    async def __aenter__(self) -> Self:
        held = await self._read()
        if held is not None:
            await self._refuse_or_take_over(held)
        try:
            await self._write()
            await asyncio.sleep(_SETTLE_SECONDS)
            held = await self._read()
            if held is None or held["token"] != self._token:
                who = f"run {held['run']} on {held['host']}" if held else "another run"
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
        # What could not be undone stays written down, and so the lock stays too.
        if not self.lost and not self._entry["undo"]:
            await self._release()

    async def _release(self) -> None:
        """Remove the key if it is ours."""
        with contextlib.suppress(RunError, CommandFailed):
            held = await self._read(patience=20.0)
            if held and held["token"] == self._token:
                await self._cluster.command("config-key rm", key=KEY, patience=20.0)

    async def save_undo(self, entries: list[undo.Undo]) -> None:
        """Keep the way back in the cluster; RunError where another run has it by now."""
        await self.look(patience=30.0)
        if self.lost:
            raise RunError(LOST)
        self._entry["undo"] = undo.to_json(entries)
        await self._write()

    async def look(self, patience: float = 0.0) -> None:
        """Notice if another run has the cluster by now; as far as the monitors can be reached."""
        with contextlib.suppress(CephqosError, CommandFailed, ClusterUnreachable):
            held = await self._read(patience)
            self.lost = self.lost or (held is not None and held["token"] != self._token)

    async def _refuse_or_take_over(self, held: dict[str, Any]) -> None:
        age = time.time() - held["heartbeat"]
        text = describe(held, age)
        if abs(age) < STALE_SECONDS or await self._lives(held):
            raise ClusterBusy(
                f"{text}. Wait for it, or end it; {STALE_SECONDS:.0f} s after its last heartbeat"
                " it can be taken over with --take-over"
            )
        left = undo.from_json(held["undo"])
        commands = [entry.shown for entry in reversed(left)]
        if left and not self._take_over:
            steps = "".join(f"\n  {line}" for line in commands)
            raise ClusterBusy(
                f"{text}: it is dead. --take-over undoes its changes first, then runs:{steps}"
            )
        await self._undo(held, left)
        _remove_work(held)
        self.taken_over = [text, *commands]

    async def _lives(self, held: dict[str, Any]) -> bool:
        """Whether a run whose heartbeat looks old, or yet to come, writes another one. The clock of
        this host is that of its own runs, unless it was set back."""
        if held["host"] == socket.gethostname() and time.time() > held["heartbeat"]:
            return False
        await asyncio.sleep(_WATCHED_BEATS * HEARTBEAT_SECONDS)
        now = await self._read()
        return now is not None and now["heartbeat"] != held["heartbeat"]

    async def _undo(self, held: dict[str, Any], left: list[undo.Undo]) -> None:
        """Carry out what a dead run left; ClusterBusy, and all of it stays, where that fails."""
        elsewhere = [e.shown for e in left if undo.of_this_host(e)]
        if elsewhere and held["host"] != socket.gethostname():
            raise ClusterBusy(
                f"run {held['run']} changed its own host too: --take-over on {held['host']}, where"
                f" these can be undone: {'; '.join(elsewhere)}"
            )
        for entry in reversed(left):
            try:
                await undo.carry_out(entry, self._cluster)
            except (CephqosError, CommandFailed, OSError) as error:
                raise ClusterBusy(
                    f"what run {held['run']} left cannot be undone: {entry.shown}: {error}"
                ) from error

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            await self.look()
            if self.lost:
                return
            # Where the monitors are away, they will see the next beat.
            with contextlib.suppress(RunError, CommandFailed, ClusterUnreachable):
                await self._write(patience=0.0)

    async def _read(self, patience: float = 30.0) -> dict[str, Any] | None:
        try:
            held = await self._cluster.command("config-key get", key=KEY, patience=patience)
        except CommandFailed as error:
            if error.code == _ENOENT:
                return None
            raise
        return _entry(held)

    async def _write(self, patience: float = 30.0) -> None:
        self._entry["heartbeat"] = time.time()
        await self._cluster.command(
            "config-key set", key=KEY, val=json.dumps(self._entry), patience=patience
        )
