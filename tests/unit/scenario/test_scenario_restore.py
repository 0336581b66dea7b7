"""The way back: every change is undone, in reverse, whatever interrupts."""

import asyncio
import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster.settings import ClusterSettings
from cephqos_loadgen.cluster.undo import Journal, Undo, command, from_json, to_json
from cephqos_loadgen.load.context import Hands
from cephqos_loadgen.phase_kinds.flags import Flags
from cephqos_loadgen.phase_kinds.osd_out_in import OsdIn, OsdOut, back_in, way_back
from cephqos_loadgen.plan.errors import ClusterAway, RunError
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.run.session import finish


async def test_the_journal_undoes_in_reverse_and_keeps_what_failed() -> None:
    saved: list[list[Undo]] = []

    async def save(entries: list[Undo]) -> None:
        saved.append(list(entries))

    class RunCluster:
        def __init__(self) -> None:
            self.asked: list[str] = []

        async def command(self, prefix: str, **_: Any) -> None:
            self.asked.append(prefix)
            if prefix == "b":
                raise OSError("away")

    journal, cluster = Journal(save), RunCluster()
    for name in "abc":
        await journal.push(command(name))
    failures = await journal.roll_back(cluster)  # type: ignore[arg-type]
    assert cluster.asked == ["c", "b", "a"]
    assert failures == ["ceph b: away"]
    assert journal.commands() == ["ceph b"]
    assert from_json(to_json(saved[2])) == saved[2], "it survives being written down"


async def test_a_cluster_that_is_away_is_waited_for_once_and_this_host_is_restored_all_the_same(
    tmp_path: Path,
) -> None:
    class Away:
        asked = 0

        async def command(self, prefix: str, **_: Any) -> None:
            self.asked += 1
            raise ClusterAway("the cluster did not answer for 120 s")

    async def save(entries: list[Undo]) -> None:
        if len(entries) < 4:
            raise ClusterAway("the cluster did not answer for 30 s")

    (tmp_path / "nr_requests").write_text("37\n")
    queue = Undo("queue", "echo", {"path": str(tmp_path), "attributes": {"nr_requests": "256"}})
    journal = Journal(save)
    for entry in (command("a"), queue, command("b"), command("c")):
        with contextlib.suppress(ClusterAway):
            await journal.push(entry)
    cluster = Away()
    failures = await journal.roll_back(cluster)  # type: ignore[arg-type]
    assert cluster.asked == 1
    assert (tmp_path / "nr_requests").read_text() == "256"
    assert journal.commands() == ["ceph c", "ceph b", "ceph a"]
    away = "the cluster did not answer for"
    assert failures == [
        *(f"ceph {name}: {away} 120 s" for name in "cba"),
        f"the way back in the cluster is not up to date: {away} 30 s",
    ]


async def test_a_way_back_that_is_cut_short_keeps_the_step_that_was_at_work() -> None:
    class Stuck:
        async def command(self, prefix: str, **_: Any) -> None:
            if prefix == "b":
                await asyncio.Event().wait()

    async def save(entries: list[Undo]) -> None:
        pass

    journal = Journal(save)
    for name in "abc":
        await journal.push(command(name))
    task = asyncio.create_task(journal.roll_back(Stuck()))  # type: ignore[arg-type]
    while len(journal.entries) == 3:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.commands() == ["ceph b", "ceph a"]


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
    async def save(entries: list[Undo]) -> None: ...

    journal = Journal(save)
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
        for entry in way_back({"osd": 3, "up": 1, "in": 1, "weight": 1.0}):
            await hands.journal.push(entry)
        assert back_in(3) in hands.journal.entries
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

    async def save(entries: list[Undo]) -> None:
        course.append([entry.shown for entry in entries])

    journal = Journal(save)
    hands = Hands(cluster, journal, ClusterSettings(cluster, journal))
    out = await OsdOut("last").found_in(cluster)
    with pytest.raises(CommandFailed):
        await out.make_changes(hands)
    back = ["ceph osd in 3", "ceph osd unset-group noup osd.3"]
    assert course == [["osd dump"], back[:1], back, ["osd set-group"], ["osd down"]]
    assert journal.commands() == back[::-1]
    shown = [" ".join(argv) for argv in OsdOut("last").commands("p", 1.0, ProgramPaths())]
    assert shown == [
        "ceph osd set-group noup osd.last",
        "ceph osd down last",
        "ceph osd out last",
    ], "the dry run shows the same commands"
