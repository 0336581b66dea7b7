"""The report of a trial. Its first line is the answer."""

from collections.abc import Iterator, Mapping, Sequence

from cephqos_base.terminal import aligned
from cephqos_base.units import time_span
from cephqos_insight.trial.conduct import FIGURES, Trial
from cephqos_insight.trial.estimate import Effect
from cephqos_insight.trial.host import AGAIN, HostTrial
from cephqos_insight.trial.measure import LATENCIES, RATES, VIOLATED
from cephqos_insight.trial.plan import REFERENCE, TriedSetting
from cephqos_loadgen.cluster.restarts import named

_LARGE = 1.1  # a change of a rate by this factor is said first
_SEVERAL = 3  # rounds


def lines(
    trial: Trial,
    candidates: Sequence[TriedSetting],
    way_back: Mapping[str, Sequence[str]],
    left: Sequence[str] = (),
) -> Iterator[str]:
    """`left`: what is not as it was before the trial."""
    names = [candidate.name for candidate in candidates]
    names += [AGAIN] if isinstance(trial, HostTrial) else []
    yield from (_answer(trial, name) for name in names)
    yield ""
    if left:
        yield from (f"After the trial: {text}." for text in left)
    else:
        yield "The settings are as they were before the trial."
    yield from _commands(trial, candidates, way_back)
    yield from _table(trial)
    yield ""
    yield from _notes(trial)


def is_answered(trial: Trial) -> bool:
    """Whether there is an answer about every candidate."""
    answers = [trial.change(name, trial.by) for name in trial.timetable.candidates]
    return not trial.ended and not trial.harmed and all(answers)


def _answer(trial: Trial, name: str) -> str:
    if name in trial.harmed:
        return f"{name}: ended by a guard rail: {trial.harmed[name]}"
    change = trial.change(name, trial.by)
    if change is None:
        return f"{name}: no answer: {trial.ended or 'too few blocks could be compared'}"
    says = ", ".join(_says(trial, name))
    verdict = trial.verdicts.get(name, "go on")
    if verdict == "go on":
        return f"{name}: no answer yet, as it ended early: {trial.ended}. So far {says}"
    if verdict != "clear":
        return f"{name}: {', '.join((*_other_changes(trial, name), _none_found(change)))}: {says}"
    return f"{name}: {says}"


def _none_found(change: Effect) -> str:
    """How large a difference may be that was not found."""
    most = max(change.high, 1 / change.low) - 1
    return f"no difference found, up to {100 * most:.0f} % is possible"


def _other_changes(trial: Trial, name: str) -> Iterator[str]:
    """What changed clearly, though the figure that decides did not. It comes first."""
    for figure in RATES:
        if _stood_still(trial, name, figure):
            yield f"{figure} stood still"
        elif figure != trial.by:
            change = trial.change(name, figure)
            if change and change.clear and _is_large(change):
                yield f"{figure} {percent(change)}"


def _is_large(change: Effect) -> bool:
    return not 1 / _LARGE < change.ratio < _LARGE


def _stood_still(trial: Trial, name: str, figure: str) -> bool:
    """There was none, in several rounds in which the reference had some. In one of them something
    may have ended by itself."""
    pairs = list(trial.pairs(name, figure))
    had = sum(bool(other) for _, other in pairs)
    return had >= _SEVERAL and not any(one for one, _ in pairs)


def _stands_still(trial: Trial, name: str, figure: str) -> str:
    """In how many blocks there was none of what the reference had, or nothing."""
    pairs = trial.pairs(name, figure)
    still = sum(not one and bool(other) for one, other in pairs)
    mean = trial.mean(REFERENCE, figure) or 0.0
    return f"none in {still} of {len(pairs)} blocks ({mean:,.3g} as it is)" if still else ""


def _says(trial: Trial, name: str) -> Iterator[str]:
    """What is known of a candidate, the figure that decides first."""
    if change := trial.change(name, trial.by):
        yield f"{trial.by} {percent(change)}"
    if change := trial.change(name, "recovery/s"):
        yield f"recovery {_as_long(change)}"
    for figure in ("scrubbed/s", "ops/s"):
        if figure != trial.by and (change := trial.change(name, figure)):
            yield f"{figure} {percent(change)}"
    for figure in RATES:
        if still := _stands_still(trial, name, figure):
            yield f"{figure}: {still}"
    if any(trial.mean(arm, VIOLATED) for arm in (REFERENCE, name)):
        yield f"violated {_more_violated(trial, name)}"


