"""`cephqos compare`: runs against a reference, on the terminal or as a file; for CI too."""

import argparse
from pathlib import Path

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.terminal import printable, say, say_json, say_text
from cephqos_loadgen.archive.reader import ArchiveDamaged, damage_named
from cephqos_loadgen.report.caveats.every import caveats
from cephqos_loadgen.report.compare.comparison import SHOWN, compare
from cephqos_loadgen.report.compare.differing import run_differences
from cephqos_loadgen.report.compare.fail_rules import judge, read_rule
from cephqos_loadgen.report.compare.output import to_document, to_json, to_terminal
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.pages.markdown import to_markdown
from cephqos_loadgen.report.pages.page import to_html
from cephqos_loadgen.report.runs import check_apart, read_runs
from cephqos_loadgen.report.words import listed


def add_options(parser: Parser) -> None:
    parser.add_argument("archive", nargs="+", type=Path, help="two or more; the first is compared"
                        " with, unless --reference names another")  # fmt: skip
    parser.option("--reference ARCHIVE", "the archive to compare with")
    parser.option(
        "--fail-if RULE...",
        "exit 1 where this is true beyond noise: 'clat_p99 > 1.10 * ref'"
        " (repeatable; default: any regression)",
    )
    parser.option("--although-different", "compare runs of different environments")
    form = parser.add_mutually_exclusive_group()
    for name in ("Markdown", "HTML", "JSON"):
        form.add_argument(f"--{name.lower()}", dest="form", action="store_const",
                          const=name.lower(), help=f"print {name}")  # fmt: skip
    parser.set_defaults(run=_compare)


async def _compare(arguments: argparse.Namespace) -> int:
    rules = [read_rule(text) for text in arguments.fail_if]
    try:
        reference, others = read_sides(arguments.archive, arguments.reference)
    except ArchiveDamaged as error:
        # Status 1 is a regression: a gate must not take an archive that cannot be read for one.
        raise UsageError(str(error)) from None
    lines = (line for run in others for line in run_differences(reference, run))
    differing = list(dict.fromkeys(map(printable, lines)))
    if differing and not arguments.although_different:
        raise UsageError(
            f"the runs are not of the same environment: {'; '.join(differing)}"
            " (--although-different compares them all the same)"
        )
    kinds = list(dict.fromkeys((*SHOWN, *(rule.metric for rule in rules))))
    comparison = compare(reference, others, kinds)
    if not comparison.differences:
        raise UsageError(
            f"nothing to compare: no row of {listed([run.name for run in others])} matches one of"
            f" {reference.name}"
        )
    outcome = judge(comparison, rules)
    if arguments.form == "json":
        say_json(to_json(comparison, outcome, differing))
    elif arguments.form:
        document = to_document(comparison, outcome, differing)
        say_text({"markdown": to_markdown, "html": to_html}[arguments.form](document))
    else:
        say_text(to_terminal(comparison, outcome))
        say(*(f"the environments differ: {line}" for line in differing))
    return outcome.exit_status


def read_sides(folders: list[Path], wanted: Path | None) -> tuple[ReportRun, list[ReportRun]]:
    """The reference, and what is compared with it. A run may be compared with itself."""
    if wanted is None:
        wanted, folders = folders[0], folders[1:]
    else:
        folders = [folder for folder in folders if folder.resolve() != wanted.resolve()]
    if not folders:
        raise UsageError("give two archives or more: there is nothing to compare with")
    reference = _read(wanted)
    others = [
        reference if folder.resolve() == wanted.resolve() else _read(folder) for folder in folders
    ]
    check_apart([reference, *others])
    return reference, others


def _read(folder: Path) -> ReportRun:
    """One run whose plan and environment can be compared, else ArchiveDamaged."""
    (run,) = read_runs([folder])
    with damage_named(folder):
        list(run_differences(run, run))
        caveats(run)
    return run
