"""What a run measured that may say why it differs from a published trend. No control run, with
and without the supposed reason, is made: so each is called a guess."""

from collections.abc import Callable
from typing import Final

from cephqos_base.series import BEST_EFFORT, RECOVERY, QosSeries
from cephqos_loadgen.report.tables.of_reservations import load_steps
from cephqos_loadgen.report.tables.of_waiting import QUEUE, WaitingPlace, waited
from cephqos_loadgen.report.words import number

from .side import ALONE, POLICY, Side

Reason = Callable[[Side], str]
GUESS: Final = "A guess, which no control run has put to the test:"
_WORDS: Final = {BEST_EFFORT: "scrub", RECOVERY: "recovery"}


def waits_behind(work: str, *policies: str, meaning: str) -> Reason:
    """How much of the clients' time went by in the queue behind a class."""

    def reason(side: Side) -> str:
        points = {row.axes.get(POLICY): row.key.point for row in side.run.rows}
        shares = waited(side.run)
        said = []
        for policy in policies:
            found = [
                its for (point, phase), its in shares.items()
                if point == points.get(policy) and phase != ALONE
            ]  # fmt: skip
            if found:
                share = found[0].get(WaitingPlace(QUEUE, work))
                said.append(f"{'not known' if share is None else f'{share:.1%}'} with {policy}")
        if not said:
            return ""
        measured = f"Clients waited behind {_WORDS[work]} for {' and '.join(said)}."
        return f"{measured} {GUESS} {meaning}"

    return reason


LIMIT: Final = ("limit", QosSeries.LIMIT_OPS)
RESERVATION: Final = ("reservation", QosSeries.RESERVATION_OPS)


def bounds_of(of: tuple[str, str], work: str, *policies: str, meaning: str) -> Reason:
    """The limit or the reservation of a class on one OSD."""
    name, series_name = of

    def reason(side: Side) -> str:
        said = []
        for policy in policies:
            ends = [
                (observed.samples.of(series_name, **{"class": work}), load)
                for observed in side.run.finished
                if observed.record.axes.get(POLICY) == policy
                for load in load_steps(observed)
                if load.phase != ALONE
            ]
            # A limit that a profile does not have ends with the profile before it.
            limits = [it.at(load.end, load.start) for series, load in ends for it in series]
            if ends:
                found = max(filter(None, limits), default=None)
                limit = f"{number(found)} ops/s" if found else "none"
                said.append(f"{limit} with {policy}")
        if not said:
            return ""
        measured = f"The {name} of {_WORDS[work]} on an OSD: {', '.join(said)}."
        return f"{measured} {GUESS} {meaning}"

    return reason
