"""fio: command lines, and the output of fio 3.33, 3.39 and 3.41 as they wrote it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recorded import RELEASES, client_output, documents

from cephqos_base.bounds import FIO_BOUNDS
from cephqos_base.errors import ConfigError
from cephqos_loadgen.engines import fio_output
from cephqos_loadgen.engines.fio_engines import ENGINES
from cephqos_loadgen.phase_kinds.fio import Fio
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.scenario.parse import parse

PLACE = ProgramPaths(conf="/run/c.conf", work="/run/w")


def statuses(release: str, name: str) -> list[fio_output.ClientStatus]:
    return [fio_output.read_status(d) for d in documents(client_output(release, name))]


def action(**changes: object) -> Fio:
    given_ = {"engine": "rbd", "rw": "randwrite", "block_size": 4096, "depth": 8, "pool": "p"}
    return Fio(**{**given_, **changes})  # type: ignore[arg-type]


# -- command lines -------------------------------------------------------------------------------


def test_clients_share_out_the_volumes() -> None:
    assert [c.volumes for c in action(volumes=4, clients=2).processes()] == [(0, 1), (2, 3)]


def test_a_client_has_one_job_per_volume_each_with_all_options() -> None:
    spec = action(volumes=2, rate_iops=200, read_percent=70, options=(("randrepeat", "0"),))
    argv = spec.argv(spec.processes()[0], PLACE, phase="load", seconds=30)
    jobs = " ".join(argv).split(" --name=")[1:]
    assert [job.split()[0] for job in jobs] == ["volume.0", "volume.1"]
    for number, job in enumerate(jobs):
        words = job.split()
        for word in (
            "--ioengine=rbd",
            f"--rbdname=volume.{number}",
            "--rw=randwrite",
            "--bs=4096",
            "--iodepth=8",
            "--time_based=1",
            "--runtime=30",
            "--rate_iops=100",
            "--rwmixread=70",
            "--randrepeat=0",
        ):
            assert word in words


def test_every_client_writes_json_with_bins_each_second() -> None:
    argv = action().argv(action().processes()[0], PLACE, phase="load", seconds=1)
    assert argv[:4] == ["fio", "--output-format=json+", "--status-interval=1", "--eta=never"]


def test_a_pinned_client_is_started_by_taskset() -> None:
    spec = action(cpus=(0, 2))
    argv = spec.argv(spec.processes()[0], PLACE, phase="load", seconds=1)
    assert argv[:4] == ["taskset", "--cpu-list", "0,2", "fio"]


def server_argv(spec: Fio, place: ProgramPaths) -> list[str]:
    (argv,) = ENGINES[spec.engine].preparing(spec.target("load", place), (0,))
    return argv


def test_the_qemu_path_is_a_server_on_the_image_and_fio_on_its_socket() -> None:
    spec = action(engine="nbd", cache="writeback")
    server = server_argv(spec, PLACE)
    assert server[-1] == "rbd:p/volume.0:conf=/run/c.conf:id=admin"
    assert "--cache=writeback" in server
    client = spec.argv(spec.processes()[0], PLACE, phase="load", seconds=1)
    assert "--uri=nbd+unix:///?socket=/run/w/load.0.nbd" in client
    assert "/run/w/load.0.nbd" in server


def test_one_guest_is_one_server_on_all_images() -> None:
    spec = action(engine="guest", volumes=2, cache="writeback")
    (server,) = ENGINES["guest"].preparing(spec.target("load", PLACE), (0, 1))
    assert server[0] == "qemu-storage-daemon"
    images = [part for part in server if "driver=rbd" in part]
    for volume, image in enumerate(images):
        assert f"pool=p,image=volume.{volume},conf=/run/c.conf,user=admin," in image
        assert image.endswith("cache.direct=off,cache.no-flush=off")
    client = spec.argv(spec.processes()[0], PLACE, phase="load", seconds=1)
    for volume in (0, 1):
        assert f"--uri=nbd+unix:///volume.{volume}?socket=/run/w/load.guest.nbd" in client
        assert any(f"node-name=volume{volume},name=volume.{volume}," in part for part in server)


def test_raw_devices_are_read_past_the_page_cache() -> None:
    spec = action(engine="io_uring", path="/dev/x")
    argv = spec.argv(spec.processes()[0], PLACE, phase="load", seconds=1)
    assert {"--ioengine=io_uring", "--direct=1", "--filename=/dev/x"} <= set(argv)


def test_a_keyring_reaches_fio_and_qemu() -> None:
    place = ProgramPaths(conf="/c", user="bench", keyring="/k")
    assert place.environment == {"CEPH_CONF": "/c", "CEPH_ARGS": "--keyring /k"}
    assert server_argv(action(engine="nbd"), place)[-1].endswith(":id=bench:keyring=/k")


# -- output --------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_every_interval_of_every_version_is_read(release: str) -> None:
    found = statuses(release, "two_jobs")
    assert len(found) >= 4
    assert [set(status.jobs) for status in found] == [{"c0", "c1"}] * len(found)
    ios = [status.total.ios for status in found]
    assert ios == sorted(ios)
    assert ios[-1] > 10_000
    assert found[-1].runtime == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize("release", RELEASES)
def test_ios_are_those_that_completed_and_not_those_that_are_in_the_queue(release: str) -> None:
    """Eight were in flight at each status; at the end none is."""
    said = documents(client_output(release, "rados"))
    submitted = [document["jobs"][0]["write"]["total_ios"] for document in said]
    found = [fio_output.read_status(document).of("write") for document in said]
    assert [figures.ios for figures in found] == [
        sum(figures.bins_ns.values()) for figures in found
    ]
    waiting = [had - figures.ios for had, figures in zip(submitted, found, strict=True)]
    assert min(waiting[:-1]) >= 7
    assert waiting[-1] == 0
    assert all(figures.bytes <= figures.ios * 65536 for figures in found)


@pytest.mark.parametrize("release", RELEASES)
def test_a_fio_that_does_not_write_how_many_completed_is_read_from_its_bins(release: str) -> None:
    """As 3.16 and older write: without N."""
    for document in documents(client_output(release, "rados")):
        expected = fio_output.read_status(document)
        for direction in ("read", "write", "trim"):
            document["jobs"][0].get(direction, {}).get("clat_ns", {}).pop("N", None)
        assert fio_output.read_status(document) == expected


def test_a_fio_that_writes_neither_is_refused_with_the_version_that_does() -> None:
    document = documents(client_output(RELEASES[0], "rados"))[-1]
    latency = document["jobs"][0]["write"]["clat_ns"]
    del latency["N"], latency["bins"]
    with pytest.raises(RunError, match=r"expected fio 3\.17 or later"):
        fio_output.read_status(document)


@pytest.mark.parametrize("release", RELEASES)
def test_bins_hold_every_completion_and_agree_with_fios_own_percentiles(release: str) -> None:
    document = documents(client_output(release, "interrupted"))[-1]
    entry = document["jobs"][0]["write"]["clat_ns"]
    figures = fio_output.read_status(document).of("write")
    assert sum(figures.bins_ns.values()) == figures.latency_count == entry["N"]
    for percent in ("50.000000", "95.000000", "99.000000", "99.900000"):
        own = figures.percentile(float(percent))
        assert own == pytest.approx(entry["percentile"][percent] * 1e-9, rel=0.02)


@pytest.mark.parametrize("release", RELEASES)
def test_whether_a_volume_became_steady_is_read_and_when_it_did_fio_ended_by_itself(
    release: str,
) -> None:
    steady, unsteady = statuses(release, "steady")[-1], statuses(release, "unsteady")[-1]
    assert {name: job.steady for name, job in steady.jobs.items()} == {
        "volume.0": True,
        "volume.1": True,
    }
    assert steady.runtime < 12, "the bound it was given"
    assert [job.steady for job in unsteady.jobs.values()] == [False]
    assert unsteady.runtime == pytest.approx(4, abs=0.1)
    jobs = statuses(release, "two_jobs")[-1].jobs.values()
    assert {job.steady for job in jobs} == {None}, "it was not asked to be"


def test_a_load_that_is_told_to_become_steady_ends_by_itself() -> None:
    assert action(options=(("steadystate", "iops:5%"),)).ends_by_itself
    assert not action(options=(("randrepeat", "0"),)).ends_by_itself


@pytest.mark.parametrize("release", RELEASES)
def test_a_client_that_was_interrupted_leaves_a_whole_last_document(release: str) -> None:
    last = statuses(release, "interrupted")[-1]
    assert last.total.ios > 1000
    assert last.runtime == pytest.approx(2.9, abs=0.2)


@pytest.mark.parametrize("release", RELEASES)
def test_a_missing_image_shows_in_no_figure_but_only_in_the_exit_status(release: str) -> None:
    """fio says error 0 for it: whoever trusts the document alone takes it for a success."""
    (only,) = statuses(release, "missing")
    assert {name: job.error for name, job in only.jobs.items()} == {"c0": 0}
    assert only.total.ios == 0


@pytest.mark.parametrize("release", RELEASES)
def test_mean_and_deviation_of_jobs_together_are_those_of_all_their_completions(
    release: str,
) -> None:
    document = documents(client_output(release, "two_jobs"))[-1]
    total = fio_output.read_status(document).total
    ns = [job[d]["clat_ns"] for job in document["jobs"] for d in ("read", "write")]
    count = sum(entry["N"] for entry in ns)
    mean = sum(entry["mean"] * entry["N"] for entry in ns) / count
    squares = sum((entry["stddev"] ** 2 + entry["mean"] ** 2) * entry["N"] for entry in ns) / count
    assert total.mean == pytest.approx(mean * 1e-9)
    assert total.deviation == pytest.approx((squares - mean**2) ** 0.5 * 1e-9, rel=1e-6)


def test_intervals_add_up_to_the_whole() -> None:
    found = statuses("reef", "two_jobs")
    parts = [fio_output.since(b.total, a.total) for a, b in pairwise(found)]
    whole = fio_output.add([found[0].total, *parts])
    assert whole.ios == found[-1].total.ios
    assert whole.bytes == found[-1].total.bytes
    assert dict(whole.bins_ns) == pytest.approx(dict(found[-1].total.bins_ns))
    assert whole.mean == pytest.approx(found[-1].total.mean)


@given(st.lists(st.integers(1, 5000), max_size=40))
def test_documents_are_found_however_the_output_is_cut(cuts: list[int]) -> None:
    data = client_output("reef", "rados")
    stream, found, at = fio_output.JsonStream(), [], 0
    for cut in cuts:
        found += stream.feed(data[at : at + cut])
        at += cut
    found += stream.feed(data[at:])
    assert [d["timestamp_ms"] for d in found] == [d["timestamp_ms"] for d in documents(data)]


def test_text_between_documents_and_a_torn_document_cost_nothing_else() -> None:
    data = client_output("reef", "rados")
    first = documents(data)[0]
    end = data.index(b"\n}\n") + 3
    torn = b'{\n  "jobs" : [ half\n}\n'
    found = documents(b"fio: a warning\n" + data[:end] + b"note\n" + torn + data[:end])
    assert found == [first, first]


@given(st.dictionaries(st.integers(1000, 200 * 10**9), st.integers(1, 10**6), max_size=50))
def test_buckets_never_fall_and_hold_everything(bins: dict[int, int]) -> None:
    counts = fio_output.buckets(bins)
    assert counts == sorted(counts)
    assert counts[-1] == sum(bins.values())
    assert len(counts) == len(FIO_BOUNDS) + 1


def test_bounds_contain_those_of_the_osds_own_histograms() -> None:
    osd = [100e-6 * 2**n for n in range(20)]
    assert all(any(abs(bound - own) < 1e-9 for own in FIO_BOUNDS) for bound in osd)


# -- what the plan owns --------------------------------------------------------------------------


def scenario(options: str) -> str:
    return f"""\
