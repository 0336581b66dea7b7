"""One cluster for as long as a run works on it: locked, watched, and given back as it was."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.profiles import CAPACITY_OPTION
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_exporter.qos.tags import read_queue_dump
from cephqos_loadgen import withheld
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.check import lab_fit
from cephqos_loadgen.cluster import (
    background_work,
    capacity_bench,
    device_queues,
    journal_size,
    osds_here,
    restart_plan,
    run_keys,
    set_shares,
    undo,
    upmaps,
)
from cephqos_loadgen.cluster.connection import Access, ClusterConnection, write_client_conf
from cephqos_loadgen.cluster.lock import LOST, ClusterLock
from cephqos_loadgen.cluster.settings import ClusterSettings, runs_mclock, warnings_for
from cephqos_loadgen.cluster.steps.options import LAGGY, MON_NEEDS
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.load import guard_rails
from cephqos_loadgen.plan.errors import ClusterUnfit, RunError
from cephqos_loadgen.plan.planned import Plan, Point
from cephqos_loadgen.pools import free_space, kept_pools
from cephqos_loadgen.results.repeat import InForce
from cephqos_loadgen.run_recording.layout import CLIENT_CONF_FILE, UNDO_FILE
from cephqos_loadgen.run_recording.run_folder import ArchiveWriter

_SETTLE_SECONDS = 300.0  # to become clean after something was undone
_CLEAN_SECONDS = 60.0  # to be clean before the run
_OLD_MGR_POOL = "device_health_metrics"  # `.mgr` as 16.2 calls it
_OSD_FLAGS = ("noup", "nodown", "noin", "noout")


class Session:
    """The cluster of a run, and all that was changed in it.

    `begin`, and then `end` in any case, also where `begin` failed.
    """

    def __init__(
        self,
        access: Access,
        archive: ArchiveWriter,
        plan: Plan,
        *,
        take_over: bool,
        existing_cluster: bool = True,
        restart_osds: int | None = None,
        check: Callable[[str], None] = lambda fsid: None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.access = access
        self.archive = archive
        self.cluster = ClusterConnection(access)
        self.cluster.note = self._tell
        # Its own connection: a command that takes its time must not blind the watcher.
        self.watch_cluster = ClusterConnection(access)
        self._plan = plan
        self._lock: ClusterLock | None = None
        self._open = contextlib.AsyncExitStack()  # the connections, and the lock
        self._take_over = take_over
        self._restart_osds = restart_osds  # as many may be restarted, by the command line
        self.restarts = restart_plan.PlannedRestarts()
        self._existing_cluster = existing_cluster  # not a lab that the run made
        self._check = check  # gets the fsid; raises if this cluster is not to be touched
        self._note = note
        self.journal = undo.Journal(self._save)
        self.settings = ClusterSettings(self.cluster, self.journal)
        self.kept = kept_pools.KeptPools()
        self._state_before: dict[str, Any] = {}
        self.room_before: Mapping[str, int] = {}  # nearfull and full OSDs, by health check
        self._queues: list[str] = []  # devices whose queues are compared
        self._capacity: dict[str, float] = {}
        self.failures: list[str] = []

    async def begin(self) -> None:
        """Reach the cluster, take the lock, check the cluster, and stop its background work.

        The checks refuse the run by a UsageError. Until they are done, the lock is the only change.
        """
        write_client_conf(self.access, {})
        await self._open.enter_async_context(self.cluster)
        self._check(self.cluster.fsid)
        await self._open.enter_async_context(self.watch_cluster)
        await run_keys.check_size(self.cluster)
        lock = ClusterLock(self.cluster, self.archive.run, take_over=self._take_over)
        self._lock = await self._open.enter_async_context(lock)
        if back := lock.given_back:
            self.archive.event("took_over", run=back.run, undone=back.undone, left=back.left)
            self._note(f"taken over: {back.run}")
            for line in back.lines():
                self._note(f"  {line}")
        await self._refuse_unclean()
        await journal_size.check(self.cluster, self._plan)
        if self._existing_cluster:
            lab_fit.check(self._plan.points, await self._osds_up_and_in(), self.access.spec)
        await self._warn_of_the_cluster()
        await osds_here.check(self.cluster, self._plan)
        await self.settings.check(_settings_of(self._plan))
        await self._plan_restarts()
        self.kept.found = await kept_pools.look(self.cluster, self._plan)
        await free_space.check(self.cluster, self._plan.points, self.kept.found)
        self._queues = await self._devices_here()
        self._state_before = await self._state()
        self.room_before = guard_rails.room(await self.cluster.command("status"))
        quietened = await background_work.apply(self.cluster, self.journal, self._plan.quiet)
        self.archive.event("quietened", **quietened)
        await self._allow_pool_removal()
        await self._learn_nothing_of_osds()

    async def _plan_restarts(self) -> None:
        """Say which OSDs will be restarted; UsageError if they may not or cannot be."""
        self.restarts = await restart_plan.look(self.cluster, self.settings, self._plan)
        await restart_plan.check(self.cluster, self._plan, self.restarts, self._restart_osds)
        for line in self.restarts.lines():
            self._note(line)
        if self.restarts.osds:
            self.archive.event("restarts_planned", how=self.restarts.how)

    def _tell(self, text: str) -> None:
        """What happens in the cluster and takes its time: shown, and archived."""
        self.archive.event("cluster", text=text)
        self._note(text)

    async def _osds_up_and_in(self) -> list[dict[str, Any]]:
        """Metadata of the OSDs that are up and in: others are no part of what is measured."""
        dump = await self.cluster.command("osd dump")
        serving = {osd["osd"] for osd in dump["osds"] if osd["up"] and osd["in"]}
        metadata = await self.cluster.command("osd metadata")
        return [osd for osd in metadata if osd["id"] in serving]

    async def _warn_of_the_cluster(self) -> None:
        lines = []
        if self._existing_cluster and any(point.fresh_lab for point in self._plan.points):
            lines.append(
                "this cluster's OSDs are not made again between repeats, as the scenario wants:"
                " only its pools are"
            )
        if self.access.disks:
            metadata = await self.cluster.command("osd metadata")
            lines.append(lab_fit.other_disk(metadata, lab_fit.disk_below(self.access.disks)))
        for text in filter(None, lines):
            self.archive.event("warning", point="", text=text)
            self._note(f"warning: {text}")

    async def _refuse_unclean(self) -> None:
        """Refuse a cluster that is not clean: phases that wait for clean would not end."""
        try:
            await self.cluster.wait_for_pgs(clean=True, within=_CLEAN_SECONDS)
        except RunError as error:
            raise ClusterUnfit(f"the cluster is not clean: {error}") from error

    async def end(self) -> None:
        """Undo everything that can be undone; the rest is in `failures` and in the journal."""
        try:
            if self._lock is not None:
                self.failures.clear()  # what failed before is tried again
                await self.roll_back(0)
                if not self.lost:
                    await self._compare_with_before()
        except (CephqosError, CommandFailed) as problem:
            self.failures.append(str(problem))
        finally:
            self._write_undo(self.journal.entries)
            await self._open.aclose()

    @property
    def lost(self) -> bool:
        """Whether another run took the cluster over: this one must change nothing any more."""
        return self._lock is not None and self._lock.lost

    async def _save(self, steps: Mapping[int, StepBack]) -> None:
        """Save how to undo what was changed: in the archive, and in the cluster by its lock."""
        self._write_undo(steps.values())
        if self._lock is not None:
            await self._lock.save(steps)

    def _write_undo(self, steps: Iterable[StepBack]) -> None:
        try:
            document = [{"shown": step.shown, **step.to_json()} for step in steps]
            self.archive.json(UNDO_FILE, document)
        except OSError as error:
            self.archive.event("undo_not_written", error=str(error))

    async def _allow_pool_removal(self) -> None:
        """Allow pools to be removed, for the length of the run."""
        for name in MON_NEEDS:
            value = await self.cluster.command("config get", who="mon", key=name)
            if str(value).strip().lower() not in ("true", "1"):
                await self.settings.apply([CephOption("mon", name, "true")])

    async def _learn_nothing_of_osds(self) -> None:
        """See LAGGY. A lab has no next failure."""
        takes_down = any(p.action.takes_osds_down for it in self._plan.points for p in it.phases)
        if takes_down and not self.access.at_once:
            await self.settings.apply([CephOption("mon", LAGGY, "0")])

    async def measure_capacity(self) -> None:
        """Before the first point, where the scenario says so."""
        spec = self._plan.capacity
        if spec is not None:
            self._capacity = await capacity_bench.measure(
                self.cluster, self.settings, spec, self._note
            )
            self.archive.event("capacity_measured", iops=self._capacity)

    # -- points of the matrix -------------------------------------------------------------------

    async def apply(self, point: Point) -> InForce:
        """Put the point's configuration in force; returns what the daemons say of it."""
        conf = write_client_conf(self.access, dict(point.client))
        self.archive.text(CLIENT_CONF_FILE, withheld.conf(conf))
        for flag in point.flags:
            await self.journal.make(undo.flag(flag, on=True), self.cluster)
        names = await self._devices(point)
        await device_queues.apply(point.devices, names, self.journal)
        in_force = await self.settings.apply(point.settings)
        up = await self.cluster.up_osds()
        effective = await self.settings.effective(up[0]) if up else {}
        warnings = warnings_for(point.settings, effective)
        if runs_mclock(effective):
            ours = {option.name for option in point.settings}
            kept = await set_shares.above_profile(self.cluster, up, ours=ours)
            warnings += [kept] if kept else []
        for warning in warnings:
            self.archive.event("warning", point=point.name, text=warning)
        return InForce(
            options={name: opts for name, opts in in_force.items() if name.startswith("osd.")},
            other_options={
                name: opts
                for name, opts in in_force.items()
                if opts and not name.startswith("osd.")
            },
            schedulers=await self._schedulers(up),
            devices=device_queues.read_queues(names),
            warnings=tuple(warnings),
            capacity_iops=self._capacity,
        )

    async def _devices(self, point: Point) -> list[str]:
        """Block devices of the OSDs that are on this host; none is an error only if the point wants
        them changed."""
        devices = await self._devices_here()
        if not devices and device_queues.queue_settings(point.devices):
            raise UsageError(
                "devices: no OSD has a block device of its own on this host (file-backed OSDs"
                " have none); use backing: loop"
            )
        return devices

    async def _devices_here(self) -> list[str]:
        metadata = await self.cluster.command("osd metadata")
        names = osds_here.devices(metadata, await self.cluster.pids())
        return device_queues.present(names | self.access.devices)

    async def _schedulers(self, osds: Sequence[int]) -> dict[str, str]:
        """The scheduler in force per OSD, by the shape of its queue dump."""
        schedulers = {}
        for osd in osds:
            dump = await self.cluster.command("dump_op_pq_state", target=f"osd.{osd}")
            schedulers[f"osd.{osd}"] = scheduler_of(dump)
        return schedulers

    async def roll_back(self, keep: int) -> None:
        """Undo all but the first `keep` entries of the journal; wait until the cluster is clean."""
        undone = self.journal.entries[keep:]
        if self._lock is not None:
            await self._lock.look()
        if self.lost:
            # The run that took the cluster over has undone what this run had changed.
            self.journal.forget(keep)
            return
        left_before = len(self.journal.left)
        failures = await self.journal.roll_back(self.cluster, keep)
        self.failures += failures
        for text in self.journal.left[left_before:]:
            self.archive.event("changed_by_others", text=text)
            self._note(f"warning: {text}; it is left as it is")
        if not failures and any(entry.moves_data for entry in undone):
            # If an OSD died during the run, the cluster cannot become clean by itself.
            all_up = set(self._state_before.get("up", [])) <= set(await self.cluster.up_osds())
            await self.cluster.wait_for_pgs(clean=all_up, within=_SETTLE_SECONDS)

    def check_given_back(self) -> None:
        """RunError where something that a point or repeat had changed could not be undone: what
        comes next would be measured with it."""
        if self.failures:
            raise RunError(f"not everything could be undone: {'; '.join(self.failures)}")

    async def changed_by_others(self, entries: Sequence[StepBack] | None = None) -> list[str]:
        """Options that are other than the run has set them, one line each; none if the cluster
        cannot be reached. Without `entries` all of the journal count, and OSDs are asked too."""
        with contextlib.suppress(CephqosError, CommandFailed):
            undone = self.journal.entries if entries is None else entries
            changed = await self.settings.changed_by_others(undone)
            if entries is None:
                changed += await self.settings.overridden(undone)
            return changed
        return []

    async def until_not_held(self) -> str:
        """Wait until the cluster is not held any more; says why."""
        if self._lock is None:
            raise RunError("the cluster is not held")
        return await self._lock.until_ended()

    async def check_held(self) -> None:
        """RunError where another run took the cluster over."""
        if self._lock is not None:
            await self._lock.look()
        if self.lost:
            raise RunError(LOST)

    # -- the state before and after -------------------------------------------------------------

    async def _state(self) -> dict[str, Any]:
        """What must be the same before and after."""
        dump = await self.cluster.command("osd dump")
        balanced = await background_work.balancer_is_on(self.cluster)
        return {
            "config": sorted(
                (entry["section"], entry.get("mask", ""), entry["name"], entry["value"])
                for entry in withheld.dump(await self.cluster.command("config dump"))
                # OSDs themselves write there what they measure at their start.
                if not entry["name"].startswith(CAPACITY_OPTION)
            ),
            "flags": sorted(dump["flags"].split(",")),
            "flags of OSDs": sorted(
                (osd["osd"], flag)
                for osd in dump["osds"]
                for flag in osd.get("state", ())
                if flag in _OSD_FLAGS
            ),
            "pools": sorted(pool["pool_name"] for pool in dump["pools"]),
            "autoscale": sorted((await background_work.autoscale_modes(self.cluster)).items()),
            "balancer": [balanced],
            # A balancer that is on changes upmaps at any time.
            "upmaps": [] if balanced else sorted(upmaps.lines(upmaps.read(dump))),
            "in": sorted(osd["osd"] for osd in dump["osds"] if osd["in"]),
            "weights": sorted(
                (osd["osd"], round(osd["weight"], 3), osd.get("primary_affinity"))
                for osd in dump["osds"]
                if osd["in"]
            ),
            "up": sorted(osd["osd"] for osd in dump["osds"] if osd["up"]),
            "queues": device_queues.state(self._queues),
        }

    async def _compare_with_before(self) -> None:
        """Add to `failures` what differs from before the run, but for pools that are to be kept."""
        after = await self._state()
        for key, before in self._state_before.items():
            gone = [entry for entry in before if entry not in after[key]]
            new = [entry for entry in after[key] if entry not in before]
            if key in ("pools", "autoscale"):
                new = [entry for entry in new if not self._may_be_new(entry)]
            if gone or new:
                self.failures.append(f"{key} differs: gone {gone}, new {new}")
        kept = sorted(self.kept.left)
        self.archive.event("restored", same=not self.failures, differences=self.failures, kept=kept)

    def _may_be_new(self, entry: str | tuple[str, str]) -> bool:
        """A pool that is kept, or one that a manager's module makes for itself."""
        name = entry if isinstance(entry, str) else entry[0]
        return name in self.kept.left or name.startswith(".") or name == _OLD_MGR_POOL


