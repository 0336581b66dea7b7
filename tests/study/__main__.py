"""Run the small study on labs of this machine, piece by piece, and write its pages. What is done
stays done: the same command goes on."""

import argparse
import asyncio
import contextlib
import csv
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.by_signal import clean_up_when_ended

from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.charts.svg import standalone
from cephqos_loadgen.report.figures.analysis import ReportRun, ReportSettings, analyse
from cephqos_loadgen.report.pages.markdown import to_csv as table_to_csv
from cephqos_loadgen.report.pages.write import PAGE, write
from cephqos_stack.report import evaluate_causes

from .document import FIGURES, OVER_TIME_CHARTS, VERDICTS, to_csv, to_markdown, verdicts
from .experiments import BAR, EXPERIMENTS, OVER_TIME, PLANNED, Piece, pieces
from .side import LABS, measured, merged, read_labs, together, write_labs

_LEAST_LABS = 2  # of a report: of one lab it says nothing of noise
_TO_END = 300.0  # seconds for a run to restore its cluster and to end its lab


@dataclass(frozen=True)
class Options:
    """How much is run, and where archives and pages go."""

    archives: Path
    out: Path
    labs: int
    bar: float
    quick: bool
    causes: bool


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.study", description=__doc__)
    parser.add_argument("--archives", type=Path, default=Path("build/study-small"))
    parser.add_argument("--out", type=Path, default=Path("docs/internals/study-small"))
    parser.add_argument(
        "--labs", type=int, default=PLANNED, help=f"of each experiment (default: {PLANNED})"
    )
    parser.add_argument("--minutes", type=float, help="begin no piece that would end later")
    parser.add_argument("--only", action="append", default=[], help="an experiment (repeatable)")
    parser.add_argument("--bar", type=float, default=BAR * 100, metavar="PERCENT",
                        help="of the CPUs, for other programs (default: 10)")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="say what is done and what is left")
    parser.add_argument("--page-only", action="store_true", help="from the archives that are there")
    parser.add_argument("--quick", action="store_true", help="very short phases, to try all")
    parser.add_argument("--no-causes", dest="causes", action="store_false")
    given = parser.parse_args()
    options = Options(
        given.archives, given.out, given.labs, given.bar / 100, given.quick, given.causes
    )
    chosen = [
        piece
        for piece in pieces(options.archives, options.labs, quick=options.quick)
        if not given.only or piece.experiment.name in given.only
    ]
    if given.list:
        print("\n".join(progress(chosen, options.bar)))
        return 0
    failed = 0 if given.page_only else run(chosen, options, given.minutes)
    print(write_pages(options))
    return failed


def progress(chosen: list[Piece], bar: float) -> list[str]:
    """What is done, what is left, and for how long."""
    lines, left = [], 0
    for piece in chosen:
        if path := piece.done(bar):
            state = f"done: {path.name}"
        else:
            left += piece.experiment.minutes
            tried = len(piece.archives)
            state = f"left, about {piece.experiment.minutes} min"
            state += f" ({tried} disturbed or not finished)" if tried else ""
        lines.append(f"{piece.title:34} {state}")
    return [*lines, f"left: about {left // 60} h {left % 60} min"]


def run(chosen: list[Piece], options: Options, minutes: float | None) -> int:
    """The pieces that are left, each once; how many did not come to an end."""
    began, failed = time.monotonic(), 0
    for piece in chosen:
        if piece.done(options.bar):
            continue
        spent = (time.monotonic() - began) / 60
        if minutes is not None and spent + piece.experiment.minutes > minutes:
            continue
        print(f"== {piece.title}: {piece.experiment.about}", flush=True)
        status = ended(piece.command(options.bar))
        took = (time.monotonic() - began) / 60 - spent
        word = "done" if piece.done(options.bar) else "disturbed, or not finished: left"
        failed += status != 0
        print(f"== {piece.title}: {word}, {took:.1f} min", flush=True)
        print(f"== {progress(chosen, options.bar)[-1]}", flush=True)
    return failed


def ended(argv: list[str]) -> int:
    """Run this to its end. If this program is interrupted, the run is too, and has the time to end
    its lab: Ctrl-C reaches both, any other signal is passed on."""
    child = subprocess.Popen(argv)
    try:
        return child.wait()
    except BaseException as interruption:
        if not isinstance(interruption, KeyboardInterrupt):
            child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_TO_END)
        raise
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def _analysed(path: Path, *, causes: bool) -> ReportRun:
    run = analyse(open_archive(path))
    return asyncio.run(evaluate_causes(run, path)) if causes else run


def write_pages(options: Options) -> Path:
    """The report and the table of each experiment that has archives here, and from all tables the
    first page. Labs that ran on another day are in the tables, and stay there."""
    every = list(pieces(options.archives, options.labs, quick=options.quick))
    sides = {}
    for experiment in EXPERIMENTS:
        own = [piece.done(options.bar) for piece in every if piece.experiment == experiment]
        table = options.out / experiment.name / LABS
        side = read_labs(table, experiment.ran_with)
        if done := [_analysed(path, causes=options.causes) for path in own if path]:
            if len(done) >= _LEAST_LABS:
                _write_report(experiment.name, table.parent, done)
            if experiment in OVER_TIME:
                _write_over_time(table.parent, done[-1])
            side = together(side, measured(done))
            write_labs(side, table, experiment.ran_with)
        if side.rows:
            sides[experiment.name] = side
    if not sides:
        raise SystemExit(f"{options.archives}: no piece is done; run without --page-only")
    page = options.out / "README.md"
    page.write_text(to_markdown(sides), encoding="utf-8")
    for name, rows in ((FIGURES, to_csv(sides)), (VERDICTS, verdicts(sides))):
        with (options.out / name).open("w", newline="", encoding="utf-8") as opened:
            csv.writer(opened, lineterminator="\n").writerows(rows)
    return page


def _write_over_time(folder: Path, lab: ReportRun) -> None:
    """Policies laid over one another, in one lab: means of several would blur what one does."""
    drawn = build([lab], ReportSettings()).charts
    charts = [
        it for it in drawn if it.name.startswith("overlaid") and it.title.startswith("client")
    ]
    for name, chart in zip(OVER_TIME_CHARTS, charts, strict=False):
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.with_suffix(".svg").write_text(standalone(chart.svg), encoding="utf-8")
        if chart.data:
            place.with_suffix(".csv").write_text(table_to_csv(chart.data), encoding="utf-8")


def _write_report(name: str, folder: Path, labs: list[ReportRun]) -> None:
    write(build([merged(name, labs)], ReportSettings()), folder)
    (folder / PAGE).unlink()


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(main())
