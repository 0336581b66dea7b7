"""The cluster a run works on: a lab, or an existing one through its conf file and keyring."""

import asyncio
import contextlib
import math
import stat
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

from cephqos_base.errors import UsageError
from cephqos_exporter.ceph.discovery import DEFAULT_PATTERNS, find_sockets, identify
from cephqos_exporter.ceph.monclient import (
    ClusterAccess,
    ClusterUnreachable,
    CommandFailed,
    MonClient,
)
from cephqos_exporter.daemon import Daemon, Host
from cephqos_exporter.daemon_errors import DaemonError
from cephqos_loadgen.ceph_option import conf_line
from cephqos_loadgen.cluster import work_folder
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.plan.errors import ClusterAway, ClusterUnfit, RunError, SettingRefused
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.processes import ENDS_WITH_PARENT

PATIENCE = 120.0  # seconds for which a command is tried again while the monitors are away
_COMMAND_SECONDS = 20.0  # deadline of a command that is tried again
_ONCE_SECONDS = 5.0  # deadline of a command that is tried once
_NEW_MAP_SECONDS = 0.3  # until OSDs have the newest map
_STATS_SECONDS = 10.0  # until the manager has the newest reports of all OSDs
_SOCKET_SECONDS = 5.0  # for all admin sockets of this host
_UP_DOWN_SECONDS = 60.0  # until an OSD is up or down
_MARKED_DOWN_SECONDS = 600.0  # an OSD that is marked down more often in that time ends itself
_MARKDOWNS = "osd_max_markdown_count"
_SO_OFTEN = 100  # where it may be marked down as often as this, no run comes near
_DAEMONS = ("osd", "mon", "mgr")
# What to do where a run cannot restart OSDs itself.
_BY_HAND = (
    "An option of this run takes effect only when OSDs start. Set it and restart the OSDs before"
    " the run, one host at a time"
)
_BY_SYSTEMD = f"{_BY_HAND}: `systemctl restart ceph-osd.target` on each host"
_BY_ROOK = f"{_BY_HAND}: `kubectl -n rook-ceph rollout restart deployment rook-ceph-osd-N` for each"


class LabAccess:
    """A lab of this machine."""

    at_once = True  # its OSDs have no data that anyone needs: they are restarted together

    def __init__(self, lab: RunningLab, run: str) -> None:
        self.lab = lab
        work = lab.paths.work / run
        work_folder.make(work)
        self.conf = lab.paths.conf
        self.place = ProgramPaths(conf=str(work / "ceph.conf"), work=str(work))
        self.sockets: Path | None = lab.paths.sockets
        # Where the files of its disks lie, and what it was started as.
        self.disks: Path | None = lab.paths.dir
        self.spec: LabSpec | None = lab.spec
        # Its OSDs' block devices: what lies on btrfs cannot say so itself.
        self.devices = frozenset(Path(device).name for device in lab.state.devices.values())

    def argv(self, argv: Sequence[str]) -> list[str]:
        return self.lab.enter_argv(argv)

    def client(self) -> MonClient:
        return self.lab.client()

    async def pids(self, fsid: str) -> Mapping[str, int]:
        return await self.lab.pids()

    async def check_restart(self, cluster: "ClusterView", osds: Sequence[int]) -> None:
        """A lab's OSDs can be restarted."""

    async def restart(self, cluster: "ClusterConnection", osds: Sequence[int]) -> None:
        for osd in osds:
            await self.lab.faults.restart(osd)

    @property
    def lab_name(self) -> str | None:
        return self.lab.paths.name


