"""After a run: the cluster, and the queues of its devices, are compared with what they were."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_loadgen.cluster import device_queues
from cephqos_loadgen.cluster.settings import ClusterSettings
from cephqos_loadgen.cluster.steps.options import HOLDING_DATA, FlagChanged, OptionSet
from cephqos_loadgen.plan.errors import ClusterUnfit, RunError
from cephqos_loadgen.run.session import Session
from cephqos_loadgen.scenario.parse import parse

from .session_cluster import Cluster, Lock, stand_in

QUIET = "scenario: s\nquiet: [balancer]\nphases: [{name: w, wait: {}, until: {duration: 1s}}]\n"


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    queue = tmp_path / "block" / "sdx" / "queue"
    (queue / "iosched").mkdir(parents=True)
    (queue / "scheduler").write_text("none [mq-deadline]\n")
    (queue / "nr_requests").write_text("37\n")
    (queue / "iosched" / "fifo_batch").write_text("7\n")
    return queue


@pytest.fixture
def cluster(queue: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """One OSD of this host on sdx."""
    block = queue.parents[1]
    for name in ("present", "state"):
        bound = partial(getattr(device_queues, name), block=block)
        monkeypatch.setattr(device_queues, name, bound)
    return stand_in(monkeypatch, Cluster({"id": 0, "hostname": "h", "devices": "sdx"}))


def a_session(events: list[dict[str, Any]], check: Any = lambda fsid: None) -> Session:
    access: Any = SimpleNamespace(
        place=SimpleNamespace(work=""), disks=None, spec=None, devices=frozenset[str]()
    )

    def note(kind: str, **details: Any) -> None:
        events.append({"event": kind, **details})

    archive: Any = SimpleNamespace(run="r", event=note, json=lambda *_: None)
    return Session(access, archive, parse(QUIET, "s.yaml"), take_over=False, check=check)


async def ended(change: Any) -> tuple[list[str], dict[str, Any]]:
    """A session in which something else changed: its failures, and what the archive says."""
    events: list[dict[str, Any]] = []
    run = a_session(events)
    await run.begin()
    change()
    await run.end()
    (restored,) = [event for event in events if event["event"] == "restored"]
    return run.failures, restored


async def test_what_is_as_it_was_is_the_same(cluster: Cluster) -> None:
    failures, restored = await ended(lambda: None)
    assert failures == [] and restored["same"] is True


async def test_osds_that_were_full_before_the_run_are_none_that_it_has_filled(
    cluster: Cluster,
) -> None:
    """With what the guard rails of its repeats are compared."""
    cluster.checks = {"OSD_NEARFULL": {"summary": {"count": 2}}, "OSD_DOWN": {"summary": {}}}
    run = a_session([])
    await run.begin()
    assert run.room_before == {"OSD_NEARFULL": 2}


@pytest.mark.parametrize(("file", "was"), [("nr_requests", "37"), ("iosched/fifo_batch", "7")])
async def test_a_queue_that_is_not_as_it_was_is_said(
    cluster: Cluster, queue: Path, file: str, was: str
) -> None:
    failures, restored = await ended(lambda: (queue / file).write_text("256\n"))
    gone, new = ("sdx", file, was), ("sdx", file, "256")
    assert failures == [f"queues differs: gone [{gone}], new [{new}]"]
    assert restored["same"] is False and restored["differences"] == failures


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("flags", "sortbitwise,noout", "flags differs: gone [], new ['noout']"),
        ("osd_flags", [], "flags of OSDs differs: gone [(0, 'noout')], new []"),
        ("affinity", 0.5, "weights differs: gone [(0, 1.0, 1.0)], new [(0, 1.0, 0.5)]"),
        ("pools", [], "pools differs: gone ['rbd'], new []"),
        (
            "options",
            [{"section": "osd", "name": "debug_osd", "value": "20"}],
            "config differs: gone [], new [('osd', '', 'debug_osd', '20')]",
        ),
    ],
)
async def test_a_cluster_that_is_not_as_it_was_is_said(
    cluster: Cluster, attribute: str, value: Any, words: str
) -> None:
    failures, _ = await ended(lambda: setattr(cluster, attribute, value))
    assert failures == [words]


async def test_a_cluster_that_the_run_must_not_touch_is_left_before_anything_else(
    cluster: Cluster,
) -> None:
    def refuse(fsid: str) -> None:
        raise ClusterUnfit(f"not {fsid}")

    run = a_session([], refuse)
    with pytest.raises(ClusterUnfit, match="not f"):
        await run.begin()
    assert cluster.asked == [] and not run.journal.used


async def test_a_run_that_lost_the_cluster_changes_nothing_there_any_more(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever took it over has undone the run's changes, and made changes of their own."""
    run = a_session([])
    await run.begin()
    await run.journal.push(FlagChanged("noout", True))
    monkeypatch.setattr(Lock, "lost", True)
    with pytest.raises(RunError, match="another run took this cluster over"):
        await run.check_held()
    cluster.asked.clear()
    await run.roll_back(0)
    await run.end()
    assert cluster.asked == [] and run.journal.entries == [] and run.failures == []


