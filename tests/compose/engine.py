"""A Docker engine of a test's own: its programs, data, socket, processes and network."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cephqos_loadgen.lab.releases import Release

CHECKOUT = Path(__file__).parents[2]
STACK = CHECKOUT / "deploy/compose"
# Debian 13, with a Compose that knows `include`.
RELEASE = Release("docker", "Docker engine", "trixie", "sid")
PACKAGES = (
    "docker.io",
    "docker-cli",
    "docker-compose",
    "docker-buildx",
    "iptables",
    "iproute2",
    "ca-certificates",
    "procps",
)
_CLONE_NEWNET = 0x40000000
_SECONDS_TO_END = 20.0


class DockerEngine:
    """A running engine. Commands run in its namespaces and end with it."""

    def __init__(self, folder: Path, pid: int) -> None:
        self.folder = folder
        self.pid = pid
        self._inside = ThreadPoolExecutor(1, initializer=self._enter_network)

    def _enter_network(self) -> None:
        """Only this thread: a network namespace is a thread's own."""
        libc = ctypes.CDLL(None, use_errno=True)
        fd = os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY)
        try:
            if libc.setns(fd, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(fd)

    def argv(self, *command: str, variables: Mapping[str, str] | None = None) -> list[str]:
        given = {"DOCKER_HOST": f"unix://{self.folder}/docker.sock", "HOME": "/tmp"}  # noqa: S108
        given |= variables or {}
        enter = ("nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--root")
        words = [f"{name}={value}" for name, value in given.items()]
        return [*enter, f"--wdns={STACK}", "env", *words, *command]

    def beside(self, *command: str) -> list[str]:
        """A command of this host that has the engine's network, and nothing else of it."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *command]

    def run(
        self,
        *command: str,
        variables: Mapping[str, str] | None = None,
        within: float = 300.0,
        check: bool = True,
        stdin: int = subprocess.DEVNULL,
    ) -> str:
        """What it printed; a failure has what it said."""
        argv = self.argv(*command, variables=variables)
        done = subprocess.run(
            argv, stdin=stdin, capture_output=True, text=True, timeout=within, check=False
        )
        if check and done.returncode:
            said = (done.stderr + done.stdout)[-4000:]
            raise AssertionError(f"{' '.join(command)}: status {done.returncode}\n{said}")
        return done.stdout

    def fetch(self, url: str, within: float = 10.0, user: str = "") -> bytes:
        """GET, from inside the engine's network, as `name:password` if there is one."""
        request = urllib.request.Request(url)  # noqa: S310
        if user:
            request.add_header("Authorization", f"Basic {b64encode(user.encode()).decode()}")

        def get() -> bytes:
            with urllib.request.urlopen(request, timeout=within) as response:  # noqa: S310
                body: bytes = response.read()
                return body

        return self._inside.submit(get).result(within + 5)

    def close(self) -> None:
        self._inside.shutdown()


@contextlib.contextmanager
def engine(tree: Path, folder: Path, *, network: bool = False) -> Iterator[DockerEngine]:
    """An engine with its data in `folder`. With `network` it shares the host's, to build images."""
    folder.mkdir(parents=True, exist_ok=True)
    # What an engine that was killed left behind: its pid 1 is always "still running".
    for name in ("docker.sock", "docker.pid"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "exec", ignore_errors=True)
    log = (folder / "engine.log").open("wb")
    isolate = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    isolate += [] if network else ["--net"]
    script = [str(Path(__file__).with_name("engine.sh")), str(tree), str(folder), str(CHECKOUT)]
    script += ["network"] if network else []
    parent = subprocess.Popen([*isolate, *script], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        running = DockerEngine(folder, _child(parent, folder))
        _wait(running, parent)
        yield running
        running.close()
        # Its data bases are closed, as a builder's must be.
        os.kill(running.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            parent.wait(_SECONDS_TO_END)
    finally:
        # Process 1 of the namespace ends with its parent, and everyone else with process 1.
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        log.close()


def _child(parent: subprocess.Popen[bytes], folder: Path) -> int:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and parent.poll() is None:
        words = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        if words:
            return int(words[0])
        time.sleep(0.05)
    raise AssertionError(f"no engine: {(folder / 'engine.log').read_text()[-2000:]}")


def _wait(running: DockerEngine, parent: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and parent.poll() is None:
        if (running.folder / "docker.sock").exists() and running.run(
            "docker", "version", "--format={{.Server.Version}}", check=False
        ):
            return
        time.sleep(0.2)
    raise AssertionError(f"no engine: {(running.folder / 'engine.log').read_text()[-2000:]}")