class ConfAccess:
    """An existing cluster. Its daemons on this host are found by their admin sockets: in
    `sockets`, or where packages, cephadm and Rook have them."""

    at_once = False  # its OSDs are restarted one failure domain after the other

    def __init__(
        self,
        conf: Path,
        keyring: Path | None,
        user: str,
        work: Path,
        python: str,
        sockets: Path | None = None,
    ) -> None:
        self.conf = conf
        self._patterns = (str(sockets),) if sockets else DEFAULT_PATTERNS
        self._python = python
        work_folder.make(work)
        key = str(keyring) if keyring else None
        self.place = ProgramPaths(
            conf=str(work / "ceph.conf"), user=user, keyring=key, work=str(work)
        )
        self.sockets: Path | None = None
        self.devices: frozenset[str] = frozenset()
        self.disks: Path | None = None
        self.spec: LabSpec | None = None

    def argv(self, argv: Sequence[str]) -> list[str]:
        return [*ENDS_WITH_PARENT, *argv]

    def client(self) -> MonClient:
        name = f"client.{self.place.user}"
        return MonClient(ClusterAccess(conf=self.place.conf, name=name, python=(self._python,)))

    async def pids(self, fsid: str) -> Mapping[str, int]:
        """Pids by daemon. Each is asked for its cluster: two clusters have the same names."""
        sockets = await asyncio.to_thread(find_sockets, self._patterns, _DAEMONS)
        deadline = asyncio.get_running_loop().time() + _SOCKET_SECONDS
        asked = (identify(socket, Host(), deadline=deadline) for socket in sockets)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, DaemonError):
                raise answer
        daemons = [daemon for daemon in answers if isinstance(daemon, Daemon)]
        return {d.name: d.pid for d in daemons if d.cluster == fsid and d.pid is not None}

    async def check_restart(self, cluster: "ClusterView", osds: Sequence[int]) -> None:
        """SettingRefused if these OSDs cannot be restarted from here: only cephadm can do that."""
        try:
            status = await cluster.command("orch status", target="mgr")
        except CommandFailed as error:
            raise SettingRefused(
                f"{_BY_SYSTEMD}. This cluster has no orchestrator that would do it ({error})"
            ) from error
        status = status if isinstance(status, dict) else {}
        backend = str(status.get("backend", ""))
        if backend == "rook":
            raise SettingRefused(
                f"{_BY_HAND}: {_BY_ROOK}. Rook does not restart OSDs for `ceph orch`"
            )
        if not status.get("available") or backend != "cephadm":
            raise SettingRefused(
                f"{_BY_SYSTEMD}. This cluster has no orchestrator that would do it"
            )
        if status.get("paused"):
            raise SettingRefused(
                "OSDs must restart for an option of this run, and the orchestrator is paused:"
                " `ceph orch resume`"
            )
        await self._check_managed(cluster, osds)

    async def _check_managed(self, cluster: "ClusterView", osds: Sequence[int]) -> None:
        """SettingRefused for OSDs that cephadm does not manage, or of a host that is away."""
        daemons = await cluster.command("orch ps", target="mgr", daemon_type="osd")
        host_of = {str(daemon["daemon_id"]): daemon.get("hostname") for daemon in daemons}
        foreign = [f"osd.{osd}" for osd in osds if str(osd) not in host_of]
        if foreign:
            raise SettingRefused(f"{_BY_SYSTEMD}. cephadm does not manage {', '.join(foreign)}")
        hosts = await cluster.command("orch host ls", target="mgr")
        away = {host["hostname"] for host in hosts if host.get("status", "").strip()}
        stuck = sorted({str(host_of[str(osd)]) for osd in osds} & away)
        if stuck:
            raise SettingRefused(
                "OSDs must restart for an option of this run, and cephadm does not reach their host"
                f" {', '.join(stuck)} (`ceph orch host ls`)"
            )

    async def restart(self, cluster: "ClusterConnection", osds: Sequence[int]) -> None:
        for osd in osds:
            try:
                await cluster.command("orch daemon", action="restart", name=f"osd.{osd}")
            except CommandFailed as error:
                raise RunError(f"osd.{osd} was not restarted: {error}") from error

    @property
    def lab_name(self) -> str | None:
        """The lab that it is; this is none."""
        return None


Access = LabAccess | ConfAccess


def write_client_conf(access: Access, options: Mapping[str, str]) -> str:
    """Write the conf for a run's clients: the cluster's, and the scenario's client options."""
    try:
        text = access.conf.read_text()
        rights = stat.S_IMODE(access.conf.stat().st_mode)
    except OSError as error:
        raise UsageError(f"cannot read {access.conf}: {error}") from None
    lines = [text.rstrip(), "", "[client]"]
    lines += [conf_line(name, value) for name, value in options.items()]
    if access.place.keyring:
        lines.append(conf_line("keyring", access.place.keyring))
    text = "\n".join(lines) + "\n"
    copy = Path(access.place.conf)
    copy.touch(rights)  # there may be a key in it
    copy.write_text(text)
    return text


