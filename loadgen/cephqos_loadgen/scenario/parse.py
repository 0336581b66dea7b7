"""From the text of a scenario to its frozen plan. No I/O: whatever is wrong is said here.

Each combination of the matrix's values makes a point. It consists of layers: the top of the
scenario, then what each value changes. Where several layers have a key, the last one wins.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import yaml

from cephqos_base.errors import UsageError
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab import spec
from cephqos_loadgen.plan import planned
from cephqos_loadgen.plan.ceph_options import read_ceph_option
from cephqos_loadgen.plan.parts import Capacity, Device, Images, PlannedPool
from cephqos_loadgen.plan.reading import NAME, read_flags, read_objects, read_options
from cephqos_loadgen.scenario import matrix
from cephqos_loadgen.scenario.phase_reader import read_phases
from cephqos_loadgen.scenario.variables import ScenarioValue, Variables, load

_KEYS = (
    *("scenario", "about", "variables", "scales", "repeats", "order", "capacity"),
    *("lab", "settings", "client", "flags", "quiet", "devices", "pools"),
    *("matrix", "only", "find", "phases"),
)
DEFAULT_SCALE = "lab"
MAX_RUNS = 100_000  # more would take years
_Table = Mapping[str, ScenarioValue]
KEEP = "keep"  # a value that decides nothing, as if its key were not there


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line may decide."""

    scale: str = DEFAULT_SCALE
    variables: Mapping[str, yaml.Node] = field(default_factory=dict)
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    repeats: int | None = None
    order: planned.Order | None = None
    seed: int = 0
    keep: bool = False  # every pool that is not fresh
    release: str = "reef"  # of the lab that the run starts


def parse(text: str, file: str, choices: Choices | None = None) -> planned.Plan:
    """The plan that the scenario and the choices make, or ConfigError."""
    choices = choices or Choices()
    document = load(text, file)
    top = document.table(_KEYS, ("scenario", "phases"))
    scale, variables = _variables(document, top, choices)
    document = document.having(variables)
    top = document.table(_KEYS)
    axes = matrix.read_axes(
        top.get("matrix"), _default_only(top.get("only")), choices.only, document
    )
    points = tuple(
        _point(document, combination, choices) for combination in itertools.product(*axes)
    )
    matrix.check_used(document, axes)
    _refuse_equal(document, points)
    repeats = top["repeats"].integer(1, 1000) if "repeats" in top else 1
    runs = len(points) * (choices.repeats or repeats)
    if runs > MAX_RUNS:
        document.fail(f"at most {MAX_RUNS:,} repeats of all points", f"{runs:,}")
    return planned.Plan(
        scenario=top["scenario"].text(NAME, "a name of a-z, 0-9, _ and -"),
        about=" ".join(top["about"].text().split()) if "about" in top else "",
        source=file,
        text=text,
        scale=scale,
        variables=tuple((name, _as_text(node)) for name, node in sorted(variables.items())),
        repeats=choices.repeats or repeats,
        points=points,
        find=_find(top["find"], points) if "find" in top else None,
        quiet=_quiet(top["quiet"]) if "quiet" in top else planned.QUIET,
        capacity=_capacity(top["capacity"]) if "capacity" in top else None,
        order=_order(top.get("order"), choices),
        seed=choices.seed,
    )


def _refuse_equal(document: ScenarioValue, points: Sequence[planned.Point]) -> None:
    """Points that do the same under two names would be compared as if they did not."""
    names: dict[planned.Point, str] = {}  # by point without its labels
    for point in points:
        work = replace(point, name="", axes=(), lab_axes=(), fresh_lab=False)
        if work in names:
            document.entries()["matrix"].fail(
                "points that differ", f"{names[work]} and {point.name}, which do the same"
            )
        names[work] = point.name


def _capacity(value: ScenarioValue) -> Capacity:
    """`measured`, or how: `{total: 4M, bs: 4K}`; or what it is: `{iops: 21500}`."""
    if not value.is_mapping:
        value.choice(("measured",))
        return Capacity()
    table = value.table(("total", "bs", "iops"))
    default = Capacity()
    block_size = table["bs"].size(512) if "bs" in table else default.block_size
    total = table["total"].size(block_size) if "total" in table else default.total
    given = table.get("iops")
    iops = None if given is None or given.text() == "measured" else given.integer(1)
    return Capacity(total=total, block_size=block_size, iops=iops)


def _default_only(value: ScenarioValue | None) -> dict[str, tuple[str, ...]]:
    """The values of axes that are run where the command line chooses none."""
    entries = value.entries() if value else {}
    return {axis: tuple(item.text() for item in value.items()) for axis, value in entries.items()}


def _order(value: ScenarioValue | None, choices: Choices) -> planned.Order:
    if choices.order is not None:
        return choices.order
    if value is None:
        return "interleaved"
    return value.choice(planned.ORDERS)


