"""A cluster that is reached through its conf file, as an existing one is."""

import os
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from cephqos_base.errors import UsageError
from cephqos_loadgen.archive.reader import open_archive, problems
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.phase_kinds.pin import PinResult
from cephqos_loadgen.plan.errors import SettingRefused
from cephqos_loadgen.progress import Silent
from cephqos_loadgen.results.phase import LoadResult
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.scenario.parse import parse

from .conftest import LabPool, lab_name
from .test_scenarios import assert_restored, growth
from .test_scenarios_faults import assert_free, seconds, started, until_load


@pytest.fixture(params=[pytest.param("pacific", marks=pytest.mark.full), "tentacle"])
def lab(labs: LabPool, request: pytest.FixtureRequest) -> RunningLab:
    return labs.shared(request.param)


def client_host(lab: RunningLab, folder: Path, monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    """This host as a client host: Ceph's programs in PATH, a Python with its bindings."""
    programs = folder / "bin"
    programs.mkdir()
    for name in ("fio", "rados", "rbd", "python3"):
        path = programs / name
        path.write_text(f'#!/bin/sh\nexec {" ".join(lab.enter_argv([name]))} "$@"\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return RunOptions(
        out=folder / "out",
        conf=lab.paths.conf,
        known_fsid=lab.state.fsid,
        python=str(programs / "python3"),
        work=lab.paths.work,
        sockets=lab.paths.sockets,
        listen="127.0.0.1:0",
    )


@pytest.fixture
def options(lab: RunningLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    return client_host(lab, tmp_path, monkeypatch)


async def test_a_run_needs_to_be_told_which_cluster_it_may_load(
    lab: RunningLab, options: RunOptions
) -> None:
    """Before it connects: the conf file says which cluster it is, or is refused."""
    known = f"add --i-know-this-cluster {lab.state.fsid}"
    unsaid = "expected a line `fsid = FSID`"
    lines = lab.paths.conf.read_text().splitlines()
    silent = options.work / "silent.conf"
    silent.write_text("\n".join(line for line in lines if not line.startswith("fsid")))
    other = "11111111-2222-3333-4444-555555555555"
    try:
        for change, words in (
            ({"known_fsid": None}, known),
            ({"known_fsid": other}, known),
            ({"conf": silent, "known_fsid": lab.state.fsid}, unsaid),
        ):
            wrong = replace(options, **change)
            with pytest.raises(UsageError, match=words):
                await Runner(parse(seconds(2), "mini.yaml"), wrong, Silent()).run()
            assert not options.out.exists()
    finally:
        silent.unlink()
    await assert_free(lab)


async def test_an_option_that_needs_a_restart_is_refused_where_nobody_would_do_it(
    lab: RunningLab, options: RunOptions
) -> None:
    """These clusters have no orchestrator: found before anything is set."""
    text = seconds(2).replace("osd_scrub_chunk_max: 7", "osd_op_num_shards: 3")
    with pytest.raises(SettingRefused, match="This cluster has no orchestrator that would do it"):
        await Runner(parse(text, "mini.yaml"), options, Silent()).run()
    assert not options.out.exists(), "refused before anything was changed"
    await assert_free(lab)


async def test_the_run_is_recorded_seen_live_and_given_back(
    lab: RunningLab, options: RunOptions
) -> None:
    """On 16.2 and 20.2, the scenario's profile taken and given back on both."""
    run = Runner(parse(seconds(5), "mini.yaml"), options, Silent())
    async with started(run) as task:
        await until_load(run, task)
        async with aiohttp.ClientSession() as session, session.get(run.url) as response:
            page = await response.text()
        archive = open_archive(await task)
    assert f'cluster="{lab.state.fsid}"' in page
    assert "cephqos_client_latency_seconds_bucket" in page
    assert list(problems(archive)) == []
    (repeat,) = archive.repeats
    client = repeat.record.phases["client"].result
    assert isinstance(client, LoadResult)
    ios = client.total.ios
    assert growth(repeat, "ceph_osd_op_w") == pytest.approx(ios, rel=0.05, abs=50)
    assert_restored(archive)
    await assert_free(lab)


PINNED = """\
scenario: pinned
pools: [{name: client, size: 1, pg_num: 8, images: {size: 64M}}]
phases:
  - {name: place, pin: {strategy: default}}
  - name: client
    fio: {engine: rbd, pool: client, rw: randwrite, bs: 4K, depth: 4}
    until: {duration: 3s}
"""


async def test_osds_of_this_host_are_pinned_and_their_threads_are_recorded(
    labs: LabPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the conf file only: their admin sockets say which processes they are."""
    lab = labs.start(LabSpec(name=lab_name("pin"), osds=1, osd_size=4 << 30))
    options = client_host(lab, tmp_path, monkeypatch)
    try:
        pid = (await lab.pids())["osd.0"]
        before = os.sched_getaffinity(pid)
        away = replace(options, sockets=tmp_path)
        with pytest.raises(UsageError, match=r"phase place pins OSDs, .* not found on it: osd\.0"):
            await Runner(parse(PINNED, "pinned.yaml"), away, Silent()).run()
        assert not options.out.exists(), "refused before anything was changed"
        archive = open_archive(await Runner(parse(PINNED, "p.yaml"), options, Silent()).run())
        (repeat,) = archive.repeats
        placement = repeat.record.phases["place"].result
        assert isinstance(placement, PinResult)
        assert placement.applied
        assert "osd.0" in repeat.host()["client"].processes
        assert os.sched_getaffinity(pid) == before
    finally:
        labs.end(lab)
