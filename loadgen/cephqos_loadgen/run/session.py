"""One cluster for as long as a run works on it: locked, watched, and given back as it was."""

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.archive.writer import ArchiveWriter
from cephqos_loadgen.errors import CephqosError, UsageError
from cephqos_loadgen.run import devices, undo
from cephqos_loadgen.run.actions import set_flag
from cephqos_loadgen.run.cluster import Access, Cluster, write_client_conf
from cephqos_loadgen.run.lock import ClusterLock
from cephqos_loadgen.run.settings import Settings, warnings_for
from cephqos_loadgen.scenario.model import Option, Point

_SETTLE_SECONDS = 300.0
_REST_SECONDS = 60.0
# Without these a monitor refuses to remove what the run makes, or to make a pool of one copy.
_MON_NEEDS = ("mon_allow_pool_delete", "mon_allow_pool_size_one")


class Session:
    """The cluster of a run, and all that was changed in it."""

    def __init__(
        self,
        access: Access,
        archive: ArchiveWriter,
        *,
        take_over: bool,
        check: Callable[[str], None] = lambda fsid: None,
    ) -> None:
        self.access = access
        self.archive = archive
        self.cluster = Cluster(access)
        # Its own connection: a command that takes its time must not blind the watcher.
        self.watch_cluster = Cluster(access)
        self._lock: ClusterLock | None = None
        self._take_over = take_over
        self._check = check  # raises if this cluster is not to be touched
        self.journal = undo.Journal(self._save)
        self.settings = Settings(self.cluster, self.journal)
        self._before: dict[str, Any] = {}
        self.failures: list[str] = []

    async def __aenter__(self) -> Self:
        write_client_conf(self.access, {})
        await self.cluster.__aenter__()
        try:
            self._check(self.cluster.fsid)
            await self.watch_cluster.__aenter__()
            lock = ClusterLock(self.cluster, self.archive.run, take_over=self._take_over)
            await lock.__aenter__()
            self._lock = lock
            if lock.taken_over:
                self.archive.event("took_over", what=lock.taken_over)
            # In a cluster that is not at rest no phase that waits for rest would end.
            await self.cluster.wait_for_pgs(clean=True, within=_REST_SECONDS)
            self._before = await self._state()
            await self._let_pools_go()
        except BaseException:
            if self._lock is None:
                await self._close()
            else:  # something may have been changed already
                await unstoppable(self.__aexit__(None, None, None), lambda text: None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Everything undone that can be; what cannot is in `failures` and in the journal."""
        try:
            await self.roll_back(0)
            await self._compare()
        except (CephqosError, CommandFailed) as problem:
            self.failures.append(str(problem))
        finally:
            await self._close()

    async def _close(self) -> None:
        if self._lock is not None:
            await self._lock.__aexit__(None, None, None)
        await self.watch_cluster.__aexit__(None, None, None)
        await self.cluster.__aexit__(None, None, None)

    @property
    def lost(self) -> bool:
        """Somebody else took the cluster over."""
        return self._lock is not None and self._lock.lost

    async def _save(self, entries: list[undo.Undo]) -> None:
        """The way back, in the archive and in the cluster."""
        try:
            self.archive.json("undo.json", undo.to_json(entries))
        except OSError as error:
            self.archive.event("undo_not_written", error=str(error))
        if self._lock is not None:
            await self._lock.save_undo(entries)

    async def _let_pools_go(self) -> None:
        """Pool removal allowed for as long as the run goes on, where it is not."""
        for name in _MON_NEEDS:
            value = await self.cluster.command("config get", who="mon", key=name)
            if str(value).strip().lower() not in ("true", "1"):
                await self.settings.apply([Option("mon", name, "true")])

    # -- points of the matrix -------------------------------------------------------------------

    async def apply(self, point: Point) -> dict[str, Any]:
        """Put the point's configuration in force; what the daemons say of it."""
        conf = write_client_conf(self.access, dict(point.client))
        self.archive.text("client.conf", conf)
        for flag in point.flags:
            await set_flag(self.cluster, self.journal, flag)
        names = await self._devices(point)
        await devices.apply(point.devices, names, self.journal)
        in_force = await self.settings.apply(point.settings)
        up = await self.cluster.up_osds()
        effective = await self.settings.effective(up[0]) if up else {}
        warnings = warnings_for(point.settings, effective)
        for warning in warnings:
            self.archive.event("warning", point=point.name, text=warning)
        return {
            "in_force": in_force,
            "warnings": warnings,
            "schedulers": await self._queues(up),
            "devices": devices.read_queues(names),
        }

    async def _devices(self, point: Point) -> list[str]:
        """Block devices of the OSDs that are on this host; none is an error only if the point wants
        them changed."""
        metadata = await self.cluster.command("osd metadata")
        names = {n for osd in metadata for n in osd.get("devices", "").split(",") if n}
        here = devices.present(names)
        if not here and devices.queue_settings(point.devices):
            raise UsageError(
                "devices: no OSD has a block device of its own on this host (file-backed OSDs"
                " have none); use backing: loop"
            )
        return here

    async def _queues(self, osds: Sequence[int]) -> dict[str, str]:
        """The scheduler in force per OSD, by the shape of its queue dump."""
        found = {}
        for osd in osds:
            dump = await self.cluster.command("dump_op_pq_state", target=f"osd.{osd}")
            found[f"osd.{osd}"] = "mclock_scheduler" if "mClockQueues" in str(dump) else "wpq"
        return found

    async def roll_back(self, to: int) -> None:
        """Undo what lies behind a place in the journal, and let the cluster come to rest."""
        undone = self.journal.entries[to:]
        failures = await self.journal.roll_back(self.cluster, to)
        self.failures += failures
        if not failures and any(_moves_data(entry) for entry in undone):
            # With an OSD that died meanwhile the cluster cannot be whole again by itself.
            whole = set(self._before.get("up", [])) <= set(await self.cluster.up_osds())
            await self.cluster.wait_for_pgs(clean=whole, within=_SETTLE_SECONDS)

    # -- as it was ------------------------------------------------------------------------------

    async def _state(self) -> dict[str, Any]:
        """What must be the same before and after."""
        dump = await self.cluster.command("osd dump")
        return {
            "config": sorted(
                (entry["section"], entry.get("mask", ""), entry["name"], entry["value"])
                for entry in await self.cluster.command("config dump")
                # OSDs write what they measure at their start there themselves.
                if not entry["name"].startswith("osd_mclock_max_capacity_iops")
            ),
            "flags": sorted(dump["flags"].split(",")),
            "pools": sorted(pool["pool_name"] for pool in dump["pools"]),
            "in": sorted(osd["osd"] for osd in dump["osds"] if osd["in"]),
            "up": sorted(osd["osd"] for osd in dump["osds"] if osd["up"]),
        }

    async def _compare(self) -> None:
        """Look whether the cluster is as it was; `.mgr` and the like may come by themselves."""
        after = await self._state()
        for key, was in self._before.items():
            gone = [entry for entry in was if entry not in after[key]]
            new = [entry for entry in after[key] if entry not in was]
            new = [entry for entry in new if not str(entry).startswith(".")]
            if gone or new:
                self.failures.append(f"{key} differs: gone {gone}, new {new}")
        self.archive.event("restored", same=not self.failures, differences=self.failures)


def _moves_data(entry: undo.Undo) -> bool:
    prefix, key = entry.arguments.get("prefix"), entry.arguments.get("key")
    held_back = ("norecover", "nobackfill", "norebalance", "noin")
    return prefix in ("osd in", "osd unset-group") or key in held_back


async def unstoppable(work: Any, note: Any) -> Any:
    """Finish `work` whatever is cancelled meanwhile, then hand on the cancellation.

    It ends by itself: every step back has a deadline.
    """
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
            note("restoring the cluster; this ends by itself")
        except Exception:
            break
    result = task.result()
    if cancelled:
        raise asyncio.CancelledError
    return result
