"""What only the cluster knows of a plan, asked without changing anything (`--check`)."""

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cephqos_base.errors import CephqosError
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster import restart_plan, work_folder
from cephqos_loadgen.cluster.connection import (
    Access,
    ClusterConnection,
    ConfAccess,
    LabAccess,
    write_client_conf,
)
from cephqos_loadgen.cluster.restart_plan import PlannedRestarts
from cephqos_loadgen.cluster.settings import SettingsReader
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.plan.planned import Plan

_READ_AT_START = ("osd_op_queue", "osd_op_num_shards", "osd_op_num_threads_per_shard")


def access_to(options: RunOptions, run: str, work: Path) -> Access:
    """The cluster that the command line names."""
    if options.lab:
        return LabAccess(RunningLab.find(options.lab), run)
    if options.conf is None:
        raise ValueError("no cluster is named")
    return ConfAccess(
        options.conf, options.keyring, options.user, work, options.python, options.sockets
    )


@asynccontextmanager
async def connected(options: RunOptions, run: str, work: Path) -> AsyncIterator[ClusterConnection]:
    """A connection to that cluster, and the folder `work` for as long as it is needed."""
    access = access_to(options, run, work)
    try:
        write_client_conf(access, {})
        async with ClusterConnection(access) as cluster:
            yield cluster
    finally:
        work_folder.remove(Path(access.place.work))


@dataclass(frozen=True, slots=True)
class ClusterSays:
    """The answer, for a plan."""

    restarts: PlannedRestarts = field(default_factory=PlannedRestarts)
    refused: str = ""  # what the run would be refused for
    unknown: str = ""  # why the cluster was not asked
    own_lab: tuple[str, ...] = ()  # options for which OSDs of a new lab may restart

    def lines(self) -> Iterator[str]:
        yield from self.restarts.lines()
        if self.refused:
            yield f"a run is refused as it is: {self.refused}"
        if self.own_lab:
            names = ", ".join(self.own_lab)
            yield f"restarts the OSDs of the lab at once, where {names} must change"
        if self.unknown:
            yield f"not known whether OSDs restart: the cluster was not asked: {self.unknown}"


def _read_at_start(plan: Plan) -> tuple[str, ...]:
    """Options of the plan that OSDs of any release read only when they start. Without a cluster
    only these are known."""
    options = [option for point in plan.points for option in point.settings]
    options += [o for point in plan.points for p in point.phases for o in p.action.settings()]
    names = dict.fromkeys(option.name for option in options)
    return tuple(name for name in names if name.startswith(_READ_AT_START))


async def ask(plan: Plan, options: RunOptions) -> ClusterSays:
    """Ask the named cluster. It need not answer: a plan can be looked at without it."""
    if not options.given:
        return ClusterSays(own_lab=_read_at_start(plan))
    folder = Path(tempfile.mkdtemp(prefix="cephqos-check-"))
    name = f"check-{secrets.token_hex(3)}"
    try:
        async with connected(options, name, folder / "work") as cluster:
            reader = SettingsReader(cluster.view)
            restarts = await restart_plan.look(cluster.view, reader, plan)
            try:
                await restart_plan.check(cluster.view, plan, restarts, options.restart_osds)
            except CephqosError as error:
                return ClusterSays(restarts, refused=str(error))
            return ClusterSays(restarts)
    except (CephqosError, CommandFailed) as error:
        return ClusterSays(unknown=str(error))
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
