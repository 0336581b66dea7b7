"""The way back: every change is undone, in reverse, whatever interrupts."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.changed_cluster import ChangedCluster

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster import this_host, undo
from cephqos_loadgen.cluster.settings import ClusterSettings
from cephqos_loadgen.cluster.steps import host
from cephqos_loadgen.cluster.steps.host import QueueSet
from cephqos_loadgen.cluster.steps.options import FlagChanged, OptionSet
from cephqos_loadgen.cluster.steps.registry import StepRefused
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.undo import Change, Journal, ceph
from cephqos_loadgen.load.context import Hands
from cephqos_loadgen.phase_kinds.flags import Flags
from cephqos_loadgen.phase_kinds.osd_out_in import OsdIn, OsdOut, way_back
from cephqos_loadgen.plan.errors import ClusterAway, RunError
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.run.session import finish


async def nowhere(steps: Mapping[int, StepBack]) -> None: ...


def flag_set(name: str) -> FlagChanged:
    return FlagChanged(name, True)


class RunCluster(ChangedCluster):
    """Its flags, of which one cannot be cleared."""

    def __init__(self, *flags: str, stuck: str = "", error: BaseException | None = None) -> None:
        super().__init__()
        self.flags |= set(flags)
        self._stuck, self._error = stuck, error

    async def command(self, prefix: str, **arguments: Any) -> Any:
        if self._stuck and arguments.get("key") == self._stuck:
            if self._error is None:
                await asyncio.Event().wait()
            else:
                raise self._error
        return await super().command(prefix, **arguments)


async def test_the_journal_undoes_in_reverse_and_keeps_what_failed() -> None:
    saved: list[dict[int, StepBack]] = []

    async def save(steps: Mapping[int, StepBack]) -> None:
        saved.append(dict(steps))

    names = ("noout", "noscrub", "noin")
    cluster: Any = RunCluster(*names, stuck="noscrub", error=OSError("away"))
    journal = Journal(save)
    for name in names:
        await journal.push(flag_set(name))
    failures = await journal.roll_back(cluster)
    assert cluster.asked == ["osd unset noin", "osd unset noout"]
    assert failures == ["ceph osd unset noscrub: away"]
    assert journal.commands() == ["ceph osd unset noscrub"]
    assert [list(steps) for steps in saved] == [[1], [1, 2], [1, 2, 3], [1, 2], [2], [2]], (
        "what is undone is forgotten at once"
    )


async def test_a_change_for_whose_way_back_there_is_no_room_is_not_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(undo, "MAX_STEPS", 2)
    cluster: Any = RunCluster()
    journal = Journal(nowhere)
    for name in ("noout", "noscrub"):
        await journal.make(undo.flag(name, on=True), cluster)
    with pytest.raises(RunError, match="2 steps that undo changes are written down already"):
        await journal.make(undo.flag("noin", on=True), cluster)
    assert cluster.flags == {"sortbitwise", "noout", "noscrub"}
    assert await journal.roll_back(cluster) == []


async def test_a_change_whose_way_back_could_not_be_read_again_is_not_made() -> None:
    cluster: Any = RunCluster()
    journal = Journal(nowhere)
    strange = OptionSet("osd", "osd_max_backfills", "3\x1b", "9")
    command = ceph("config set", who="osd", name="osd_max_backfills", value="9")
    change = Change("backfills", [command], (strange,))
    with pytest.raises(StepRefused, match="before: expected a text"):
        await journal.make(change, cluster)
    assert cluster.asked == [] and journal.entries == []


async def test_a_cluster_that_is_away_is_waited_for_once_and_this_host_is_restored_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away:
        asked = 0

        async def command(self, prefix: str, **_: Any) -> None:
            self.asked += 1
            raise ClusterAway("the cluster did not answer for 120 s")

    async def save(steps: Mapping[int, StepBack]) -> None:
        if len(steps) < 4:
            raise ClusterAway("the cluster did not answer for 30 s")

    monkeypatch.setattr(host, "BLOCK", tmp_path)
    folder = tmp_path / "sdx" / "queue"
    folder.mkdir(parents=True)
    (folder / "nr_requests").write_text("37\n")
    queue = QueueSet(
        this_host.name(), this_host.boot(), "sdx", {"nr_requests": "256"}, {"nr_requests": "37"}
    )
    journal = Journal(save)
    for entry in (flag_set("noout"), queue, flag_set("noin"), flag_set("noscrub")):
        with contextlib.suppress(ClusterAway):
            await journal.push(entry)
    cluster: Any = Away()
    failures = await journal.roll_back(cluster)
    assert cluster.asked == 1
    assert (folder / "nr_requests").read_text() == "256"
    names = ("noscrub", "noin", "noout")
    assert journal.commands() == [f"ceph osd unset {name}" for name in names]
    away = "the cluster did not answer for"
    assert failures == [
        *(f"ceph osd unset {name}: {away} 120 s" for name in names),
        f"the way back in the cluster is not up to date: {away} 30 s",
    ]


async def test_a_way_back_that_is_cut_short_keeps_the_step_that_was_at_work() -> None:
    names = ("noout", "noscrub", "noin")
    cluster: Any = RunCluster(*names, stuck="noscrub")
    journal = Journal(nowhere)
    for name in names:
        await journal.push(flag_set(name))
    task = asyncio.create_task(journal.roll_back(cluster))
    while len(journal.entries) == 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.commands() == ["ceph osd unset noscrub", "ceph osd unset noout"]


@pytest.mark.parametrize(("spare", "interruptions"), [(0, 0), (1, 0), (1, 1)])
async def test_restoring_is_carried_through_interruptions_that_are_to_spare(
    spare: int, interruptions: int
) -> None:
    go = asyncio.Event()
    said: list[str] = []
    task = asyncio.create_task(finish(wait_for(go), said.append, spare))
    for _ in range(interruptions):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()
    go.set()
    results = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError) == bool(interruptions), "it is handed on"
    assert len(said) == interruptions


@pytest.mark.parametrize("spare", [0, 1])
async def test_the_interruption_after_those_stops_restoring_and_more_do_no_harm(spare: int) -> None:
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)  # closing takes a moment
            ended.append(True)

    said: list[str] = []
    task = asyncio.create_task(finish(work(), said.append, spare))
    for _ in range(spare + 3):
        await asyncio.sleep(0.01)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]
    assert said[-1] == "restoring the cluster was stopped"


async def wait_for(event: asyncio.Event) -> None:
    await event.wait()


class Flagged:
    """A cluster's flags, and an OSD that is as the test says. It is a lab."""

    access = SimpleNamespace(at_once=True)

    def __init__(self, *flags: str, up: int = 1) -> None:
        self.flags = set(flags)
        self.up = up
        self.asked: list[str] = []

    async def command(self, prefix: str, **arguments: Any) -> Any:
        self.asked.append(prefix)
        if prefix == "osd dump":
            osd = {"osd": 3, "up": self.up, "in": self.up, "weight": 1.0}
            return {"flags": ",".join(sorted(self.flags)), "osds": [osd]}
        if prefix in ("osd set", "osd unset"):
            change = self.flags.add if prefix == "osd set" else self.flags.discard
            change(arguments["key"])
        return None

    async def find_osd(self, which: str) -> int:
        return 3

    async def wait_for_osd(self, osd: int, *, up: bool) -> None: ...


