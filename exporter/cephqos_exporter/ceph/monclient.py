"""Commands to monitors, managers and OSDs through librados, in a child process that can be killed.

librados calls can hang for good when the monitors are gone, and the `ceph` command needs half a
second of CPU to start. So one child of the system's Python (which has the rados bindings) keeps a
connection and answers commands. Each command has a deadline. A child that misses it is killed, and
started again for the next command.

The child ends with its parent, also if the parent is killed: its standard input closes, and a
thread of the child watches for that even while librados hangs. This works behind any prefix of the
command line (nsenter, sudo, docker exec). A signal at the parent's death would not.
"""

import asyncio
import contextlib
import json
import math
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import orjson

from cephqos_exporter.daemon_errors import ExporterError

# The first statement of a child. It must import nothing from the working directory, which may
# belong to another user.
SAFE_START: Final = "import sys\nsys.path[:] = [p for p in sys.path if p]\n"

# The beginning of every child. It runs in another Python than ours: standard library and rados
# only, any Python from 3.6 on. Its first answer is empty and says that it is connected.
CHILD_START: Final = r"""
import json, os, queue, sys, threading, time

requests = queue.Queue()


def read():
    for line in sys.stdin:
        requests.put(json.loads(line))
    end()


def end():
    os._exit(0)


def answer(out, **header):
    header["length"] = len(out)
    replies.write(json.dumps(header).encode() + b"\n" + out)
    replies.flush()


replies = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # librados may print: keep that out of the replies
where = json.loads(sys.argv[1])
threading.Thread(target=read, daemon=True).start()
try:
    import rados
except ImportError as error:
    answer(b"", error=str(error), missing=True)
    os._exit(1)
# No admin socket: a child that is killed would leave its file behind, each time another.
settings = {"admin_socket": ""}
if where["keyring"]:
    settings["keyring"] = where["keyring"]
try:
    cluster = rados.Rados(conffile=where["conf"], name=where["name"], conf=settings)
    cluster.connect(timeout=where["timeout"])
except Exception as error:
    answer(b"", error=str(error))
    os._exit(1)
answer(b"")
"""

# What follows in a child that sends commands.
CHILD_SOURCE: Final = r"""
while True:
    request = requests.get()
    command, data = json.dumps(request["command"]), request["input"].encode()
    kind, _, target = request["target"].partition(".")
    try:
        # One daemon by name, as `ceph tell` does, or whichever of them answers for the cluster.
        named = {"target": target} if target else {}
        if kind == "mon":
            code, out, err = cluster.mon_command(command, data, **named)
        elif kind == "mgr":
            code, out, err = cluster.mgr_command(command, data, **named)
        elif kind == "osd":
            code, out, err = cluster.osd_command(int(target), command, data)
        elif kind == "pool":
            asked = request["command"]
            with rados.ReadOpCtx() as read, cluster.open_ioctx2(int(target)) as pool:
                found, _ = pool.get_omap_vals_by_keys(read, tuple(asked["keys"]))
                pool.operate_read_op(read, asked["object"])
                values = {key: value.hex() for key, value in found}
            code, out, err = 0, json.dumps(values).encode(), ""
        else:
            code, out, err = cluster.pg_command(target, command, data)
    except Exception as error:
        code, out, err = getattr(error, "errno", None) or 5, b"", str(error)
    if isinstance(err, bytes):
        err = err.decode(errors="replace")
    answer(out, code=code, err=err)
"""

# A `pg dump` of a large cluster takes tens of megabytes.
MAX_REPLY_BYTES: Final = 256 << 20
# librados must give up this much before our deadline, so that its own error is reported.
_CONNECT_MARGIN_SECONDS: Final = 1.0
# Time for a killed child to end. It takes milliseconds, unless it cannot be killed.
_END_SECONDS: Final = 1.0


class CommandFailed(ExporterError):
    """The cluster answered with an error: a code and a text."""

    def __init__(self, command: str, code: int, text: str) -> None:
        super().__init__(f"{command}: {text.strip() or os.strerror(abs(code))} ({code})")
        self.code = code


class ClusterUnreachable(ExporterError):
    """No answer; `reason` is a label value of cephqos_cluster_up."""

    reason: ClassVar[str] = "unreachable"


class ClusterSilent(ClusterUnreachable):
    """No answer within the deadline."""

    reason = "timeout"


class ReplyTooLarge(ClusterUnreachable):
    """The answer is larger than the caller is willing to hold."""

    reason = "too_large"


class BindingsMissing(ClusterUnreachable):
    """The child's Python has no rados module, or there is no such Python."""

    reason = "no_bindings"


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach a cluster. `python`: the child's Python, behind a prefix such as docker exec."""

    conf: str
    python: tuple[str, ...] = ("/usr/bin/python3",)
    name: str = "client.admin"
    keyring: str = ""  # empty: where the conf says