scenario: s
pools: [{{name: p, images: {{size: 16M}}}}]
phases:
  - name: load
    fio: {{engine: rbd, pool: p, rw: randread, bs: 4K, options: {{{options}}}}}
    until: {{duration: 5s}}
"""


@pytest.mark.parametrize(
    "option", ["numjobs: 4", "iodepth: 1", "runtime: 9", "output-format: normal", "rate_iops: 7"]
)
def test_an_option_that_the_plan_owns_is_refused_in_options(option: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"s.yaml:5: .*{option.split(':')[0]}; allowed: .*shapes the load"
    ):
        parse(scenario(option), "s.yaml")


def test_a_plan_does_not_name_a_size_that_an_option_replaces() -> None:
    plain = Fio(engine="rbd", rw="randwrite", block_size=4096, depth=1, pool="p")
    mixed = replace(plain, options=(("bssplit", "4k/50:64k/50"),))
    assert "randwrite of 4 KiB" in plain.describe()
    assert "randwrite of several sizes" in mixed.describe()
    assert "bssplit 4k/50:64k/50" in mixed.describe()


@pytest.mark.parametrize(
    ("volumes", "clients", "each"),
    [
        (1, 1, (100,)),
        (2, 1, (50, 50)),
        (4, 2, (25, 25, 25, 25)),
        (4, 4, (25, 25, 25, 25)),
        (3, 1, (34, 33, 33)),
        (3, 3, (34, 33, 33)),
        (64, 2, (2,) * 36 + (1,) * 28),
    ],
)
def test_a_rate_is_that_of_the_whole_phase(
    volumes: int, clients: int, each: tuple[int, ...]
) -> None:
    """All of it: where it cannot be shared out evenly, some jobs have one more."""
    spec = action(volumes=volumes, clients=clients, rate_iops=100)
    jobs = [
        word
        for client in spec.processes()
        for word in spec.argv(client, PLACE, phase="load", seconds=1)
        if word.startswith("--rate_iops")
    ]
    assert jobs == [f"--rate_iops={rate}" for rate in each]
    assert sum(each) == 100


def test_passes_go_through_a_share_of_the_target_and_have_no_time() -> None:
    text = """\
