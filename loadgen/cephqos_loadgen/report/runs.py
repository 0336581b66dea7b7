"""The runs that a report or a comparison is asked for, read and checked."""

from collections.abc import Sequence
from pathlib import Path

from cephqos_base.errors import UsageError
from cephqos_loadgen.archive.reader import WRONG_SHAPES, damage_named, open_archive
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.document import Document
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow, ReportRun, ReportSettings, analyse
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.words import listed


def built(runs: list[ReportRun], folders: list[Path], settings: ReportSettings) -> Document:
    """The report; ArchiveDamaged names the archive whose plan or environment is no such thing."""
    try:
        return build(runs, settings)
    except WRONG_SHAPES:
        base = settings.baseline_run
        sides = [*zip(runs, folders, strict=True), *([(base, Path(base.folder))] if base else [])]
        for run, folder in sides:
            with damage_named(folder):
                build([run], ReportSettings())
        raise


def read_runs(folders: list[Path]) -> list[ReportRun]:
    """All archives, analysed; the same one twice is a mistake."""
    runs: list[ReportRun] = []
    for folder in folders:
        archive = open_archive(folder)
        if archive.manifest.run in {run.name for run in runs}:
            raise UsageError(f"{folder}: the run {archive.manifest.run} is given twice")
        runs.append(analyse(archive))
    check_apart(runs)
    return runs


def check_apart(runs: Sequence[ReportRun]) -> None:
    """UsageError where a run is there beside the one that resumed it: they have repeats in common,
    which would count twice, or be compared with themselves."""
    for run in runs:
        for other in runs:
            if other.folder in run.resumed:
                raise UsageError(
                    f"{run.name} resumed {other.name} and has its finished repeats: give it alone"
                )


def read_baseline(text: str | None) -> ReportSettings:
    """What changes are taken from: a throughput, or the best load of an archive."""
    if text is None:
        return ReportSettings()
    try:
        given = float(text.replace(",", ""))
        if not 0 < given < float("inf"):
            raise UsageError(f"--baseline {text}: expected more than 0 IOPS")
        return ReportSettings((given,), f"{text} IOPS, as given")
    except ValueError:
        run = analyse(open_archive(Path(text)))
    loads = [row for row in Subject([run], ReportSettings()).main_loads]
    if not loads:
        raise UsageError(f"--baseline {text}: no load of one depth in a finished repeat")
    best = max(loads, key=lambda row: row.figures[metrics.IOPS.key].value)
    return against(run, best)


def against(run: ReportRun, row: ReportRow) -> ReportSettings:
    """Settings that compare with this load of a run."""
    return ReportSettings(
        baseline_iops=row.figures[metrics.IOPS.key].samples,
        baseline_name=f"{run.name}, {row.key.phase} of {row.key.point}",
        baseline_run=run,
        baseline_row=row,
    )


def check_reference(subject: Subject) -> None:
    wanted = subject.settings.reference
    names = {row.key.point for row in subject.rows} | {subject.label(r.key) for r in subject.rows}
    if wanted and wanted not in names:
        points = list(dict.fromkeys(row.key.point for row in subject.rows))
        raise UsageError(
            f"--reference {wanted}: no such point; the points are: {listed(points, 8)}"
        )
