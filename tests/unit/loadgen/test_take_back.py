"""A phase that takes back what it changed when it ends, while the repeat goes on."""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.changed_cluster import ChangedCluster

from cephqos_base.errors import ConfigError
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.check.plan_text import lines
from cephqos_loadgen.cluster.lock import LOST
from cephqos_loadgen.cluster.settings import ClusterSettings
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.cluster.undo import Journal, flag
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.load import phase_runner
from cephqos_loadgen.load.context import Hands, Marks
from cephqos_loadgen.phase_kinds.registry import KINDS
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.scenario.parse import parse

FLAGS = "{name: first, flags: {set: [norecover]}, until: {duration: 0.05}, take_back: true}"

LAST = [name for name, kind in KINDS.items() if kind.can_take_back][-1]


def scenario(*phases: str) -> str:
    return "scenario: s\nphases:\n" + "".join(f"  - {phase}\n" for phase in phases)


class Taking:
    """Carries out the phases of a scenario on a cluster in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *phases: str) -> None:
        name = "cephqos_loadgen.load.phase_runner.host_figures.recorded"
        monkeypatch.setattr(name, lambda *_, **__: nullcontext())
        cluster: Any = ChangedCluster()
        self.cluster = cluster
        self.kept: list[list[str]] = []
        self.expected: list[bool] = []
        self.lost = False
        (point,) = parse(scenario(*phases), "s.yaml").points
        self.journal = Journal(self._keep)
        self.hands = Hands(self.cluster, self.journal, ClusterSettings(self.cluster, self.journal))
        follower = SimpleNamespace(expect=lambda go_on: self.expected.append(go_on))
        self.context: Any = SimpleNamespace(
            point=point,
            marks={phase.name: Marks() for phase in point.phases},
            watcher=SimpleNamespace(follower=follower),
            live=Live(RunPlace()),
            recorder=SimpleNamespace(event=lambda *_, **__: None),
            started=0.0,
            data_moved=0.0,
            cluster=self.cluster,
        )

    async def _keep(self, steps: Mapping[int, StepBack]) -> None:
        if self.lost:
            raise RunError(LOST)
        self.kept.append([step.shown for step in steps.values()])

    async def run(self) -> phase_runner.Recorded:
        found = phase_runner.Recorded()
        await phase_runner.run_phases(self.context, self.hands, found)
        return found


async def test_a_change_is_back_when_its_phase_ends_and_a_later_one_of_others_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Taking(monkeypatch, FLAGS, "{name: later, wait: {}, until: {duration: 0.05}}")
    work = asyncio.create_task(run.run())
    async with asyncio.timeout(5):
        while "norecover" not in run.cluster.flags:
            await asyncio.sleep(0)
    await run.journal.make(flag("noout", on=True), run.cluster)
    await work
    assert run.cluster.asked == ["osd set norecover", "osd set noout", "osd unset norecover"]
    assert run.kept[0] == ["ceph osd unset norecover"]
    assert run.kept[-1] == ["ceph osd unset noout"], "the end of the repeat undoes it"
    assert run.expected == [True], "data moves from now on, within a recovery that is under way"


@pytest.mark.parametrize("before", [(), ("norecover",)])
async def test_what_was_so_before_the_phase_is_so_after_it(
    monkeypatch: pytest.MonkeyPatch, before: tuple[str, ...]
) -> None:
    run = Taking(monkeypatch, FLAGS)
    run.cluster.flags |= set(before)
    await run.run()
    assert run.cluster.flags == {"sortbitwise", *before}


async def test_without_the_key_the_change_stays_until_the_repeat_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Taking(monkeypatch, FLAGS.replace(", take_back: true", ""))
    await run.run()
    assert "norecover" in run.cluster.flags
    assert run.journal.commands() == ["ceph osd unset norecover"]


async def test_what_cannot_be_taken_back_fails_the_phase_and_stays_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Taking(monkeypatch, FLAGS)
    run.cluster.fails["osd unset"] = CommandFailed("osd unset", -13, "denied")
    with pytest.raises(RunError, match="change could not be taken back: ceph osd unset"):
        await run.run()
    assert run.journal.commands() == ["ceph osd unset norecover"]


async def test_nothing_is_undone_where_the_journal_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another run may have the cluster then, and has undone it."""
    run = Taking(monkeypatch, FLAGS)
    work = asyncio.create_task(run.run())
    async with asyncio.timeout(5):
        while "norecover" not in run.cluster.flags:
            await asyncio.sleep(0)
    run.lost = True
    with pytest.raises(RunError, match="another run took this cluster over"):
        await work
    assert run.cluster.asked == ["osd set norecover"]


def test_the_plan_says_that_it_goes_back() -> None:
    text = scenario(FLAGS.replace("0.05", "30s"))
    shown = list(lines(parse(text, "s.yaml"), ProgramPaths(), commands=True))
    assert shown[-2:] == [
        "  phase first: set norecover; at 0 s, for 30 s, then back as it was",
        "    ceph osd set norecover",
    ]


AFTER = FLAGS.replace("first", "second")
OUT = "{name: out, osd_out: {osd: 2}, until: {duration: 9}, take_back: true}"
IN = "{name: in, osd_in: {osd: 2}, start: {with: out, delay: 5}}"
WITH = AFTER.replace("until", "start: {with: first}, until")


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ((FLAGS.replace("until: {duration: 0.05}, ", ""),), "found one that ends at once"),
        (
            ("{name: w, wait: {}, until: {duration: 1}, take_back: true}",),
            f"found wait; .* {LAST}$",
        ),
        ((FLAGS, WITH), "second starts after the end of phase first"),
        ((FLAGS.replace(", take_back: true", ""), WITH), "second starts after the end of phase"),
        ((FLAGS, AFTER.replace("until", "start: {at: 9}, until")), "after the end of phase first"),
        ((OUT, IN), "phase in starts after the end of phase out: both change which OSDs are up"),
    ],
)
def test_a_way_back_that_cannot_be_is_refused(phases: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(scenario(*phases), "s.yaml")


def test_two_that_change_something_else_may_overlap() -> None:
    (point,) = parse(scenario(FLAGS, WITH.replace("norecover", "noscrub")), "s.yaml").points
    assert [phase.take_back for phase in point.phases] == [True, True]


def test_one_after_the_other_may_change_the_same() -> None:
    between = "{name: w, wait: {}, until: {duration: 1}}"
    third = WITH.replace("second", "third").replace("with: first", "with: w")
    (point,) = parse(scenario(FLAGS, AFTER, between, third), "s.yaml").points
    assert [phase.take_back for phase in point.phases] == [True, True, False, True]
