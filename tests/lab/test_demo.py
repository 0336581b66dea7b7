"""The demo as its user runs it."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.terminal import PROMPT, Terminal

from .test_lab import wait_until_gone

DEMO = [sys.executable, "-m", "cephqos_base", "demo", "--interval", "1"]


def start(*options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*DEMO, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def read_until(demo: subprocess.Popen[str], pattern: str, within: float = 60) -> re.Match[str]:
    """Read the demo's output up to a line that matches."""
    assert demo.stdout
    said = ""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        line = demo.stdout.readline()
        said += line
        if match := re.search(pattern, line):
            return match
        if not line:
            break
    raise AssertionError(f"no {pattern!r} in:\n{said}")


def test_the_demo_shows_every_osd_at_work_and_ends_by_itself() -> None:
    demo = start("--calm", "--duration", "20")
    out, _ = demo.communicate(timeout=90)
    assert demo.returncode == 0, out
    assert "HEALTH_OK" in out
    client_rates = re.findall(r"^client .*?([\d.,]+) of 3,000 ", out, re.MULTILINE)
    assert len(client_rates) >= 2
    assert set(re.findall(r"osd\.\d", out)) == {"osd.0", "osd.1", "osd.2"}
    # fio is held to 200 ops/s over the three OSDs.
    last = float(client_rates[-1].replace(",", ""))
    assert 100 <= last <= 300, out
    name = re.search(r"--name (demo-\d+)", out)
    assert name
    wait_until_gone(name[1], within=2)


@pytest.mark.alone
def test_the_demo_tells_of_a_broken_promise_with_its_cause_and_of_its_mending() -> None:
    demo = start("--once")
    out, _ = demo.communicate(timeout=290)
    assert demo.returncode == 0, out
    story = [line for line in out.splitlines() if " s  " in line[:9]]
    told = " | ".join(story)
    fired = r"FIRING \(page\): CephQosReservationViolated osd\.1 client, cause device"
    ended = r"RESOLVED after \d+ s: CephQosReservationViolated osd\.1 client"
    assert re.search(f"MEASURED: .*PROVOKED: .*{fired}.*MENDED: .*{ended}.*story is over", told)
    assert "runbooks.md#cephqosreservationviolated" in told
    assert not re.search(r"FIRING \(page\): \S+ osd\.[02]", told), told


async def test_in_a_terminal_the_demo_is_cephqos_top_with_the_story_above_it() -> None:
    with Terminal(100, 30) as terminal:
        await terminal.shows(PROMPT)
        terminal.type(" ".join(DEMO), "Enter")
        await terminal.shows(r"^Ceph 18\.2 \(reef\)  HEALTH_OK", 120)
        await terminal.shows(r"^ +\d+ s  MEASURING: full load")
        screen = await terminal.shows(r"^client .* of 3,000 ")
        assert screen.index("MEASURING") < screen.index("cephqos top") < screen.index("CLASSES")
        terminal.type("Enter")  # the keys of cephqos top work: an OSD opens
        await terminal.shows(r"^osd\.\d  up  mclock_scheduler")
        terminal.type("q")
        # What happened stays on the screen, and the cluster is gone.
        screen = await terminal.shows(PROMPT)
        assert "MEASURING: full load" in screen
        name = re.search(r"--name (demo-\d+)", screen)
        assert name
        wait_until_gone(name[1], within=5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_all_that_the_demo_started_ends_with_it(number: signal.Signals) -> None:
    demo = start("--calm")
    try:
        name = read_until(demo, r"--name (demo-\d+)")[1]
        read_until(demo, r"osd\.0")
        children = _descendants(demo.pid)
        assert any("fio" in command for command in children.values())
        for server in ("cephqos_exporter", "prometheus", "alertmanager"):
            assert any(server in command for command in children.values()), server
        demo.send_signal(number)
        demo.wait(15)
        # Ctrl-C and SIGTERM are how a demo is meant to end.
        assert demo.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        wait_until_gone(name, within=5)
        left = [command for pid, command in children.items() if _command(pid) == command]
        assert not left
    finally:
        demo.kill()
        demo.communicate()


def _descendants(pid: int) -> dict[int, str]:
    found: dict[int, str] = {}
    todo = [pid]
    while todo:
        for task in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found[child] = _command(child)
                todo.append(child)
    return found


def _command(pid: int) -> str:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
