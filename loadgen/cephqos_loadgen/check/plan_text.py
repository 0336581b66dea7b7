"""A plan as text: what a run will do, with every command line (`--dry-run`)."""

import shlex
import textwrap
from collections.abc import Iterator, Sequence

from cephqos_base.units import time_span
from cephqos_loadgen.check.ask_cluster import ClusterSays
from cephqos_loadgen.cluster import background_work
from cephqos_loadgen.cluster.settings import set_option
from cephqos_loadgen.cluster.undo import flag
from cephqos_loadgen.plan import planned, words
from cephqos_loadgen.plan.cpu_placement import Cpu
from cephqos_loadgen.plan.estimate import point_seconds, run_seconds
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.pools import free_space

_NOT_ASKED = ClusterSays()


def heading(plan: planned.Plan, restarting: float = 0.0) -> Iterator[str]:
    """`restarting`: seconds for which OSDs restart, if the cluster was asked."""
    scale = f", scale {plan.scale}" if plan.scale else ""
    yield f"scenario {plan.scenario}{scale} ({plan.source})"
    if plan.about:
        yield from (f"  {line}" for line in textwrap.wrap(plan.about, 76))
    points, repeats = len(plan.points), plan.repeats
    seconds = run_seconds(plan) + restarting
    yield (
        f"  {_plural(points, 'point')} of the matrix x {_plural(repeats, 'repeat')}"
        f" = {_plural(len(plan.runs), 'run')}, about {time_span(seconds)} in all"
    )
    if points > 1 and repeats > 1:
        seed = f", seed {plan.seed}" if plan.order == "random" else ""
        yield f"  order of repeats: {plan.order}{seed}"
    if held := free_space.plan_bytes(plan.points):
        yield f"  pools of {words.size(held)} with all copies"
    for axis, values in axes(plan).items():
        yield f"  {axis}: {', '.join(values)}"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def axes(plan: planned.Plan) -> dict[str, list[str]]:
    """The matrix: each axis with its values."""
    values_of: dict[str, dict[str, None]] = {}
    for point in plan.points:
        for axis, value in point.axes:
            values_of.setdefault(axis, {})[value] = None
    return {axis: list(values) for axis, values in values_of.items()}


def lines(
    plan: planned.Plan,
    place: ProgramPaths,
    *,
    commands: bool,
    cpus: Sequence[Cpu] = (),
    cluster: ClusterSays = _NOT_ASKED,
) -> Iterator[str]:
    """The whole plan. With this host's `cpus`, where OSDs would be pinned; with what the `cluster`
    says, which of its OSDs restart."""
    yield from heading(plan, cluster.restarts.seconds)
    yield from (f"  {line}" for line in cluster.lines())
    for_whole_run = list(background_work.lines(plan))
    if capacity := plan.capacity:
        writes = f"{words.size(capacity.total)} in writes of {words.size(capacity.block_size)}"
        found = f"measured ({writes})" if capacity.iops is None else f"{capacity.iops:,} IOPS"
        for_whole_run.append(f"capacity of each OSD: {found}, set")
    if for_whole_run:
        yield "for the whole run, and back at its end:"
        yield from (f"  {line}" for line in for_whole_run)
    for point in plan.points:
        yield ""
        yield f"point {point.name}: about {time_span(point_seconds(point))} per repeat"
        yield from _cluster_lines(point, commands=commands)
        for phase in point.phases:
            when = f"{_start(phase.start)}, {_until(phase.until)}"
            back = ", then back as it was" if phase.take_back else ""
            yield f"  phase {phase.name}: {phase.action.describe()}; {when}{back}"
            details = phase.action.on_this_host(point.lab.osds, cpus) if cpus else []
            if commands and not details:
                details = phase_commands(phase, place)
            yield from (f"    {line}" for line in details)


def _cluster_lines(point: planned.Point, *, commands: bool) -> Iterator[str]:
    for option in point.settings:
        yield f"  {set_option(option).shown}"
    for name in point.flags:
        yield from (f"  {command.shown}" for command in flag(name, on=True).commands)
    for pool in point.pools:
        kept = "  # kept at the end, used again where it is the same" if pool.keep else ""
        yield f"  ceph osd pool create {pool.name} {pool.pg_num}{kept}"
        if pool.size is not None:
            yield f"  ceph osd pool set {pool.name} size {pool.size}"
        if pool.images:
            yield f"    {words.images(pool.images)}"
        if pool.objects:
            yield f"    {words.objects(pool.objects)}"
    if commands:
        for name, value in point.client:
            yield f"  client option {name} = {value}"


def _start(start: planned.Start) -> str:
    if start.kind == "at":
        return f"at {start.delay:g} s"
    delay = f" + {start.delay:g} s" if start.delay else ""
    return f"{start.kind} {start.phase or start.event}{delay}"


def _until(until: planned.Until) -> str:
    if until.kind == "duration":
        return f"for {time_span(until.at_most)}"
    end = f"the end of {until.phase}" if until.kind == "phase" else until.kind.replace("_", " ")
    return f"until {end}, {time_span(until.at_most)} at most"


def phase_commands(phase: planned.Phase, place: ProgramPaths) -> list[str]:
    """Every command line of a phase, as a shell would take it."""
    commands = phase.action.commands(phase.name, phase.until.at_most, place)
    return [shlex.join(argv) for argv in commands]
