"""`cephqos trial` on a real cluster: it gives back, by itself and after a kill."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from tests.trial.staged import HARMFUL, load, settings, trial

from cephqos_base.profiles import PROFILE_OPTION
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster.run_keys import KEY
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.run.restore import restore

_SOON = 120.0


@pytest.fixture(params=["reef", pytest.param("tentacle", marks=pytest.mark.full)])
def release(request: pytest.FixtureRequest) -> str:
    """Those whose OSDs have mClock by default."""
    return str(request.param)


async def test_a_harmful_setting_is_taken_back_at_once_and_the_report_says_so_first(
    shared_lab: RunningLab, tmp_path: Path
) -> None:
    before = await settings(shared_lab)
    async with load(shared_lab):
        process = await trial(shared_lab, tmp_path, HARMFUL)
        async with asyncio.timeout(_SOON):
            said, _ = await process.communicate()
        assert process.returncode == 1, said.decode()
        assert await settings(shared_lab) == before
    (report,) = tmp_path.glob("*/report.txt")
    first = report.read_text().splitlines()[0]
    assert first.startswith(f"{HARMFUL}: ended by a guard rail: clients")
    (archive,) = tmp_path.glob("*/trial.jsonl")
    events = [json.loads(line) for line in archive.read_text().splitlines()]
    harmed = [event for event in events if event.get("harm") and event["arm"] == HARMFUL]
    assert harmed and all(3 < event["seconds"] < 10 for event in harmed)


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


@pytest.mark.full
async def test_shares_that_are_removed_after_their_profile_stay_in_force_until_it_changes(
    shared_lab: RunningLab,
) -> None:
    """What runbook, doctor and docs/internals/qos.md say of Ceph. If it fails, Ceph was mended."""
    limit, reservation = (f"osd_mclock_scheduler_client_{part}" for part in ("lim", "res"))

    async def config(*words: str) -> None:
        await shared_lab.exec(["ceph", "config", *words])

    async def profile(name: str = "") -> None:
        how = ("set", "osd", PROFILE_OPTION, name) if name else ("rm", "osd", PROFILE_OPTION)
        await config(*how)

    async with load(shared_lab) as clients:

        async def rate() -> float:
            began = time.time()
            await asyncio.sleep(9)
            return clients.rate(began + 3, time.time())

        try:
            alone = await rate()
            await profile("custom")
            await config("set", "osd", reservation, "0.001")  # it comes before a limit
            await config("set", "osd", limit, "0.002")
            assert await rate() < alone / 3
            await profile()
            await config("rm", "osd", reservation)
            await config("rm", "osd", limit)
            assert await rate() < alone / 3
            async with shared_lab.client() as client:
                shown = await client.command("config get", target="osd.0", var=limit)
            assert float(shown[limit]) == 0
            await profile("custom")
            await profile()
            assert await rate() > alone / 2
        finally:
            for option in (reservation, limit, PROFILE_OPTION):
                await config("rm", "osd", option)
