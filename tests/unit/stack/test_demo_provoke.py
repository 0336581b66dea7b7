"""Faults provoked in the demo: what is said, the score card, and how another terminal asks."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cephqos_base import marked
from cephqos_base.errors import UsageError
from cephqos_loadgen.errors import LabError
from cephqos_stack.demo import remote
from cephqos_stack.demo.provoke import PROVOCATIONS, Attempt, Provoker, find
from cephqos_stack.demo.story import NotifiedAlert
from cephqos_stack.staged.faults import FAULTS, LOADS
from cephqos_stack.staged.stage import Stage, StagedLab

from .demo_lab import DemoLab, at_once

DEVICE = {"alertname": "CephQosReservationViolated", "ceph_daemon": "osd.1", "class": "client"}
DEVICE |= {"severity": "critical"}
SAID = {"description": "client on osd.1 is short. Likely cause: device. Can it wait: no."}


def alert(**labels: str) -> NotifiedAlert:
    return NotifiedAlert({**DEVICE, **labels}, SAID)


def attempt(name: str, *before: NotifiedAlert) -> Attempt:
    fired = {str(sorted(it.labels.items())): it for it in before}
    return Attempt(name, find(name).load(3), fired, began=100.0)


def test_every_key_has_a_situation_that_can_be_staged_on_the_demos_lab() -> None:
    assert len({it.key for it in PROVOCATIONS}) == len(PROVOCATIONS)
    for each in PROVOCATIONS:
        situation = each.load(3)
        assert {it.kind for it in situation.faults} <= FAULTS.keys(), each.name
        assert {it.kind for it in situation.loads} <= LOADS.keys(), each.name
        assert situation.cluster.media == "ssd" and situation.size in (1, 2, 3), each.name
        assert situation.cluster.op_queue == "mclock_scheduler", each.name


def test_a_name_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    assert find("1") == find("slow-device")
    with pytest.raises(UsageError, match="'slow-devic': expected one of slow-device, stopped-osd"):
        find("slow-devic")


def test_what_was_expected_is_right_and_what_follows_does_not_speak_against_it() -> None:
    slow = attempt("slow-device")
    assert not slow.hear([], 105.0)
    assert slow.hear([alert()], 114.0)
    assert not slow.hear([alert(), alert(alertname="CephQosLatencySloBurn")], 116.0)
    assert not slow.hear([alert(), alert(ceph_daemon="osd.2")], 130.0), "a consequence"
    assert slow.line(200.0) == "slow-device: right after 14 s"


def test_the_wrong_osd_nothing_and_what_fired_before_are_told_apart() -> None:
    wrong = attempt("slow-device")
    wrong.hear([alert(), alert(ceph_daemon="osd.2")], 110.0)
    assert wrong.line(120.0).startswith("slow-device: wrong OSD after 10 s; beside it critical")
    missed = attempt("slow-device", alert())
    missed.hear([alert()], 110.0)
    assert missed.line(160.0).startswith("slow-device: missed, in 60 s. What is due fired before")
    missed.hear([], 161.0)
    assert missed.hear([alert()], 170.0), "it ended, and fires again"
    assert (
        attempt("low-limit").line(160.0).startswith("low-limit: missed, in 60 s. It needs devices")
    )
    blind = attempt("slow-device")
    assert not blind.hear([alert(alertname="CephQosTooFewSamples")], 105.0)
    assert blind.line(110.0).startswith("slow-device: not judged, because scrapes failed")
    assert blind.hear([alert()], 114.0), "it is judged as soon as it can be"
    later = attempt("slow-device")
    later.hear([alert(alertname="CephQosExporterDown")], 130.0)
    assert later.line(140.0) == "slow-device: missed, in 40 s. Scrapes failed"
    calm = attempt("scrub-flood")
    assert not calm.hear([], 110.0)
    assert calm.line(140.0) == "scrub-flood: right: no alert in 40 s, and none was due"
    calm.hear([alert()], 141.0)
    assert calm.line(150.0).startswith("scrub-flood: false; beside it critical")


def test_other_programs_on_the_host_are_said_and_accuse_nobody() -> None:
    taken = alert(alertname="CephQosHostCpuTaken", cause="cpu", by="other_programs")
    slow = attempt("slow-device")
    assert not slow.hear([taken], 104.0), "what is due may still come"
    hidden = slow.line(140.0)
    assert hidden.startswith("slow-device: missed, in 40 s. CephQosHostCpuTaken is true")
    assert hidden.endswith("try again when they rest")
    assert slow.hear([taken, alert()], 141.0)
    assert slow.line(150.0).startswith("slow-device: late after 41 s. CephQosHostCpuTaken is true")
    calm = attempt("scrub-flood", taken)
    assert "scrub-flood: right: no alert in 9 s, and none was due. Ceph" in calm.line(109.0)
    busy = attempt("busy-host")
    assert busy.hear([taken], 109.0)
    assert busy.line(110.0) == "busy-host: right after 9 s"


async def test_the_same_name_ends_it_and_all_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    lab, told = DemoLab(), list[str]()

    async def measure() -> int:
        return 800

    provoker = Provoker(lab, measure, told.append)  # type: ignore[arg-type]
    assert "wait until it is over" in await provoker.toggle("slow-device")
    provoker.closed = ""
    monkeypatch.setattr(asyncio, "sleep", at_once)
    assert (await provoker.toggle("1")).startswith("PROVOKED: slow-device; an alert is due")
    assert "throttle 1 {'wiops': 100}" in lab.said
    assert "end it first" in await provoker.toggle("stopped-osd")
    provoker.hear([alert()])
    assert told[-1].startswith("FOUND: slow-device: right after")
    assert (await provoker.toggle("1")).startswith("ENDED: slow-device: right after")
    assert "throttle 1 {}" in lab.said
    assert lab.said[-1] == "ceph config set osd osd_mclock_max_capacity_iops_ssd 800"
    assert len(provoker.card) == 1 and provoker.going_on == ""


async def test_who_has_most_of_the_work_is_found_and_needs_no_alert(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, told, asked = DemoLab(), list[str](), list[str]()

    async def measure() -> int:
        return 800

    async def query(expr: str) -> list[dict[str, Any]]:
        asked.append(expr)
        return [{"metric": {"tenant": "12ab"}}]

    provoker = Provoker(lab, measure, told.append)  # type: ignore[arg-type]
    provoker.closed = ""
    monkeypatch.setattr(asyncio, "sleep", at_once)
    due = "no alert is due, but `cephqos who` has to name the image"
    assert due in await provoker.toggle("w")
    async with asyncio.timeout(30):
        while not provoker._stage.noisy:  # type: ignore[union-attr]
            await asyncio.sleep(0)
    await provoker.look(query)
    assert not asked, "too early: two scrapes are needed"
    provoker._attempt.began -= 10  # type: ignore[union-attr]
    await provoker.look(query)
    assert "[10s]" in asked[0] and told[-1].startswith("FOUND: noisy-neighbour: right after 10 s")
    assert "right after 10 s, image 12ab" in await provoker.toggle("w")
    # A client waits for its OSDs: the cache of librbd would answer before them.
    images = [it.split()[2] for it in lab.said if it.startswith("rbd create ")]
    assert len(images) == 2
    for image in images:
        assert f"rbd config image set {image} rbd_cache false" in lab.said


async def test_what_cannot_be_staged_is_said_and_nothing_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, told = DemoLab(), list[str]()

    async def measure() -> int:
        raise OSError("no OSD was saturated")

    provoker = Provoker(lab, measure, told.append)  # type: ignore[arg-type]
    provoker.closed = ""
    assert await provoker.toggle("1") == "NOT PROVOKED: slow-device: no OSD was saturated"
    assert not provoker.going_on and not provoker.card
    assert lab.said == ["ceph status --format json"], "it waits for recovery first"


async def test_what_devices_do_is_measured_again_where_a_situation_limits_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, told, measured = DemoLab(), list[str](), [800, 200]

    async def measure() -> int:
        return measured.pop(0)

    provoker = Provoker(lab, measure, told.append)  # type: ignore[arg-type]
    provoker.closed = ""
    monkeypatch.setattr(asyncio, "sleep", at_once)
    await provoker.toggle("recovery-flood")
    assert "throttle 1 {'riops': 600, 'wiops': 600}" in lab.said
    capacity = "ceph config set osd osd_mclock_max_capacity_iops_ssd"
    assert [it for it in lab.said if capacity in it] == [f"{capacity} 180"], "0.9 of it"
    await provoker.toggle("recovery-flood")
    assert lab.said[-1] == f"{capacity} 800"


async def test_what_goes_wrong_behind_a_button_is_told() -> None:
    told = list[str]()

    async def measure() -> int:
        raise KeyError("average_iops")

    provoker = Provoker(DemoLab(), measure, told.append)  # type: ignore[arg-type]
    provoker.closed = ""
    await asyncio.wait([provoker.press("1")])
    assert told == ["FAILED: KeyError: 'average_iops'"]


async def test_a_demo_that_ends_while_a_fault_is_staged_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab, told = DemoLab(), list[str]()

    async def measure() -> int:
        return 800

    async def never(*_: Any, **__: Any) -> None:
        lab.said.append("held up")
        await asyncio.Event().wait()

    provoker = Provoker(lab, measure, told.append)  # type: ignore[arg-type]
    provoker.closed = ""
    monkeypatch.setattr(asyncio, "sleep", at_once)
    lab.faults.throttle = never
    pressed = provoker.press("1")
    async with asyncio.timeout(30):
        while "held up" not in lab.said:
            await asyncio.sleep(0)
        await provoker.close()
    assert pressed.cancelled() and lab.said[-1] == "held up"
    assert not provoker.card, "it was not provoked yet"


async def test_the_alerts_of_the_fault_before_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = list[str]()

    async def measure() -> int:
        return 800

    provoker = Provoker(DemoLab(), measure, told.append)  # type: ignore[arg-type]
    provoker.closed = ""
    lasts = alert(alertname="CephQosCapacityOverstated")
    provoker.hear([lasts])
    monkeypatch.setattr(asyncio, "sleep", at_once)
    await provoker.toggle("1")
    provoker.hear([lasts, alert()])
    await provoker.toggle("1")
    pressed = provoker.press("1")
    async with asyncio.timeout(30):
        while "WAITING: alerts of the fault before still fire" not in told:
            await asyncio.sleep(0)
        assert not provoker.going_on
        provoker.hear([lasts])
        assert (await pressed).startswith("PROVOKED")


async def test_what_cannot_be_undone_keeps_nothing_else_from_being_so() -> None:
    done: list[str] = []
    stage = Stage(StagedLab(DemoLab()), find("1").load(3), 0, "pool")  # type: ignore[arg-type]

    async def first() -> None:
        done.append("first")

    async def second() -> None:
        raise LabError("the OSD does not start")

    stage.undo += [first, second]
    with pytest.raises(LabError, match="does not start"):
        await stage.close()
    assert done == ["first"]


def lab_folder(labs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the sockets of a lab."""
    monkeypatch.setenv("CEPHQOS_LABS", str(labs))
    marked.make(labs / "demo-1", "lab")
    (labs / "demo-1" / "run").mkdir()
    return labs / "demo-1" / "run"


