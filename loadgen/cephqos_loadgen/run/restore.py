"""`cephqos run --restore-only`: undo what a run left that was killed, and run nothing."""

from cephqos_base.errors import UsageError
from cephqos_base.terminal import say
from cephqos_loadgen.check.ask_cluster import connected
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster.lock import ClusterLock, GivenBack
from cephqos_loadgen.plan.errors import NotRestored
from cephqos_loadgen.run_recording.layout import new_run


async def restore(options: RunOptions) -> None:
    """Undo the changes that the monitors' keys have; NotRestored if some could not be undone."""
    if not options.given:
        raise UsageError("--restore-only: which cluster? Name it with --conf FILE or --lab NAME")
    name = new_run("restore")
    async with connected(options, name, options.work / name) as cluster:
        cluster.note = say
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