scenario: s
phases: [{name: fill, fio: {engine: libaio, path: /x, rw: write, bs: 64K, size: 70%, passes: 2}}]
"""
    found = parse(text, "s.yaml").points[0].phases[0].action
    assert isinstance(found, Fio)
    (client,) = found.processes()
    argv = found.argv(client, PLACE, phase="fill", seconds=3600)
    assert {"--loops=2", "--size=70%"} < set(argv)
    assert not [word for word in argv if word.startswith(("--runtime", "--time_based"))]
    for wrong in ("size: 0%", "size: 101%", "passes: 17", "passes: 2, sweep: {depths: [1]}"):
        with pytest.raises(ConfigError):
            parse(text.replace("size: 70%, passes: 2", wrong), "s.yaml")


def test_a_rate_that_cannot_be_shared_out_is_refused() -> None:
    for jobs, fits in ((4, True), (5, False)):
        text = scenario("{}").replace("options: {{}}", f"jobs: {jobs}, rate_iops: 4")
        if fits:
            assert parse(text, "s.yaml").points
            continue
        with pytest.raises(ConfigError, match="rate_iops: found 4; allowed: at least one for each"):
            parse(text, "s.yaml")


def test_a_ramp_is_added_to_the_time_that_a_load_may_take() -> None:
    (point,) = parse(scenario("ramp_time: 45s"), "s.yaml").points
    assert point.phases[0].action.ramp_seconds() == 45.0
    with pytest.raises(ConfigError, match="ramp_time"):
        parse(scenario("ramp_time: soon"), "s.yaml")


def test_counts_that_begin_again_after_a_ramp_are_noticed() -> None:
    first, last = statuses("reef", "two_jobs")[0], statuses("reef", "two_jobs")[-1]
    for name in first.jobs:
        assert first.jobs[name].counts_anew(last.jobs[name])
        assert not last.jobs[name].counts_anew(first.jobs[name])


class MapTools:
    """`rbd`, which does not let go of one device."""

    def __init__(self, stays: str) -> None:
        self.stays = stays
        self.asked: list[str] = []

    async def output(self, argv: Sequence[str]) -> str:
        verb, what = argv[-2:]
        self.asked.append(f"{verb} {what}")
        if verb == "unmap" and what == self.stays:
            raise RunError(f"rbd device unmap {what} failed: busy")
        return f"/dev/rbd{what[-1]}\n"

    async def will_map(self, pool: str, image: str) -> None:
        self.asked.append(f"write down {pool}/{image}")


@pytest.mark.parametrize("fails", [True, False])
async def test_an_image_that_stays_mapped_is_no_secret_and_keeps_no_other_mapped(
    fails: bool,
) -> None:
    tools: Any = MapTools("/dev/rbd1")
    target = action(engine="krbd", volumes=3).target("load", PLACE)
    said = "fio died" if fails else "unmap /dev/rbd1 failed: busy"
    with pytest.raises(RunError, match=said):
        async with ENGINES["krbd"].prepared(target, range(3), tools) as devices:
            assert devices == {volume: f"/dev/rbd{volume}" for volume in range(3)}
            if fails:
                raise RunError("fio died")
    written_and_mapped = [
        f"{verb} {target.pool}/volume.{volume}"
        for volume in range(3)
        for verb in ("write down", "map")
    ]
    assert tools.asked[:6] == written_and_mapped, "before the kernel has it"
    assert tools.asked[6:] == [f"unmap /dev/rbd{volume}" for volume in (2, 1, 0)]
