"""`cephqos trial`: its command line."""

import asyncio
import errno
import io
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.trial.simulated import Load, SimulatedWorld

from cephqos_base.command import main
from cephqos_insight.trial import cli
from cephqos_insight.trial.plan import parse_candidate
from cephqos_loadgen.plan.errors import NotRestored
from cephqos_loadgen.run_recording.files import JsonLines

TRY = ("trial", "--try", "profile=high_client_ops")


def test_the_dry_run_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRY, "--dry-run", "--seed", "1", "--block", "60s"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("6 to 12 rounds of blocks of 1 min, seed 1: 13 min to 25 min\n")
    assert "    ceph config set osd osd_mclock_profile high_client_ops\n" in shown


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "which cluster? Name it with --conf FILE or --lab NAME"),
        (("--lab", "a", "--conf", "b"), "which cluster?"),
        (("--block", "5s"), "--block 5s: expected 60 s or more (3 times --harm-time)"),
        (("--block", "5s", "--harm-time", "1s"), "--block 5s: expected 15 s or more, and"),
        (("--rounds", "4"), "--least-rounds 6 --rounds 4: expected"),
        (("--by", "p90"), "--by p90: expected one of p99, p95, p50, mean, ops/s, recovery/s"),
        (("--try", "profile=high_client_ops"), "one to three candidates that are different"),
        (("--harm", "0.9", "--lab", "a"), "--harm 0.9: expected more than 1"),
        (("--lab", "a", "--prometheus", "nonsense"), "expected a URL"),
    ],
)
def test_a_mistake_is_said_in_one_line_with_status_2(
    capsys: pytest.CaptureFixture[str], more: tuple[str, ...], message: str
) -> None:
    assert main([*TRY, *more]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


class InterruptedWorld(SimulatedWorld):
    fsid = "11111111-2222-3333-4444-555555555555"
    candidates = (parse_candidate("same"),)
    groups = None
    way_back: Mapping[str, list[str]] = {}
    left: Sequence[str] = ()

    async def check(self) -> None: ...

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if self.time > 2300:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(5)


def test_after_ctrl_c_there_is_a_report_of_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @asynccontextmanager
    async def world(*_: object) -> AsyncIterator[InterruptedWorld]:
        yield InterruptedWorld({"same": 1.0}, 1, Load(noise=0.01, wander=0.01))

    monkeypatch.setattr(cli, "_world", world)
    command = ("trial", "--lab", "a", "--try", "same", "--by", "mean", "--every", "30")
    assert main([*command, "--out", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "no alert ends this trial" in shown.err + shown.out
    (file,) = tmp_path.glob("*/report.txt")
    assert file.read_text().startswith(
        "same: no answer yet, as it ended early: it was interrupted. So far mean "
    )
    assert file.read_text() in shown.out


class LostTerminal(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")

    def fileno(self) -> int:
        return os.open(os.devnull, os.O_WRONLY)


class TroubledWorld(InterruptedWorld):
    left = ("ceph config rm osd osd_max_scrubs: timed out",)

    async def sleep(self, seconds: float) -> None:
        await SimulatedWorld.sleep(self, seconds)

    async def trouble(self) -> str:
        return "down: osd.1" if self.time > 400 else ""


@asynccontextmanager
async def not_all_undone(*_: object) -> AsyncIterator[TroubledWorld]:
    yield TroubledWorld({"same": 1.0}, 1, Load(noise=0.01, wander=0.01))
    raise NotRestored("not undone: ceph config rm osd osd_max_scrubs: timed out")


def test_a_full_disk_loses_neither_the_report_nor_what_was_not_undone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = JsonLines.write

    def full(archive: JsonLines, entry: dict[str, Any]) -> None:
        if entry["event"] != "planned":
            raise OSError(28, "No space left on device")
        written(archive, entry)

    def no_space(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli, "_world", not_all_undone)
    monkeypatch.setattr(JsonLines, "write", full)
    monkeypatch.setattr(Path, "write_text", no_space)
    command = ("trial", "--lab", "a", "--try", "same", "--every", "30", "--out", str(tmp_path))
    assert main(command) != 0
    shown = capsys.readouterr()
    assert "No space left on device" in shown.out
    assert "After the trial: ceph config rm osd osd_max_scrubs" in shown.out
    assert "not undone: ceph config rm osd osd_max_scrubs" in shown.err


def test_the_report_is_written_although_the_terminal_is_lost_and_not_all_was_undone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cli, "_world", not_all_undone)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, LostTerminal())
    command = ("trial", "--lab", "a", "--try", "same", "--every", "30", "--out", str(tmp_path))
    assert main(command) == 1
    (file,) = tmp_path.glob("*/report.txt")
    shown = file.read_text()
    assert "down: osd.1" in shown and "After the trial: ceph config rm osd osd_max_scrubs" in shown
