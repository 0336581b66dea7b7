"""The demo as its user runs it."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.terminal import PROMPT, Terminal
from tests.waiting import wait_until

from .test_lab import wait_until_gone

DEMO = [sys.executable, "-m", "cephqos_base", "demo", "--interval", "1"]


# A Grafana that does nothing but listen, where its environment says.
GRAFANA = """
import http.server, os
address = os.environ["GF_SERVER_HTTP_ADDR"], int(os.environ["GF_SERVER_HTTP_PORT"])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(address, Handler).serve_forever()
"""


def start(*options: str, **environment: str) -> subprocess.Popen[str]:
    known = {name: text for name, text in os.environ.items() if not name.startswith("GRAFANA_")}
    return subprocess.Popen(
        [*DEMO, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # No test here waits for Loki: it is not built for them, whatever modules this machine has.
        env=known | {"GOPROXY": "off", "GOMODCACHE": "/nonexistent"} | environment,
    )


def grafana_home(folder: Path) -> Path:
    program = folder / "bin" / "grafana"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{GRAFANA}")
    program.chmod(0o755)
    (folder / "conf").mkdir()
    (folder / "conf" / "defaults.ini").write_text("")
    return folder


def read_until(demo: subprocess.Popen[str], pattern: str, within: float = 200) -> re.Match[str]:
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


def p50(out: str, row: str) -> float:
    """Seconds, from the last picture in the output."""
    number, unit = re.findall(rf"^{row} +[\d.,]+ +([\d.]+) (ms|s) ", out, re.MULTILINE)[-1]
    return float(number) * {"s": 1.0, "ms": 1e-3}[unit]


def test_the_demo_shows_every_osd_at_work_and_ends_by_itself(tmp_path: Path) -> None:
    demo = start("--calm", "--duration", "20", GRAFANA_HOME=str(grafana_home(tmp_path)))
    out, _ = demo.communicate(timeout=250)
    assert demo.returncode == 0, out
    assert re.search("HEALTH_(OK|WARN)", out), out  # a busy machine's cluster may warn
    client_rates = re.findall(r"^client .*?([\d.,]+) of 750 ", out, re.MULTILINE)
    # At the first data and at the end; more only if an alert came in between.
    assert 2 <= len(client_rates) < 10, out
    assert set(re.findall(r"osd\.\d", out)) == {"osd.0", "osd.1", "osd.2"}
    # fio is held to 200 ops/s over the three OSDs, and more where it was behind.
    assert 100 <= float(client_rates[-1].replace(",", "")) <= 600, out
    # A client waits for its OSDs: no cache answers before them.
    assert p50(out, "client write") > 0.5 * p50(out, "osd write"), out
    name = re.search(r"--name (demo-\d+)", out)
    assert name
    wait_until_gone(name[1])
    # Grafana comes first, and has ended with the demo.
    grafana = re.search(r"^Grafana: +http://127\.0\.0\.1:(\d+)/d/cephqos-overview\?\S+$", out, re.M)
    assert grafana and grafana.start() < out.index("metrics: ")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(grafana[1])), timeout=5)
    first = re.search(r"FIRST DATA: on the screen (\d+) s after the start of the command", out)
    assert first
    # Two minutes, and some for what the machine may do besides.
    assert int(first[1]) < 200


async def test_in_a_terminal_the_demo_is_cephqos_top_with_the_story_above_it() -> None:
    with Terminal(100, 30) as terminal:
        await terminal.shows(PROMPT)
        terminal.type(" ".join(DEMO), "Enter")
        await terminal.shows(r"^Ceph 18\.2 \(reef\)  HEALTH_OK", 120)
        screen = await terminal.shows(r"^ +\d+ s  MEASURING: full load")
        assert screen.index("MEASURING") < screen.index("cephqos top")
        # On a busy machine an alert may follow, whose lines take the place of the story's.
        screen = await terminal.shows(r"^client .* of 750 ")
        assert screen.index("cephqos top") < screen.index("CLASSES")
        terminal.type("Enter")  # the keys of cephqos top work: an OSD opens
        await terminal.shows(r"^osd\.\d  up  mclock_scheduler")
        terminal.type("q")
        # What happened stays on the screen, and the cluster is gone.
        screen = await terminal.shows(PROMPT)
        assert "MEASURING: full load" in screen
        name = re.search(r"--name (demo-\d+)", screen)
        assert name
        wait_until_gone(name[1])


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full), signal.SIGKILL]
)
def test_all_that_the_demo_started_ends_with_it(number: signal.Signals) -> None:
    demo = start("--calm")
    try:
        name = read_until(demo, r"--name (demo-\d+)")[1]
        read_until(demo, r"osd\.0")
        for program in ("fio", "cephqos_exporter", "prometheus", "alertmanager"):
            wait_until(partial(_runs, demo.pid, program), f"{program} runs")
        children = _descendants(demo.pid)
        demo.send_signal(number)
        demo.wait(60)
        # Ctrl-C and SIGTERM are how a demo is meant to end.
        assert demo.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        wait_until_gone(name)

        def left() -> list[str]:
            return [it for pid, it in children.items() if it and _command(pid) == it]

        wait_until(lambda: not left(), lambda: f"ended are {left()}")
    finally:
        demo.kill()
        demo.communicate()


def _runs(pid: int, program: str) -> bool:
    return any(program in command for command in _descendants(pid).values())


def _descendants(pid: int) -> dict[int, str]:
    found: dict[int, str] = {}
    todo = [pid]
    while todo:
        for task in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # it has ended
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
