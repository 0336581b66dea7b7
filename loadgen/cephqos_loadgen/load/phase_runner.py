"""Runs the phases of one repeat at the same time, each from its start to its end."""

import asyncio
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from cephqos_base.errors import CephqosError
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.load import host_figures
from cephqos_loadgen.load.context import Context, Hands
from cephqos_loadgen.load.kind import PhaseKind
from cephqos_loadgen.load.start_and_end import scrub_marks, wait_for_end, wait_for_start
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.results.figures import changes
from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.results.phase import EndedBy, LoadResult, PhaseRecord, PhaseResult

# Values of `until` for which clients end by themselves.
_CLIENTS_END_THEMSELVES = ("done", "duration")


@dataclass(slots=True)
class Recorded:
    """What is known of the phases so far, by name. A failure leaves what came before it."""

    records: dict[str, PhaseRecord] = field(default_factory=dict)
    hosts: dict[str, HostUse] = field(default_factory=dict)


async def run_phases(context: Context, hands: Hands, recorded: Recorded) -> None:
    """All phases. The first that fails ends the others and is raised."""
    tasks = [
        asyncio.create_task(_run_phase(context, hands, phase, recorded), name=phase.name)
        for phase in context.point.phases
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run_phase(context: Context, hands: Hands, phase: Phase, recorded: Recorded) -> None:
    marks = context.marks[phase.name]
    since = await wait_for_start(context, phase)
    record = _begin(context, phase)
    try:
        clients, hosts = phase.action.has_clients, recorded.hosts
        async with host_figures.recorded(context, phase.name, clients=clients, uses=hosts):
            record = await _within_limit(context, hands, phase, since, record)
            record = replace(record, end_unix_seconds=time.time())
        record = replace(record, changes=_changes(record, recorded.records.get(phase.against)))
        if phase.until.kind == "recovery_done":
            # After its end: busy OSDs take seconds to report, in which its load runs no more.
            context.live.end(phase)
            context.live.doing = "waiting for OSDs to report what recovered"
            record = replace(record, recovery=await context.watcher.recovery())
            context.live.doing = ""
    except (CephqosError, CommandFailed) as error:
        reason: EndedBy = "cut_off" if isinstance(error, TooLong) else "failed"
        record = replace(record, ended_by=reason, error=str(error))
        if not phase.may_fail:
            raise RunError(f"phase {phase.name}: {error}") from error
    except asyncio.CancelledError:
        record = replace(record, ended_by="interrupted", error="")
        raise
    finally:
        record = replace(record, end_unix_seconds=record.end_unix_seconds or time.time())
        recorded.records[phase.name] = record
        with suppress(OSError):  # the first writer reports a full disk
            context.recorder.event(
                "phase_ended", phase=phase.name, ended_by=record.ended_by, error=record.error
            )
        context.live.end(phase)
        marks.succeeded = not record.error
        marks.ended.set()


def _begin(context: Context, phase: Phase) -> PhaseRecord:
    """Mark the phase as started for the others. Returns the record of an unfinished phase."""
    marks = context.marks[phase.name]
    marks.start_time = time.time()
    if phase.action.moves_data:
        context.data_moved = marks.start_time
        context.watcher.follower.expect(go_on=phase.action.steers_data)
    context.live.begin(phase)
    context.recorder.event("phase_started", phase=phase.name, action=phase.action.kind)
    marks.started.set()
    return PhaseRecord(
        phase.action.kind,
        marks.start_time,
        0.0,
        "failed",
        "see the repeat's error",
        against=phase.against,
    )


def limit_of(phase: Phase) -> float:
    """Seconds after which a phase is given up: what is asked to end gets a little more time."""
    time_to_end = 60.0 if phase.until.kind == "duration" else 30.0
    return phase.until.at_most + phase.action.ramp_seconds() + time_to_end


async def _within_limit(
    context: Context, hands: Hands, phase: Phase, since: float, record: PhaseRecord
) -> PhaseRecord:
    """The phase's work, to its own end or to the end that the scenario sets."""
    until = phase.until
    end_seen = False  # the end that the scenario sets

    async def end() -> None:
        nonlocal end_seen
        await wait_for_end(context, phase, since)
        end_seen = True

    kind = phase.action
    if not isinstance(kind, PhaseKind):
        raise TypeError(f"{kind} is no kind of phase")
    made: list[int] = []
    try:
        async with asyncio.timeout(limit_of(phase)):
            kind = await kind.found_in(context.cluster)
            made += await kind.make_changes(hands)
            result = await kind.carry_out(context, phase, None if until.kind == "done" else end)
    except TimeoutError:
        raise TooLong(f"did not end within {until.at_most:g} s (until: {until.kind})") from None
    except asyncio.CancelledError:
        made.clear()  # the end of the repeat undoes it with all else
        raise
    finally:
        if phase.take_back and made:
            await _take_back(context, hands, made)
    reason = ended_by(phase, end_seen, result)
    scrubs_done = all(mark.succeeded for mark in scrub_marks(context))
    if reason == "condition" and until.kind == "scrub_done" and not scrubs_done:
        reason = "other_phase"  # a scrub that failed or was cut off has ended too
    return replace(record, ended_by=reason, error="", result=result)


async def _take_back(context: Context, hands: Hands, made: Collection[int]) -> None:
    """Undo these steps of the journal. RunError if some could not be: they stay in it."""
    journal = hands.journal
    if any(step.moves_data for step in journal.steps(made)):
        context.data_moved = time.time()
        context.watcher.follower.expect(go_on=True)
    left_before = len(journal.left)
    failures = await journal.take_back(hands.cluster, made)
    for text in journal.left[left_before:]:
        context.recorder.event("changed_by_others", text=text)
    if failures:
        raise RunError(f"its change could not be taken back: {'; '.join(failures)}")


def _changes(record: PhaseRecord, against: PhaseRecord | None) -> Mapping[str, float]:
    """The changes of the load of this phase from that of another, in percent."""
    load, other = record.result, against.result if against else None
    if isinstance(load, LoadResult) and isinstance(other, LoadResult):
        return changes(other.total, load.total)
    return {}


class TooLong(RunError):
    """A phase whose end did not come."""


def ended_by(phase: Phase, end_seen: bool, result: PhaseResult) -> EndedBy:
    """What ended a phase; `end_seen`: the end that the scenario sets was seen.

    Clients end by themselves after `at_most`. If the end was not seen by then, they were cut off.
    """
    until = phase.until
    if isinstance(result, LoadResult) and any(step.ended_early for step in result.steps):
        return "done"
    needs_end = phase.action.has_clients and until.kind not in _CLIENTS_END_THEMSELVES
    if result.cut_off or (needs_end and not end_seen):
        return "cut_off"
    if until.kind == "duration":
        return "duration"
    if not end_seen:
        return "done"
    return "other_phase" if until.kind == "phase" else "condition"
