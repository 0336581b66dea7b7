"""What pages name is there: links, commands and their options, make targets, files, alerts, series,
variables, tests. A page that names something that has gone would cost its reader an evening."""

import argparse
import itertools
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from cephqos_base.command import COMMANDS, Parser, load
from cephqos_exporter.cli import every_option

from ..alerts.test_rules import NAMES, RECORDED, recorded_names
from .pages import FENCE, PAGES, code, prose, read

_PACKAGES: Final = ("exporter", "loadgen", "alerts", "dashboards", "deploy", "docs", "tests")
# Of other programs, and what a reader fills in.
_FOREIGN: Final = {"LOKI_ADDR", "LOKI_HOST", "PROMETHEUS_HOST", "GRAFANA_HOST"}
_VARIABLE: Final = re.compile(
    r"\b(?:CEPH|CEPHQOS|GRAFANA|LOKI|LAB|LOAD|COLLECTOR|PROMETHEUS|PROBE|ALERTMANAGER)_[A-Z_]+\b"
)


@cache
def _sources() -> str:
    """Everything that is no page: packages, files of deployments, tests."""
    listed = subprocess.run(
        ["git", "ls-files", "--", *_PACKAGES, "Makefile", "pyproject.toml"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout.split()
    left_out = (".md", ".gz", ".png", ".sum", ".cdx.json")
    files = [Path(name) for name in listed if not name.endswith(left_out)]
    return "\n".join(
        file.read_text(encoding="utf-8", errors="replace")
        for file in files
        if file.is_file() and "recordings" not in file.parts and file.name != Path(__file__).name
    )


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower().strip()).replace(" ", "-") for head in heads}


def test_there_are_pages() -> None:
    assert len(PAGES) > 30


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            lost.append(target)
    assert lost == []


