"""What the plan of a study says of each published parameter, in the words of the table."""

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from tests.shipped_plans import shipped_plan

from cephqos_base.units import format_cpu_list, time_span
from cephqos_loadgen.phase_kinds.fio import Fio
from cephqos_loadgen.phase_kinds.osd_bench import OsdBench
from cephqos_loadgen.phase_kinds.pin import Pin
from cephqos_loadgen.phase_kinds.prefill import Prefill
from cephqos_loadgen.phase_kinds.rados_bench import RadosBench
from cephqos_loadgen.plan.planned import Phase, Plan, Point
from cephqos_loadgen.plan.words import size
from cephqos_loadgen.scenario.parse import KEEP
from cephqos_loadgen.scenario.variables import variable_from_text


@cache
def study(name: str) -> Plan:
    return shipped_plan(name, "study")


def points(name: str, **axes: str) -> list[Point]:
    found = [
        p for p in study(name).points if all(dict(p.axes)[a] == value for a, value in axes.items())
    ]
    assert found, f"{name} has no point {axes}"
    return found


def one(values: list[str]) -> str:
    """What all points have in common, or the different values in their order."""
    return " / ".join(dict.fromkeys(values))


def axis(name: str, which: str) -> str:
    return " ".join(dict.fromkeys(dict(point.axes)[which] for point in study(name).points))


def option(name: str, which: str, **axes: str) -> str:
    each = [
        {o.name: o.value for o in p.settings}.get(which, "default") for p in points(name, **axes)
    ]
    return one(each)


def phase(point: Point, which: str) -> Phase:
    return next(phase for phase in point.phases if phase.name == which)


def fio(point: Point, which: str) -> Fio:
    action = phase(point, which).action
    assert isinstance(action, Fio)
    return action


def load(name: str, which: str, **axes: str) -> str:
    each = (fio(point, which) for point in points(name, **axes))
    return one([f"{f.rw} {size(f.block_size)} depth {f.depth}" for f in each])


def jobs(name: str, which: str) -> str:
    return one([str(fio(point, which).jobs) for point in study(name).points])


def steady(name: str, which: str) -> str:
    each = (dict(fio(point, which).options) for point in study(name).points)
    return one([f"{o['steadystate']} over {o['steadystate_duration']}" for o in each])


def length(name: str, *phases: str) -> str:
    """Of each of these phases."""
    each = ([phase(point, which) for point in study(name).points] for which in phases)
    return " / ".join(one([time_span(it.until.at_most) for it in same]) for same in each)


def repeats(name: str) -> str:
    return str(study(name).repeats)


def curve(name: str, which: str, **axes: str) -> str:
    sweeps = [fio(point, which).sweep for point in points(name, **axes)]
    return one([" ".join(map(str, sweep.depths)) for sweep in sweeps if sweep])


def dwell(name: str, which: str) -> str:
    sweeps = [fio(point, which).sweep for point in study(name).points]
    return one([time_span(sweep.dwell) for sweep in sweeps if sweep])


def ramp(name: str, which: str) -> str:
    return one([dict(fio(p, which).options)["ramp_time"] for p in study(name).points])


def stops(name: str, which: str) -> str:
    sweeps = [fio(point, which).sweep for point in study(name).points]
    return one(["; ".join(sweep.rules) or "never" for sweep in sweeps if sweep])


def pool(name: str, which: str, what: str, **axes: str) -> str:
    pools = [p for point in points(name, **axes) for p in point.pools if p.name == which]
    return one([str(getattr(p, what)) for p in pools])


def images(name: str, which: str = "client") -> str:
    found = [p.images for point in study(name).points for p in point.pools if p.name == which]
    return one([f"{i.count} x {size(i.size)}" for i in found if i])


def image_size(name: str) -> str:
    return images(name).split(" x ")[1]


def count_of_pools(name: str) -> str:
    return str(len(study(name).points[0].pools))


def guests(name: str) -> str:
    words = {"guest": "one with all volumes", "nbd": "one with each"}
    engines = sorted({fio(point, "surface").engine for point in study(name).points})
    return " / ".join(words[engine] for engine in engines if engine in words)


def share(name: str, which: str) -> str:
    return one([str(fio(point, which).size) for point in study(name).points])


def block_size(name: str, which: str) -> str:
    return one([size(fio(point, which).block_size) for point in study(name).points])


def objects(name: str, which: str) -> str:
    found = [p.objects for point in study(name).points for p in point.pools if p.name == which]
    return one([f"{o.count:,} x {size(o.size)}" for o in found if o])


def prefill(name: str, which: str, **axes: str) -> str:
    each = [phase(point, which).action for point in points(name, **axes)]
    return one(
        [f"{a.content.count:,} x {size(a.content.size)}" for a in each if isinstance(a, Prefill)]
    )


def osds(name: str) -> str:
    return " ".join(dict.fromkeys(str(point.lab.osds) for point in study(name).points))


