"""Which host, boot and process this is: what is kept for later says so, and is compared."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from cephqos_exporter.procfs import parse_stat, read_once

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def name() -> str:
    return socket.gethostname()


def boot() -> str:
    """Another one after each start of the kernel."""
    return BOOT_ID.read_text().strip()


def started(pid: int) -> int:
    """When a process started, in ticks since the boot: another process may get its pid later."""
    return parse_stat(read_once(f"/proc/{pid}/stat")).start


@dataclass(frozen=True, slots=True)
class ThisProcess:
    """A process of some host, which can be recognised when it is looked for later."""

    boot: str
    pid_namespace: str
    pid: int
    started: int

    @classmethod
    def now(cls) -> "ThisProcess":
        pid = os.getpid()
        return cls(boot(), _pid_namespace(), pid, started(pid))

    def is_gone(self) -> bool:
        """Whether it has surely ended: it was of this boot and these pids, and is not there."""
        if (self.boot, self.pid_namespace) != (boot(), _pid_namespace()):
            return False
        try:
            return started(self.pid) != self.started
        except OSError:
            return True


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())
