"""Trials on labs: the load beside them, the command, and what is set."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from cephqos_loadgen.lab.lab import RunningLab

HARMFUL: Final = "profile=custom client_res=0.001 client_lim=0.002"


@asynccontextmanager
async def load(lab: RunningLab, seconds: int = 120) -> AsyncIterator[None]:
    """Clients that write, and a pool that goes with them."""
    await lab.exec(["ceph", "osd", "pool", "create", "tried", "8", "8"])
    argv = ["rados", "-p", "tried", "bench", str(seconds), "write", "-b", "4096", "-t", "8"]
    process = await asyncio.create_subprocess_exec(
        *lab.enter_argv(argv), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        async with lab.client() as client:
            allowed: dict[str, Any] = {"who": "mon", "name": "mon_allow_pool_delete"}
            await client.command("config set", value="true", **allowed)
            removed: dict[str, Any] = {"pool": "tried", "pool2": "tried"}
            await client.command("osd pool rm", yes_i_really_really_mean_it=True, **removed)
            await client.command("config rm", **allowed)


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
