"""Reads phases: what each does, when it starts, when it ends."""

from collections.abc import Mapping, Sequence

from cephqos_loadgen.phase_kinds.registry import KINDS
from cephqos_loadgen.plan import planned
from cephqos_loadgen.plan.action import Action, Ending
from cephqos_loadgen.plan.reading import NAME, read_client_seconds
from cephqos_loadgen.scenario.variables import ScenarioValue

_PHASE_KEYS = (
    *("name", "start", "until", "at_most", "expect", "may_fail", "against", "take_back"),
    *KINDS,
)
_ENDINGS: tuple[Ending, ...] = ("done", "scrub_done", "recovery_done")
# How long a phase without `at_most` may take: a multiple of its expected time, and a constant, as
# short phases vary most; or the default, if no time is expected.
_EXPECTED_TIMES = 4
_SLACK_SECONDS = 120.0
_DEFAULT_AT_MOST = 900.0
_DEFAULT_EXPECTED = 60.0  # for estimates only; never more than a quarter of `at_most`
MAX_PHASES = 200


def read_phases(value: ScenarioValue) -> tuple[planned.Phase, ...]:
    if value.is_list and len(value.node.value) > MAX_PHASES:
        value.fail(f"at most {MAX_PHASES} phases", str(len(value.node.value)))
    phases: list[planned.Phase] = []
    for item in value.items():
        phases.append(_read_phase(item, phases))
    if not phases:
        value.fail("at least one phase", "none")
    names = [phase.name for phase in phases]
    for item, phase in zip(value.items(), phases, strict=True):
        if phase.until.kind == "phase" and phase.until.phase not in names:
            item.fail(f"a phase of this scenario: {', '.join(names)}", phase.until.phase)
    for item, phase in zip(value.items(), phases, strict=True):
        missing = _missing_kind(phase, phases)
        if missing:
            item.fail(f"{missing}, for what phase {phase.name} waits for", "none")
        if _waits_for_itself(phase, phases):
            item.fail("an end that can come", f"phase {phase.name}, which waits for its own end")
        _check_others_change(phase, phases, item)
    return tuple(phases)


def _missing_kind(phase: planned.Phase, phases: Sequence[planned.Phase]) -> str:
    """The kind of phase that is missing, so that what this phase waits for never comes."""
    waited_for = {phase.until.kind, phase.start.event if phase.start.kind == "when" else ""}
    if waited_for & {"scrub_started", "scrub_done"} and not any(
        other.action.scrubs for other in phases
    ):
        return "a phase that scrubs"
    moves_data = any(other.action.moves_data for other in phases)
    if waited_for & {"recovery_started", "recovery_done"} and not moves_data:
        return "a phase that moves data"
    return ""


def _waits_for_itself(phase: planned.Phase, phases: Sequence[planned.Phase]) -> bool:
    """Whether the end of a phase needs, by way of others, the end of the same phase."""
    by_name = {other.name: other for other in phases}
    scrubs = [other.name for other in phases if other.action.scrubs]
    seen: set[str] = set()
    to_see = _ends_needed_to_end(phase, scrubs)
    while to_see:
        name = to_see.pop()
        if name == phase.name:
            return True
        if name not in seen:
            seen.add(name)
            other = by_name[name]
            to_see += _ends_needed_to_end(other, scrubs) + _ends_needed_to_start(other, by_name)
    return False


def _ends_needed_to_end(phase: planned.Phase, scrubs: Sequence[str]) -> list[str]:
    if phase.until.kind == "phase":
        return [phase.until.phase]
    # A phase that scrubs ends with its own work; others wait for the end of all that scrub.
    if phase.until.kind == "scrub_done" and not phase.action.scrubs:
        return list(scrubs)
    return []


def _ends_needed_to_start(phase: planned.Phase, by_name: Mapping[str, planned.Phase]) -> list[str]:
    if phase.start.kind == "after":
        return [phase.start.phase]
    if phase.start.kind == "with":
        return _ends_needed_to_start(by_name[phase.start.phase], by_name)
    return []


def _check_others_change(
    phase: planned.Phase, phases: Sequence[planned.Phase], item: ScenarioValue
) -> None:
    """Refuse an earlier phase that may still run and changes the same, where one of both takes its
    change back: what is right to go back to would depend on which ends first."""
    for other in phases[: phases.index(phase)]:
        same = {*phase.action.changed()} & {*other.action.changed()}
        takes_back = phase.take_back or other.take_back
        if same and takes_back and not _starts_after(phase, other.name, phases):
            item.fail(
                f"that phase {phase.name} starts after the end of phase {other.name}: both change"
                f" {min(same)}, and one of them takes its change back",
                "both at the same time",
            )


def _starts_after(phase: planned.Phase, name: str, phases: Sequence[planned.Phase]) -> bool:
    """Whether a phase starts after the end of the one with this name."""
    start = phase.start
    if start.kind == "at" or (start.kind == "after" and start.phase == name):
        return start.kind == "after"
    names = [other.name for other in phases]
    waited_for = start.phase or names[names.index(phase.name) - 1]
    return _starts_after(phases[names.index(waited_for)], name, phases)


