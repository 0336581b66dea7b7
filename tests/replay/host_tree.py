"""Writes host trees: a /proc, /sys and /dev of plain files that the host collectors read.

For tests, golden pages and benchmarks of hosts that are not at hand: two sockets, dm-crypt over
LVM, 60 OSDs of 57 threads, a container with limits. What is written has the form that the kernel
prints; the figures are the caller's, or made from the thread's number so that no two are alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cephqos_exporter.daemon import Host

# The 57 threads of a 18.2 OSD on a spinning disk, as its /proc lists them.
CLASSIC_THREADS: tuple[str, ...] = (
    "ceph-osd",
    "log",
    *(f"msgr-worker-{n}" for n in range(3)),
    "service",
    "admin_socket",
    "signal_handler",
    *("io_context_pool",) * 2,
    "OpHistorySvc",
    *("ceph_timer",) * 2,
    *("safe_timer",) * 8,
    *("fn_anonymous",) * 2,
    *("bstore_aio",) * 2,
    "rocksdb:high",
    *("rocksdb:low",) * 3,
    *("ceph-osd",) * 2,
    "cfin",
    "bstore_kv_sync",
    "bstore_kv_final",
    "bstore_mempool",
    *("ms_dispatch",) * 7,
    *("ms_local",) * 7,
    "finisher",
    "osd_srv_agent",
    *("tp_osd_tp",) * 5,
    "osd_srv_heartbt",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeThread:
    """A thread's figures: ticks for user and system, nanoseconds for run and wait."""

    name: str
    user: int = 0
    system: int = 0
    run_ns: int = 1  # 0, with nothing waited, is what a kernel without CONFIG_SCHED_INFO prints
    wait_ns: int = 0
    cpu: int = 0
    voluntary: int = 0
    involuntary: int = 0
    allowed: str = "0-1"
    start: int = 1000
    flags: int = 0x00400040