def media(name: str, **axes: str) -> str:
    names = {None: "not declared", False: "SSD", True: "rotating"}
    return one(
        [names[p.lab.rotational] + (" + DB" if p.lab.db_size else "") for p in points(name, **axes)]
    )


def capacity(name: str) -> str:
    found = study(name).capacity
    return f"measured: {found.total:,} bytes in {size(found.block_size)}" if found else "default"


def osd_bench(name: str) -> str:
    actions = (ph.action for point in points(name) for ph in point.phases)
    return one(
        [f"{a.total:,} bytes in {size(a.block_size)}" for a in actions if isinstance(a, OsdBench)]
    )


def starts(name: str, which: str) -> str:
    start = phase(study(name).points[0], which).start
    return f"{start.kind} {start.phase or start.event}"


def flags(name: str) -> str:
    plan = study(name)
    return " ".join([*plan.points[0].flags, *(f"no {what}" for what in plan.quiet)])


def _benches(name: str) -> list[RadosBench]:
    actions = (phase.action for point in study(name).points for phase in point.phases)
    return [action for action in actions if isinstance(action, RadosBench)]


def bench(name: str, what: str) -> str:
    return " ".join(dict.fromkeys(str(getattr(a, what)) for a in _benches(name)))


def bench_sizes(name: str) -> str:
    sizes = (size(a.object_size).replace(" ", "") for a in _benches(name))
    return " ".join(dict.fromkeys(sizes))


def cores(name: str) -> str:
    """CPUs for fio and for nobody, of the OSDs' plan."""
    chosen = {"cpus": variable_from_text("4-5"), "exclude": variable_from_text("0-1")}
    only = {"osds": ("8",), "shards": ("5",), "load": ("read",)}
    plan = shipped_plan(name, "study", variables=chosen, only=only)
    (pin, curve) = (phase.action for phase in plan.points[0].phases)
    assert isinstance(pin, Pin)
    assert isinstance(curve, Fio)
    return f"fio {format_cpu_list(curve.cpus)}, OSDs never {format_cpu_list(pin.exclude)}"


def search(name: str, what: str) -> str:
    (point,) = study(name).points
    found = fio(point, "search").search
    assert found
    return {"target": f"{found.target * 1e3:g} ms at {found.words}", "most": str(found.most)}[what]


def fresh_lab(name: str) -> str:
    return one([str(point.fresh_lab) for point in study(name).points])


def without_depth(name: str) -> str:
    return load(name, "curve").replace(" depth 1", "")


def recycled(name: str, which: str) -> str:
    """Whether all points share the pool, empty at the start of each, or each has its own."""
    found = [p for point in study(name).points for p in point.pools if p.name == which]
    return one(["one for all, emptied" if p.emptied else "one for each test" for p in found])


def ends(name: str, which: str) -> str:
    return phase(study(name).points[0], which).until.kind


def journal(name: str) -> str:
    each = ({o.name: o.value for o in point.lab.settings} for point in study(name).points)
    return one([options["osd_journal_size"] for options in each])


def made_and_mounted(name: str, fs: str) -> str:
    """Options of mkfs and mount where FileStore lies on this file system."""
    given = {"objectstore": "filestore", "filesystem": f"[{fs}]"}
    variables = {key: variable_from_text(value) for key, value in given.items()}
    plan = shipped_plan(name, "study", release="pacific", variables=variables)
    return one([f"{point.lab.mkfs or KEEP} / {point.lab.mount or KEEP}" for point in plan.points])


def allocation(name: str, policy: str, work: str) -> str:
    """Reservation, weight and limit of a policy that does not run by default. All scenarios that
    have it give it the same."""
    options = []
    for scenario in (name, B, BR):
        point = shipped_plan(scenario, "study", only={"policy": (policy,)}).points[0]
        its = {option.name: option.value for option in point.settings}
        assert its["osd_mclock_profile"] == "custom"
        keys = (f"osd_mclock_scheduler_{work}_{what}" for what in ("res", "wgt", "lim"))
        options.append(" ".join(its[key] for key in keys))
    return one(options)


class Row(NamedTuple):
    """One parameter, and how it is read from the scenario's plan."""

    scenario: str
    parameter: str
    here: Callable[[], str]


def row(scenario: str, parameter: str, reading: Callable[..., str], *what: str, **axes: str) -> Row:
    """`reading` of the scenario's plan is compared with the published value; of the points with
    these values of axes."""
    return Row(scenario, parameter, partial(reading, scenario, *what, **axes))


A, B, BR, C = "client-vs-recovery", "client-vs-scrub", "client-vs-scrub-recovery", "io-scheduler"
D, E, R, L = "rbd-surface", "cpu-placement", "response-curve", "latency-target"
BOOST = ("osd_max_backfills", "osd_recovery_max_active", "osd_async_recovery_min_cost")
