"""Reads the matrix: its axes, and what each value of an axis changes.

An axis has one of three forms, by its key and value in the scenario:

    osd:osd_mclock_profile: [balanced, high_client_ops]     values of an option
    depth: [1, 16]                                          values of a variable
    media: {slow: {variables: ...}, fast: {settings: ...}}  labels, with what each changes
"""

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import yaml

from cephqos_base.errors import UsageError
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.plan.reading import read_options
from cephqos_loadgen.scenario.variables import ScenarioValue, Variables, scalar

Only = Mapping[str, Sequence[str]]  # by axis: the values to run

_VARIANT_KEYS = ("variables", "settings", "client", "flags", "devices", "lab")
# More would take months to run, and minutes to read.
MAX_POINTS = 10_000
MAX_PHASES_OF_ALL = 50_000  # phases of all points together


@dataclass(frozen=True, slots=True)
class Variant:
    """One value of one axis."""

    axis: str
    label: str
    table: Mapping[str, ScenarioValue]  # settings, flags and so on that it adds
    variables: Variables
    plain: bool = False  # the label is the value of a variable or an option


def read_axes(
    matrix: ScenarioValue | None, default: Only, chosen: Only, document: ScenarioValue
) -> list[list[Variant]]:
    """The axes, each with the values that the scenario's `only` leaves of it, or `--only`."""
    entries = matrix.entries() if matrix else {}
    axes = [_axis(name, value) for name, value in entries.items()]
    for value, axis in zip(entries.values(), axes, strict=True):
        _check_different(value, axis)
    names = [axis[0].axis for axis in axes]
    if matrix and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        matrix.fail("axes of different names", f"two axes {twice}")
    for name, wanted in {**default, **chosen}.items():
        wrong = _wrong_choice(name, wanted, {axis[0].axis: axis for axis in axes})
        if wrong and name in chosen:
            raise UsageError(f"--only {wrong.found}: expected {wrong.allowed}")
        if wrong:
            document.entries()["only"].fail(wrong.allowed, wrong.found)
        index = names.index(name)
        axes[index] = [variant for variant in axes[index] if variant.label in wanted]
    _check_size(axes, document)
    return axes


def _check_size(axes: Sequence[Sequence[Variant]], document: ScenarioValue) -> None:
    points = math.prod(len(axis) for axis in axes)
    if points > MAX_POINTS:
        document.fail(f"at most {MAX_POINTS:,} points of the matrix", f"{points:,}")
    phases = document.entries().get("phases")
    per_point = len(phases.items()) if phases else 0
    if points * per_point > MAX_PHASES_OF_ALL:
        document.fail(
            f"at most {MAX_PHASES_OF_ALL:,} phases in all points of the matrix",
            f"{points:,} points of {per_point:,} phases",
        )


class _WrongChoice(NamedTuple):
    found: str
    allowed: str


def _wrong_choice(
    name: str, wanted: Sequence[str], axes: Mapping[str, Sequence[Variant]]
) -> _WrongChoice | None:
    """What is wrong with a choice of values of an axis; None: nothing."""
    if name not in axes:
        allowed = f"an axis of the scenario's matrix: {', '.join(axes) or 'it has none'}"
        return _WrongChoice(name, allowed)
    known = [variant.label for variant in axes[name]]
    missing = [label for label in wanted if label not in known]
    if missing or not wanted:
        found = f"{name}={missing[0] if missing else ''}"
        return _WrongChoice(found, f"one of {', '.join(known)}")
    return None


def _check_different(value: ScenarioValue, variants: Sequence[Variant]) -> None:
    if not variants:
        value.fail("at least one value", "none")
    labels = [variant.label for variant in variants]
    if len(set(labels)) < len(labels):
        value.fail("values that are different", ", ".join(labels))


def check_used(document: ScenarioValue, axes: Sequence[Sequence[Variant]]) -> None:
    """Refuse an axis that sets a variable which nothing uses: its points would all be the same."""
    used = used_variables(document.raw)
    for axis in axes:
        for variable in {name for variant in axis for name in variant.variables} - used:
            matrix = document.entries()["matrix"].entries()
            matrix[axis[0].axis].fail(
                f"a variable that the scenario uses: {', '.join(sorted(used)) or 'none'}",
                f"{variable}, which nothing uses",
            )


def check_kept(
    document: ScenarioValue,
    combination: Sequence[Variant],
    variables: Variables,
    settings: Set[CephOption],
) -> None:
    """Refuse a point that is labelled with a value which another axis replaces.

    `variables`, `settings`: of the point, after all its variants are applied.
    """
    for variant in combination:
        set_here = variant.table.get("settings")
        replaced = set_here is not None and not settings >= {*read_options(set_here)}
        replaced |= any(variables[name] is not node for name, node in variant.variables.items())
        if variant.plain and replaced:
            document.entries()["matrix"].fail(
                f"axes of which none replaces the values of {variant.axis}",
                ",".join(f"{other.axis}={other.label}" for other in combination),
            )


def used_variables(node: yaml.Node) -> set[str]:
    """The names of all `${name}` below a node."""
    if isinstance(node, yaml.MappingNode):
        return {name for pair in node.value for part in pair for name in used_variables(part)}
    if isinstance(node, yaml.SequenceNode):
        return {name for item in node.value for name in used_variables(item)}
    return set(re.findall(r"\$\{(\w+)\}", str(node.value)))


def _axis(name: str, value: ScenarioValue) -> list[Variant]:
    if value.is_mapping:
        variants = []
        for label, entry in value.entries().items():
            table = entry.table(_VARIANT_KEYS) if entry.is_mapping else {}
            entries = table["variables"].entries() if "variables" in table else {}
            variables = {key: item.raw for key, item in entries.items()}
            variants.append(Variant(name, label, table, variables))
        return variants
    section, colon, option = name.partition(":")
    variants = []
    for item in value.items():
        label = item.text()
        if colon:
            setting = item.child(_nested(section, option, item.node), item.key).having({})
            variants.append(Variant(option, label, {"settings": setting}, {}, plain=True))
        else:
            variants.append(Variant(name, label, {}, {name: item.node}, plain=True))
    return variants


def _nested(section: str, option: str, value: yaml.Node) -> yaml.Node:
    """`{section: {option: value}}`."""
    tag = "tag:yaml.org,2002:map"
    inner = yaml.MappingNode(tag, [(scalar(option), value)], value.start_mark, value.end_mark)
    return yaml.MappingNode(tag, [(scalar(section), inner)], value.start_mark, value.end_mark)