class HostTree:
    """Builds a host tree under `root`; `host` is what a collector is given."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.host = Host(proc=root / "proc", sys=root / "sys", dev=root / "dev")
        self._diskstats: dict[str, str] = {}
        for path in (self.host.proc, self.host.sys, self.host.dev):
            path.mkdir(parents=True, exist_ok=True)

    # CPUs

    def cpus(self, *, sockets: int = 1, cores: int = 2, smt: int = 1) -> None:
        """Number CPUs as most servers do: all cores of socket 0, of 1, then the second threads."""
        system = self.host.sys / "devices" / "system"
        total = sockets * cores
        _write(system / "cpu" / "online", f"0-{total * smt - 1}")
        for cpu in range(total * smt):
            topology = system / "cpu" / f"cpu{cpu}" / "topology"
            core = cpu % total
            _write(topology / "physical_package_id", str(core // cores))
            _write(topology / "core_id", str(core % cores))
            siblings = ",".join(str(core + total * thread) for thread in range(smt))
            _write(topology / "thread_siblings_list", siblings)
        for socket in range(sockets):
            first = socket * cores
            runs = (f"{first + total * t}-{first + total * t + cores - 1}" for t in range(smt))
            _write(system / "node" / f"node{socket}" / "cpulist", ",".join(runs))

    # processes

    def process(
        self,
        pid: int,
        threads: Sequence[FakeThread],
        *,
        resident_pages: int = 20_000,
        ended_ticks: tuple[int, int] = (0, 0),
        command: Sequence[str] = ("ceph-osd", "-f"),
    ) -> None:
        """Rewrite a process; thread n has the id pid + n, the first is the process's own."""
        task = self.host.proc / str(pid) / "task"
        for number, thread in enumerate(threads):
            own = task / str(pid + number)
            _write(own / "stat", _stat(pid + number, thread, len(threads), resident_pages))
            _write(own / "schedstat", f"{thread.run_ns} {thread.wait_ns} {int(thread.run_ns > 0)}")
            _write(own / "status", _status(pid + number, thread))
            _write(own / "comm", thread.name)
        for old in task.iterdir():
            if int(old.name) >= pid + len(threads):
                for file in old.iterdir():
                    file.unlink()
                old.rmdir()
        main = threads[0]
        whole = FakeThread(
            name=main.name,
            user=sum(thread.user for thread in threads) + ended_ticks[0],
            system=sum(thread.system for thread in threads) + ended_ticks[1],
            cpu=main.cpu,
            start=main.start,
            flags=main.flags,
        )
        directory = self.host.proc / str(pid)
        _write(directory / "stat", _stat(pid, whole, len(threads), resident_pages))
        _write(directory / "schedstat", f"{main.run_ns} {main.wait_ns} {int(main.run_ns > 0)}")
        _write(directory / "status", _status(pid, main))
        _write(directory / "comm", main.name)
        (directory / "cmdline").write_bytes("\0".join((*command, "")).encode())

    def classic_osd(
        self,
        pid: int,
        osd: int,
        *,
        step: int = 0,
        allowed: str = "0-1",
        names: Sequence[str] = CLASSIC_THREADS,
    ) -> None:
        """A classic OSD; `step` moves the figures of those threads that never sleep long."""
        self.process(
            pid,
            [_busy(name, number, osd, step, allowed) for number, name in enumerate(names)],
            command=("/usr/bin/ceph-osd", "-f", "--cluster", "ceph", "--id", str(osd)),
        )

    def run_threads(
        self, pid: int, osd: int, *, step: int, names: Sequence[str] = CLASSIC_THREADS
    ) -> None:
        """Move only what `step` moves of a classic OSD that is there already: quick."""
        task = self.host.proc / str(pid) / "task"
        for number, name in enumerate(names):
            if _runs(name):
                thread, own = _busy(name, number, osd, step, "0-1"), task / str(pid + number)
                own_stat = _stat(pid + number, thread, len(names), 20_000)
                (own / "stat").write_text(f"{own_stat}\n")
                (own / "schedstat").write_text(f"{thread.run_ns} {thread.wait_ns} 1\n")

    def crimson_osd(self, pid: int, osd: int, cpus: Sequence[int]) -> None:
        """A Crimson OSD: a reactor pinned to each of the CPUs, an alien thread on the last."""
        names = ["crimson-osd", *(f"reactor-{n}" for n in range(1, len(cpus)))]
        threads = [
            FakeThread(
                name=name,
                user=90_000 + number,
                system=2_000,
                run_ns=920_000_000_000 + number,
                cpu=cpu,
                allowed=str(cpu),
            )
            for number, (name, cpu) in enumerate(zip(names, cpus, strict=True))
        ]
        alien = FakeThread(name="alien-store-tp", user=40, cpu=cpus[-1], allowed=str(cpus[-1]))
        self.process(pid, [*threads, alien], command=("/usr/bin/crimson-osd", "-f", "-i", str(osd)))

    def mounts(self, pid: int, mounts: Sequence[tuple[str, str, str]]) -> None:
        """(device number, mount point, source) as the process sees them."""
        lines = [
            f"{number} 1 {device} / {point} rw,relatime - ext4 {source} rw"
            for number, (device, point, source) in enumerate(mounts, 20)
        ]
        _write(self.host.proc / str(pid) / "mountinfo", "\n".join(lines))

    def data_directory(self, pid: int, directory: str, entries: Mapping[str, str]) -> Path:
        """A data directory as the process sees it: names with link targets, or "" for files."""
        path = self.host.proc / str(pid) / "root" / directory.lstrip("/")
        path.mkdir(parents=True, exist_ok=True)
        for name, target in entries.items():
            if target:
                (path / name).symlink_to(target)
            else:
                _write(path / name, "")
        return path

    def cgroup(self, pid: int, path: str, files: Mapping[str, str]) -> None:
        """Put a process into a cgroup of version 2, whose files are written as given."""
        root = self.host.sys / "fs" / "cgroup"
        _write(root / "cgroup.controllers", "cpuset cpu io memory pids")
        _write(self.host.proc / str(pid) / "cgroup", f"0::/{path}")
        for name, text in {"cgroup.type": "domain", **files}.items():
            _write(root / path / name, text)

    def used(self, cpus: int, seconds: int, *, steal: int = 0) -> None:
        """CPU time of the whole host, and a quarter of it as pressure of each kind."""
        fields = " ".join(str(100 * it) for it in (seconds, 0, 0, 9000, 0, 0, 0, steal, 0, 0))
        each = (f"cpu{number} {fields}" for number in range(cpus))
        _write(self.host.proc / "stat", "\n".join((f"cpu  {fields}", *each, "ctxt 9")))
        for resource in ("cpu", "memory", "io"):
            _write(self.host.proc / "pressure" / resource, pressure(seconds / 4))

    def network(self, device: str, *, received: int, lost: int, again: int) -> None:
        """A network interface, and what TCP sent again: of as many segments as were received."""
        node = self.host.sys / "class/net" / device
        (node / "device").mkdir(parents=True)
        settings = {"speed": 25000, "mtu": 9000, "carrier": 1, "carrier_changes": 2}
        for file, value in settings.items():
            _write(node / file, str(value))
        _write(node / "statistics/rx_missed_errors", str(lost))
        line = f"{device}: 90000 {received} {lost} 0 0 0 0 0 90000 {received} 0 0 0 0 0 0"
        _write(self.host.proc / "1/net/dev", line)
        tcp = f"Tcp: OutSegs RetransSegs\nTcp: {received} {again}"
        _write(self.host.proc / "1/net/snmp", tcp)
        _write(self.host.proc / "vmstat", "pswpin 40\npswpout 900\noom_kill 1")

    # block devices

    def disk(
        self,
        name: str,
        number: str,
        counts: Sequence[int] = (),
        *,
        scheduler: str = "[none] mq-deadline kyber",
        rotational: bool = False,
        write_cache: str = "write back",
    ) -> None:
        """A whole disk, or any device with a queue of its own."""
        queue = self._device(name, number, f"virtual/block/{name}", counts) / "queue"
        _write(queue / "scheduler", scheduler)
        _write(queue / "nr_requests", "256" if rotational else "1023")
        _write(queue / "read_ahead_kb", "128")
        _write(queue / "rotational", str(int(rotational)))
        _write(queue / "write_cache", write_cache)

    def partition(self, disk: str, name: str, number: str, counts: Sequence[int] = ()) -> None:
        node = self._device(name, number, f"virtual/block/{disk}/{name}", counts)
        _write(node / "partition", name.removeprefix(disk).lstrip("p"))

    def mapped(
        self,
        name: str,
        number: str,
        over: Sequence[str],
        *,
        links: Sequence[str] = (),
        counts: Sequence[int] = (),
    ) -> None:
        """A device-mapper device over others; `links` are its names under /dev."""
        self.disk(name, number, counts, scheduler="none")
        slaves = self.host.sys / "devices" / "virtual" / "block" / name / "slaves"
        slaves.mkdir(parents=True, exist_ok=True)
        for below in over:
            (slaves / below).symlink_to(self.host.sys / "class" / "block" / below)
        for link in links:
            path = self.host.dev / link
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(Path(*[".."] * link.count("/")) / name)

    def loop(self, name: str, number: str, backing: str, counts: Sequence[int] = ()) -> None:
        self.disk(name, number, counts, write_cache="write through")
        backing_file = self.host.sys / "devices/virtual/block" / name / "loop" / "backing_file"
        _write(backing_file, backing)

    def _device(self, name: str, number: str, place: str, counts: Sequence[int]) -> Path:
        node = self.host.sys / "devices" / place
        _write(node / "dev", number)
        for directory, link in (("class/block", name), ("dev/block", number)):
            path = self.host.sys / directory / link
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(node)
        _write(self.host.dev / name, "")
        self.count(name, number, counts)
        return node

    def count(self, name: str, number: str, counts: Sequence[int]) -> None:
        """Set a device's diskstats; made from its number where none are given."""
        major, minor = (int(part) for part in number.split(":"))
        given = counts or [major * 1000 + minor * 100 + field for field in range(1, 18)]
        figures = " ".join(str(figure) for figure in given)
        self._diskstats[name] = f"{major:4} {minor:7} {name} {figures}"
        _write(self.host.proc / "diskstats", "\n".join(self._diskstats.values()))


