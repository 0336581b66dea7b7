"""`cephqos report`: archives as an HTML page, Markdown, CSV tables and SVG charts."""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.terminal import say
from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.progress import Progress
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.figures.causes import TIME_SCALE, WANTED, with_causes
from cephqos_loadgen.report.figures.observe import ObservedCause
from cephqos_loadgen.report.pages.write import PAGE, write
from cephqos_loadgen.report.runs import built, check_reference, read_baseline, read_runs
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.run_recording.columns import parse
from cephqos_stack.replay.gather import evaluated, scrape_interval


def add_options(parser: Parser) -> None:
    parser.add_argument("archive", nargs="+", type=Path, help="folder of a recorded run")
    parser.option("--out DIR", "folder of the report (default: ARCHIVE-report)")
    parser.option("--reference POINT", "compare with this point (default: the first)", default="")
    parser.option("--baseline ARCHIVE|IOPS", "compare throughput with this run, or with a figure")
    parser.option("--target SHARE", "share of the baseline to keep, such as 50%%", type=_share)
    parser.option(
        "--percentile P...", "one more percentile of latency, such as 99.95", type=_percentile
    )
    parser.option(
        "--causes",
        "evaluate the recording rules over each run: why classes got no more"
        " (needs Prometheus; takes a while)",
    )
    parser.set_defaults(run=_report)


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a share such as 50% or 0.5")
    return value


def _percentile(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 100:
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0 and below 100")
    return value


async def _report(arguments: argparse.Namespace) -> int:
    if arguments.target is not None and not arguments.baseline:
        raise UsageError("--target is a share of the baseline: give --baseline too")
    runs = read_runs(arguments.archive)
    if arguments.causes:
        pairs = zip(runs, arguments.archive, strict=True)
        runs = [await evaluate_causes(run, folder) for run, folder in pairs]
    settings = replace(
        read_baseline(arguments.baseline),
        target=arguments.target,
        reference=arguments.reference,
        percentiles=tuple(arguments.percentile),
    )
    check_reference(Subject(runs, settings))
    document = built(runs, arguments.archive, settings)
    first = arguments.archive[0]
    folder = arguments.out or first.with_name(f"{first.resolve().name}-report")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out {folder}: expected a folder")
    write(document, folder)
    say(*document.summary)
    for caveat in document.caveats[:1]:
        say(f"Main caveat: {caveat.text} {caveat.evidence}".rstrip())
    say(folder / PAGE)
    return 0


async def evaluate_causes(run: ReportRun, folder: Path) -> ReportRun:
    """The run with the causes that the recording rules give for each second."""
    with Progress().step(f"evaluating rules over {run.name}") as say:
        archive = open_archive(folder)
        # Windows of rules are shortened only for runs, which have a sample each second.
        scale = TIME_SCALE if scrape_interval(archive) <= 1 else 1.0
        recorded = await evaluated(archive, WANTED, say, time_scale=scale)
    causes = []
    for series, samples in recorded.series.items():
        _, labels = parse(series)
        osd, cls, cause, by = (labels.get(n, "") for n in ("ceph_daemon", "class", "cause", "by"))
        times = np.asarray(sorted(at / 1000 for at, value in samples.items() if value), np.float64)
        causes.append(ObservedCause(osd, cls, cause, by, times))
    return with_causes(run, causes)
