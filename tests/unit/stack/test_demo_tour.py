"""The tour: every step shows what there is, and the whole is walked on a lab that only listens."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.board_panels import boards, panels

from cephqos_base.command import build_parser
from cephqos_loadgen.errors import LabError
from cephqos_stack.demo.provoke import PROVOCATIONS, Provoker, find
from cephqos_stack.demo.tour import FIGURES, STEPS, Tour, TourStep, _as_comparison
from cephqos_stack.staged.tenant import NAMED

from .demo_lab import DemoLab, at_once

PROFILES = ("high_client_ops", "balanced", "high_recovery_ops")


def test_every_step_names_a_panel_a_fault_and_a_command_that_there_are() -> None:
    shown = {(board["title"], it["title"]) for board in boards().values() for it in panels(board)}
    assert [(it.board, it.panel) for it in STEPS if (it.board, it.panel) not in shown] == []
    assert {it.provoke for it in STEPS} - {""} <= {it.name for it in PROVOCATIONS}
    for step in STEPS:
        if step.command:
            argv = [*step.command.split(), "--prometheus", "http://127.0.0.1:9090"]
            assert build_parser().parse_args(argv).prometheus, step.title
    assert tuple(it.policy for it in STEPS if it.policy) == ("wpq", *PROFILES)


@pytest.mark.parametrize(
    ("title", "fault", "finding"),
    [
        ("PROMISE", "", ""),
        ("VIOLATION", "throttle", "CephQosReservationViolated"),
        ("CAUSE", "throttle", "CephQosReservationViolated"),
        ("MENDED", "", ""),
        ("TENANT", "more", NAMED),
        *((f"RECOVERY AGAINST CLIENTS: {it}", "recover", "") for it in ("wpq", *PROFILES)),
    ],
)
def test_every_step_stages_what_its_words_say(title: str, fault: str, finding: str) -> None:
    (step,) = (it for it in STEPS if it.title == title)
    situation = find(step.provoke).load(3) if step.provoke else None
    if situation is not None and step.policy:
        situation = _as_comparison(step.policy, situation)
        profile = {} if step.policy == "wpq" else {"osd_mclock_profile": step.policy}
        assert situation.config == profile
    faults = {it.kind for it in situation.faults} if situation else set()
    alerts = {name for it in situation.expect for name in it.alert} if situation else set()
    assert faults == ({fault} if fault else set())
    assert (finding in alerts) if finding else not alerts
    if title == "CAUSE":
        assert situation is not None
        assert [(it.osd, it.cause) for it in situation.expect] == [(1, "device")], "as it says"


def test_the_tour_has_no_other_steps_and_takes_a_quarter_of_an_hour() -> None:
    assert len(STEPS) == 5 + 1 + len(PROFILES)
    looking = sum(it.seconds for it in STEPS)
    assert 5 * 60 < looking < 10 * 60, "and a minute more to stage each recovery, half for others"


class _Provoker(Provoker):
    async def found(self) -> None:
        """No alert ever comes here."""


async def test_the_whole_tour_is_walked_and_the_cluster_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, told, phases = DemoLab(tmp_path), list[str](), list[str]()
    before = "[osd]\nosd_op_queue = mclock_scheduler\n"
    lab.paths.conf.write_text(before)

    async def measure() -> int:
        return 800

    async def query(expr: str) -> list[dict[str, Any]]:
        return [{"value": [0, "42"]}]

    @contextlib.contextmanager
    def phase(name: str) -> Iterator[None]:
        phases.append(name)
        yield

    monkeypatch.setattr(asyncio, "sleep", at_once)
    provoker: Any = _Provoker(lab, measure, told.append)  # type: ignore[arg-type]
    tour = Tour(lab, provoker, query, told.append, phase, "http://p")  # type: ignore[arg-type]
    await tour.walk()

    assert len(phases) == len(STEPS) == sum(" of 9  " in it for it in told)
    assert sum(it.startswith("LOOK: ") for it in told) == len(STEPS)
    assert not [it for it in told if "NOT " in it]
    assert [it.split(":")[0] for it in provoker.card] == ["slow-device", "noisy-neighbour"]
    assert not provoker.going_on
    # WPQ first, then mClock with each profile, then as it was.
    assert sum(it.startswith("restart ") for it in lab.said) == 3 * 3 + len(PROFILES) + 1
    assert lab.said.index("kill 2") < lab.said.index("restart 0"), "all at once"
    set_ = [it for it in lab.said if "osd_mclock_profile" in it and " set " in it]
    assert [it.split()[-1] for it in set_] == list(PROFILES)
    assert lab.paths.conf.read_text() == before
    for name in ("osd_op_num_shards", "osd_mclock_profile"):
        assert [it for it in lab.said if name in it][-1] == f"ceph config rm osd {name}"
    last = told[-len(PROFILES) - 1 :]
    assert last[0] == "  wpq: clients 42 operations/s, 42 ms each, recovery 42 objects/s"
    assert len(FIGURES) == 3


async def test_a_step_that_cannot_be_staged_does_not_end_the_tour(tmp_path: Path) -> None:
    told = list[str]()
    provoker: Any = Provoker(DemoLab(), None, told.append)  # type: ignore[arg-type]
    tour: Any = Tour(provoker._lab, provoker, None, told.append, contextlib.nullcontext, "")  # type: ignore[arg-type]

    async def fails(step: TourStep) -> None:
        raise TimeoutError

    tour._stage = fails
    await tour.walk()
    assert sum(it.startswith("SKIPPED: ") for it in told) == len(STEPS)
    assert told[-1].startswith("The tour is over")


async def test_a_lab_that_does_not_answer_at_once_is_asked_again() -> None:
    lab, failures = DemoLab(), [LabError("no answer"), LabError("no answer")]

    async def restart(osd: int) -> None:
        if failures:
            raise failures.pop()
        lab.said.append(f"restart {osd}")

    lab.faults.restart = restart
    nothing: Any = None
    tour = Tour(lab, nothing, nothing, nothing, nothing, "")  # type: ignore[arg-type]
    await tour._restart_osds()
    assert lab.said[-3:] == ["restart 0", "restart 1", "restart 2"]
    failures += [LabError("no answer")] * 3
    with pytest.raises(LabError, match="no answer"):
        await tour._restart_osds()


async def test_where_nothing_was_recovered_the_tour_says_so() -> None:
    async def query(_: str) -> list[dict[str, Any]]:
        return []

    nothing: Any = None
    tour = Tour(nothing, nothing, query, nothing, nothing, "")
    assert "nothing was recovered" in await tour._figures(60)