def _variables(
    document: ScenarioValue, top: Mapping[str, ScenarioValue], choices: Choices
) -> tuple[str, Variables]:
    nodes: dict[str, yaml.Node] = {}
    if "variables" in top:
        nodes |= {name: value.raw for name, value in top["variables"].entries().items()}
    scale = ""
    if "scales" in top:
        scales = top["scales"].entries()
        if choices.scale not in scales:
            raise UsageError(f"--scale {choices.scale}: expected one of {', '.join(scales)}")
        scale = choices.scale
        nodes |= {name: value.raw for name, value in scales[scale].entries().items()}
    for name, node in choices.variables.items():
        if name not in nodes:
            known = ", ".join(sorted(nodes)) or "none"
            raise UsageError(f"--var {name}: expected a variable of the scenario: {known}")
        used = matrix.used_variables(document.raw)
        if name not in used:
            allowed = ", ".join(sorted(used)) or "none"
            raise UsageError(f"--var {name}: nothing uses it; expected one that is used: {allowed}")
        nodes[name] = node
    return scale, nodes


def _as_text(node: yaml.Node) -> str:
    if isinstance(node, yaml.SequenceNode):
        return ", ".join(_as_text(item) for item in node.value)
    return str(node.value)


# -- points --------------------------------------------------------------------------------------


def _point(
    document: ScenarioValue, combination: Sequence[matrix.Variant], choices: Choices
) -> planned.Point:
    """The point of one combination: the top of the scenario, and a layer for each axis over it."""
    variables = dict(document.variables)
    for variant in combination:
        variables |= variant.variables
    top = document.having(variables).table(_KEYS)
    layers = [top]
    for variant in combination:
        layers.append({key: value.having(variables) for key, value in variant.table.items()})
    pools = (
        tuple(_pool(item, choices.keep) for item in top["pools"].items()) if "pools" in top else ()
    )
    phases = read_phases(top["phases"])
    _check_pools(top["phases"], phases, pools)
    used = {name for phase in phases for name in phase.action.pools()}
    pools = tuple(pool for pool in pools if pool.name in used)
    settings = _settings(layers)
    matrix.check_kept(document, combination, variables, frozenset(settings))
    name = ",".join(f"{v.axis}={v.label}" for v in combination if v.label != KEEP) or "only"
    lab, fresh_lab = _lab(layers, choices.release)
    return planned.Point(
        name=name,
        axes=tuple((variant.axis, variant.label) for variant in combination),
        settings=settings,
        client=_client(layers),
        flags=tuple(
            dict.fromkeys(
                flag for layer in layers if "flags" in layer for flag in read_flags(layer["flags"])
            )
        ),
        devices=Device(**_read(_tables(layers, "devices", _DEVICE_READERS), _DEVICE_READERS)),
        pools=pools,
        phases=phases,
        lab=lab,
        fresh_lab=fresh_lab,
        lab_axes=_lab_axes(layers, {name for v in combination for name in v.variables}),
    )


# -- layers: later ones win ----------------------------------------------------------------------


def _settings(layers: Sequence[_Table]) -> tuple[CephOption, ...]:
    options: dict[tuple[str, str], CephOption] = {}
    for layer in layers:
        if "settings" in layer:
            for option in read_options(layer["settings"]):
                options[option.section, option.name] = option
    return tuple(options.values())


def _client(layers: Sequence[_Table]) -> tuple[tuple[str, str], ...]:
    # RBD's cache answers writes before any OSD sees them: what it measures is not Ceph.
    options = {"rbd_cache": "false"}
    for layer in layers:
        if "client" in layer:
            for name, value in layer["client"].entries().items():
                option, text = read_ceph_option(name, value)
                options[option] = text
    return tuple(options.items())


def _is_keep(value: ScenarioValue) -> bool:
    """Whether a variable has decided that the key is as if it were not there."""
    return not (value.is_mapping or value.is_list) and value.text() == KEEP


_Readers = Mapping[str, Callable[[ScenarioValue], Any]]
_DEVICE_READERS: Final[_Readers] = {
    "scheduler": lambda value: value.choice(spec.IO_SCHEDULERS),
    "nr_requests": lambda value: value.integer(1, 65536),
    "read_ahead_kb": lambda value: value.integer(0, 1 << 20),
}
_LAB_READERS: Final[_Readers] = {
    "osds": lambda value: value.integer(1, 16),
    "osd_size": lambda value: value.size(spec.MIN_OSD_SIZE),
    "backing": lambda value: value.choice(spec.BACKINGS),
    "rotational": lambda value: value.boolean(),
    "io_scheduler": lambda value: value.choice(spec.IO_SCHEDULERS),
    "db_size": lambda value: value.size(),
    "regime": lambda value: value.choice(tuple(spec.REGIMES)),
    "device_iops": lambda value: value.integer(1, 10**9),
    "one_budget": lambda value: value.boolean(),
    "request_size": lambda value: value.size(4096),
    "objectstore": lambda value: value.choice(spec.OBJECTSTORES),
    "fs": lambda value: value.choice(spec.FILESYSTEMS),
    "mkfs": lambda value: value.text(),
    "mount": lambda value: value.text(),
}


