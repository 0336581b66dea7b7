"""Clients that die, end early or leave half of a result: the phase says so, and nothing is claimed
of the time in which they did not run."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fio_said import SaidJob, document
from tests.waiting import lives, wait_until

from cephqos_base.errors import CephqosError
from cephqos_loadgen.engines.fio_output import IoTotals, JsonStream, figures_over
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.load.phase_runner import ended_by
from cephqos_loadgen.phase_kinds.fio import Fio, FioResult
from cephqos_loadgen.phase_kinds.rados_bench import RadosBench, RadosBenchResult
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Phase, Start, Until
from cephqos_loadgen.results.phase import Step
from cephqos_loadgen.run_recording.child import Child, ChildFailed, Launch
from cephqos_loadgen.run_recording.repeat_folder import RepeatRecorder

SECONDS = 10.0
# The client of volume 1 does as the test says; the other one is well.
PROGRAM = """\
#!{python}
import os, signal, sys, time
well = "--name=volume.1" not in sys.argv
said = open({folder!r} + ("/well" if well else "/ill")).read()
sys.stdout.write(said)
sys.stdout.flush()
if not well:
{then}
"""


def whole(volume: int, seconds: float = SECONDS) -> str:
    """Two documents, as of a job that reads a hundred times a second for so long."""
    ends = (seconds / 2, seconds)
    return "".join(
        document(1_000_000 + at, {f"volume.{volume}": SaidJob(at, {1_000_000: round(100 * at)})})
        for at in ends
    )


def loading(until: str = "duration") -> Phase:
    action = Fio(
        engine="rbd",
        rw="randread",
        block_size=4096,
        depth=1,
        pool="p",
        volumes=2,
        clients=2,
    )
    return Phase("load", action, Start("at"), Until(until, SECONDS, SECONDS))  # type: ignore[arg-type]


async def run_two(
    folder: Path, monkeypatch: pytest.MonkeyPatch, ill: str, then: str = "    pass"
) -> FioResult:
    """Two fios, of which one prints `ill` and does `then`."""
    (folder / "well").write_text(whole(0))
    (folder / "ill").write_text(ill)
    program = folder / "bin" / "fio"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder), then=then))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    recorder = RepeatRecorder(folder / "repeat")
    live = Live(RunPlace())
    context: Any = SimpleNamespace(recorder=recorder, live=live, rates={}, place=ProgramPaths())
    phase = loading()
    assert isinstance(phase.action, Fio)
    try:
        async with asyncio.timeout(30):
            return await phase.action.carry_out(context, phase, None)
    finally:
        recorder.close_files()


async def test_two_that_run_to_their_end_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await run_two(tmp_path, monkeypatch, whole(1))
    assert result.total.ios == 2000 and result.findings() == ()
    assert ended_by(loading(), False, result) == "duration"


@pytest.mark.parametrize(
    ("ill", "then", "said"),
    [
        ("", "    pass", "fio wrote no result for client.1"),
        (whole(1)[:-40], "    pass", "fio's result is cut off for client.1"),
        (whole(1)[:300], "    pass", "fio wrote no result for client.1"),
        (whole(1).replace("0.0", "nan"), "    pass", "fio wrote no result for client.1"),
        (whole(1), "    sys.exit(1)", r"load\.client\.1 ended with status 1"),
        (whole(1), "    os.kill(os.getpid(), 9)", r"load\.client\.1 was killed by signal 9"),
        (
            document(1_000_010, {"volume.1": SaidJob(10.0, {1000: 9}, error=5)}),
            "    pass",
            r"client\.1: fio reports errors \(job: errno\) \{'volume\.1': 5\}",
        ),
    ],
)
async def test_one_of_two_that_fails_fails_the_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ill: str, then: str, said: str
) -> None:
    with pytest.raises(CephqosError, match=said):
        await run_two(tmp_path, monkeypatch, ill, then)


async def test_one_that_ended_before_its_time_is_a_finding_and_no_time_was_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = await run_two(tmp_path, monkeypatch, whole(1, 4.0))
    text = "depth 1: 1 of 2 jobs ended early, client.1/volume.1 after 4.0 of 10 s"
    assert result.findings() == (text,)
    assert ended_by(loading(), False, result) == "done"
    assert ended_by(loading("phase"), False, result) == "done", "at_most did not cut it off"


def test_reads_that_run_out_of_objects_did_not_last_their_time() -> None:
    """`rados bench seq` ends when it has read what the writes before it left."""
    done = figures_over(IoTotals(10, 40960, 10, 0.1), 81.0)
    step = Step(
        16, 0.0, 81.0, 81.0, done, done, None, {"p": done}, None, 300.0, ended_early={"p": 81.0}
    )
    result = RadosBenchResult("seq", 4096, (step,))
    assert result.findings() == ("depth 16: 1 of 1 jobs ended early, p after 81.0 of 300 s",)
    action = RadosBench(("p",), "seq", 4096, 16)
    phase = Phase("read", action, Start("at"), Until("duration", 300.0, 300.0))
    assert ended_by(phase, False, result) == "done"


WORKER = """\
import os, sys, time
pid = os.fork()
if pid == 0:
    time.sleep(60)
    os._exit(0)
open(sys.argv[1], "w").write(str(pid))
time.sleep(0.2)
os.kill(os.getpid(), 9)
"""


async def test_workers_of_a_client_that_was_killed_end_with_it_and_nobody_waits_for_them(
    tmp_path: Path,
) -> None:
    """fio forks its jobs: they would load on to the end of their time, and hold its output open."""
    began = time.monotonic()
    launch = Launch("x", [sys.executable, "-c", WORKER, str(tmp_path / "pid")], {})
    async with Child(launch, tmp_path) as child:
        assert await child.wait(30.0) == -signal.SIGKILL
    assert time.monotonic() - began < 15
    worker = int((tmp_path / "pid").read_text())
    wait_until(lambda: not lives(worker), "the worker ended")


async def test_output_that_outlives_a_program_that_ended_well_is_waited_for(tmp_path: Path) -> None:
    script = "import os, time\nif os.fork() == 0:\n time.sleep(1.5); print('late')\n"
    seen = bytearray()
    async with Child(Launch("x", [sys.executable, "-c", script], {}), tmp_path, seen.extend) as c:
        assert await c.wait(30.0) == 0
    assert bytes(seen) == b"late\n"


async def test_a_child_that_has_ended_gets_no_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number may be another process's by then."""
    signals: list[tuple[int, int]] = []
    async with Child(Launch("x", ["true"], {}), tmp_path) as child:
        assert await child.wait(20) == 0
        monkeypatch.setattr(os, "kill", lambda *given: signals.append(given))
        assert await child.interrupt() == 0
    assert signals == []


async def test_a_client_that_does_not_end_is_a_failure_and_is_ended(tmp_path: Path) -> None:
    async with Child(Launch("x", ["sleep", "60"], {}), tmp_path) as child:
        with pytest.raises(ChildFailed, match="not done within"):
            await child.wait(0.2)
        pid = child.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_cut_anywhere_in_the_last_document_is_noticed(cut: int) -> None:
    text = whole(1).encode()
    first = text.index(b"\n}\n") + 3
    at = min(first + cut, len(text))
    stream = JsonStream()
    stream.feed(text[:at])
    assert stream.torn == (at not in (first, len(text)))
    stream.feed(text[at:])
    assert not stream.torn
    stream.feed(b"fio: a line of text\n")
    assert not stream.torn
