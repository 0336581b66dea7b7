"""Which OSDs a run will restart, how often and in which steps: known before anything is changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.units import time_span
from cephqos_loadgen.cluster import restarts
from cephqos_loadgen.cluster.connection import ClusterView
from cephqos_loadgen.cluster.settings import SettingsReader
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.planned import Plan, blocks

# Up to this many OSDs of a given cluster are restarted without a word on the command line: three or
# four hosts of a test cluster. More OSDs are more likely to be in production.
ALLOWED_OSDS: Final = 12
# The way back names each OSD with its process, in one of the monitors' keys. So many always fit.
MOST_OSDS: Final = 500
# One step on a cluster: the orchestrator acts, OSDs start, placement groups become clean. A guess
# for OSDs that come back in half a minute. Recovery of what clients write adds to it.
_STEP_SECONDS: Final = 90.0
_THERE_AND_BACK: Final = 2  # a change, and its undoing


@dataclass(frozen=True, slots=True)
class PlannedRestarts:
    """The restarts of a whole run. Each change restarts OSDs twice: for it, and to undo it."""

    options: tuple[str, ...] = ()  # that OSDs read only at their start
    osds: tuple[int, ...] = ()
    steps: tuple[restarts.RestartGroup, ...] = ()  # of one restart of all of them
    times: int = 0
    at_once: bool = False
    seconds_of: Mapping[str, float] = field(default_factory=dict)  # by point, whenever it is put
    seconds: float = 0.0

    @property
    def how(self) -> str:
        """Such as `24 OSDs, one host after the other (4 steps), 6 times over the run`."""
        times = f"{self.times} time{'s' if self.times != 1 else ''} over the run"
        if self.at_once:
            return f"{_osds(self.osds)} at once, {times}"
        number = len(self.steps)
        kinds = {step.where.partition(" ")[0] for step in self.steps}
        what = kinds.pop() if len(kinds) == 1 else "failure domain"
        one = "one OSD" if what in ("one", "osd") else f"one {what}"
        steps = f"{number} step{'s' if number != 1 else ''}"
        return f"{_osds(self.osds)}, {one} after the other ({steps}), {times}"

    def lines(self) -> Iterator[str]:
        """For a plan; nothing if no OSD restarts."""
        if self.osds:
            yield f"restarts {self.how}"
            yield f"  because OSDs read this only when they start: {', '.join(self.options)}"
            if not self.at_once:
                yield (
                    f"  about {time_span(self.seconds)} of the run, more where placement groups"
                    " take longer than a minute to be clean after a step"
                )


def _osds(osds: tuple[int, ...]) -> str:
    return f"{len(osds)} OSD{'s' if len(osds) != 1 else ''}"


async def look(cluster: ClusterView, reader: SettingsReader, plan: Plan) -> PlannedRestarts:
    """Ask the cluster which OSDs the plan's settings would restart."""
    of_point = {point.name: await reader.wanted_at_start(point.settings) for point in plan.points}
    of_phases = {
        point.name: [await reader.wanted_at_start(p.action.settings()) for p in point.phases]
        for point in plan.points
    }
    every = [*of_point.values(), *(each for several in of_phases.values() for each in several)]
    keys = dict.fromkeys(key for wanted in every for key in wanted)
    if not keys:
        return PlannedRestarts()
    in_force = await reader.in_force_at_start(keys)
    in_steps = await restarts.stepper(cluster)
    at_once = cluster.access.at_once
    changed: dict[tuple[int, str], None] = {}
    times, seconds_of, seconds = 0, dict[str, float](), 0.0
    for point, repeats in blocks(plan.runs):
        now = dict(in_force)
        of_block = 0.0
        for wanted, often in [(of_point[point.name], 1)] + [
            (wanted, len(repeats)) for wanted in of_phases[point.name]
        ]:
            differ = [key for key in wanted if reader.differs(*key, wanted, now)]
            changed |= dict.fromkeys(differ)
            steps = in_steps(sorted({osd for osd, _ in differ}))
            times += _THERE_AND_BACK * often * bool(steps)
            of_block += _THERE_AND_BACK * often * len(steps) * _STEP_SECONDS
            now |= wanted
        seconds_of[point.name] = 0.0 if at_once else of_block
        seconds += seconds_of[point.name]
    osds = tuple(sorted({osd for osd, _ in changed}))
    return PlannedRestarts(
        options=tuple(dict.fromkeys(name for _, name in changed)),
        osds=osds,
        steps=tuple(in_steps(osds)),
        times=times,
        at_once=at_once,
        seconds_of=seconds_of,
        seconds=seconds,
    )


async def check(
    cluster: ClusterView, plan: Plan, planned: PlannedRestarts, allowed: int | None
) -> None:
    """UsageError if OSDs may not or cannot be stopped as the plan wants. `allowed`: as many may be
    restarted, by the command line."""
    stops = [p for point in plan.points for p in point.phases if p.action.takes_osds_down]
    if not (planned.osds or stops) or cluster.access.at_once:
        return
    dump = await cluster.command("osd dump")
    # With more copies than one, Ceph's own min_size of a pool is less than its size.
    single = (pool.name for point in plan.points for pool in point.pools if pool.size == 1)
    if tight := sorted({*tight_pools(dump), *single}):
        raise ClusterUnfit(
            f"OSDs stop during this run, and with any of them pools lose data or stand still"
            f" (pools that need all their copies: {', '.join(tight)}). Give these pools more copies"
            " than their min_size, or choose points with --only"
        )
    if not planned.osds:
        return
    if len(planned.osds) > MOST_OSDS:
        raise ClusterUnfit(
            f"this run restarts {planned.how}; a run restarts {MOST_OSDS} at most. Choose points"
            " with --only, or set the options and restart the OSDs yourself before the run"
        )
    if held := restarts.kept_down(dump, planned.osds):
        raise ClusterUnfit(held)
    await cluster.access.check_restart(cluster, planned.osds)
    if len(planned.osds) > (ALLOWED_OSDS if allowed is None else allowed):
        raise UsageError(
            f"this run restarts {planned.how}, because OSDs read {', '.join(planned.options)} only"
            f" when they start. If that is what you want, add --restart-osds {len(planned.osds)}."
            " Else choose points with --only, or set the options and restart the OSDs yourself"
            " before the run"
        )


def tight_pools(osd_dump: Mapping[str, Any]) -> Iterator[str]:
    """Pools that stand still without one of their copies."""
    for pool in osd_dump["pools"]:
        if int(pool["size"]) <= int(pool["min_size"]):
            yield str(pool["pool_name"])