def _tables(layers: Sequence[_Table], key: str, keys: Iterable[str]) -> list[_Table]:
    return [layer[key].table(tuple(keys)) for layer in layers if key in layer]


def _read(tables: Sequence[_Table], readers: _Readers) -> dict[str, Any]:
    """The last value of each key that has one."""
    last: dict[str, ScenarioValue] = {}
    for table in tables:
        last |= {key: value for key, value in table.items() if not _is_keep(value)}
    return {key: read(last[key]) for key, read in readers.items() if key in last}


def _lab(layers: Sequence[_Table], release: str) -> tuple[spec.LabSpec, bool]:
    """The lab that the run would start, and whether each repeat has one of its own."""
    readers = {**_LAB_READERS, "fresh": lambda value: value.boolean()}
    labs = _tables(layers, "lab", (*readers, "settings"))
    asked = {"osds": 3, "osd_size": 4 << 30, **_read(labs, readers)}
    fresh = asked.pop("fresh", False)
    decided = {option.name for option in _settings(layers)}
    asked = spec.with_regime({**asked, "settings": _settings(labs)}, decided)
    return spec.LabSpec(name="run", release=release, **asked), fresh


def _lab_axes(layers: Sequence[_Table], variables: Collection[str]) -> tuple[str, ...]:
    """The keys of `lab` that axes decide: directly, or through their variables."""
    names: dict[str, None] = {}
    for number, layer in enumerate(layers):
        for key, value in layer["lab"].entries().items() if "lab" in layer else ():
            used = re.findall(r"\$\{(\w+)\}", str(value.raw.value))
            by_axis = number > 0  # the first layer is the top of the scenario
            if not _is_keep(value) and (by_axis or any(name in variables for name in used)):
                names[key] = None
    return tuple(key for key in names if key != "fresh")


# -- pools ---------------------------------------------------------------------------------------


_POOL_KEYS = ("name", "size", "pg_num", "images", "objects", "fresh", "emptied", "keep")


def _pool(value: ScenarioValue, keep: bool) -> PlannedPool:
    table = value.table(_POOL_KEYS, ("name",))
    fresh = table["fresh"].boolean() if "fresh" in table else False
    emptied = table["emptied"].boolean() if "emptied" in table else False
    keep = keep and not emptied
    if "keep" in table:
        keep = table["keep"].boolean()
        if keep and fresh:
            table["keep"].fail("fresh (created again for every repeat) or keep, not both", "both")
    if emptied and (fresh or "images" in table or "objects" in table):
        table["emptied"].fail("a pool that phases fill, and that is not fresh", "another")
    images = None
    if "images" in table:
        entry = table["images"].table(("count", "size", "prefill"), ("size",))
        images = Images(
            count=entry["count"].integer(1, 256) if "count" in entry else 1,
            size=entry["size"].size(4 << 20),
            prefill=entry["prefill"].boolean() if "prefill" in entry else True,
        )
    return PlannedPool(
        name=table["name"].text(NAME, "a name of a-z, 0-9, _ and -"),
        size=table["size"].integer(1, 10) if "size" in table else None,
        pg_num=table["pg_num"].integer(1, 32768) if "pg_num" in table else 32,
        images=images,
        objects=read_objects(table["objects"]) if "objects" in table else None,
        fresh=fresh,
        emptied=emptied,
        keep=keep and not fresh,
    )


def _check_pools(
    where: ScenarioValue, phases: Sequence[planned.Phase], pools: Sequence[PlannedPool]
) -> None:
    known = {pool.name: pool for pool in pools}
    if len(known) < len(pools):
        names = [pool.name for pool in pools]
        twice = next(name for name in names if names.count(name) > 1)
        where.fail("pools of different names", f"two pools {twice}")
    actions = [phase.action for phase in phases]
    for number, (item, action) in enumerate(zip(where.items(), actions, strict=True)):
        misfit = action.misfit(known)
        if misfit:
            item.fail(*misfit)
        missing = action.missing(actions[:number], known)
        if missing:
            item.fail(f"before phase {phases[number].name}: {missing}", "none")


def _quiet(value: ScenarioValue) -> tuple[str, ...]:
    return tuple(item.choice(planned.QUIET) for item in value.items())


def _find(value: ScenarioValue, points: Sequence[planned.Point]) -> planned.Find:
    table = value.table(("axis", "keeping", "phase"), ("axis", "keeping", "phase"))
    return planned.Find(
        axis=table["axis"].choice([name for name, _ in points[0].axes]),
        keeping=table["keeping"].number(0.01, 1),
        phase=table["phase"].choice(
            [phase.name for phase in points[0].phases if phase.action.has_clients]
        ),
    )
