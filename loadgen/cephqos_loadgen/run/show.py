"""A plan as text: what will be done, with every command line."""

import shlex
import textwrap
from collections.abc import Iterator, Sequence

from cephqos_base.units import format_cpu_list
from cephqos_loadgen.engines import fio, rados_bench
from cephqos_loadgen.engines.place import Place
from cephqos_loadgen.errors import UsageError
from cephqos_loadgen.run import describe, quiet, room
from cephqos_loadgen.run.describe import duration
from cephqos_loadgen.run.placement import Cpu
from cephqos_loadgen.run.placement import plan as plan_placement
from cephqos_loadgen.scenario import model
from cephqos_loadgen.scenario.estimate import point_seconds, run_seconds


def heading(plan: model.Plan) -> Iterator[str]:
    scale = f", scale {plan.scale}" if plan.scale else ""
    yield f"scenario {plan.scenario}{scale} ({plan.source})"
    if plan.about:
        yield from (f"  {line}" for line in textwrap.wrap(plan.about, 76))
    points, repeats = len(plan.points), plan.repeats
    yield (
        f"  {points} point{'s'[: points != 1]} of the matrix x {repeats}"
        f" repeat{'s'[: repeats != 1]} = {len(plan.runs)} run{'s'[: len(plan.runs) != 1]},"
        f" about {duration(run_seconds(plan))} in all"
    )
    if held := room.plan_bytes(plan.points):
        yield f"  pools of {describe.size(held)} with all copies"
    for axis, values in axes(plan).items():
        yield f"  {axis}: {', '.join(values)}"


def axes(plan: model.Plan) -> dict[str, list[str]]:
    """The matrix: each axis with its values."""
    found: dict[str, dict[str, None]] = {}
    for point in plan.points:
        for axis, value in point.axes:
            found.setdefault(axis, {})[value] = None
    return {axis: list(values) for axis, values in found.items()}


def lines(
    plan: model.Plan, place: Place, *, commands: bool, cpus: Sequence[Cpu] = ()
) -> Iterator[str]:
    """The whole plan. With this host's `cpus`, where OSDs would be pinned."""
    yield from heading(plan)
    whole = list(quiet.lines(plan))
    if whole:
        yield "for the whole run, and back at its end:"
        yield from (f"  {line}" for line in whole)
    for point in plan.points:
        yield ""
        yield f"point {point.name}: about {duration(point_seconds(point))} per repeat"
        yield from _cluster_lines(point, commands)
        for phase in point.phases:
            when = f"{_start(phase.start)}, {_until(phase.until)}"
            yield f"  phase {phase.name}: {describe.action(phase.action)}; {when}"
            if isinstance(phase.action, model.Pin) and cpus:
                yield from (f"    {line}" for line in placement_lines(phase.action, point, cpus))
            elif commands:
                yield from (f"    {line}" for line in phase_commands(phase, place))


def placement_lines(action: model.Pin, point: model.Point, cpus: Sequence[Cpu]) -> list[str]:
    """Where each OSD would go on this host, or why that cannot be."""
    try:
        placed = plan_placement(cpus, range(point.lab.osds), action.strategy, action.cpus_per_osd)
    except UsageError as error:
        return [f"cannot be: {error}"]
    verb = "pin" if action.apply else "would pin"
    return [f"{verb} osd.{osd} to CPUs {format_cpu_list(own)}" for osd, own in placed.items()]


def _cluster_lines(point: model.Point, commands: bool) -> Iterator[str]:
    for option in point.settings:
        yield f"  ceph config set {option.section} {option.name} {shlex.quote(option.value)}"
    for flag in point.flags:
        yield f"  ceph osd set {flag}"
    for pool in point.pools:
        kept = "  # kept at the end, used again where it is the same" if pool.keep else ""
        yield f"  ceph osd pool create {pool.name} {pool.pg_num}{kept}"
        if pool.size is not None:
            yield f"  ceph osd pool set {pool.name} size {pool.size}"
        if pool.images:
            yield f"    {describe.images(pool.images)}"
        if pool.objects:
            yield f"    {describe.objects(pool.objects)}"
    if commands:
        for name, value in point.client:
            yield f"  client option {name} = {value}"


def _start(start: model.Start) -> str:
    behind = f" + {start.delay:g} s" if start.delay else ""
    if start.kind == "at":
        return f"at {start.delay:g} s"
    return f"{start.kind} {start.phase or start.event}{behind}"


def _until(until: model.Until) -> str:
    if until.kind == "duration":
        return f"for {duration(until.at_most)}"
    what = f"the end of {until.phase}" if until.kind == "phase" else until.kind.replace("_", " ")
    return f"until {what}, {duration(until.at_most)} at most"


def phase_commands(phase: model.Phase, place: Place) -> list[str]:
    """Every command line of a phase, as a shell would take it."""
    action = phase.action
    found: list[list[str]] = []
    environment = [f"{key}={value}" for key, value in place.environment.items()]
    match action:
        case model.Fio():
            found += _fio_commands(phase, action, place, environment)
        case model.RadosBench():
            for index in range(len(action.pools)):
                found.append(rados_bench.argv(action, index, place, seconds=phase.until.at_most))
        case model.Prefill():
            found.append(
                rados_bench.prefill_argv(
                    action.pool, action.objects, place, name=f"{action.pool}.0", seconds=7200
                )
            )
        case model.OsdBench():
            numbers = [str(action.total), str(action.block_size), str(4 << 20), "100"]
            found.append(["ceph", "tell", "osd.*", "bench", *numbers])
        case model.Scrub():
            verb = "deep-scrub" if action.deep else "scrub"
            found.append(["ceph", "osd", "pool", verb, action.pool])
        case _:
            found += _cluster_commands(action)
    return [shlex.join(argv) for argv in found]


def _fio_commands(
    phase: model.Phase, action: model.Fio, place: Place, environment: list[str]
) -> Iterator[list[str]]:
    if action.engine == "nbd":
        for volume in range(action.volumes):
            yield fio.qemu_nbd_argv(action, place, phase.name, volume)
    seconds = phase.until.at_most
    depths: tuple[int, ...] = (action.depth,)
    if action.sweep:
        seconds, depths = action.sweep.dwell, action.sweep.depths
    elif action.search:
        seconds, depths = action.search.dwell, (action.search.least, action.search.most)
    for depth in depths:
        for client in fio.clients(action):
            argv = fio.argv(action, client, place, phase=phase.name, seconds=seconds, depth=depth)
            yield ["env", *environment, *argv]


def _cluster_commands(action: model.Action) -> Iterator[list[str]]:
    match action:
        case model.OsdOut():
            yield ["ceph", "osd", "set-group", "noup", f"osd.{action.osd}"]
            yield ["ceph", "osd", "down", action.osd]
            yield ["ceph", "osd", "out", action.osd]
        case model.OsdIn():
            yield ["ceph", "osd", "unset-group", "noup", f"osd.{action.osd}"]
            yield ["ceph", "osd", "in", action.osd]
        case model.Flags():
            yield from (["ceph", "osd", "set", flag] for flag in action.set)
            yield from (["ceph", "osd", "unset", flag] for flag in action.clear)
        case model.Change():
            for option in action.settings:
                yield ["ceph", "config", "set", option.section, option.name, option.value]
        case model.Pin():
            yield ["taskset", "--all-tasks", "--cpu-list", "--pid", "CPUS", "PID"]
        case _:
            return
