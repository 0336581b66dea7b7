"""Trials on labs: the load beside them, the command, and what is set."""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from statistics import fmean, variance
from typing import Any, Final

from cephqos_loadgen.lab.lab import RunningLab

HARMFUL: Final = "profile=custom client_res=0.001 client_lim=0.002"


@dataclass(slots=True)
class Clients:
    """`rados bench` that writes, and what it has finished by when: a second source."""

    finished: list[tuple[float, int]] = field(default_factory=list)

    async def follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout
        async for line in process.stdout:
            with contextlib.suppress(ValueError, IndexError):
                self.finished.append((time.time(), int(line.split()[3])))

    def rate(self, begin: float, end: float) -> float:
        """Operations per second, from the first to the last line in between."""
        inside = [(when, count) for when, count in self.finished if begin <= when <= end]
        (first, before), (last, after) = inside[0], inside[-1]
        return (after - before) / (last - first)


@asynccontextmanager
async def writes(lab: RunningLab, seconds: int) -> AsyncIterator[Clients]:
    """Clients that write to the pool `tried`."""
    argv = ["rados", "-p", "tried", "bench", str(seconds), "write", "-b", "4096", "-t", "8"]
    process = await asyncio.create_subprocess_exec(
        *lab.enter_argv([*argv, "--run-name", "load"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    clients = Clients()
    following = asyncio.create_task(clients.follow(process))
    try:
        yield clients
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await following


@asynccontextmanager
async def load(lab: RunningLab, seconds: int = 120) -> AsyncIterator[Clients]:
    """Clients that write, and a pool that goes with them."""
    await lab.exec(["ceph", "osd", "pool", "create", "tried", "8", "8"])
    try:
        async with writes(lab, seconds) as clients:
            yield clients
    finally:
        async with lab.client() as client:
            allowed: dict[str, Any] = {"who": "mon", "name": "mon_allow_pool_delete"}
            await client.command("config set", value="true", **allowed)
            removed: dict[str, Any] = {"pool": "tried", "pool2": "tried"}
            await client.command("osd pool rm", yes_i_really_really_mean_it=True, **removed)
            await client.command("config rm", **allowed)


@dataclass(slots=True)
class OwnCount:
    """What clients did in the blocks of each setting, by their own count. `heard` gets events."""

    clients: Clients
    _began: float = 0.0
    _rates: dict[str, list[float]] = field(default_factory=dict)

    async def heard(self, event: Any) -> None:
        if event["event"] == "block_started":
            self._began = time.time()
        elif event["event"] == "block_ended":
            rate = self.clients.rate(self._began + 4, time.time())
            self._rates.setdefault(event["arm"], []).append(rate)

    def change(self, candidate: str) -> float | None:
        """By how much more they did with this setting than with that of now."""
        now, tried = self._of(candidate)
        return fmean(tried) / fmean(now) - 1 if now and tried else None

    def error(self, candidate: str) -> float:
        """The standard error of that change. Needs two blocks of each."""
        parts = [variance(rates) / len(rates) / fmean(rates) ** 2 for rates in self._of(candidate)]
        return (1 + (self.change(candidate) or 0.0)) * sqrt(sum(parts))

    def _of(self, candidate: str) -> tuple[list[float], list[float]]:
        """The rates of now, and those of the candidate."""
        now = [it for arm, rates in self._rates.items() if arm != candidate for it in rates]
        return now, self._rates.get(candidate, [])


def results(file: Path) -> list[dict[str, Any]]:
    """What was made before, each a line."""
    return list(map(json.loads, file.read_text().splitlines())) if file.exists() else []


def keep(file: Path, result: Mapping[str, Any]) -> None:
    print(json.dumps(result), flush=True)
    with file.open("a") as opened:
        opened.write(f"{json.dumps(result)}\n")


async def settings(lab: RunningLab) -> set[tuple[str, str]]:
    async with lab.client() as client:
        dump = await client.command("config dump")
    return {(entry["section"], entry["name"]) for entry in dump}


async def trial(lab: RunningLab, out: Path, candidate: str, *more: str) -> Any:
    """The command, started: blocks of 10 s, three rounds."""
    command = [sys.executable, "-m", "cephqos_base", "trial", "--lab", lab.paths.name]
    command += ["--try", candidate, "--out", str(out), "--block", "10s", "--every", "2"]
    command += ["--harm-time", "3s"]
    command += ["--least-rounds", "3", "--rounds", "3", *more]
    return await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