def _options(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a command and of those below it."""
    known = {name for action in parser._actions for name in action.option_strings}
    below = [it for it in parser._actions if isinstance(it, argparse._SubParsersAction)]
    return known.union(*(_options(choice) for it in below for choice in it.choices.values()))


@cache
def _command(name: str) -> Parser:
    """A command of cephqos with all that it takes."""
    parser = Parser(prog=name)
    load(next(entry for entry in COMMANDS if entry.name == name))(parser)
    return parser


@cache
def _of_exporter() -> frozenset[str]:
    names = {option.name for option in every_option()} | {"config.file", "config.check", "help"}
    return frozenset(f"--{no}{name}" for name in names for no in ("", "no-")) | {
        "--version",
        "--print-completion",
    }


# Where the options of a command are explained.
_PAGE_OF: Final = {
    "demo": "docs/start/demo.md",
    "lab": "docs/measure/lab.md",
    "top": "docs/operate/top.md",
    "run": "docs/measure/index.md",
    "scenarios": "docs/measure/index.md",
    "record": "docs/operate/recorder.md",
    "archive": "docs/measure/recording.md",
    "report": "docs/measure/report.md",
    "compare": "docs/measure/report.md",
    "replay": "docs/measure/replay.md",
    "rules": "docs/operate/alerts.md",
    "dashboards": "docs/operate/dashboards.md",
    "doctor": "docs/operate/doctor.md",
    "advise": "docs/operate/advise.md",
    "trial": "docs/operate/trial.md",
    "capacity": "docs/operate/capacity.md",
    "who": "docs/operate/who.md",
    "blame": "docs/operate/blame.md",
}
_MORE_PAGES_OF: Final = {
    "run": (Path("docs/measure/scenarios.md"), Path("docs/measure/recording.md"))
}


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_every_option_of_a_command_stands_on_its_page(name: str) -> None:
    pages = [Path(_PAGE_OF[name]), *_MORE_PAGES_OF.get(name, ())]
    named = {it for page in pages for line in code(page) for it in _OPTION.findall(line)}
    # The doctor takes some of the exporter's, whose page has a table of all.
    elsewhere = {"--help"} | (_of_exporter() if name == "doctor" else set())
    options = {it for it in _options(_command(name)) if it.startswith("--")}
    assert options - elsewhere - named == set()


_OPTION: Final = re.compile(r"(?<![\w/-])--[a-z][\w.-]*[a-z0-9]")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_an_option_that_stands_alone_is_known_to_something_of_ours(page: Path) -> None:
    ours = _of_exporter().union(*(_options(_command(entry.name)) for entry in COMMANDS))
    named = {name for line in code(page) for name in _OPTION.findall(line)}
    assert {name for name in named - ours if name not in _sources()} - _OF_OTHERS == set()


# Of programs that a page tells the reader to run, and that nothing of ours runs.
_OF_OTHERS: Final = {
    *(
        "--osd-id",
        *("--addtag", "--deltag", "--lookup"),
        *("--bluefs_replay_recovery", "--bluefs_replay_recovery_disable_compact"),
        "--data-path",
        "--pgid",
        "--osd-fsid",
        "--no-systemd",
        "--mode",
        "--owner",
        "--sort",
        "--mount",
        "--debug-ms",
        "--permanent",
        "--add-service",
        "--remove-service",
        "--reload",
        "--daemon-type",
        "--since",
        "--limit",
        *("--prune", "--rank", "--ulimit"),
    ),
    "--web.enable-remote-write-receiver",
    "--web.enable-otlp-receiver",
    *(
        "--replicas",
        *("--bucket", "--bucket-id"),
        "--num-shards",
        "--end-date",
        "--max-write-ops",
        "--ratelimit-scope",
    ),
    *(
        "--detach",
        "--namespace",
        "--set",
        "--set-string",
        "--set-file",
        "--from-file",
        "--follow",
        "--volumes",
        "--agent",
    ),
    "--data-urlencode",
    "--reset-then-reuse-values",
    *("--permanent", "--add-port", "--reload"),
    "--storage.agent.retention.max-time",
}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", Path("Makefile").read_text(), re.MULTILINE))
    make = re.compile(r"(?:^|sudo )make ([a-z][a-z-]+)")
    named = {name for line in code(page) for name in make.findall(line)}
    assert {name for name in named - targets if not name.endswith("-")} == set()


def _looks_like_ours(name: str) -> bool:
    first = name.split("/")[0]
    return first in _PACKAGES or first.startswith("cephqos_")


def _is_there(name: str, page: Path) -> bool:
    roots = [Path(), page.parent, *(Path(package) for package in _PACKAGES)]
    return any(next(root.glob(name), None) is not None for root in roots)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_files_of_ours_exist(page: Path) -> None:
    named = {
        name.rstrip("./")
        for line in code(page)
        for name in re.findall(r"(?<![\w./$~{:@-])(?:[\w.-]+/)+[\w.*-]*", line)
    }
    assert {it for it in named if _looks_like_ours(it) and not _is_there(it, page)} == set()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_alerts_exist(page: Path) -> None:
    named = set(re.findall(r"\bCephQos\w+", read(page)))
    assert named - {*NAMES, *re.findall(r"alert: (\w+)", _sources())} == set()


def _expanded(text: str) -> str:
    """`a_{b,c}_total` as `a_b_total a_c_total`."""

    def each(match: re.Match[str]) -> str:
        parts = [part.strip("{}").split(",") for part in re.split(r"(\{[\w,]+\})", match[0])]
        return " ".join("".join(it) for it in itertools.product(*parts))

    return re.sub(r"\bcephqos_\w*(?:\{[a-z_]+(?:,[a-z_]+)+\}_\w*)+", each, text)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_series_and_packages_exist(page: Path) -> None:
    # One that ends in an underscore, an ellipsis or a star stands for several.
    text = re.sub(r"cephqos_\w*(?:_\b|[…*{]|\\_)\S*", "", _expanded(read(page)))
    named = set(re.findall(r"\bcephqos_\w+", text))
    suffix = re.compile(r"_(?:bucket|count|sum|total)$")
    sources = _sources()
    lost = {name for name in named if name not in sources}
    assert {name for name in lost if suffix.sub("", name) not in sources} == set()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_recorded_series_exist(page: Path) -> None:
    text = re.sub(r"\S*…\S*", "", read(page))
    assert recorded_names(text) - RECORDED == set()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_variables_of_the_environment_exist(page: Path) -> None:
    named = {name for line in code(page) for name in _VARIABLE.findall(line)}
    exporter = {f"CEPHQOS_EXPORTER_{re.sub('[.-]', '_', o.name).upper()}" for o in every_option()}
    lost = {name for name in named - exporter - _FOREIGN if name not in _sources()}
    assert {name for name in lost if not name.endswith("_")} == set()


def _picked(command: str) -> tuple[list[Path], str]:
    words = command.removeprefix("pytest ").split(" -k ")
    files = [Path(word) for word in words[0].split() if word.startswith("tests/")]
    return files, words[1].strip("\"'") if len(words) > 1 else ""


def _pytests() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for line in code(page):
            if line.startswith("pytest tests/") and "--regenerate" not in line:
                yield f"{page}", line


@pytest.mark.parametrize(("page", "command"), list(_pytests()))
def test_a_test_that_a_page_names_is_one_that_pytest_would_pick(page: str, command: str) -> None:
    files, expression = _picked(command)
    assert files, page
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    names = re.findall(r"def (test_\w+)", text)
    assert names
    for word in set(re.findall(r"\w+", expression)) - {"or", "and", "not"}:
        # Ids of parameters are picked by as well: a file has to hold the word then.
        known = any(word in name for name in names) or re.search(rf"\b{word}\b", text)
        assert known, f"{word} picks nothing"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_blocks_of_shell_are_shell(page: Path) -> None:
    for language, text in FENCE.findall(read(page)):
        if language == "sh":
            done = subprocess.run(
                ["bash", "-n"], input=text, capture_output=True, text=True, check=False, timeout=10
            )
            assert done.returncode == 0, f"{done.stderr}\n{text}"


@pytest.mark.parametrize("page", [it for it in PAGES if it.parts[0] == "docs"], ids=str)
def test_what_belongs_to_an_item_of_a_list_is_indented_by_four(page: Path) -> None:
    """With less, the site ends the list there: the next item would be text of a paragraph."""
    lines = prose(page).splitlines()
    lost = [
        line
        for before, line in itertools.pairwise(lines)
        if not before and re.match(r" {1,3}\S", line)
    ]
    assert lost == []
