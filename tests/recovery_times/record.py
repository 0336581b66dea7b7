"""Records real recoveries on a lab, each to its end:

    python -m tests.recovery_times.record FOLDER reef SEED out in lost replaced

A lab of five OSDs with slow devices, whose speeds are drawn. For each recovery a file of JSON
lines: its conditions, then the placement groups that are not clean, once a second. `judge` reads
them. Without kinds, all are recorded (a quarter of an hour). The manager hears of OSDs every second
here instead of every five, and logs of placement groups are short, so that OSDs that come and go
are backfilled.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from cephqos_exporter.ceph.monclient import MonClient
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.daemons.bringup import BringUp
from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.progress import Silent

OSDS: Final = 5
_OBJECT_BYTES: Final = 65536
_GROUPS: Final = "128"  # of a pool: about as many on each OSD as is usual
_LONGEST_SECONDS: Final = 600.0
_QUIET_POLLS: Final = 3  # a recovery has ended when all groups are clean in so many polls


class Recorder:
    """Stages one recovery after the other on a lab, and writes what happens."""

    def __init__(self, lab: Lab, client: MonClient, folder: Path, seed: int) -> None:
        self.lab, self.client, self.folder = lab, client, folder
        self.drawn = random.Random(seed)  # noqa: S311 - no secret
        self.name = f"{lab.spec.release}-{seed}"
        self.recorded = 0

    async def ceph(self, *argv: str) -> None:
        await self.lab.exec(["ceph", "--conf", str(self.lab.paths.conf), *argv])

    async def pgs(self) -> list[dict[str, Any]]:
        reply = await self.client.command("pg dump", target="mgr", dumpcontents=["pgs"])
        rows: list[dict[str, Any]] = reply["pg_stats"]
        return rows

    async def clean(self) -> None:
        """Wait for it, with devices that are not slow."""
        for osd in range(OSDS):
            await self.throttle(osd, 10_000)
        end = time.monotonic() + _LONGEST_SECONDS
        while not all(row["state"].startswith("active+clean") for row in await self.pgs()):
            if time.monotonic() > end:
                raise TimeoutError("the placement groups did not become clean")
            await asyncio.sleep(1)

    async def throttle(self, osd: int, iops: int) -> None:
        if f"osd.{osd}" in await self.lab.pids():
            await self.lab.faults.throttle(osd, riops=iops, wiops=iops)

    async def fill(self, pool: str, objects: int) -> None:
        argv = ["rados", "--conf", str(self.lab.paths.conf), "bench", "-p", pool]
        argv += ["-b", str(_OBJECT_BYTES), "120", "write", "-t", "32", "--no-cleanup"]
        await self.lab.exec([*argv, "--max-objects", str(objects)], within=150)

    async def record(
        self, kind: str, begin: Callable[[], Awaitable[None]], *, load: str = ""
    ) -> None:
        """One recovery that `begin` starts, beside clients of the pool `load`."""
        await self.clean()
        base = self.drawn.choice((60, 90, 120))
        if self.lab.spec.release == "tentacle":  # it recovers twice as fast
            base //= 2
        speeds = [int(base * self.drawn.choice((0.5, 1, 1, 1, 1.5))) for _ in range(OSDS)]
        about = {"recording": f"{self.name}-{self.recorded}", "kind": kind, "load": bool(load)}
        about |= {"release": self.lab.spec.release, "iops": speeds}
        self.recorded += 1
        for osd, iops in enumerate(speeds):
            await self.throttle(osd, iops)
        async with self._beside(load):
            lines = [about, *await self._until_done(begin)]
        name = f"{about['recording']}.jsonl"
        (self.folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        print(name, kind, f"{lines[-1]['time']:.0f} s", flush=True)

    async def _until_done(self, begin: Callable[[], Awaitable[None]]) -> list[Mapping[str, Any]]:
        began, quiet, seen = time.monotonic(), 0, False
        polls: list[Mapping[str, Any]] = []
        await begin()
        while quiet < _QUIET_POLLS and time.monotonic() - began < _LONGEST_SECONDS:
            rows = await self.pgs()
            unclean = [_brief(row) for row in rows if "clean" not in row["state"].split("+")]
            polls.append({"time": time.monotonic() - began, "groups": unclean})
            seen = seen or bool(unclean)
            quiet = quiet + 1 if seen and not unclean else 0
            await asyncio.sleep(1)
        return polls

    @asynccontextmanager
    async def _beside(self, pool: str) -> AsyncIterator[None]:
        if not pool:
            yield
            return
        argv = ["rados", "--conf", str(self.lab.paths.conf), "bench", "-p", pool, "-b", "4096"]
        argv += [str(int(_LONGEST_SECONDS)), "write", "-t", "2", "--run-name", "load"]
        load = asyncio.create_task(self.lab.exec(argv, within=300, check=False))
        try:
            yield
        finally:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)

    async def third_copy(self) -> None:
        await self.ceph("osd", "pool", "set", "r3", "size", "2")
        await asyncio.sleep(3)
        await self.record("size", lambda: self.ceph("osd", "pool", "set", "r3", "size", "3"))

    async def erasure_coded(self, objects: int) -> None:
        erasure = ("osd", "erasure-code-profile", "set", "k2m2", "k=2", "m=2")
        await self.ceph(*erasure, "crush-failure-domain=osd")
        await self.ceph("osd", "pool", "create", "ec", _GROUPS, _GROUPS, "erasure", "k2m2")
        await self.ceph("osd", "pool", "application", "enable", "ec", "test")
        await self.clean()
        await self.fill("ec", objects)
        await self.record("ec out", lambda: self.ceph("osd", "out", "2"))

    async def replaced(self, osd: int) -> None:
        """The OSD that was lost comes back with an empty store."""
        uuid = next(one["uuid"] for one in await self.osds() if one["osd"] == osd)
        data = self.lab.paths.data(f"osd.{osd}")
        block = (data / "block").readlink()
        for file in data.iterdir():
            if file.name != "block":
                file.unlink()
        await self.lab.exec(["blkdiscard", "--zeroout", str(block)], within=100)
        monmap = str(self.lab.paths.dir / "monmap")
        make = ["ceph-osd", "--conf", str(self.lab.paths.conf), "--mkfs", "-i", str(osd)]
        await self.lab.exec([*make, "--osd-uuid", uuid, "--monmap", monmap, "--no-mon-config"])
        await BringUp(self.lab, Silent()).start_osd(osd)
        async with asyncio.timeout(30):
            while not any(one["osd"] == osd and one["up"] for one in await self.osds()):
                await asyncio.sleep(1)
        await self.record("replaced", lambda: self.ceph("osd", "in", str(osd)))

    async def stop(self, osd: int) -> None:
        """Not by `ceph osd stop`: an empty OSD reads that in the map, and stops again."""
        await self.lab.faults.kill(osd)
        await self.ceph("osd", "down", str(osd))
        await self.ceph("osd", "out", str(osd))

    async def osds(self) -> list[dict[str, Any]]:
        dump = json.loads((await self.lab.exec(["ceph", "osd", "dump", "--format", "json"])).stdout)
        osds: list[dict[str, Any]] = dump["osds"]
        return osds


def _brief(row: Mapping[str, Any]) -> list[Any]:
    sums = row["stat_sum"]
    keys = "num_objects", "num_objects_degraded", "num_objects_misplaced", "num_objects_recovered"
    brief = [row["pgid"], row["state"], row["up"], row["acting"], row["acting_primary"]]
    return [*brief, *(sums[key] for key in keys)]


async def record_all(folder: Path, release: str, seed: int, kinds: Sequence[str]) -> None:
    settings = (
        CephOption("mgr", "mgr_stats_period", "1"),
        CephOption("global", "mon_osd_down_out_interval", "3600"),
        CephOption("osd", "osd_min_pg_log_entries", "2"),
        CephOption("osd", "osd_max_pg_log_entries", "2"),
        CephOption("osd", "osd_pg_log_trim_min", "1"),
        CephOption("global", "osd_pool_default_pg_autoscale_mode", "off"),
    )
    spec = LabSpec(
        name=f"rec-{release}-{seed}",
        release=release,
        osds=OSDS,
        backing="loop",
        rotational=False,
        settings=settings,
    )
    async with Lab(spec) as lab, lab.client() as client:
        it = Recorder(lab, client, folder, seed)
        await it.ceph("osd", "pool", "create", "r3", _GROUPS)
        await it.ceph("osd", "pool", "application", "enable", "r3", "test")
        objects = it.drawn.choice((1200, 1600, 2000))
        if release == "tentacle":
            objects *= 2
        await it.fill("r3", objects)
        beside = "" if release == "pacific" else "r3"
        stages: dict[str, Callable[[], Awaitable[None]]] = {
            "out": lambda: it.record("out", lambda: it.ceph("osd", "out", "0")),
            "in": lambda: it.record("in", lambda: it.ceph("osd", "in", "0"), load=beside),
            "size": it.third_copy,
            "ec out": lambda: it.erasure_coded(objects),
            "ec in": lambda: it.record("ec in", lambda: it.ceph("osd", "in", "2")),
            "lost": lambda: it.record("lost", lambda: it.stop(1)),
            "replaced": lambda: it.replaced(1),
        }
        for kind, stage in stages.items():
            if not kinds or kind in kinds:
                try:
                    await stage()
                except TimeoutError as error:
                    print(it.name, kind, f"not recorded: {error}", flush=True)


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    asyncio.run(record_all(out, sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