def _read_phase(value: ScenarioValue, before: Sequence[planned.Phase]) -> planned.Phase:
    table = value.table(_PHASE_KEYS, ("name",))
    kinds = [key for key in table if key in KINDS]
    if len(kinds) != 1:
        value.fail(f"exactly one of {', '.join(KINDS)}", ", ".join(kinds) or "none of them")
    name = table["name"].text(NAME, "a name of a-z, 0-9, _ and -")
    if name in [phase.name for phase in before]:
        table["name"].fail("a name that no other phase has")
    action = KINDS[kinds[0]].read(table[kinds[0]])
    until = _read_ending(value, table, action)
    if "until" in table and until.kind not in action.endings:
        allowed = ", ".join(action.endings)
        table["until"].fail(f"{allowed}: what this kind of phase can end with", until.kind)
    return planned.Phase(
        name=name,
        action=action,
        start=_read_start(table.get("start"), before),
        until=until,
        may_fail=table["may_fail"].boolean() if "may_fail" in table else False,
        against=_read_against(table["against"], action, before) if "against" in table else "",
        take_back="take_back" in table and _read_take_back(table["take_back"], action, until),
    )


def _read_take_back(value: ScenarioValue, action: Action, until: planned.Until) -> bool:
    if not value.boolean():
        return False
    if not action.can_take_back:
        kinds = [name for name, kind in KINDS.items() if kind.can_take_back]
        value.fail(f"a phase that changes the cluster: {', '.join(kinds)}", action.kind)
    if until.kind == "done":
        value.fail("a phase that lasts, such as until: {duration: 30s}", "one that ends at once")
    return True


def _read_against(value: ScenarioValue, action: Action, before: Sequence[planned.Phase]) -> str:
    loads = [phase.name for phase in before if phase.action.has_clients]
    if not action.has_clients or not loads:
        value.fail("a phase of client load before this one, for a phase of client load", "none")
    return value.choice(loads)


def _read_start(value: ScenarioValue | None, before: Sequence[planned.Phase]) -> planned.Start:
    if value is None:
        return planned.Start("after", before[-1].name) if before else planned.Start("at")
    table = value.table(("at", "after", "with", "when", "delay"))
    kinds = [key for key in table if key != "delay"]
    if len(kinds) != 1:
        value.fail("one of at, after, with, when", ", ".join(kinds) or "none")
    delay = table["delay"].seconds() if "delay" in table else 0.0
    kind = kinds[0]
    if kind == "at":
        return planned.Start("at", delay=table["at"].seconds() + delay)
    if kind == "when":
        event = table["when"].choice(planned.EVENTS)
        if not before:
            table["when"].fail("a phase before this one, from whose start the event counts", event)
        return planned.Start("when", event=event, delay=delay)
    names = [phase.name for phase in before]
    phase = table[kind].choice(names) if names else table[kind].fail("a phase before this one")
    return planned.Start("after" if kind == "after" else "with", phase, delay=delay)


def _read_ending(
    value: ScenarioValue, table: dict[str, ScenarioValue], action: Action
) -> planned.Until:
    until = table.get("until")
    at_most = table["at_most"].seconds(above_zero=True) if "at_most" in table else None
    expected = table["expect"].seconds() if "expect" in table else None
    if until is None:
        own_seconds = action.expected_seconds()
        if own_seconds is None:
            value.fail("the key 'until': this kind of phase does not end by itself", "none")
        return _ending("done", at_most, own_seconds if expected is None else expected)
    if action.keeps_its_own_time:
        until.fail("no 'until': a sweep, a search, passes and steadystate keep their own time")
    if not until.is_mapping:
        kind = until.choice(_ENDINGS)
        if kind == "done" and action.expected_seconds() is None:
            until.fail("scrub_done, recovery_done, a duration, a phase or a steady state")
        return _ending(kind, at_most, expected)
    entry = until.table(("duration", "steady_state", "phase"))
    if len(entry) != 1:
        until.fail("one of duration, steady_state, phase", ", ".join(entry) or "none")
    if "duration" in entry:
        return _duration(entry["duration"], table, action)
    if "phase" in entry:
        phase = entry["phase"].text(NAME, "a phase's name")
        return _ending("phase", at_most, expected, phase=phase)
    steady = _read_steady_state(entry["steady_state"], at_most)
    return _ending("steady_state", at_most, expected, steady=steady)


def _read_steady_state(value: ScenarioValue, at_most: float | None) -> planned.SteadyState:
    table = value.table(("window", "dispersion"))
    steady = planned.SteadyState(
        window=table["window"].seconds(above_zero=True) if "window" in table else 10.0,
        dispersion=table["dispersion"].number(0.001, 1) if "dispersion" in table else 0.05,
    )
    if at_most is not None and steady.window >= at_most:
        limit = f"a window that is shorter than at_most ({at_most:g} s)"
        value.fail(limit, f"{steady.window:g} s")
    return steady


def _duration(
    length: ScenarioValue, table: Mapping[str, ScenarioValue], action: Action
) -> planned.Until:
    for key in ("at_most", "expect"):
        if key in table:
            table[key].fail(f"no {key!r} beside a duration: that says it")
    clients = action.has_clients
    seconds = read_client_seconds(length) if clients else length.seconds(above_zero=True)
    return planned.Until("duration", at_most=seconds, expected=seconds)


def _ending(
    kind: Ending,
    at_most: float | None,
    expected: float | None,
    phase: str = "",
    steady: planned.SteadyState | None = None,
) -> planned.Until:
    if at_most is None:
        at_most = (
            _DEFAULT_AT_MOST if expected is None else expected * _EXPECTED_TIMES + _SLACK_SECONDS
        )
    if expected is None:
        expected = min(_DEFAULT_EXPECTED, at_most / _EXPECTED_TIMES)
    return planned.Until(kind, at_most=at_most, expected=expected, phase=phase, steady=steady)