# Commands that change nothing that lasts. The last line has work that ends by itself.
Query = Literal[
    "config diff", "config dump", "config get", "config help", "config show",
    "mgr dump", "mgr metadata", "orch host ls", "orch ps", "orch status",
    "osd crush dump", "osd df", "osd dump", "osd last-stat-seq", "osd ls", "osd metadata",
    "osd ok-to-stop", "osd tree", "quorum_status",
    "pg dump", "pg ls-by-osd", "pg ls-by-pool", "pg stat",
    "bench", "osd pool deep-scrub", "osd pool scrub", "pg deep-scrub", "pg scrub",
]  # fmt: skip
_QUERIES: Final = frozenset(get_args(Query))


class ClusterView:
    """Questions to the cluster, patient while its monitors are away. It can change nothing."""

    def __init__(self, access: Access, client: MonClient, fsid: str = "") -> None:
        self.access = access
        self._client = client
        self.fsid = fsid

    async def command(self, prefix: Query, *, patience: float = PATIENCE, **arguments: Any) -> Any:
        """The reply. CommandFailed if the cluster refuses; ClusterAway after `patience` seconds."""
        if prefix not in _QUERIES:
            raise TypeError(f"{prefix} may change the cluster: a Change says how it is undone")
        return await self._send(prefix, patience, arguments)

    async def _send(self, prefix: str, patience: float, arguments: dict[str, Any]) -> Any:
        deadline = time.monotonic() + patience
        while True:
            try:
                return await self._client.command(
                    prefix, **{"within": _COMMAND_SECONDS, **arguments}
                )
            except ClusterUnreachable as error:
                if time.monotonic() > deadline:
                    away = f"the cluster did not answer for {patience:g} s: {error}"
                    raise ClusterAway(away) from error
                await asyncio.sleep(1.0)

    async def pids(self) -> Mapping[str, int]:
        """The cluster's daemons that run on this host."""
        return await self.access.pids(self.fsid)

    async def osds(self) -> list[int]:
        """All OSDs of the map."""
        osds: list[int] = await self.command("osd ls")
        return osds

    async def find_osd(self, which: str) -> int:
        """The OSD that a scenario means: an id, or `last` for the highest."""
        known = await self.osds()
        osd = max(known) if which == "last" else int(which)
        if osd not in known:
            raise RunError(f"osd.{osd} is not in the cluster, which has {known}")
        return osd

    async def up_osds(self) -> list[int]:
        dump = await self.command("osd dump")
        return [osd["osd"] for osd in dump["osds"] if osd["up"]]

    async def states(self, pools: Sequence[str] = ()) -> dict[str, int]:
        """PGs by state, of these pools or of all."""
        states: dict[str, int] = {}
        for pool in pools:
            reply = await self.command("pg ls-by-pool", target="mgr", poolstr=pool)
            # Of a pool that was just made the manager may not know any PG yet.
            for state in [pg["state"] for pg in reply["pg_stats"]] or ["unknown"]:
                states[state] = states.get(state, 0) + 1
        if not pools:
            status = await self.command("pg stat")
            entries = status.get("pg_summary", status)["num_pg_by_state"]
            states = {entry["name"]: entry["num"] for entry in entries}
        return states

    async def wait_for_pgs(self, *, clean: bool, within: float, pools: Sequence[str] = ()) -> None:
        """Wait until every PG (of these pools) is active, and clean too; else RunError.

        What the manager knows of PGs is up to five seconds old: right after an OSD has gone it may
        still say "clean". So OSDs get a moment to take the newest map, and are asked to report.
        """
        deadline = time.monotonic() + within
        await asyncio.sleep(_NEW_MAP_SECONDS)
        while True:
            await self.fresh_stats()
            states = await self.states(pools)
            if all(is_settled(state, clean=clean) for state in states):
                return
            if time.monotonic() > deadline:
                shown = ", ".join(f"{count} {state}" for state, count in states.items())
                raise RunError(f"PGs did not settle within {within:g} s: {shown}")
            await asyncio.sleep(0.5)

    async def fresh_stats(self) -> None:
        """Wait until the manager has what every OSD knows now; an OSD that is stuck is left out."""
        sequences = {}  # of each OSD's newest report
        for osd in await self.up_osds():
            with contextlib.suppress(ClusterUnreachable, CommandFailed):
                reply = await self._client.command(
                    "flush_pg_stats", target=f"osd.{osd}", within=_ONCE_SECONDS
                )
                sequences[osd] = int(reply)
        deadline = time.monotonic() + _STATS_SECONDS
        for osd, sequence in sequences.items():
            while time.monotonic() < deadline:
                # With format json the monitor prints nothing.
                if int(await self.command("osd last-stat-seq", id=osd, format="plain")) >= sequence:
                    break
                await asyncio.sleep(0.05)

    async def wait_for_osd(self, osd: int, *, up: bool) -> None:
        deadline = time.monotonic() + _UP_DOWN_SECONDS
        while (osd in await self.up_osds()) != up:
            if time.monotonic() > deadline:
                raise RunError(
                    f"osd.{osd} was not {'up' if up else 'down'} within {_UP_DOWN_SECONDS:g} s"
                )
            await asyncio.sleep(0.3)


