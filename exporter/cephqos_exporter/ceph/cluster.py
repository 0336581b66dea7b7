"""Asks a cluster's monitors and manager, through a child process that can be killed.

It uses librados if a Python has its bindings, else the `ceph` command, which takes half a second of
CPU per query. Only the few read-only commands below are ever sent.
"""

import asyncio
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_exporter.ceph.monclient import (
    BindingsMissing,
    ClusterAccess,
    ClusterSilent,
    ClusterUnreachable,
    CommandFailed,
    EndedChildren,
    MonClient,
    ReplyTooLarge,
    parse_reply,
)
from cephqos_exporter.daemon_errors import CommandRefused

log = logging.getLogger(__name__)

READ_ONLY_COMMANDS: Final = frozenset(
    {"config get", "osd dump", "osd tree", "pg dump", "pg ls", "pg ls-by-primary", "status"}
)

# All placement groups in brief are 150 bytes each: this holds 400,000.
MAX_REPLY_BYTES: Final = 64 << 20

_NOT_FOUND: Final = 127

# A program that asks the kernel to kill it when this process ends, even if that is killed
# (PR_SET_PDEATHSIG), and then becomes the command.
_TIED: Final = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError:
    sys.exit({_NOT_FOUND})
"""


def tied(argv: Sequence[str]) -> list[str]:
    """The command line of a process that ends when the thread that started it does."""
    return [sys.executable, "-I", "-c", _TIED, *argv]


class CommandMissing(ClusterUnreachable):
    """The ceph command does not exist at the path given."""

    reason = "no_command"


@dataclass(frozen=True, slots=True)
class ClusterQuery:
    """A command: its arguments in the order in which the `ceph` command takes them."""

    prefix: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    target: str = "mgr"


STATUS: Final = ClusterQuery("status", target="mon")
OSD_DUMP: Final = ClusterQuery("osd dump", target="mon")
OSD_TREE: Final = ClusterQuery("osd tree", target="mon")
OSD_USE: Final = ClusterQuery("pg dump", {"dumpcontents": ["osds"]})
POOL_TOTALS: Final = ClusterQuery("pg dump", {"dumpcontents": ["pools"]})
PGS_IN_BRIEF: Final = ClusterQuery("pg dump", {"dumpcontents": ["pgs_brief"]})
SCRUBBING_PGS: Final = ClusterQuery("pg ls", {"states": ["scrubbing"]})


MOVING_PGS: Final = ClusterQuery(
    "pg ls", {"states": ["recovering", "recovery_wait", "backfilling", "backfill_wait"]}
)


TRIMMING_PGS: Final = ClusterQuery("pg ls", {"states": ["snaptrim", "snaptrim_wait"]})


def pgs_of_primary(osd: int) -> ClusterQuery:
    """The placement groups that an OSD leads, in full: about 2.5 kB each."""
    return ClusterQuery("pg ls-by-primary", {"osd": osd})


def option(who: str, key: str) -> ClusterQuery:
    """An option as the monitors have it, who do not know what a local file overrides."""
    return ClusterQuery("config get", {"who": who, "key": key}, target="mon")


class CephCommand:
    """The `ceph` command, started for each question: one child, killed at the deadline."""

    def __init__(self, connection: ClusterAccess, argv: Sequence[str], *, max_bytes: int) -> None:
        self._connection = connection
        self._argv = tuple(argv)
        self._max_bytes = max_bytes
        self._ended = EndedChildren()
        self.starts = 0
        self.reply_bytes = 0

    async def command(
        self, prefix: str, *, target: str = "mon", within: float = 10.0, **arguments: Any
    ) -> Any:
        """As MonClient.command, without `target`, which the ceph command chooses by itself."""
        del target
        words = [*prefix.split(), *_words(arguments)]
        code, out, err = await self._run(prefix, self._line(words, within), within)
        if code == _NOT_FOUND:
            raise CommandMissing(
                f"{self._connection.python[0]} has no rados module, and there is no command"
                f" {self._argv[0]!r}: install python3-rados (or ceph-common), or say where it is"
                " with --cluster.python (or --cluster.ceph)"
            )
        if code:
            text = err.decode(errors="replace")
            if "[errno" in text.lower() or "error connecting" in text.lower():
                raise ClusterUnreachable(f"{prefix}: {' '.join(text.split())[-300:]}")
            raise CommandFailed(prefix, -code, text)
        self.reply_bytes = len(out)
        return parse_reply(out)

    def _line(self, words: Sequence[str], within: float) -> list[str]:
        where = self._connection
        keyring = ("--keyring", where.keyring) if where.keyring else ()
        return [
            *tied(self._argv),
            *("--conf", where.conf, "--name", where.name, *keyring),
            *("--connect-timeout", str(max(1, int(within) - 1)), "--format", "json"),
            *words,
        ]

    async def _run(
        self, prefix: str, argv: Sequence[str], within: float
    ) -> tuple[int, bytes, bytes]:
        try:
            async with asyncio.timeout(within):
                await self._ended.over()
        except TimeoutError:
            raise ClusterSilent(f"{prefix}: the last command could not be ended") from None
        self.starts += 1
        child = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert child.stdout and child.stderr  # noqa: S101 - they are pipes
        try:
            async with asyncio.timeout(within):
                out, err = await asyncio.gather(
                    _read_at_most(child.stdout, self._max_bytes),
                    _read_at_most(child.stderr, self._max_bytes),
                )
                return await child.wait(), out, err
        except TimeoutError:
            raise ClusterSilent(f"{prefix}: no answer within {within:g} s") from None
        finally:
            await self._ended.end(child)

    async def close(self) -> None:
        """Wait for the last child, should one be left that could not be killed at once."""
        await self._ended.over()


def _words(arguments: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for value in arguments.values():
        words += [str(item) for item in value] if isinstance(value, list) else [str(value)]
    return words


async def _read_at_most(stream: asyncio.StreamReader, most: int) -> bytes:
    parts, size = [], 0
    while part := await stream.read(1 << 16):
        size += len(part)
        if size > most:
            raise ReplyTooLarge(f"more than {most} bytes")
        parts.append(part)
    return b"".join(parts)


@dataclass(slots=True)
class Cost:
    """What one kind of command has cost since the start."""

    commands: int = 0
    seconds: float = 0.0
    bytes: int = 0


class ClusterReader:
    """Puts queries to one cluster, one at a time, each within `timeout` seconds."""

    def __init__(
        self, connection: ClusterAccess, *, ceph: Sequence[str] = ("ceph",), timeout: float = 10.0
    ) -> None:
        self._timeout = timeout
        self._rados = MonClient(connection, max_bytes=MAX_REPLY_BYTES)
        self._ceph = CephCommand(connection, ceph, max_bytes=MAX_REPLY_BYTES)
        self._transport: MonClient | CephCommand = self._rados
        self.costs: dict[str, Cost] = {}

    @property
    def starts(self) -> int:
        """Children started so far."""
        return self._rados.starts + self._ceph.starts

    async def ask(self, query: ClusterQuery) -> Any:
        """The parsed reply; CommandFailed, or ClusterUnreachable with its reason."""
        if query.prefix not in READ_ONLY_COMMANDS:
            raise CommandRefused(f"{query.prefix!r} is not on the list of read-only commands")
        try:
            return await self._try(query)
        except BindingsMissing as error:
            log.debug("%s", error)
            self._transport = self._ceph
            reply = await self._try(query)
        log.warning("using the ceph command, which costs more than the rados module would")
        return reply

    async def _try(self, query: ClusterQuery) -> Any:
        try:
            return await self._ask(query)
        except CommandMissing:
            self._transport = self._rados  # by the next query, either may be installed
            raise

    async def _ask(self, query: ClusterQuery) -> Any:
        loop = asyncio.get_running_loop()
        started = loop.time()
        transport = self._transport
        transport.reply_bytes = 0
        try:
            return await transport.command(
                query.prefix, target=query.target, within=self._timeout, **query.arguments
            )
        finally:
            cost = self.costs.setdefault(query.prefix, Cost())
            cost.commands += 1
            cost.seconds += loop.time() - started
            cost.bytes += transport.reply_bytes

    async def close(self) -> None:
        """End the child, whatever it is doing."""
        await self._transport.close()