def _as_long(rate: Effect) -> str:
    """How long the same work takes: `1.9 × as long (1.6 … 2.3)`."""
    middle, low, high = (f"{1 / ratio:.2g}" for ratio in (rate.ratio, rate.high, rate.low))
    return f"{middle} × as long ({low} … {high})"


def _more_violated(trial: Trial, name: str) -> str:
    found = trial.more_violated(name)
    if found is None:
        return ""
    middle, low, high = (f"{round(one, 1) + 0.0:+.1f}" for one in found)
    return f"{middle} s/min ({low} … {high})"


def percent(change: Effect) -> str:
    """As in `-31 % (-38 … -22)`; small ones have one more digit."""
    percents = [(ratio - 1) * 100 for ratio in (change.ratio, change.low, change.high)]
    digits = 1 if abs(percents[0]) < 10 else 0
    middle, low, high = (f"{round(one, digits) + 0.0:+.{digits}f}" for one in percents)
    return f"{middle} % ({low} … {high})"


def _commands(
    trial: Trial, candidates: Sequence[TriedSetting], way_back: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    for candidate in candidates:
        back, verdict = way_back.get(candidate.name), trial.verdicts.get(candidate.name, "go on")
        known = verdict != "go on" and trial.change(candidate.name, trial.by)
        if not back or not known or candidate.name in trial.harmed:
            continue
        yield f"to keep {candidate.name}:"
        yield from (f"    {line}" for line in candidate.commands)
        if isinstance(trial, HostTrial):
            yield f"    (then restart {named(trial.groups.osds)}, if OSDs read it at their start)"
        yield "and to go back:"
        yield from (f"    {line}" for line in back)
    yield ""


def _table(trial: Trial) -> Iterator[str]:
    names = [REFERENCE, *trial.timetable.candidates]
    rows = [("", *names)]
    for figure in FIGURES:
        cells = [_value(trial, REFERENCE, figure)]
        for name in trial.timetable.candidates:
            change = trial.change(name, figure)
            shown = _value(trial, name, figure)
            cells.append(f"{shown}  {percent(change)}" if change else shown)
        if any(cells):
            rows.append((figure, *cells))
    if trial.mean(REFERENCE, VIOLATED) is not None:
        cells = [_value(trial, REFERENCE, VIOLATED)]
        for name in trial.timetable.candidates:
            cells.append(f"{_value(trial, name, VIOLATED)}  {_more_violated(trial, name)}".strip())
        rows.append((VIOLATED, *cells))
    yield from aligned(rows)


def _value(trial: Trial, arm: str, figure: str) -> str:
    value = trial.mean(arm, figure)
    return "" if value is None else with_unit(figure, value)


def with_unit(figure: str, value: float) -> str:
    return f"{value * 1e3:.3g} ms" if figure in LATENCIES else f"{value:,.3g}"


def _notes(trial: Trial) -> Iterator[str]:
    measured = sum(block.stretch is not None for block in trial.blocks)
    length = time_span(trial.timetable.block_seconds)
    yield (
        f"Rounds: {trial.rounds}. Blocks of {length}: {len(trial.blocks)}, {measured} measured."
        f" Seed: {trial.timetable.seed}."
    )
    if trial.ended:
        yield f"The trial ended early: {trial.ended}."
    if "cannot become clear" in trial.verdicts.values():
        yield "More rounds in the time given would hardly have made the answer clear."
    for block in trial.blocks:
        if block.lost and not block.harm:
            place = f"round {block.round}" if block.round else "for the guard rails"
            yield f"Thrown away: {place}, {block.arm}: {block.lost}."
    yield (
        "p50, p95 and p99 come from histograms whose buckets double, so their intervals are"
        f" {trial.blur('p99') * 100:.0f} % wider on each side. The mean is exact."
    )
    if isinstance(trial, HostTrial):
        yield str(trial.groups)
        yield (
            "Changes are those of the host's OSDs beside the others at the same time. Both wait for"
            " copies on the other. So more can change when all OSDs have the setting."
        )
    elif trial.mean(REFERENCE, VIOLATED) is None:
        yield "Violated seconds are not known: they come from a Prometheus with the rules."
