"""From runs to a document: sentences made from the figures, caveats, tables, charts.

Caveats come first, because the tables show the numbers of those that touch a row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cephqos_loadgen.report.caveats.caveat import Caveat, gravest_first
from cephqos_loadgen.report.caveats.every import caveats as caveats_of
from cephqos_loadgen.report.caveats.of_baseline import of_another_environment, slower_than_the_load
from cephqos_loadgen.report.charts.every import charts
from cephqos_loadgen.report.charts.over_time import MOST_TIMELINES
from cephqos_loadgen.report.command import repeat_command
from cephqos_loadgen.report.document import Document
from cephqos_loadgen.report.figures.analysis import Key, ReportRun, ReportSettings
from cephqos_loadgen.report.sentences import summary
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.every import tables
from cephqos_loadgen.report.tables.of_samples import samples_table
from cephqos_loadgen.report.words import listed
from cephqos_loadgen.run_recording.layout import RECORDED


def build(runs: Sequence[ReportRun], settings: ReportSettings) -> Document:
    """The whole report."""
    without_marks = Subject(runs, settings)
    caveats = [_in_short(caveat, without_marks) for caveat in _caveats_of_runs(without_marks)]
    base = settings.baseline_run
    # What speaks against the baseline speaks against every change from it.
    for caveat in caveats_of(base) if base else ():
        caveats.append(replace(caveat, text=f"Baseline: {caveat.text}", rows=()))
    marked: dict[Key, list[int]] = {}
    for number, caveat in enumerate(caveats, start=1):
        for key in caveat.rows:
            marked.setdefault(key, []).append(number)
    subject = Subject(runs, settings, marked)
    names = list(dict.fromkeys(run.manifest.scenario for run in runs))
    about = list(dict.fromkeys(" ".join(str(run.plan.get("about", "")).split()) for run in runs))
    return Document(
        title=f"{listed(names)}: what clients got",
        question=" ".join(filter(None, about)),
        summary=tuple(summary(subject)),
        caveats=tuple(caveats),
        tables=tuple(tables(subject)),
        charts=tuple(charts(subject)),
        samples=samples_table([*runs, *([base] if base else [])]),
        commands=tuple(repeat_command(run) for run in runs if run.manifest.scenario != RECORDED),
    )


def _caveats_of_runs(subject: Subject) -> list[Caveat]:
    """Of all runs, the gravest first; the run is named where there are several."""
    caveats = [
        *slower_than_the_load(
            [*subject.main_loads, *subject.steps], subject.settings.baseline_iops
        ),
        *of_another_environment(subject.runs, subject.settings.baseline_run),
    ]
    caveats += _not_drawn(subject)
    for run in subject.runs:
        name = f"{run.name}: " if len(subject.runs) > 1 else ""
        caveats += [replace(caveat, text=name + caveat.text) for caveat in caveats_of(run)]
    return gravest_first(caveats)


def _not_drawn(subject: Subject) -> Iterator[Caveat]:
    """A page of hundreds of charts is too long to read."""
    points = len({(run.name, o.record.point) for run in subject.runs for o in run.finished})
    if points > MOST_TIMELINES:
        yield Caveat(
            "note",
            f"Only the first {MOST_TIMELINES} of {points} points are drawn over time.",
            "cephqos archive export has the seconds of all.",
        )


def _in_short(caveat: Caveat, subject: Subject) -> Caveat:
    """The caveat with the points called as in the tables."""
    text, evidence = caveat.text, caveat.evidence
    for point in sorted(subject.short_names, key=len, reverse=True):
        name = subject.short_names[point]
        text, evidence = text.replace(point, name), evidence.replace(point, name)
    return replace(caveat, text=text, evidence=evidence)
