"""`cephqos advise`: its options, and where its facts come from.

`cephqos_loadgen.advise` computes the outcome of each candidate and writes the text.
"""

import argparse
import asyncio
import shlex
from collections.abc import Sequence
from typing import Final

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.terminal import say_json, say_progress, say_text
from cephqos_insight.advise.from_prometheus import gather
from cephqos_insight.past import Past, add_past, stretch
from cephqos_insight.prometheus_access import prometheus_of
from cephqos_loadgen.advise import text
from cephqos_loadgen.advise.candidates import ProposedTrial, candidates, trial
from cephqos_loadgen.advise.facts import Facts, checked
from cephqos_loadgen.advise.goals import HELP, answer, met_how, parse_goal, trial_for
from cephqos_loadgen.advise.outcome import outcome

_ANSWER_SECONDS: Final = 120.0  # for an answer about 1,000 OSDs and a day


def add_options(parser: Parser) -> None:
    parser.description = (
        "Show what another profile, WPQ or a right capacity would give, and the commands that set"
        " it and take it back. Nothing is changed."
    )
    parser.epilog = (
        "Status 0: rows, or what --for asks. 1: nothing gives it, or it is not known, or too little"
        " is recorded. 2: a mistake in the command."
    )
    add_past(parser, since="1h")
    parser.option("--repeat NAME", "one of several repeats of an archive, such as 'balanced r2'")
    parser.option("--cluster FSID", "one of several clusters", default="")
    parser.option(
        "--for GOAL...",
        f"search reservations that give this (repeatable): {HELP}",
        dest="goals",
    )
    parser.option("--json", "write JSON")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    goals = [parse_goal(goal) for goal in arguments.goals]
    since, at = stretch(arguments)
    if arguments.archive:
        clusters = await asyncio.to_thread(_in_archive, arguments, since, at)
    elif at is not None or arguments.repeat:
        raise UsageError(f"{'--repeat' if arguments.repeat else '--at'} needs --archive")
    else:
        async with prometheus_of(arguments, _ANSWER_SECONDS) as api:
            clusters = await gather(api, since, say_progress)
    facts = checked(clusters, arguments.cluster)
    if not goals:
        outcomes = [outcome(one, facts) for one in candidates(facts)]
        proposed: ProposedTrial | None = trial(facts)
        if arguments.json:
            say_json(text.document(facts, outcomes, None, proposed), indent=2)
        else:
            say_text(text.text(facts, outcomes, "", proposed))
        return 0
    answered = answer(goals, facts)
    shown = [candidate for candidate in candidates(facts) if candidate.now]
    if answered.candidate is not None and not answered.candidate.now:
        shown.append(answered.candidate)
    outcomes = [outcome(candidate, facts) for candidate in shown]
    proposed = trial_for(goals, facts) if answered.unknown else None
    if arguments.json:
        say_json(text.document(facts, outcomes, answered, proposed), indent=2)
    else:
        say_text(text.text(facts, outcomes, met_how(goals, answered), proposed))
    return 1 if answered.candidate is None else 0


def _in_archive(arguments: argparse.Namespace, since: float, at: float | None) -> Sequence[Facts]:
    """The facts of the repeat of a run that is named, or covers the time."""
    past = Past(arguments.archive, None, since, at, repeat=arguments.repeat or "")
    from cephqos_loadgen.report.figures.advice_facts import advice_facts

    if len(past.parts) > 1:
        names = ", ".join(part.name for part in past.parts)
        raise UsageError(
            f"{arguments.archive}: found {len(past.parts)} repeats in this time: {names}; expected"
            f" one, such as --repeat {shlex.quote(past.parts[0].name)}"
        )
    return list(advice_facts(*past.parts[0][1:]))
