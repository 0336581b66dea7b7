"""The child that does the probe's operations: one at a time, each on request, killable."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cephqos_exporter.ceph.monclient import SAFE_START, ClusterAccess, EndedChildren
from cephqos_exporter.daemon_errors import ExporterError

# Runs in the system's Python: standard library and rados only. Objects have fixed names, so that
# a child that was killed leaves no more behind than its successor overwrites; the end of the input
# makes it remove them, within five seconds or not at all.
CHILD_SOURCE: Final = r"""
import json, os, queue, sys, threading, time

requests = queue.Queue()


def read():
    for line in sys.stdin:
        requests.put(json.loads(line))
    requests.put(None)
    time.sleep(5)
    os._exit(1)


replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def answer(**what):
    replies.write(json.dumps(what) + "\n")
    replies.flush()


where = json.loads(sys.argv[1])
threading.Thread(target=read, daemon=True).start()
try:
    import rados
    settings = {"admin_socket": ""}
    if where["keyring"]:
        settings["keyring"] = where["keyring"]
    cluster = rados.Rados(conffile=where["conf"], name=where["name"], conf=settings)
    cluster.connect(timeout=where["timeout"])
    answer(fsid=cluster.get_fsid())
except Exception as error:
    answer(error=str(error))
    os._exit(1)
pools, written, data = {}, set(), os.urandom(where["size"])
while True:
    request = requests.get()
    if request is None:
        break
    pool, op, name = request
    begin = time.monotonic()
    try:
        if pool not in pools:
            pools[pool] = cluster.open_ioctx(pool)
            pools[pool].set_namespace(where["namespace"])
        begin = time.monotonic()
        if op == "write":
            written.add((pool, name))
            pools[pool].write_full(name, data)
        else:
            pools[pool].read(name, where["size"])
        answer(seconds=time.monotonic() - begin)
    except Exception as error:
        answer(error=type(error).__name__, seconds=time.monotonic() - begin)
for pool, name in written:
    try:
        pools[pool].remove_object(name)
    except Exception:
        pass
os._exit(0)
"""

_CONNECT_MARGIN: Final = 1.0


class ProbeSilent(ExporterError):
    """The child did not answer within the deadline, or has ended."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How an operation went; `error` is the name of what it failed with."""

    seconds: float
    error: str | None


class ProbeChild:
    """One connected child. `ask` is called for one operation at a time.

    `ended`: those before it; it does not start beside one that cannot be killed.
    """

    def __init__(self, process: asyncio.subprocess.Process, ended: EndedChildren) -> None:
        self._process = process
        self._ended = ended
        self.fsid = ""

    @classmethod
    async def start(
        cls,
        connection: ClusterAccess,
        ended: EndedChildren,
        *,
        namespace: str,
        size: int,
        within: float,
    ) -> "ProbeChild":
        """Connect; ProbeSilent says why it could not."""
        where = {
            "conf": connection.conf,
            "name": connection.name,
            "keyring": connection.keyring,
            "namespace": namespace,
            "size": size,
            "timeout": max(1, round(within - _CONNECT_MARGIN)),
        }
        argv = [*connection.python, "-c", SAFE_START + CHILD_SOURCE, json.dumps(where)]
        await ended.over()
        child = cls(await _spawn(argv), ended)
        try:
            hello = await child._line(within)
            if "error" in hello:
                raise ProbeSilent(f"cannot connect: {hello['error']}")
        except BaseException:
            await child.kill()
            raise
        child.fsid = hello["fsid"]
        return child

    async def ask(self, pool: str, op: str, name: str, within: float) -> ProbeResult:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        try:
            self._process.stdin.write(json.dumps([pool, op, name]).encode() + b"\n")
            await self._process.stdin.drain()
        except OSError as exc:
            raise ProbeSilent("the child has ended") from exc
        reply = await self._line(within)
        return ProbeResult(reply["seconds"], reply.get("error"))

    async def _line(self, within: float) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        try:
            async with asyncio.timeout(within):
                line = await self._process.stdout.readline()
        except TimeoutError as exc:
            raise ProbeSilent(f"no answer within {within:g} s") from exc
        except ValueError as exc:
            raise ProbeSilent("the child gave a line without an end") from exc
        if not line:
            raise ProbeSilent("the child has ended")
        try:
            reply: dict[str, Any] = json.loads(line)
        except ValueError as exc:
            raise ProbeSilent(f"the child said {line[:100]!r}") from exc
        return reply

    async def close(self, within: float = 6.0) -> None:
        """Let it remove its objects, then make sure that it is gone, if it can be killed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        await self._ended.end(self._process)


async def _spawn(argv: Sequence[str]) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as exc:
        raise ProbeSilent(f"{argv[0]}: {exc.strerror}") from exc