async def test_what_someone_else_has_set_meanwhile_is_left_and_said(cluster: Cluster) -> None:
    events: list[dict[str, Any]] = []
    run = a_session(events)
    await run.begin()
    await run.journal.push(OptionSet("osd", "osd_max_backfills", None, "7"))
    cluster.options = [{"section": "osd", "name": "osd_max_backfills", "value": "9"}]
    await run.end()
    said = [event["text"] for event in events if event["event"] == "changed_by_others"]
    text = "osd osd_max_backfills was set to 9 by someone else; the run had set it to 7"
    assert said == [text] and run.journal.entries == []
    assert "config set" not in cluster.asked and "config rm" not in cluster.asked
    assert run.failures == ["config differs: gone [], new [('osd', '', 'osd_max_backfills', '9')]"]


@pytest.mark.parametrize(
    ("flag", "moves"), [*((name, True) for name in sorted(HOLDING_DATA)), ("noscrub", False)]
)
async def test_a_flag_that_held_data_back_is_waited_for_once_it_is_cleared(
    cluster: Cluster, flag: str, moves: bool
) -> None:
    """With noout, an OSD that went down may go out only now."""
    run = a_session([])
    await run.begin()
    cluster.asked.clear()
    await run.journal.push(FlagChanged(flag, True))
    await run.roll_back(0)
    assert ("wait_for_pgs" in cluster.asked) is moves


async def test_at_the_end_of_a_repeat_osds_are_asked_too(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def changed(self: object, entries: object) -> list[str]:
        return ["osd osd_max_backfills was set to 9 by someone else"]

    async def overridden(self: object, entries: object) -> list[str]:
        return ["osd.0 osd_max_scrubs is 1 at the end"]

    monkeypatch.setattr(ClusterSettings, "changed_by_others", changed)
    monkeypatch.setattr(ClusterSettings, "overridden", overridden)
    run = a_session([])
    assert await run.changed_by_others() == [*await changed(run, ()), *await overridden(run, ())]
    assert await run.changed_by_others([]) == await changed(run, ()), "what is undone is stored"


async def test_what_cannot_be_undone_after_a_repeat_ends_the_run_and_is_tried_again_at_its_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next repeat would be measured with what this one has changed."""
    refuses = True

    async def carry_out(step: FlagChanged, cluster: object) -> str:
        if refuses:
            raise RunError("not now")
        return ""

    monkeypatch.setattr(FlagChanged, "carry_out", carry_out)
    run = a_session([])
    await run.begin()
    run.check_given_back()
    await run.journal.push(FlagChanged("noout", True))
    await run.roll_back(0)
    with pytest.raises(RunError, match="not everything could be undone: ceph osd unset noout: not"):
        run.check_given_back()
    refuses = False
    await run.end()
    assert run.failures == [] and run.journal.entries == []
