"""Pools, images and objects: made and filled, used again when they are the same, removed."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen import processes
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.restarts import named
from cephqos_loadgen.cluster.steps.pools import (
    APPLICATION,
    RUN,
    PoolMade,
    remove_pool,
    run_of,
)
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.engines import rados_bench
from cephqos_loadgen.engines.fio_output import JsonStream, read_status
from cephqos_loadgen.engines.rbd import write_through_argv
from cephqos_loadgen.live.state import Live
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.estimate import bytes_seconds, objects_seconds
from cephqos_loadgen.plan.parts import Objects, PlannedPool
from cephqos_loadgen.pools import kept_pools
from cephqos_loadgen.run_recording.child import Child, ChildFailed

_WRITERS = 4  # at once
# Filling may take this multiple of the time that is expected on small clusters, and at least two
# hours.
_FILL_PATIENCE = 4.0
_FILL_SECONDS = 7200.0
_PG_SECONDS = 0.2  # for each placement group to become active, on the smallest hosts
_COMMAND_SECONDS = 120.0
_DELETION_SECONDS = 600.0  # until OSDs have deleted what removed pools held
_DELETION_LOOK_SECONDS = 1.0  # as long, OSDs have to hear of a removal

# Starts a child with a name, a command line and a function that gets its output.
Start = Callable[..., Child]


class Pools:
    """The pools of a run. It never touches pools that it did not create or keep."""

    def __init__(
        self,
        cluster: ClusterConnection,
        journal: Journal,
        start: Start,
        live: Live,
        kept: kept_pools.KeptPools | None = None,
    ) -> None:
        self._kept = kept or kept_pools.KeptPools()
        self._cluster = cluster
        self._journal = journal
        self._start = start
        self._live = live

    async def prepare(self, pools: Sequence[PlannedPool]) -> list[str]:
        """Create and fill the pools that are missing. Returns the names of those used again."""
        reused, missing = [], []
        for pool in pools:
            spec = await self._spec(pool.name)
            if spec == kept_pools.spec_of(pool) and not pool.fresh:
                reused.append(pool.name)
                continue
            if spec is not None:
                await self._remove(pool.name)
                self._kept.left.discard(pool.name)
            missing.append(pool)
        for pool in missing:
            self._live.doing = f"making pool {pool.name}"
            await self._create(pool)
        if missing:
            names = [pool.name for pool in missing]
            self._live.doing = f"waiting for the placement groups of {', '.join(names)}"
            within = 120.0 + _PG_SECONDS * sum(pool.pg_num for pool in missing)
            await self._cluster.wait_for_pgs(clean=True, within=within, pools=names)
        self._live.doing = ""
        await asyncio.gather(*(self._fill(pool) for pool in missing))
        # Pools of one repeat are removed with it, so what they held is never needed.
        lasting = [pool for pool in missing if not pool.fresh]
        if lasting:
            await kept_pools.note_content(self._cluster, lasting, self._live.where.run)
        for pool in lasting:
            if pool.keep:
                self._kept.left.add(pool.name)
                await self._journal.drop(self._made(pool.name)[0])
        return reused

    async def empty(self, pools: Sequence[PlannedPool]) -> None:
        """Remove all objects of these pools, and wait until the OSDs have done so."""
        for pool in pools:
            self._live.doing = f"emptying pool {pool.name}"
            place = self._cluster.access.place
            argv = ["rados", *place.identity, "purge", pool.name, "--yes-i-really-really-mean-it"]
            await self._run(f"purge.{pool.name}", argv, None, _FILL_SECONDS)
        if pools:
            names = [pool.name for pool in pools]
            await self._cluster.wait_for_pgs(clean=True, within=_FILL_SECONDS, pools=names)
            left = await kept_pools.object_counts(self._cluster)
            for name in names:
                if left.get(name):
                    raise RunError(f"pool {name} still has {left[name]} objects after its purge")
        self._live.doing = ""

    async def until_deleted(self) -> str:
        """Wait until no OSD deletes placement groups, such as those of pools that were removed:
        `osd pool rm` returns at once. A finding where some still do after ten minutes."""
        self._live.doing = "waiting until OSDs have deleted what removed pools held"
        deadline = time.monotonic() + _DELETION_SECONDS
        while True:
            await asyncio.sleep(_DELETION_LOOK_SECONDS)
            left = await self._being_deleted()
            if not left or time.monotonic() > deadline:
                break
        self._live.doing = ""
        if not left:
            return ""
        return (
            f"cluster: still deleted when the phases began: {sum(left.values())} placement groups"
            f" that were removed or have moved, on {named(sorted(left))}"
        )

    async def _being_deleted(self) -> dict[int, int]:
        """How many placement groups each OSD deletes; an OSD that is stuck is left out."""
        found = {}
        for osd in await self._cluster.up_osds():
            with suppress(ClusterUnreachable, CommandFailed):
                reply = await self._cluster.once(
                    "perf dump", target=f"osd.{osd}", logger="osd", counter="numpg_removing"
                )
                counters = reply.get("osd", {}) if isinstance(reply, dict) else {}
                if count := int(counters.get("numpg_removing", 0)):
                    found[osd] = count
        return found

    async def _spec(self, name: str) -> str | None:
        """The checksum that a pool of this run has noted; None if there is no such pool.

        RunError if it is another's: `kept_pools.look` found none when the run began.
        """
        for pool in (await self._cluster.command("osd dump"))["pools"]:
            if pool["pool_name"] == name:
                if not self._is_ours(pool):
                    raise RunError(f"pool {name!r} was created by someone else during the run")
                metadata = pool.get("application_metadata", {})
                return str(metadata.get(APPLICATION, {}).get(kept_pools.SPEC, ""))
        return None

    def _is_ours(self, pool: Mapping[str, Any]) -> bool:
        """Whether this run has made a pool, or an earlier one has kept it: by id or mark."""
        name, run = pool["pool_name"], run_of(pool)
        if any(step.id == pool["pool"] for step in self._made()):
            return True
        kept_here = name in self._kept.left and run == self._live.where.run
        return kept_here or (run is not None and run == self._kept.found.get(name))

    def _made(self, name: str = "") -> list[PoolMade]:
        """The steps that remove pools of this run: all, or those of a name."""
        made = [step for step in self._journal.entries if isinstance(step, PoolMade)]
        return [step for step in made if not name or step.name == name]

    async def _create(self, pool: PlannedPool) -> None:
        """Make a pool. It gets its name last, with the run's mark in it: what a run that
        died has made is known from a pool of someone else at any time."""
        before = (await self._cluster.command("osd dump"))["pools"]
        made = PoolMade(
            name=pool.name,
            run=self._live.where.run,
            token=secrets.token_hex(8),
            above=max((entry["pool"] for entry in before), default=0),
            id=None,
        )
        await self._journal.push(made)
        temporary = made.temporary
        await self._command(
            "osd pool create", pool=temporary, pg_num=pool.pg_num, pgp_num=pool.pg_num
        )
        dump = await self._cluster.command("osd dump")
        ids = {entry["pool_name"]: int(entry["pool"]) for entry in dump["pools"]}
        await self._journal.replace(made, replace(made, id=ids[temporary]))
        mark = {"app": APPLICATION, "key": RUN, "value": made.run}
        await self._command(
            "osd pool application enable",
            pool=temporary,
            app=APPLICATION,
            yes_i_really_mean_it=True,
        )
        await self._command("osd pool application set", pool=temporary, **mark)
        options = {"pg_autoscale_mode": "off"}
        if pool.size is not None:
            options |= {"size": str(pool.size), "min_size": str(max(1, pool.size - 1))}
        for var, val in options.items():
            confirmed = {"yes_i_really_mean_it": True} if (var, val) == ("size", "1") else {}
            await self._command("osd pool set", pool=temporary, var=var, val=val, **confirmed)
        try:
            await self._command("osd pool rename", srcpool=temporary, destpool=pool.name)
        except CommandFailed as error:
            raise RunError(f"pool {pool.name!r} cannot be made: {error}") from error

    async def _command(self, prefix: str, **arguments: Any) -> None:
        await self._cluster.command(prefix, **arguments)

    async def _fill(self, pool: PlannedPool) -> None:
        work: list[Awaitable[None]] = []
        if pool.images:
            for number in range(pool.images.count):
                await self._make_image(pool.name, number, pool.images.size)
                if pool.images.prefill:
                    item = f"volume.{number}"
                    self._live.will_fill(pool.name, "bytes", item, pool.images.size)
                    work.append(self._fill_image(pool.name, number, pool.images.size))
        if pool.objects:
            work.append(self.fill_objects(pool.name, pool.objects))
        try:
            await asyncio.gather(*work)
        finally:
            self._live.fill_ended(pool.name, "bytes")

    async def _make_image(self, pool: str, number: int, size: int) -> None:
        place = self._cluster.access.place
        image = f"{pool}/volume.{number}"
        argv = ["rbd", *place.identity, "create", image, "--size", f"{size}B"]
        argv += ["--image-feature", "layering"]
        done = await processes.run(self._cluster.access.argv(argv), within=_COMMAND_SECONDS)
        if done.returncode:
            raise RunError(f"rbd create {image} failed: {done.stderr.strip()}")

    async def _fill_image(self, pool: str, number: int, size: int) -> None:
        place = self._cluster.access.place
        stream = JsonStream()

        def follow(data: bytes) -> None:
            for document in stream.feed(data):
                done = read_status(document).total.bytes
                self._live.filled(pool, "bytes", f"volume.{number}", done)

        argv = write_through_argv(pool, number, place)
        within = fill_limit(bytes_seconds(size))
        await self._run(f"prefill.{pool}.volume.{number}", argv, follow, within)

    async def fill_objects(self, pool: str, objects: Objects, within: float | None = None) -> None:
        """Write objects into a pool, several writers at once; RunError if not all were written."""
        within = within or fill_limit(objects_seconds(objects))
        place = self._cluster.access.place
        self._live.will_fill(pool, "objects", "all", objects.count)
        writers = []
        outputs: list[bytearray] = []
        for number, share in enumerate(objects.shared_out(_WRITERS)):
            name = f"{pool}.{number}"
            argv = rados_bench.prefill_argv(
                pool, share.count, share.size, place, name=name, seconds=within
            )
            outputs.append(bytearray())
            # A writer ends by itself when its time is up.
            writers.append(
                self._run(f"prefill.{name}", argv, outputs[-1].extend, within + _COMMAND_SECONDS)
            )
        before = (await kept_pools.object_counts(self._cluster)).get(pool, 0)
        progress = asyncio.create_task(self._follow_objects(pool, objects.count, before))
        try:
            await asyncio.gather(*writers)
        finally:
            self._live.fill_ended(pool, "objects")
            progress.cancel()
            await asyncio.gather(progress, return_exceptions=True)
        check_written(pool, objects, [bytes(output) for output in outputs], within)

    async def _follow_objects(self, pool: str, count: int, before: int) -> None:
        while True:
            await asyncio.sleep(2.0)
            objects = (await kept_pools.object_counts(self._cluster)).get(pool, 0)
            done = max(0, min(count, objects - before))
            self._live.filled(pool, "objects", "all", done)

    async def _run(
        self, name: str, argv: list[str], follow: Callable[[bytes], None] | None, within: float
    ) -> None:
        async with self._start(name, argv, follow) as child:
            status = await child.wait(within)
            if status:
                raise ChildFailed(f"{name} ended with status {status}: {child.last_words}")

    async def _remove(self, name: str) -> None:
        """Remove a pool of this run, or one that an earlier run has kept: see `_is_ours`."""
        for step in self._made(name):
            if left := await step.carry_out(self._cluster):
                raise RunError(f"pool {name!r} cannot be made again: {left}")
            await self._journal.drop(step)
            return
        await remove_pool(self._cluster, name)


def fill_limit(expected: float) -> float:
    """Seconds that filling may take, where `expected` are expected."""
    return max(_FILL_SECONDS, _FILL_PATIENCE * expected)


def check_written(pool: str, objects: Objects, outputs: Sequence[bytes], within: float) -> None:
    """RunError unless all objects were written. rados bench also succeeds if its time was up."""
    try:
        written = sum(rados_bench.read_result(output).ops for output in outputs)
    except ValueError as error:
        raise RunError(f"filling pool {pool}: {error}") from error
    if written < objects.count:
        raise RunError(
            f"filling pool {pool}: {written} of {objects.count} objects were written within"
            f" {within:g} s"
        )