class ClusterConnection(ClusterView):
    """A run's connection, which may send any command."""

    def __init__(self, access: Access) -> None:
        super().__init__(access, access.client())
        self.note: Callable[[str], None] = lambda text: None  # gets what takes long
        self.restarted: set[int] = set()  # OSDs, by this run
        self._marked_down: dict[int, deque[float]] = {}  # when, by this run

    @property
    def view(self) -> ClusterView:
        """The same connection, without commands that change the cluster."""
        return ClusterView(self.access, self._client, self.fsid)

    async def __aenter__(self) -> Self:
        try:
            self.fsid = (await self._client.command("status", within=20.0))["fsid"]
        except (ClusterUnreachable, CommandFailed) as error:
            await self._client.close()
            raise ClusterUnfit(f"cannot reach the cluster: {error}") from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def wait_to_mark_down(self, osd: int) -> None:
        """Until this run may mark the OSD down once more; one time is left to others.

        How often it was marked down before this run is not known: so not for ten minutes after.
        """
        most = int((await self.command("config show", target=f"osd.{osd}"))[_MARKDOWNS])
        if most >= _SO_OFTEN:  # as in labs
            return
        times = self._marked_down.get(osd)
        if times is None:
            times = self._marked_down[osd] = deque(maxlen=max(1, most - 1))
            left = _MARKED_DOWN_SECONDS - await self._since_down(osd)
        else:
            left = times[0] + _MARKED_DOWN_SECONDS - time.monotonic()
            left = left if len(times) == times.maxlen else 0.0
        if left > 0:
            self.note(
                f"waits {left:.0f} s: osd.{osd} was marked down in the last ten minutes, and ends"
                " itself when that happens too often"
            )
            await asyncio.sleep(left)
        times.append(time.monotonic())

    async def _since_down(self, osd: int) -> float:
        """How many seconds ago the OSD was marked down; infinity if it never was."""
        dump = await self.command("osd dump")
        known = (it for it in dump.get("osd_xinfo", ()) if it["osd"] == osd)
        try:
            at = datetime.fromisoformat(str(next(known)["down_stamp"]))
        except (StopIteration, KeyError, ValueError):  # of one that never was it is 0.000000
            return math.inf
        return time.time() - at.timestamp()

    @property
    def pid(self) -> int | None:
        """The pid of the child process that holds the connection."""
        return self._client.pid

    async def command(self, prefix: str, *, patience: float = PATIENCE, **arguments: Any) -> Any:
        """The reply, as of a ClusterView. A command may arrive twice: send none that adds up."""
        return await self._send(prefix, patience, arguments)

    async def once(self, prefix: str, **arguments: Any) -> Any:
        """The reply, without retries: for callers that ask again soon."""
        return await self._client.command(prefix, within=_ONCE_SECONDS, **arguments)


def is_settled(state: str, *, clean: bool) -> bool:
    """Whether a PG in this state is active, and clean too."""
    parts = set(state.split("+"))
    wanted = {"active", "clean"} if clean else {"active"}
    return wanted <= parts and not parts & {"peering", "stale"}
