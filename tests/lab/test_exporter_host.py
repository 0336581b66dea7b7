"""The host collectors against real OSDs under fio load, and against ps, psutil and /proc."""

import asyncio
import contextlib
import subprocess
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil
from tests.exporter_process import exporter
from tests.waiting import until

from cephqos_exporter.sampler import OSD_GROUPS, group_of
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec

from .conftest import LabPool, lab_name
from .live_exporter import LivePage

POOL = "host-collectors"
LOAD_SECONDS = 4
TICK = 0.02  # a reading is cut to 10 ms, for user and for system


@contextlib.contextmanager
def scraping(sockets: Path, *flags: str) -> Iterator[Callable[[], LivePage]]:
    """The real command, on a port of its own; gives a function that scrapes it."""
    with exporter(f"--discovery.sockets={sockets}", *flags) as running:
        yield lambda: LivePage(running.get(timeout=20))


@contextlib.asynccontextmanager
async def fio(lab: RunningLab) -> AsyncIterator[None]:
    """4 KiB random writes through librados while the body runs, and to their end."""
    await lab.exec(["ceph", "osd", "pool", "create", POOL, "16"])
    argv = ["fio", "--name=load", "--ioengine=rados", f"--pool={POOL}", "--clientname=admin"]
    argv += [f"--conf={lab.paths.conf}", "--rw=randwrite", "--bs=4k", "--iodepth=16"]
    argv += ["--size=64M", "--time_based", f"--runtime={LOAD_SECONDS}"]
    running = asyncio.create_task(lab.exec(argv))
    try:
        yield
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await lab.exec(
            ["ceph", "osd", "pool", "delete", POOL, POOL, "--yes-i-really-really-mean-it"]
        )


