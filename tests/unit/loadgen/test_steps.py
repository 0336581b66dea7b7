"""Steps back: a closed list, and each undoes only what is still as the run has made it."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.give_back import situations
from tests.unit.changed_cluster import ChangedCluster

from cephqos_loadgen.cluster import this_host
from cephqos_loadgen.cluster.steps import host
from cephqos_loadgen.cluster.steps.background import AutoscalerOff, BalancerOff
from cephqos_loadgen.cluster.steps.host import CpusSet, ImageMapped, QueueSet
from cephqos_loadgen.cluster.steps.options import FlagChanged, OptionSet
from cephqos_loadgen.cluster.steps.osds import OsdAway, OsdsRestarted, UpmapsLost, upmap_steps
from cephqos_loadgen.cluster.steps.pools import PoolMade
from cephqos_loadgen.cluster.steps.registry import KINDS, StepRefused, read_step, stored
from cephqos_loadgen.cluster.steps.step import MAX_STEP_BYTES, ElsewhereOnly, StepBack

RUN = "20260101T000000Z-mini-ab12"
TOKEN = "0123456789abcdef"
HERE: dict[str, Any] = {"host": this_host.name(), "boot": this_host.boot()}
BACKFILLS = OptionSet("osd", "osd_max_backfills", "3", "9")
POOL = PoolMade("client", RUN, TOKEN, 7, 8)
ALL = (
    BACKFILLS,
    OptionSet("mon", "mon_allow_pool_delete", None, "true"),
    OptionSet("mon", "mon_osd_laggy_weight", None, "0"),
    FlagChanged("noscrub", True),
    BalancerOff(False),
    AutoscalerOff("rbd", 1),
    POOL,
    replace(POOL, id=None),
    OsdAway(1, 0.75, False),
    UpmapsLost({"1.2f": (0, 1)}, {"2.0": (0, 1, 2)}),
    OsdsRestarted(((0, 1), (2,)), {"0": "7/8", "1": "9"}, "lab-1"),
    QueueSet(**HERE, device="nvme0n1", before={"scheduler": "none"}, ours={"scheduler": "bfq"}),
    CpusSet(**HERE, pid=7, started=1, rest="0-3", others={"8": "1"}, ours="2"),
    ImageMapped(**HERE, pool="client", pool_id=8, image="volume.0", present=(0, 3)),
)


@pytest.mark.parametrize("step", ALL, ids=lambda step: f"{step.kind}")
def test_every_kind_of_step_is_read_as_it_was_written(step: StepBack) -> None:
    assert read_step("key", stored(step)) == step
    assert step.shown and "\n" not in step.shown


def test_a_run_is_killed_after_a_step_of_each_kind() -> None:
    killed = {kind for kinds in situations.KINDS.values() for kind in kinds}
    needs_a_kernel_with_rbd = {"krbd"}
    assert killed == KINDS.keys() - needs_a_kernel_with_rbd, "tests/give_back/situations.py"


def with_(step: StepBack, **changes: Any) -> dict[str, Any]:
    return {**step.to_json(), **changes}


QUEUE = ALL[10]
REFUSED: dict[str, Any] = {
    "a free command": {"kind": "command", "prefix": "osd purge-new", "id": 0},
    "an old entry": {"kind": "command", "shown": "x", "arguments": {"prefix": "osd pool rm"}},
    "no kind": {"who": "osd"},
    "a kind that is no word": {"kind": ["option"]},
    "no table": [1],
    "no JSON": "{",
    "nested without end": "[" * 4000 + "]" * 4000,
    "too long": json.dumps(with_(BACKFILLS, before="x" * MAX_STEP_BYTES)),
    "a field more": with_(BACKFILLS, prefix="config-key rm"),
    "an option of files": with_(BACKFILLS, name="mgr/dashboard/ssl"),
    "an option of paths": with_(BACKFILLS, name="osd_data"),
    "an option of plugins": with_(BACKFILLS, name="osd_class_dir"),
    "a section of clients": with_(BACKFILLS, who="client.admin"),
    "an argument": with_(BACKFILLS, who="--osd"),
    "a flag of another kind": with_(FlagChanged("noscrub", True), name="pause"),
    "a flag that is no boolean": with_(FlagChanged("noscrub", True), on=1),
    "a pool without the run": {k: v for k, v in POOL.to_json().items() if k != "run"},
    "a pool by name alone": with_(POOL, run=None),
    "a pool with an argument": with_(POOL, name="--yes"),
    "a pool's id as text": with_(POOL, id="8"),
    "an OSD that is no number": with_(OsdAway(1, 1.0, False), osd="all"),
    "a weight of another kind": with_(OsdAway(1, 1.0, False), weight=float("nan")),
    "an upmap of no group": {"kind": "upmaps", "items": {"all": [0, 1]}, "whole": {}},
    "a restart of a lab with a path": with_(OsdsRestarted(((0,),), {}, "../x")),
    "a device elsewhere": with_(QUEUE, device="../../etc"),
    "a device with a slash": with_(QUEUE, device="sda/../../../etc"),
    "a file of no queue": with_(QUEUE, before={"../../../etc/passwd": "x"}),
    "a file that no run sets": with_(QUEUE, before={"write_cache": "write through"}),
    "a value of two lines": with_(QUEUE, before={"scheduler": "none\nx"}),
    "a path in place of a device": {"kind": "queue", "path": "/etc", "attributes": {"a": "b"}},
    "process 1": with_(ALL[11], pid=1),
    "CPUs that are none": with_(ALL[11], rest="all"),
    "an image of others": with_(ALL[12], image="production"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_run_writes_is_refused_and_the_entry_is_named(name: str) -> None:
    value = REFUSED[name]
    with pytest.raises(StepRefused, match=r"^cephqos/run/steps/00007: no step of a run: .*") as e:
        read_step("cephqos/run/steps/00007", value)
    assert len(str(e.value)) < 600


async def left(step: StepBack, cluster: ChangedCluster) -> str:
    connection: Any = cluster
    return await step.carry_out(connection)


# -- options and flags ----------------------------------------------------------------------------


async def test_an_option_is_set_back_while_it_is_as_the_run_has_set_it() -> None:
    cluster = ChangedCluster()
    cluster.options["osd", "osd_max_backfills"] = "9"
    assert await left(BACKFILLS, cluster) == ""
    assert await left(BACKFILLS, cluster) == "", "twice"
    assert cluster.asked == ["config set osd osd_max_backfills 3"]
    cluster.options["osd", "osd_max_backfills"] = "9"
    assert await left(replace(BACKFILLS, before=None, ours="9K"), cluster) != ""
    cluster.options["osd", "osd_max_backfills"] = "9216"
    assert await left(replace(BACKFILLS, before=None, ours="9K"), cluster) == "", "its spelling"
    assert cluster.options == {}


async def test_an_option_that_someone_else_has_changed_is_left_and_said() -> None:
    cluster = ChangedCluster()
    cluster.options["osd", "osd_max_backfills"] = "5"
    said = "osd osd_max_backfills was set to 5 by someone else; the run had set it to 9"
    assert await left(BACKFILLS, cluster) == said
    cluster.options.clear()
    assert await left(BACKFILLS, cluster) == "osd osd_max_backfills was removed by someone else"
    assert cluster.asked == []


SHARE = OptionSet("osd", "osd_mclock_scheduler_client_res", None, "0.3")


@pytest.mark.parametrize(
    ("profile", "release", "kept"),
    [
        ({("osd", "osd_mclock_profile"): "custom"}, "18.2.7", False),
        ({("global", "osd_mclock_profile"): "custom"}, "18.2.7", False),
        ({("osd", "osd_mclock_profile"): "balanced"}, "20.2.0", True),
        ({}, "18.2.7", True),
        ({}, "21.3.0", False),
    ],
)
async def test_a_share_that_osds_keep_after_it_is_removed_is_said(
    profile: dict[tuple[str, str], str], release: str, kept: bool
) -> None:
    """Someone has removed the custom profile before the run could give the share back."""
    cluster = ChangedCluster()
    cluster.release = release
    cluster.options |= {("osd", SHARE.name): "0.3", **profile}
    said = await left(SHARE, cluster)
    assert ("ceph config set osd osd_mclock_profile custom, and back" in said) is kept
    assert bool(said) is kept and cluster.asked == [f"config rm osd {SHARE.name}"]


async def test_a_flag_is_cleared_or_set_again_only_where_it_is_still_so() -> None:
    cluster = ChangedCluster()
    cluster.flags = {"noscrub"}
    assert await left(FlagChanged("noscrub", True), cluster) == ""
    assert await left(FlagChanged("noscrub", True), cluster) == ""
    assert await left(FlagChanged("noout", False), cluster) == ""
    assert cluster.asked == ["osd unset noscrub", "osd set noout"]


@pytest.mark.parametrize(
    ("was_set", "asked"),
    [(True, ["balancer on"]), (False, ["balancer on", "config rm mgr mgr/balancer/active"])],
)
async def test_the_balancer_is_on_again_and_its_option_as_before(
    was_set: bool, asked: list[str]
) -> None:
    cluster = ChangedCluster()
    assert await left(BalancerOff(was_set), cluster) == "", "it was never switched off"
    assert cluster.asked == []
    cluster.options["mgr", "mgr/balancer/active"] = "false"
    assert await left(BalancerOff(was_set), cluster) == ""
    assert cluster.asked == asked


async def test_the_autoscaler_is_on_again_for_the_pool_with_that_id_only() -> None:
    cluster = ChangedCluster()
    cluster.add_pool(2, "rbd", mode="off")
    assert "removed by someone else" in await left(AutoscalerOff("rbd", 1), cluster)
    cluster.add_pool(1, "renamed", mode="warn")
    assert "set to warn by someone else" in await left(AutoscalerOff("rbd", 1), cluster)
    assert cluster.asked == []
    cluster.add_pool(1, "renamed", mode="off")
    assert await left(AutoscalerOff("rbd", 1), cluster) == ""
    assert cluster.asked == ["osd pool set renamed pg_autoscale_mode on"]


# -- pools ----------------------------------------------------------------------------------------


async def test_a_pool_is_removed_if_its_id_and_its_mark_are_those_of_the_run() -> None:
    cluster = ChangedCluster()
    cluster.add_pool(8, "client", RUN)
    assert await left(POOL, cluster) == ""
    assert await left(POOL, cluster) == "", "twice"
    assert cluster.asked == ["osd pool rm client"]


@pytest.mark.parametrize(
    ("number", "name", "run", "words"),
    [
        (9, "client", RUN, ""),  # another pool of that name: not even looked at
        (9, "client", None, ""),
        (8, "client", None, "has no mark of a run"),
        (8, "client", "another-run", "has the mark of run another-run"),
        (8, "mine", RUN, "was renamed to mine by someone else"),
    ],
)
async def test_a_pool_of_that_name_with_another_id_or_mark_is_left(
    number: int, name: str, run: str | None, words: str
) -> None:
    cluster = ChangedCluster()
    cluster.add_pool(number, name, run)
    said = await left(POOL, cluster)
    assert words in said and bool(words) == bool(said)
    assert cluster.asked == [] and number in cluster.pools


async def test_a_pool_that_was_just_being_made_is_known_by_its_first_name() -> None:
    made = replace(POOL, id=None)
    cluster = ChangedCluster()
    cluster.add_pool(7, made.temporary)  # was there before, whatever it is
    cluster.add_pool(9, "client")  # someone else's, made after the run had died
    assert await left(made, cluster) == ""
    assert cluster.asked == []
    del cluster.pools[7]
    cluster.add_pool(10, made.temporary)
    assert await left(made, cluster) == ""
    assert sorted(cluster.pools) == [9]


# -- OSDs -----------------------------------------------------------------------------------------


def taken_out(cluster: ChangedCluster, **more: Any) -> None:
    cluster.osd_map[1] = {"up": 0, "in": 0, "weight": 0.0, "state": ["exists", "noup"], **more}


async def test_an_osd_comes_back_with_its_weight() -> None:
    cluster = ChangedCluster()
    taken_out(cluster)
    step = OsdAway(1, 0.75, False)
    assert await left(step, cluster) == ""
    asked = ["osd unset-group noup osd.1", "osd in 1", "osd reweight 1 0.750005"]
    assert cluster.asked == asked
    assert cluster.osd_map[1]["weight"] == 0.75
    assert await left(step, cluster) == "" and cluster.asked == asked, "twice"


async def test_an_osd_of_which_someone_else_has_changed_the_weight_keeps_it() -> None:
    cluster = ChangedCluster()
    taken_out(cluster, **{"in": 1, "weight": 0.5})
    assert await left(OsdAway(1, 1.0, False), cluster) == (
        "osd.1 was given the weight 0.5 by someone else"
    )
    assert cluster.asked == ["osd unset-group noup osd.1"]
    assert "removed by someone else" in await left(OsdAway(5, 1.0, False), cluster)


async def test_an_osd_that_had_the_flag_before_gets_it_once_it_is_up() -> None:
    cluster = ChangedCluster()
    taken_out(cluster)
    assert await left(OsdAway(1, 1.0, True), cluster) == ""
    assert cluster.asked[-1] == "osd set-group noup osd.1" and len(cluster.asked) == 3


async def test_an_upmap_that_someone_else_has_set_meanwhile_is_left() -> None:
    cluster = ChangedCluster()
    cluster.add_pool(1, "rbd")
    cluster.upmaps = {"1.1": [0, 1], "1.2": [0, 3, 1, 2]}
    (step,) = upmap_steps({"osd pg-upmap-items": {"1.1": [0, 1], "1.2": [0, 3], "1.3": [1, 0]}})
    said = await left(step, cluster)
    assert said == "placement group 1.2 was given another upmap by someone else"
    assert cluster.asked == ["osd pg-upmap-items 1.3 1 0"]


def test_any_number_of_upmaps_fits_into_steps() -> None:
    many = {f"1.{n:x}": list(range(64)) for n in range(1000)}
    steps = upmap_steps({"osd pg-upmap-items": many, "osd pg-upmap": many})
    assert max(len(stored(step)) for step in steps) < MAX_STEP_BYTES
    assert sum(len(step.items) + len(step.whole) for step in steps) == 2000


# -- the run's own host ---------------------------------------------------------------------------


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(host, "BLOCK", tmp_path)
    queue = tmp_path / "nvme0n1" / "queue"
    queue.mkdir(parents=True)
    (queue / "scheduler").write_text("none [bfq]\n")
    (queue / "nr_requests").write_text("99\n")
    return queue


def queue_step(**more: Any) -> QueueSet:
    before = {"scheduler": "none", "nr_requests": "256"}
    given = {**HERE, "before": before, "ours": {"scheduler": "bfq"}, **more}
    return QueueSet(device="nvme0n1", **given)


async def test_what_was_changed_on_another_host_is_not_undone_here(queue: Path) -> None:
    with pytest.raises(ElsewhereOnly, match="it can be undone on elsewhere only"):
        await left(queue_step(host="elsewhere"), ChangedCluster())
    assert (queue / "nr_requests").read_text() == "99\n"


async def test_a_host_that_was_started_again_has_nothing_to_undo(queue: Path) -> None:
    before_boot = "00000000-0000-0000-0000-000000000000"
    assert "was started again since then" in await left(
        queue_step(boot=before_boot), ChangedCluster()
    )
    assert (queue / "nr_requests").read_text() == "99\n"


async def test_a_queue_that_someone_else_has_changed_is_left(queue: Path) -> None:
    (queue / "scheduler").write_text("none bfq [kyber]\n")
    said = await left(queue_step(), ChangedCluster())
    assert said == "nvme0n1 scheduler was set to kyber by someone else"
    assert (queue / "nr_requests").read_text() == "99\n"
    (queue / "scheduler").write_text("[none] bfq\n")
    step = queue_step(
        ours={"nr_requests": "98", "read_ahead_kb": "1"},
        before={"nr_requests": "256", "read_ahead_kb": "128"},
    )
    (queue / "read_ahead_kb").write_text("1\n")
    said = await left(step, ChangedCluster())
    assert said == "nvme0n1 nr_requests was set to 99 by someone else"
    assert (queue / "read_ahead_kb").read_text() == "128"


async def test_only_the_mapping_of_the_runs_own_pool_is_unmapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ChangedCluster()
    mappings = {
        0: (cluster.fsid, 8, "volume.0"),  # mapped before the run
        1: (cluster.fsid, 8, "volume.0"),
        2: (cluster.fsid, 9, "volume.0"),
        3: (cluster.fsid, 8, "volume.1"),
        4: ("another", 8, "volume.0"),
    }
    for number, (fsid, pool, image) in mappings.items():
        folder = tmp_path / str(number)
        folder.mkdir()
        files = {"cluster_fsid": fsid, "pool_id": str(pool), "name": image}
        for name, value in files.items():
            (folder / name).write_text(f"{value}\n")
    monkeypatch.setattr(host, "RBD_DEVICES", tmp_path)
    said = tmp_path / "said"
    cluster.access.argv = lambda argv: ["sh", "-c", f"echo {' '.join(argv)} >> {said}"]
    step = ImageMapped(**HERE, pool="client", pool_id=8, image="volume.0", present=(0,))
    assert await left(step, cluster) == ""
    assert said.read_text() == "rbd device unmap /dev/rbd1\n"


async def test_a_process_that_someone_else_has_pinned_since_is_left() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    own = ",".join(map(str, cpus))
    step = CpusSet(
        **HERE,
        pid=os.getpid(),
        started=this_host.started(os.getpid()),
        rest=str(cpus[0]),
        others={},
        ours=str(cpus[1]),
    )
    if len(cpus) > 2 or own not in (step.rest, step.ours):
        assert "was given the CPUs" in await left(step, ChangedCluster())
        assert sorted(os.sched_getaffinity(0)) == cpus
    assert await left(replace(step, started=step.started + 1), ChangedCluster()) == ""
    assert sorted(os.sched_getaffinity(0)) == cpus
