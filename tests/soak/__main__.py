"""The whole stack at 1 s scrapes while clients work and OSDs restart: `make soak`, an hour.

Printed: memory, descriptors and threads of every server in the first and the last quarter after a
warm-up, CPU, and the scrapes that are missing. Exits 1 where the exporter or the collector is not
flat, or where a scrape of the exporter is missing. Prometheus and Loki keep the last hours in
memory, so theirs grows within an hour: it is printed and not judged.
"""

import argparse
import asyncio
import contextlib
import secrets
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import psutil
from tests.board_story import story_lab
from tests.by_signal import clean_up_when_ended
from tests.soak.figures import Growth, ProcessSample, cores, growths

from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.progress import Progress
from cephqos_stack.logs import LogPipeline, LogSpec
from cephqos_stack.stack import Stack, StackSpec

_JUDGED: Final = ("exporter", "collector")
# The word of a command line that tells what it is.
_SERVERS: Final = {
    "cephqos_exporter.cli": "exporter",
    "cephqos-collector": "collector",
    "prometheus-alertmanager": "alertmanager",
    "--storage.tsdb.path": "prometheus",
    "-config.expand-env=true": "loki",
}
_EVERY: Final = 10.0
_RESTART_EVERY: Final = 150.0
_POOL: Final = "soak"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--warm", type=float, default=10, help="minutes that are not judged")
    given = parser.parse_args()
    return asyncio.run(_soak(given.minutes * 60, given.warm * 60))


async def _soak(seconds: float, warm: float) -> int:
    spec = story_lab(f"soak-{secrets.token_hex(3)}")
    with tempfile.TemporaryDirectory(prefix="cephqos-soak-") as folder:
        async with Lab(spec, Progress()) as lab, _everything(lab, Path(folder)) as stack:
            begin = time.time()
            restarts = asyncio.create_task(_restart(lab))
            samples = await _watch(seconds)
            restarts.cancel()
            missing = await _missing(stack, begin, time.time())
            times = len(await stack.query("ceph_osd_op_w"))
    found = growths(samples, warm)
    _print(found, samples)
    wrong = [one for one in found if one.process in _JUDGED and not one.flat]
    for one in wrong:
        print(f"WRONG: {one.process} {one.figure} grew from {one.first:g} to {one.last:g}")
    print(
        f"scrapes of the exporter that are missing or failed: {missing}; OSDs at the end: {times}"
    )
    return 1 if wrong or missing or times != spec.osds else 0


@contextlib.asynccontextmanager
async def _everything(lab: RunningLab, folder: Path) -> AsyncIterator[Stack]:
    logs = LogSpec(folder=folder / "loki", logs=lab.paths.logs, cluster=lab.state.fsid)
    async with LogPipeline(logs) as pipeline:
        loki = pipeline.loki_url.removeprefix("http://")
        async with Stack(lab, StackSpec(name="soak", targets={"loki": loki})) as stack, _load(lab):
            yield stack


@contextlib.asynccontextmanager
async def _load(lab: RunningLab) -> AsyncIterator[None]:
    """Clients at a depth that leaves the machine room."""
    for argv in (["create", _POOL, "16"], ["set", _POOL, "size", "2"]):
        await lab.exec(["ceph", "osd", "pool", *argv])
    bench = ["rados", "-p", _POOL, "bench", "86400", "write", "-b", "4096", "-t", "4"]
    running = asyncio.create_task(lab.exec([*bench, "--max-objects", "2000"], within=90000))
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def _restart(lab: RunningLab) -> None:
    """One OSD after the other, for ever."""
    number = 0
    while True:
        await asyncio.sleep(_RESTART_EVERY)
        await lab.faults.restart(number % 3)
        number += 1


async def _watch(seconds: float) -> dict[str, list[ProcessSample]]:
    begin = time.monotonic()
    found: dict[str, list[ProcessSample]] = defaultdict(list)
    while (now := time.monotonic() - begin) < seconds:
        for name, process in _servers():
            with process.oneshot():
                times = process.cpu_times()
                sample = ProcessSample(
                    seconds=now,
                    memory_mib=process.memory_info().rss / 2**20,
                    descriptors=process.num_fds(),
                    threads=process.num_threads(),
                    cpu_seconds=times.user + times.system,
                )
            found[name].append(sample)
        if len(found["exporter"]) % 30 == 1:
            last = {
                name: f"{all_of_it[-1].memory_mib:.0f} MiB" for name, all_of_it in found.items()
            }
            print(f"{now / 60:5.1f} min  {last}", flush=True)
        await asyncio.sleep(_EVERY)
    return found


def _servers() -> list[tuple[str, psutil.Process]]:
    """Our servers' own processes, not those that wrap or help them."""
    found: dict[str, psutil.Process] = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            argv = process.cmdline()
            if not argv or Path(argv[0]).name in ("setpriv", "nsenter", "env", "unshare"):
                continue
            words = {Path(argv[0]).name, *argv, *(word.split("=")[0] for word in argv)}
            for word, name in _SERVERS.items():
                if word in words and name not in found:
                    found[name] = process
    return list(found.items())


async def _missing(stack: Stack, begin: float, end: float) -> int:
    """Scrapes that should be there and are not, and those that failed."""
    seconds = int(end - begin)
    (count,) = await stack.query(f'sum_over_time(up{{job="cephqos"}}[{seconds}s])')
    return max(0, seconds - 2 - round(float(count["value"][1])))


def _print(found: Sequence[Growth], samples: dict[str, list[ProcessSample]]) -> None:
    print(f"{'':14}{'figure':14}{'first':>9}{'last':>9}{'highest':>9}")
    for one in found:
        words = "" if one.flat else "  grows"
        print(
            f"{one.process:14}{one.figure:14}{one.first:9.1f}{one.last:9.1f}{one.highest:9.1f}{words}"
        )
    for process, all_of_it in samples.items():
        print(f"{process:14}{'cores':14}{cores(all_of_it):9.3f}")


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(main())