def ps(pid: int) -> dict[str, int]:
    """CPU seconds by thread id, cut to whole ones, as ps tells them."""
    done = subprocess.run(
        ["ps", "-L", "-o", "lwp=,cputimes=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split() for line in done.stdout.splitlines())
    return {tid: int(seconds) for tid, seconds in rows}


def group_times(pid: int) -> dict[str, float]:
    """CPU seconds by thread group, summed from psutil's figures for each thread."""
    total: dict[str, float] = defaultdict(float)
    for thread in psutil.Process(pid).threads():
        with contextlib.suppress(OSError):  # it has ended
            name = Path(f"/proc/{pid}/task/{thread.id}/comm").read_text().strip()
            total[group_of(name, OSD_GROUPS)] += thread.user_time + thread.system_time
    return total


def diskstats() -> dict[str, list[int]]:
    rows = (line.split() for line in Path("/proc/diskstats").read_text().splitlines())
    return {row[2]: [int(field) for field in row[3:]] for row in rows}


BUSY = {"ceph_daemon": "osd.0", "group": "tp_osd_tp"}
USED = 0.1  # CPU seconds of the op threads by which a load shows
WRITTEN = 100_000  # bytes of a device by which a load shows


def of_group(page: LivePage, group: str) -> float:
    """CPU seconds of a group of osd.0's threads."""
    name = "cephqos_threads_cpu_seconds_total"
    return sum(value for _, value in page.samples(name, ceph_daemon="osd.0", group=group))


async def whole(scrape: Callable[[], LivePage], osds: int = 3) -> LivePage:
    """A page with all that is known of each OSD. On a busy machine a scrape may end before it has
    looked at all threads, or before an OSD has answered."""
    every = {f"osd.{osd}" for osd in range(osds)}
    names = ("cephqos_threads", "cephqos_disks_info", "cephqos_placement_info")

    def has(page: LivePage, name: str) -> bool:
        return {labels.get("ceph_daemon") for labels, _ in page.samples(name)} >= every

    async def looked_at() -> LivePage | None:
        page = await asyncio.to_thread(scrape)
        return (
            page if all(has(page, it) for it in (*names, "cephqos_daemon_mempool_bytes")) else None
        )

    return await until(looked_at, "all OSDs on the page, each with all that is known of it")


async def test_thread_cpu_agrees_with_ps_and_psutil_under_load(shared_lab: RunningLab) -> None:
    pids = await shared_lab.pids()
    pid = pids["osd.0"]
    with scraping(shared_lab.paths.sockets, "--collector.threads.per-thread") as scrape:
        started = time.monotonic()
        first = await whole(scrape)
        idle = of_group(first, BUSY["group"])
        async with fio(shared_lab):

            async def loaded() -> bool:
                return group_times(pid)[BUSY["group"]] > idle + USED

            await until(loaded, "the load on the op threads of osd.0")
            ps_before, before = ps(pid), group_times(pid)
            page = await whole(scrape)
            elapsed = time.monotonic() - started
            ps_after, after = ps(pid), group_times(pid)

    rows = page.samples("cephqos_threads_thread_cpu_seconds_total", ceph_daemon="osd.0")
    threads = {labels["tid"]: value for labels, value in rows}
    assert threads.keys() >= ps_before.keys() & ps_after.keys()
    # For the main thread ps shows the CPU time of the whole process (procps 4.0.2); the groups
    # below cover that thread, to the tick.
    for tid in threads.keys() & ps_before.keys() & ps_after.keys() - {str(pid)}:
        # ps shows whole seconds.
        assert ps_before[tid] - TICK <= threads[tid] <= ps_after[tid] + 1

    for group in before:
        own = of_group(page, group)
        number = page.one("cephqos_threads", ceph_daemon="osd.0", group=group)
        assert before[group] - TICK * number <= own <= after[group] + TICK * number
    assert sum(v for _, v in page.samples("cephqos_threads", ceph_daemon="osd.0")) == len(threads)

    # The load is on the op threads, and no thread has more than one CPU.
    name = "cephqos_threads_busiest_cpu_seconds_total"
    busiest = page.one(name, **BUSY) - first.one(name, **BUSY)
    group_used = of_group(page, BUSY["group"]) - of_group(first, BUSY["group"])
    assert group_used > USED / 2
    workers = page.one("cephqos_threads", **BUSY)
    assert group_used / workers - TICK * workers <= busiest <= elapsed + 0.1


def own_figures(pid: int) -> tuple[float, int]:
    """CPU seconds and resident bytes of a process, as psutil tells them."""
    process = psutil.Process(pid)
    times = process.cpu_times()
    return times.user + times.system, process.memory_info().rss


async def test_a_daemons_own_figures_agree_with_psutil(shared_lab: RunningLab) -> None:
    pids = await shared_lab.pids()
    with scraping(shared_lab.paths.sockets) as scrape:
        before = {osd: own_figures(pids[osd]) for osd in pids if osd.startswith("osd.")}
        page = await whole(scrape)
    for osd, (seconds, size) in before.items():
        seconds_after, size_after = own_figures(pids[osd])
        cpu = sum(v for _, v in page.samples("cephqos_daemon_cpu_seconds_total", ceph_daemon=osd))
        assert seconds - TICK <= cpu <= seconds_after + TICK
        resident = page.one("cephqos_daemon_resident_bytes", ceph_daemon=osd)
        assert 0.9 * min(size, size_after) <= resident <= 1.1 * max(size, size_after)
        assert page.samples("cephqos_daemon_mempool_bytes", ceph_daemon=osd, pool="osdmap")


# Fields of /proc/diskstats, and their units.
DISK_FIELDS = {
    ("cephqos_disks_ops_total", "read"): (0, 1.0),
    ("cephqos_disks_ops_total", "write"): (4, 1.0),
    ("cephqos_disks_ops_total", "flush"): (15, 1.0),
    ("cephqos_disks_bytes_total", "read"): (2, 512.0),
    ("cephqos_disks_bytes_total", "write"): (6, 512.0),
    ("cephqos_disks_time_seconds_total", "write"): (7, 0.001),
    ("cephqos_disks_busy_seconds_total", ""): (9, 0.001),
    ("cephqos_disks_weighted_seconds_total", ""): (10, 0.001),
}


async def test_diskstats_lie_between_two_readings_of_proc_under_load(
    shared_lab: RunningLab,
) -> None:
    status = await shared_lab.status()
    devices = [Path(osd["device"]).name for osd in status["osds"]]
    with scraping(shared_lab.paths.sockets) as scrape:
        first = await whole(scrape)
        idle = diskstats()
        async with fio(shared_lab):

            async def loaded() -> bool:
                now = diskstats()
                return all(now[name][6] > idle[name][6] + WRITTEN / 512 for name in devices)

            await until(loaded, "the load on the devices of all OSDs")
            before = diskstats()
            page = await whole(scrape)
            after = diskstats()
    for osd in status["osds"]:
        device = Path(osd["device"]).name
        own = {"ceph_daemon": f"osd.{osd['id']}", "layer": "osd", "device": device}
        for (name, op), (field, unit) in DISK_FIELDS.items():
            value = page.one(name, **own, role="block", **({"op": op} if op else {}))
            low, high = before[device][field] * unit, after[device][field] * unit
            assert low - 1e-6 <= value <= high + 1e-6, (name, op)
        writes = {**own, "role": "block", "op": "write"}
        name = "cephqos_disks_bytes_total"
        assert page.one(name, **writes) - first.one(name, **writes) > WRITTEN
        ((below, _),) = page.samples(
            "cephqos_disks_in_progress", ceph_daemon=own["ceph_daemon"], layer="disk", role="block"
        )
        backing = _backing(device)
        if backing.parent == Path("/dev"):  # the lower device, which the lab can hold back
            backing = _backing(backing.name)
        assert below["device"] in disk_of_file(backing)


def _backing(device: str) -> Path:
    return Path(Path(f"/sys/class/block/{device}/loop/backing_file").read_text().strip())


def disk_of_file(path: Path) -> set[str]:
    """The disk under a file as findmnt and lsblk tell it."""
    source = subprocess.run(
        ["findmnt", "-n", "-o", "SOURCE", "-T", str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    tree = subprocess.run(
        ["lsblk", "-n", "-s", "-l", "-o", "NAME", source],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return {tree[-1]}


async def test_roles_scheduler_and_pinning_of_a_lab_with_db_devices(labs: LabPool) -> None:
    lab = labs.start(
        LabSpec(
            name=lab_name("host-db"),
            release="reef",
            osds=2,
            backing="loop",
            db_size=2**30,
            io_scheduler="mq-deadline",
            rotational=True,
            cpus=((0, (0,)), (1, (1,))),
        )
    )
    try:
        status = await lab.status()
        with scraping(lab.paths.sockets) as scrape:
            page = await whole(scrape, 2)
        for osd in status["osds"]:
            daemon = {"ceph_daemon": f"osd.{osd['id']}"}
            devices = {
                labels["role"]: labels
                for labels, _ in page.samples("cephqos_disks_info", **daemon, layer="osd")
            }
            assert devices.keys() == {"block", "db"}
            block = Path(osd["device"]).name
            assert devices["block"]["device"] == block
            assert devices["block"]["scheduler"] == "mq-deadline"
            queue = Path("/sys/class/block") / block / "queue"
            for name in ("nr_requests", "read_ahead_kb", "rotational", "write_cache"):
                assert devices["block"][name] == (queue / name).read_text().strip()
            assert page.one("cephqos_placement_cpus_allowed", **daemon) == 1
            ((placed, _),) = page.samples("cephqos_placement_info", **daemon)
            assert placed["cpus"] == str(osd["id"])
        assert page.one("cephqos_placement_strategy", strategy="default") == 1
    finally:
        labs.end(lab)


async def test_filestore_shows_its_mount_as_block_device(labs: LabPool) -> None:
    lab = labs.start(
        LabSpec(
            name=lab_name("host-fs"),
            release="pacific",
            osds=1,
            backing="loop",
            objectstore="filestore",
        )
    )
    try:
        status = await lab.status()
        with scraping(lab.paths.sockets) as scrape:
            page = await whole(scrape, 1)
        device = Path(status["osds"][0]["device"]).name
        rows = page.samples("cephqos_disks_in_progress", ceph_daemon="osd.0", role="block")
        assert device in {labels["device"] for labels, _ in rows}
        assert page.one("cephqos_threads", ceph_daemon="osd.0", group="tp_fstore_op") >= 1
    finally:
        labs.end(lab)
