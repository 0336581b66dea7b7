"""A real terminal for tests: tmux, its keys and its screen."""

import asyncio
import contextlib
import re
import secrets
import shutil
import subprocess
import time

import pytest

PROMPT = "^[#$]$"


class Terminal:
    """A tmux of our own with one command in it."""

    def __init__(self, columns: int, rows: int) -> None:
        self._socket = f"cephqos-{secrets.token_hex(4)}"
        self._size = ["-x", str(columns), "-y", str(rows)]

    def tmux(self, *arguments: str) -> str:
        argv = ["tmux", "-L", self._socket, "-f", "/dev/null", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def __enter__(self) -> "Terminal":
        if shutil.which("tmux") is None:
            pytest.skip("no tmux: `deploy/bootstrap.sh system tmux` installs it")
        self.tmux("new-session", "-d", *self._size, "sh")
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(subprocess.SubprocessError):
            self.tmux("kill-server")

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    async def shows(self, pattern: str, within: float = 90) -> str:
        """The screen, as soon as it has the pattern."""
        deadline = time.monotonic() + within
        while True:
            screen = await asyncio.to_thread(self.screen)
            if re.search(pattern, screen, re.MULTILINE):
                return screen
            assert time.monotonic() < deadline, f"no {pattern!r} within {within:g} s on\n{screen}"
            await asyncio.sleep(0.3)