async def test_a_socket_in_a_folder_that_is_no_lab_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lab_folder(tmp_path, monkeypatch)
    (tmp_path / "demo-1" / marked.MARK).unlink()

    async def answer(name: str) -> str:
        return "PROVOKED"

    async with remote.listening(folder, answer):
        with pytest.raises(UsageError, match="no demo runs"):
            await remote.ask("slow-device")


async def test_another_terminal_asks_the_demo_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lab_folder(tmp_path, monkeypatch)

    async def answer(name: str) -> str:
        return f"PROVOKED: {name}"

    with pytest.raises(UsageError, match="no demo runs on this host"):
        await remote.ask("limit")
    async with remote.listening(folder, answer):
        assert await remote.ask("slow-device") == "PROVOKED: slow-device"
        assert (folder / "provoke.sock").stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="no demo runs"):
        await remote.ask("slow-device")


async def test_who_waits_for_a_demo_that_ends_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task was cancelled, and asyncio printed a traceback as the demo's last words."""
    folder = lab_folder(tmp_path, monkeypatch)

    async def answer(name: str) -> str:
        staging = asyncio.ensure_future(asyncio.sleep(60, name))
        asyncio.get_running_loop().call_soon(staging.cancel)
        return await staging

    async with remote.listening(folder, answer):
        assert await remote.ask("slow-device") == "NOT PROVOKED: the demo ends"
