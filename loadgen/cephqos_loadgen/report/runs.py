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
    """The report; ArchiveDamaged where the plan or environment of an archive has a wrong shape.

    Which archive it is comes out when a report of each alone is tried.
    """
    try:
        return build(runs, settings)
    except WRONG_SHAPES:
        archives = list(zip(runs, folders, strict=True))
        if base := settings.baseline_run:
            archives.append((base, Path(base.folder)))
        for run, folder in archives:
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
        for earlier in runs:
            if earlier.folder in run.resumed:
                raise UsageError(
                    f"{run.name} resumed {earlier.name} and has its finished repeats: give it alone"
                )


def read_baseline(text: str | None) -> ReportSettings:
    """The settings for a --baseline: a throughput, or an archive, whose best load counts."""
    if text is None:
        return ReportSettings()
    try:
        iops = float(text.replace(",", ""))
        if not 0 < iops < float("inf"):
            raise UsageError(f"--baseline {text}: expected more than 0 IOPS")
        return ReportSettings((iops,), f"{text} IOPS, as given")
    except ValueError:
        run = analyse(open_archive(Path(text)))
    loads = Subject([run], ReportSettings()).main_loads
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
    """UsageError where the settings name a reference point that no row is of."""
    reference = subject.settings.reference
    names = {row.key.point for row in subject.rows} | {subject.label(r.key) for r in subject.rows}
    if reference and reference not in names:
        points = list(dict.fromkeys(row.key.point for row in subject.rows))
        raise UsageError(
            f"--reference {reference}: no such point; the points are: {listed(points, 8)}"
        )