class MonClient:
    """One cluster, one child, one command at a time.

    `source`: the program of another kind of child, to run once it is connected. It finds
    `settings` in its variable `where`.
    """

    def __init__(
        self,
        connection: ClusterAccess,
        *,
        max_bytes: int = MAX_REPLY_BYTES,
        source: str = CHILD_SOURCE,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._connection = connection
        self._max_bytes = max_bytes
        self._source = source
        self._settings = settings or {}
        self._child: asyncio.subprocess.Process | None = None
        self._ended = EndedChildren()
        self._lock = asyncio.Lock()
        self.starts = 0  # children made so far
        self.reply_bytes = 0  # of the last reply

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        """The child's pid while there is one, so that callers can measure what it costs."""
        return self._child.pid if self._child and self._child.returncode is None else None

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

        `target` is mon, mgr, mon.ID, mgr.ID, osd.N or pg.ID. The omap values of an object, as hex,
        are asked of its pool: pool.ID, with `object` and `keys`. Raises CommandFailed or
        ClusterUnreachable.
        """
        request = {
            "target": target,
            "command": {"prefix": prefix, "format": "json", **arguments},
            "input": data,
        }
        header, out = await self.ask(prefix, request, within)
        if header["code"] != 0:
            raise CommandFailed(prefix, header["code"], header["err"])
        # Some commands say what they did as JSON, some as text, some on the error channel.
        return parse_reply(out or header["err"].encode())

    async def ask(self, what: str, request: Any, within: float) -> tuple[dict[str, Any], bytes]:
        """The child's answer to a request: its header, and the bytes behind it. `what` is for
        errors."""
        deadline = asyncio.get_running_loop().time() + within
        try:
            async with asyncio.timeout_at(deadline):
                await self._lock.acquire()
        except TimeoutError:
            raise ClusterSilent(f"{what}: busy with another command for {within:g} s") from None
        try:
            return await self._exchange(what, request, deadline)
        finally:
            self._lock.release()

    async def _exchange(
        self, prefix: str, request: Any, deadline: float
    ) -> tuple[dict[str, Any], bytes]:
        try:
            async with asyncio.timeout_at(deadline):
                child = await self._start(deadline)
                assert child.stdin  # noqa: S101 - it is a pipe, see _start
                child.stdin.write(json.dumps(request).encode() + b"\n")
                await child.stdin.drain()
                return await self._read(child)
        except TimeoutError:
            await self._drop()
            raise ClusterSilent(f"{prefix}: no answer before the deadline") from None
        except (OSError, ValueError, EOFError) as error:
            await self._drop()
            raise ClusterUnreachable(f"{prefix}: {error or 'the child ended'}") from error
        except BaseException:
            # Cancelled in the middle of an exchange: the next command would get this reply.
            await self._drop()
            raise

    async def _read(self, child: asyncio.subprocess.Process) -> tuple[dict[str, Any], bytes]:
        assert child.stdout  # noqa: S101 - it is a pipe, see _start
        line = await child.stdout.readline()
        if not line:
            raise EOFError("the client process ended")
        header: dict[str, Any] = json.loads(line)
        length = header["length"]
        if length > self._max_bytes:
            raise ReplyTooLarge(f"a reply of {length} bytes; the cap is {self._max_bytes}")
        self.reply_bytes = length
        return header, await child.stdout.readexactly(length)

    async def _start(self, deadline: float) -> asyncio.subprocess.Process:
        if self._child is not None and self._child.returncode is None:
            return self._child
        await self._ended.over()
        where = self._connection
        left = deadline - asyncio.get_running_loop().time()
        address = {
            "conf": where.conf,
            "name": where.name,
            "keyring": where.keyring,
            "timeout": max(1, math.floor(left - _CONNECT_MARGIN_SECONDS)),
            **self._settings,
        }
        program = SAFE_START + CHILD_START + self._source
        argv: Sequence[str] = [*where.python, "-c", program, json.dumps(address)]
        try:
            self._child = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                limit=1 << 20,
            )
        except OSError as error:
            raise BindingsMissing(f"cannot start {where.python[0]}: {error.strerror}") from error
        self.starts += 1
        hello, _ = await self._read(self._child)
        if hello.get("missing"):
            raise BindingsMissing(f"{' '.join(where.python)} has no rados module")
        if "error" in hello:
            raise OSError(f"cannot connect with {where.conf} as {where.name}: {hello['error']}")
        return self._child

    async def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await self._ended.end(child)

    async def close(self, within: float = 0.0) -> None:
        """End the child. `within`: seconds that it has to end by itself before it is killed."""
        if self._child is not None and self._child.stdin is not None and within:
            self._child.stdin.close()
            await asyncio.wait({asyncio.create_task(self._child.wait())}, timeout=within)
        await self._drop()
        await self._ended.over()


class EndedChildren:
    """Children that were killed and may not end: they are another user's (sudo), or hang in the
    kernel. No new child is started before the last one has ended.
    """

    def __init__(self) -> None:
        self._last: asyncio.Task[None] | None = None

    async def end(self, child: asyncio.subprocess.Process) -> None:
        """Kill the child, and wait for its end for _END_SECONDS at most."""
        self._last = asyncio.create_task(end_group(child), name="end of a child")
        await asyncio.wait({self._last}, timeout=_END_SECONDS)

    async def over(self) -> None:
        """Wait until the last child has ended."""
        if self._last is not None:
            await asyncio.shield(self._last)


async def end_group(child: asyncio.subprocess.Process) -> None:
    """Kill a child that leads its own session, with all that it started, and reap it.

    Behind sudo it is another user's and cannot be killed: there the end of its input ends it.
    """
    if child.stdin:
        child.stdin.close()
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    await child.wait()


def parse_reply(out: bytes) -> Any:
    """A command's output as JSON if it is JSON, else as text."""
    for parse in (orjson.loads, json.loads):  # Ceph writes NaN, which only the second takes
        with contextlib.suppress(ValueError):
            return parse(out)
    text = out.decode(errors="replace")  # names of pools may be any bytes
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return text
