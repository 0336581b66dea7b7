"""`cephqos run --restore-only`: undo what a run left that was killed, and run nothing."""

import secrets
import time
from contextlib import AsyncExitStack
from pathlib import Path

from cephqos_base.errors import UsageError
from cephqos_base.terminal import say
from cephqos_loadgen.check.ask_cluster import access_to
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster import work_folder
from cephqos_loadgen.cluster.connection import Access, ClusterConnection, write_client_conf
from cephqos_loadgen.cluster.lock import ClusterLock, GivenBack
from cephqos_loadgen.plan.errors import NotRestored


async def restore(options: RunOptions) -> None:
    """Undo the changes that the monitors' keys have; NotRestored if some could not be undone."""
    access = _access(options)
    async with AsyncExitStack() as stack:
        stack.callback(work_folder.remove, Path(access.place.work))
        write_client_conf(access, {})
        cluster = await stack.enter_async_context(ClusterConnection(access))
        cluster.note = say
        name = Path(access.place.work).name
        lock = ClusterLock(cluster, name, take_over=True, restore_only=True)
        async with lock:
            report(lock.given_back)


def report(back: GivenBack | None) -> None:
    """Say what was done; NotRestored if something is kept."""
    if back is None:
        say("no run has left anything in this cluster")
        return
    say(back.run, *(f"  {line}" for line in back.lines()))
    if back.kept:
        raise NotRestored(
            f"{len(back.kept)} of the steps above are kept in the cluster: see to what each says,"
            " then give the same command again"
        )
    say("restored: nothing of that run is left to undo")


def _access(options: RunOptions) -> Access:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name = f"{stamp}-restore-{secrets.token_hex(2)}"
    if not options.given:
        raise UsageError("--restore-only: which cluster? Name it with --conf FILE or --lab NAME")
    return access_to(options, name, options.work / name)
