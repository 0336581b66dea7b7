"""The exporter's real command and the replay server as children, for tests that need processes."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.recorded import RECORDINGS

from cephqos_exporter.ceph.cluster import tied

COMMAND = str(Path(sys.executable).with_name("cephqos-exporter"))
REPLAY = Path(__file__).parent / "replay" / "daemons.py"


@dataclass
class ExporterProcess:
    """A running exporter; its log is kept as it comes."""

    process: "subprocess.Popen[str]"
    address: str
    log: list[str] = field(default_factory=list)

    def get(self, path: str = "/metrics", *, timeout: float = 30, **headers: str) -> str:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"http://{self.address}{path}", headers=named)
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            body: bytes = response.read()
        return body.decode()

    def timed(self) -> tuple[float, str]:
        """How many seconds a scrape took, and its page."""
        started = time.monotonic()
        page = self.get()
        return time.monotonic() - started, page

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait_for(self, text: str, seconds: float = 60) -> str:
        """The next line of the log with this text."""
        os.set_blocking(_stderr(self.process).fileno(), False)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            line = _stderr(self.process).readline()
            if not line:
                time.sleep(0.01)
                continue
            self.log.append(line)
            if text in line:
                return line
        raise AssertionError(f"no {text!r} in the log within {seconds} s:\n{''.join(self.log)}")


def _stderr(process: "subprocess.Popen[str]") -> IO[str]:
    assert process.stderr is not None
    return process.stderr


@contextmanager
def exporter(
    *flags: str, environment: dict[str, str] | None = None, limit: int = 0
) -> Iterator[ExporterProcess]:
    """The real command on a free port of the loopback; ended with the block.

    `limit`: of its file descriptors.
    """
    limited = ["prlimit", f"--nofile={limit}"] if limit else []
    argv = [*limited, COMMAND, "--web.listen-address=127.0.0.1:0", *flags]
    process = subprocess.Popen(
        tied(argv),
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        env=os.environ | (environment or {}),
    )
    running = ExporterProcess(process, "")
    try:
        line = running.wait_for("listening on")
        running.address = line.rsplit("//", 1)[1].strip().rstrip('"')
        yield running
    finally:
        _end(process)


@contextmanager
def replaying(
    directory: Path, recordings: Sequence[str], count: int, *flags: str
) -> Iterator[Path]:
    """Replayed OSDs osd.0 … with recordings such as `reef/load` in turn: their directory."""
    argv = [sys.executable, str(REPLAY), "serve", str(directory)]
    for recording in recordings:
        argv += ["--recording", str(RECORDINGS / recording)]
    process = subprocess.Popen(
        tied([*argv, "--count", str(count), *flags]),
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout is not None
    try:
        assert "daemons in" in process.stdout.readline()
        yield directory
    finally:
        _end(process)
        process.stdout.close()


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stderr is not None:
        process.stderr.close()