def limits(device: str, cpus: float = 2, gib: int = 8, wiops: int = 500) -> dict[str, str]:
    """Files of a container's cgroup that limits CPU, memory and the writes to a device."""
    periods = "nr_periods 5000\nnr_throttled 40\nthrottled_usec 1500000"
    events = "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0"
    return {
        "cpu.max": f"{int(cpus * 100_000)} 100000",
        "cpu.stat": f"usage_usec 900000\nuser_usec 600000\nsystem_usec 300000\n{periods}",
        "memory.max": str(gib << 30),
        "memory.high": "max",
        "memory.current": str((gib << 30) // 2),
        "memory.events": events,
        "io.max": f"{device} rbps=209715200 wbps=max riops=max wiops={wiops}",
        "io.stat": f"{device} rbytes=81920 wbytes=409600 rios=20 wios=100 dbytes=0 dios=0",
        **{f"{it}.pressure": pressure(n) for n, it in enumerate(("cpu", "memory", "io"), 1)},
    }


def pressure(seconds: float) -> str:
    averages = "avg10=1.50 avg60=0.75 avg300=0.10"
    return f"some {averages} total={round(seconds * 1e6)}\nfull {averages} total=5"


def example_host(root: Path, first_pid: int = 5000) -> HostTree:
    """Two sockets of 28 cores, and four OSDs that differ in everything; pids are 100 apart.

    osd.0: encrypted volume on a spinning disk's partition, DB on a volume of an NVMe, node 0, in a
    container with limits.
    osd.1: striped over two NVMe disks, WAL on a partition of a third, node 1. osd.2: a loop device
    over a file, unpinned. osd.3: Crimson on an NVMe, three reactors.
    """
    host = HostTree(root)
    host.cpus(sockets=2, cores=28, smt=2)
    host.process(1, [FakeThread(name="systemd", allowed="0-111")], command=("/sbin/init",))
    host.mounts(1, [("259:3", "/", "/dev/nvme0n1p3")])
    _example_devices(host)
    data = "/var/lib/ceph/osd/ceph-"
    links = (
        {"block": "/dev/ceph-a/osd-block-0", "block.db": "/dev/ceph-db/osd-db-0"},
        {"block": "/dev/ceph-b/osd-block-1", "block.wal": "/dev/nvme0n1p4"},
        {"block": "/dev/loop3"},
        {"block": "/dev/nvme3n1"},
    )
    for osd, entries in enumerate(links):
        host.data_directory(first_pid + 100 * osd, f"{data}{osd}", entries)
    for osd, allowed in enumerate(("0-27,56-83", "28-55,84-111", "0-111")):
        host.classic_osd(first_pid + 100 * osd, osd, allowed=allowed)
    host.crimson_osd(first_pid + 300, 3, (26, 27, 28))
    pod = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0.slice"
    host.cgroup(first_pid, f"{pod}/cri-containerd-c0ffee.scope", limits("8:0"))
    host.used(112, 4000, steal=30)
    host.network("ens1f0", received=700_000, lost=3, again=210)
    return host


def _example_devices(host: HostTree) -> None:
    host.disk("sda", "8:0", scheduler="none [mq-deadline] kyber bfq", rotational=True)
    host.partition("sda", "sda2", "8:2")
    host.mapped("dm-0", "253:0", ["sda2"], links=["mapper/luks-sda2"])
    host.mapped("dm-1", "253:1", ["dm-0"], links=["ceph-a/osd-block-0"])
    for disk in range(4):
        host.disk(f"nvme{disk}n1", f"259:{10 * disk}", scheduler="[none] mq-deadline")
    for partition in (3, 4, 5):
        host.partition("nvme0n1", f"nvme0n1p{partition}", f"259:{partition}")
    host.mapped("dm-2", "253:2", ["nvme0n1p5"], links=["ceph-db/osd-db-0"])
    host.mapped("dm-3", "253:3", ["nvme1n1", "nvme2n1"], links=["ceph-b/osd-block-1"])
    host.loop("loop3", "7:3", "/srv/osd.2.img")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def _runs(name: str) -> bool:
    """Whether a thread is one of those that never sleep long."""
    busy = {"tp_osd_tp", "bstore_kv_sync", "bstore_kv_final", "bstore_aio", "log", "bstore_mempool"}
    return name in busy or name.startswith("msgr-worker")


def _busy(name: str, number: int, osd: int, step: int, allowed: str) -> FakeThread:
    moved = step if _runs(name) else 0
    cpus = allowed.replace("-", ",").split(",")
    return FakeThread(
        name=name,
        user=100 + 10 * number + osd + 40 * moved,
        system=20 + number + 10 * moved,
        run_ns=(120 + 11 * number + osd + 50 * moved) * 10_000_000,
        wait_ns=(number + moved) * 1_000_000,
        cpu=int(cpus[number % len(cpus)]),
        voluntary=500 + number + 900 * moved,
        involuntary=number + 30 * moved,
        allowed=allowed,
    )


def _stat(tid: int, thread: FakeThread, threads: int, resident_pages: int) -> str:
    before = [1, tid, tid, 0, -1, thread.flags, 5000, 0, 3, 0]
    times = [thread.user, thread.system, 0, 0, 20, 0, threads, 0, thread.start]
    memory = [1_500_000_000, resident_pages, 2**64 - 1, *[0] * 9, 0, 0, 0, 17]
    after = [thread.cpu, 0, 0, 0, 0, 0, *[0] * 8]
    figures = " ".join(str(figure) for figure in (*before, *times, *memory, *after))
    return f"{tid} ({thread.name}) S {figures}"


def _status(tid: int, thread: FakeThread) -> str:
    return "\n".join(
        (
            f"Name:\t{thread.name}",
            "State:\tS (sleeping)",
            f"Pid:\t{tid}",
            "Uid:\t167\t167\t167\t167",
            f"Cpus_allowed_list:\t{thread.allowed}",
            f"Mems_allowed:\t{'00000000,' * 31}00000003",
            "Mems_allowed_list:\t0-1",
            f"voluntary_ctxt_switches:\t{thread.voluntary}",
            f"nonvoluntary_ctxt_switches:\t{thread.involuntary}",
        )
    )