def hands_on(cluster: Any) -> Hands:
    journal = Journal(nowhere)
    return Hands(cluster, journal, ClusterSettings(cluster, journal))


@pytest.mark.parametrize("before", [(), ("noout",), ("noscrub", "noout"), ("norecover",)])
async def test_flags_that_a_phase_clears_are_set_again_as_those_that_it_sets_are_cleared(
    before: tuple[str, ...],
) -> None:
    """Of the operator's, and of the run itself, which the next repeat needs."""
    cluster = Flagged(*before)
    hands = hands_on(cluster)
    phase = Flags(set=("norecover",), clear=("noout", "noscrub", "norecover"))
    await phase.make_changes(hands)
    assert cluster.flags == set()
    assert await hands.journal.roll_back(hands.cluster) == []
    assert cluster.flags == set(before)


@pytest.mark.parametrize(("up", "ours"), [(1, False), (0, True), (0, False)])
async def test_an_osd_that_was_down_before_the_run_stays_down(up: int, ours: bool) -> None:
    cluster = Flagged(up=up)
    hands = hands_on(cluster)
    if ours:
        await hands.journal.push(way_back({"osd": 3, "up": 1, "in": 1, "weight": 1.0}))
    if up or ours:
        await OsdIn("3").make_changes(hands)
        assert cluster.asked == ["osd dump", "osd unset-group", "osd in"]
        return
    with pytest.raises(RunError, match=r"osd\.3 is down or out, and not by this run"):
        await OsdIn("3").make_changes(hands)
    assert cluster.asked == ["osd dump"]


class Weighted(Flagged):
    """An OSD with a weight, which does not go out when it is told to."""

    def __init__(self, journal: list[list[str]]) -> None:
        super().__init__()
        self.journal = journal

    async def command(self, prefix: str, **arguments: Any) -> Any:
        if prefix == "osd out":
            raise CommandFailed(prefix, -16, "busy")
        self.journal.append([prefix]) if prefix.startswith("osd ") else None
        return await super().command(prefix, **arguments)


async def test_the_way_back_is_written_down_whole_before_the_first_command() -> None:
    """Whatever fails between the commands of one change: all of it can be undone."""
    course: list[list[str]] = []
    cluster: Any = Weighted(course)

    async def save(steps: Mapping[int, StepBack]) -> None:
        course.append([step.shown for step in steps.values()])

    journal = Journal(save)
    hands = Hands(cluster, journal, ClusterSettings(cluster, journal))
    out = await OsdOut("last").found_in(cluster)
    with pytest.raises(CommandFailed):
        await out.make_changes(hands)
    back = ["ceph osd unset-group noup osd.3 && ceph osd in 3"]
    assert course == [["osd dump"], back, ["osd set-group"], ["osd down"]]
    assert journal.commands() == back
    shown = [" ".join(argv) for argv in OsdOut("last").commands("p", 1.0, ProgramPaths())]
    assert shown == [
        "ceph osd set-group noup osd.last",
        "ceph osd down last",
        "ceph osd out last",
    ], "the dry run shows the same commands"
