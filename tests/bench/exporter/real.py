"""Real OSDs: wall time against a bare client, and what the OSDs themselves pay."""

import asyncio
import secrets
import socket
import statistics
import struct
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.exporter.floor import floor
from tests.bench.exporter.processes import WARM_UP, connect, cost, exporter, scrape
from tests.bench.exporter.verdicts import Verdicts

from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.lab.spec import LabSpec

_THREAD = "admin_socket"


def bench_real(verdicts: Verdicts, paths: Sequence[Path], repeats: int, until: float) -> None:
    print(f"{len(paths)} real OSDs")
    sockets = ",".join(str(path) for path in paths)
    with exporter(sockets) as (process, port):
        paid_before = cpu_of_answers(paths)
        spent = cost(process, port, repeats, every=1.0, until=until)
        paid = cpu_of_answers(paths) - paid_before
        connection = connect(port)
        ratios, bare = [], []
        for _ in range(spent.scrapes):
            bare.append(floor(paths))
            started = time.perf_counter()
            scrape(connection)
            ratios.append((time.perf_counter() - started) / bare[-1])
    verdicts.say("floor: bare client, one OSD after the other", statistics.median(bare) * 1e3, "ms")
    verdicts.say("wall time of a scrape", spent.wall * 1e3, "ms")
    verdicts.say("wall time of a scrape in parts of a bare client's", ratios, "x", most=2)
    verdicts.say("CPU per OSD and scrape, every 1 s", spent.per_osd(len(paths)), "ms")
    verdicts.say("CPU per sample", spent.per_sample(), "us")
    verdicts.say("samples per OSD", spent.samples / len(paths), "")
    verdicts.say(
        "CPU that an OSD spends on a scrape, every 1 s",
        paid / len(paths) / (WARM_UP + spent.scrapes + 1) * 1e3,  # and one that counts the samples
        "ms",
        most=1.5,
        noisy=spent.noisy,
    )


def cpu_of_answers(paths: Sequence[Path]) -> float:
    """CPU seconds of the threads that answer on the sockets."""
    return sum(_paid_by(_peer(path)) for path in paths)


def _paid_by(pid: int) -> float:
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == _THREAD:
            return int((task / "schedstat").read_text().split()[0]) / 1e9
    raise RuntimeError(f"process {pid} has no thread {_THREAD}")


def _peer(path: Path) -> int:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        pid: int = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[
            0
        ]
        return pid


async def bench_lab(verdicts: Verdicts, repeats: int, until: float) -> None:
    """The same on a cluster of its own, 4 OSDs of 18.2."""
    spec = LabSpec(name=f"bench-{secrets.token_hex(3)}", release="reef", osds=4)
    async with Lab(spec) as lab:
        paths = sorted(lab.paths.sockets.glob("ceph-osd.*.asok"))
        await asyncio.to_thread(bench_real, verdicts, paths, repeats, until)