def scheduler_of(queue_dump: Any) -> str:
    """mclock_scheduler, wpq or unknown, in the words of the option osd_op_queue."""
    return read_queue_dump(queue_dump if isinstance(queue_dump, dict) else {}).scheduler


def _settings_of(plan: Plan) -> list[CephOption]:
    """All that any point or phase will set, each once. Where points have different labs, options of
    a single daemon are left out: a lab need not have it."""
    options = {option: None for point in plan.points for option in point.settings}
    for point in plan.points:
        for phase in point.phases:
            options |= dict.fromkeys(phase.action.settings())
    several_labs = len({point.lab for point in plan.points}) > 1
    return [option for option in options if not (several_labs and "." in option.section)]


async def finish(work: Coroutine[Any, Any, None], note: Callable[[str], None], spare: int) -> None:
    """Carry clean-up through although it is interrupted, then raise the interruption.

    `spare` interruptions are only noted. The next one stops the work where it can be stopped: what
    it has not undone by then stays in its journal.
    """
    task = asyncio.ensure_future(work)
    interruptions = 0
    while not task.done():
        try:
            await asyncio.wait([task])  # which leaves the task alone when it is cancelled itself
        except asyncio.CancelledError:
            interruptions += 1
            if interruptions <= spare:
                note("restoring the cluster; once more stops that, and prints the commands for it")
            elif interruptions == spare + 1:
                note("restoring the cluster was stopped")
                task.cancel()
    if not task.cancelled():
        task.result()
    if interruptions:
        raise asyncio.CancelledError
