"""`cephqos trial` on a real cluster: it gives back, by itself and after a kill."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster.run_keys import KEY
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.run.restore import restore

_SOON = 120.0
_LOAD = ("rados", "-p", "tried", "bench", "120", "write", "-b", "4096", "-t", "8")
HARMFUL = "profile=custom client_res=0.001 client_lim=0.002"


@pytest.fixture(params=["reef", pytest.param("tentacle", marks=pytest.mark.full)])
def release(request: pytest.FixtureRequest) -> str:
    """Those whose OSDs have mClock by default."""
    return str(request.param)


@asynccontextmanager
async def load(lab: RunningLab) -> AsyncIterator[None]:
    """Clients that write, and a pool that goes with them."""
    await lab.exec(["ceph", "osd", "pool", "create", "tried", "8", "8"])
    process = await asyncio.create_subprocess_exec(
        *lab.enter_argv([*_LOAD]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
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
    command = [sys.executable, "-m", "cephqos_base", "trial", "--lab", lab.paths.name]
    command += ["--try", candidate, "--out", str(out), "--block", "10s", "--every", "2"]
    command += ["--least-rounds", "3", "--rounds", "3", *more]
    return await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


async def test_a_harmful_setting_is_taken_back_at_once_and_the_report_says_so_first(
    shared_lab: RunningLab, tmp_path: Path
) -> None:
    before = await settings(shared_lab)
    async with load(shared_lab):
        process = await trial(shared_lab, tmp_path, HARMFUL, "--harm-time", "3s")
        async with asyncio.timeout(_SOON):
            said, _ = await process.communicate()
        assert process.returncode == 1, said.decode()
        assert await settings(shared_lab) == before
    (report,) = tmp_path.glob("*/report.txt")
    first = report.read_text().splitlines()[0]
    assert first.startswith(f"{HARMFUL}: ended by a guard rail: clients")
    (archive,) = tmp_path.glob("*/trial.jsonl")
    events = [json.loads(line) for line in archive.read_text().splitlines()]
    (harmed,) = [event for event in events if event.get("harm")]
    assert 3 < harmed["seconds"] < 10


@pytest.mark.full
@pytest.mark.parametrize("moment", range(3))
async def test_a_trial_that_is_killed_is_undone_with_restore_only(
    shared_lab: RunningLab, tmp_path: Path, moment: int
) -> None:
    before = await settings(shared_lab)
    async with load(shared_lab):
        process = await trial(shared_lab, tmp_path, "profile=high_recovery_ops")
        async with asyncio.timeout(_SOON):
            while ("osd", "osd_mclock_profile") not in await settings(shared_lab):
                assert process.returncode is None
        await asyncio.sleep(moment * 0.2)
        process.kill()
        await process.wait()
        await restore(RunOptions(out=tmp_path, lab=shared_lab.paths.name))
        assert await settings(shared_lab) == before
    async with shared_lab.client() as client:
        assert KEY not in str(await client.command("config-key ls"))
