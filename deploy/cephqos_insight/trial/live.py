"""What the terminal shows while a trial goes on."""

import time
from collections.abc import Mapping
from typing import Any

from cephqos_base.units import time_span
from cephqos_insight.trial import report
from cephqos_insight.trial.conduct import Trial


def live_line(trial: Trial, event: str, details: Mapping[str, Any]) -> str:
    """The line that stays of an event; empty for most."""
    if event == "block_ended":
        shown = details["lost"] or _figure(trial, details["figures"])
        return f"{_place(trial, details)}: {shown}"
    if event == "restart":
        return f"OSDs are restarted for: {details['arm']}"
    if event == "look":
        parts = [
            f"{name}: {trial.by} {report.percent(change)}"
            for name in trial.timetable.candidates
            if (change := trial.change(name, trial.by))
        ]
        known = "; ".join(parts) or "too few rounds for an estimate"
        table = trial.timetable
        left = table.seconds(table.most_rounds) - table.seconds(trial.rounds)
        more = f", {time_span(left)} left at most" if left else ""
        return f"  after {trial.rounds} rounds{more}: {known}"
    return ""


class NowLine:
    """The line that a terminal shows of the block that goes on."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._block: Mapping[str, Any] = {}  # that goes on
        self._trial_began = self._began = time.monotonic()

    def after(self, event: str, details: Mapping[str, Any]) -> str:
        """Empty: the line stays as it is."""
        if event == "block_started":
            self._block, self._began = details, time.monotonic()
            return _place(self._trial, details)
        if event != "look_at":
            return ""
        now, table = time.monotonic(), self._trial.timetable
        left = max(0.0, table.seconds(table.most_rounds) - (now - self._trial_began))
        figure = _figure(self._trial, details["figures"])
        parts = [
            f"{time_span(now - self._began)} of {time_span(table.block_seconds)}",
            *([f"{figure} now"] if figure else []),
            f"{time_span(left)} left at most",
        ]
        return f"{_place(self._trial, self._block)}: {', '.join(parts)}"


def _place(trial: Trial, block: Mapping[str, Any]) -> str:
    number, most = block["round"], trial.timetable.most_rounds
    return f"{f'round {number} of {most}' if number else 'for the guard rails'}, {block['arm']}"


def _figure(trial: Trial, figures: Mapping[str, float]) -> str:
    """The figure that decides, if it is known."""
    by = trial.by
    return f"{by} {report.with_unit(by, figures[by])}" if by in figures else ""
