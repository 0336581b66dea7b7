"""Commands to monitors, managers and OSDs through librados, in a child process that can be killed.

librados calls can hang for good when the monitors are gone, and the `ceph` command needs half a
second of CPU to start. So one child of the system's Python (which has the rados bindings) keeps a
connection and answers commands; whoever asks sets a deadline, and a child that misses it is killed
and made anew for the next command.
"""

import asyncio
import contextlib
import json
import math
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

# Runs in another Python than ours: standard library and rados only, any Python 3.
CHILD_SOURCE = r"""
import json, os, sys
import rados

conf, name, connect_timeout = sys.argv[1], sys.argv[2], int(sys.argv[3])
replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # librados may print: keep that out of the replies


def answer(**reply):
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


cluster = rados.Rados(conffile=conf, name=name)
try:
    cluster.connect(timeout=connect_timeout)
except Exception as error:
    answer(ready=False, error=str(error))
    sys.exit(1)
answer(ready=True, fsid=cluster.get_fsid())
for line in sys.stdin:
    request = json.loads(line)
    command = json.dumps(request["command"])
    data = request["input"].encode()
    kind, _, target = request["target"].partition(".")
    try:
        if kind == "mon":
            code, out, err = cluster.mon_command(command, data)
        elif kind == "mgr":
            code, out, err = cluster.mgr_command(command, data)
        elif kind == "osd":
            code, out, err = cluster.osd_command(int(target), command, data)
        else:
            code, out, err = cluster.pg_command(target, command, data)
    except Exception as error:
        code, out, err = getattr(error, "errno", None) or 5, b"", str(error)
    if isinstance(err, bytes):
        err = err.decode(errors="replace")
    answer(code=code, out=out.decode(errors="replace"), err=err)
"""

# A `pg dump` of a large cluster is one line of tens of megabytes.
_LINE_LIMIT = 256 << 20


class CommandFailed(Exception):
    """The cluster answered, and the answer is no: a code and its text."""

    def __init__(self, command: str, code: int, text: str) -> None:
        super().__init__(f"{command}: {text.strip() or os.strerror(abs(code))} ({code})")
        self.code = code


class ClusterUnreachable(Exception):
    """No answer within the deadline, or the child could not connect at all."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster: the child's Python (with what must stand before it) and the conf."""

    conf: str
    python: tuple[str, ...] = ("/usr/bin/python3",)
    name: str = "client.admin"


class MonClient:
    """One cluster, one child, one command at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._child: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def command(
        self,
        prefix: str,
        *,
        target: str = "mon",
        within: float = 10.0,
        data: str = "",
        **arguments: Any,
    ) -> Any:
        """The JSON reply of a command (its text where it is no JSON).

        `target` is mon, mgr, osd.N or pg.ID. Raises CommandFailed or ClusterUnreachable.
        """
        request = {
            "target": target,
            "command": {"prefix": prefix, "format": "json", **arguments},
            "input": data,
        }
        async with self._lock:
            reply = await self._exchange(prefix, request, within)
        if reply["code"] != 0:
            raise CommandFailed(prefix, reply["code"], reply["err"])
        # Some commands say what they did as JSON, some as text, some on the error channel.
        text = reply["out"] or reply["err"]
        try:
            return json.loads(text)
        except ValueError:
            return text

    async def _exchange(self, prefix: str, request: dict[str, Any], within: float) -> Any:
        try:
            async with asyncio.timeout(within):
                child = await self._start(within)
                assert child.stdin and child.stdout  # noqa: S101 - they are pipes, see _start
                child.stdin.write(json.dumps(request).encode() + b"\n")
                await child.stdin.drain()
                line = await child.stdout.readline()
        except TimeoutError:
            await self.close()
            raise ClusterUnreachable(f"{prefix}: no answer within {within:g} s") from None
        except (OSError, ValueError) as error:
            await self.close()
            raise ClusterUnreachable(f"{prefix}: {error}") from error
        except BaseException:
            # Cancelled in the middle of an exchange: the next reply would be this one's.
            await self.close()
            raise
        if not line:
            await self.close()
            raise ClusterUnreachable(f"{prefix}: the client process ended")
        return json.loads(line)

    async def _start(self, within: float) -> asyncio.subprocess.Process:
        if self._child is not None and self._child.returncode is None:
            return self._child
        where = self._connection
        argv: Sequence[str] = [
            *where.python,
            "-c",
            CHILD_SOURCE,
            where.conf,
            where.name,
            str(math.ceil(within)),
        ]
        self._child = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            limit=_LINE_LIMIT,
        )
        assert self._child.stdout  # noqa: S101 - it is a pipe
        hello = json.loads(await self._child.stdout.readline() or '{"ready": false}')
        if not hello["ready"]:
            reason = hello.get("error", "it has no rados module, or ended at once")
            raise OSError(f"cannot connect with {where.conf} as {where.name}: {reason}")
        return self._child

    async def close(self) -> None:
        """End the child, whatever it is doing."""
        child, self._child = self._child, None
        if child is None or child.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        if child.stdin:
            child.stdin.close()
        await child.wait()
