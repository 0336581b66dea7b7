"""The `cephqos` command as a whole: what it says of a line that it does not understand."""

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cephqos_base import marked
from cephqos_base.command import COMMANDS, CommandEntry, Parser, build_parser, load, main
from cephqos_base.errors import UsageError
from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.lab.state import make_lab


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (["run", "--chek"], "cephqos run"),
        (["archive", "ls", "--bogus"], "cephqos archive ls"),
        (["lab", "fault", "stop", "--osd", "1", "--bogus"], "cephqos lab fault stop"),
        (["--bogus", "scenarios"], "cephqos"),
    ],
)
def test_an_unknown_option_names_the_help_of_its_own_command(
    line: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(line)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{command}: unrecognized arguments: --")
    assert said.endswith(f"(see {command} --help)\n")
    assert ("did you mean --check?" in said) == ("--chek" in line)


def test_a_number_that_is_offered_as_a_choice_is_taken() -> None:
    assert build_parser().parse_args(["lab", "up", "--rotational", "1"]).rotational == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "cephqos: expected one of: demo, lab, top, run,"),
        ("rules", "cephqos rules: expected one of: build, check, series (see"),
        ("archive", "cephqos archive: expected one of: ls, verify, show, export (see"),
        (
            "doctor",
            "doctor: expected one of: host, cluster, prometheus, dump, collect (see",
        ),
        ("dashboards", "cephqos dashboards: expected one of: build, check, install (see"),
        ("rules build", "cephqos rules build: expected --out DIR (directory to write the rules"),
        ("replay x", "cephqos replay: expected one of: --into DIR|URL, --serve (see"),
        ("topp", "; did you mean top? (see"),
        ("doctor hosst", "; did you mean host? (see"),
        ("top --exportr x", "; did you mean --exporter? (see"),
    ],
)
def test_what_is_missing_or_mistyped_is_answered_with_what_there_is(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(line.split())
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (["top", "--json", "--url", "http://127.0.0.1:1"], 1),
        (["lab", "status", "--json", "--name", "there-is-none"], 2),
        (["archive", "show", "--json", "/nowhere"], 2),
        (["compare", "--json", "/nowhere", "/nowhere-else"], 2),
        (["doctor", "prometheus", "--json", "no-url"], 2),
    ],
)
def test_an_error_is_json_too_where_json_was_asked_for(
    line: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line) == status
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["exit_status"] == status
    assert said.err == f"cephqos: {found['error']}\n"


@pytest.mark.parametrize("option", ["--interval=0", "--interval=nan", "--duration=-5", "--osds=1"])
def test_what_the_demo_cannot_do_is_refused_before_it_starts_a_cluster(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", option]) == 2
    assert capsys.readouterr().err.startswith(f"cephqos: {option.replace('=', ' ')}: ")


def _ended(line: str) -> tuple[int, str]:
    """Exit status of a line of shell, and all that it said on standard error."""
    program = f"{sys.executable} -m cephqos_base"
    # argparse ignores that its help cannot be written, if it is written at once.
    environment = {name: it for name, it in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["bash", "-c", line.replace("cephqos", program, 1)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("cephqos scenarios >/dev/full", 1, "standard output: No space left on device\n"),
        ("cephqos --help >/dev/full", 1, "standard output: No space left on device\n"),
        ("cephqos scenarios >&-", 0, ""),
        # Python's own status for a stream that it cannot write at its end.
        ("cephqos lab status --name none 2>/dev/full", 120, ""),
        ("cephqos lab status --name none 2>&-", 2, ""),
        ("cephqos scenarios | true; exit ${PIPESTATUS[0]}", 141, ""),
        ("cephqos --help | true; exit ${PIPESTATUS[0]}", 141, ""),
    ],
)
def test_where_output_cannot_be_written_there_is_no_traceback(
    line: str, status: int, said: str
) -> None:
    found, words = _ended(line)
    assert found == status or (status == 141 and found == 0)  # all was written before it closed
    assert words == (f"cephqos: cannot write to {said}" if said else "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("archive ls /etc/passwd", "/etc/passwd: expected a folder of archives"),
        ("archive ls /nowhere", "/nowhere: expected a folder of archives"),
        ("rules build --out /etc/passwd", "--out /etc/passwd: expected a directory"),
        ("dashboards install /etc/passwd", "/etc/passwd: expected a directory"),
        (
            "doctor cluster --cluster.conf=/nowhere",
            "no such file: /nowhere (cluster.conf)",
        ),
        (
            "top --once --ca-cert /nowhere",
            "--ca-cert /nowhere: expected a PEM file; No such file or directory",
        ),
        (
            "top --once --ca-cert /etc/passwd",
            "--ca-cert /etc/passwd: expected a PEM file; no certificate is in it",
        ),
        (
            "doctor host --path.procfs=/nowhere",
            "flags: --path.procfs: found '/nowhere'; allowed: a directory with a procfs in it",
        ),
        ("run --resume /nowhere", "--resume /nowhere: expected the folder of an archive"),
    ],
)
def test_what_cannot_be_used_is_named_with_what_was_expected(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    assert capsys.readouterr().err.startswith(f"cephqos: {said}")


def test_a_prometheus_that_is_not_there_is_told_in_plain_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "prometheus", "http://127.0.0.1:1"]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("http://127.0.0.1:1: no usable answer: connection refused")


def test_ctrl_c_while_a_command_is_loaded_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert main(["scenarios"]) == 130


def test_the_list_of_scenarios_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["scenarios"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _parsers(below)


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_help_says_what_each_action_and_option_is_and_takes(entry: CommandEntry) -> None:
    whole = Parser(prog=entry.name, description=entry.help)
    load(entry)(whole)
    for parser in _parsers(whole):
        assert parser.description, parser.prog
        for action in parser._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help, f"{parser.prog} {action.dest}"
                takes = action.option_strings and action.nargs != 0 and not action.choices
                assert action.metavar or not takes, f"{parser.prog} {action.option_strings}"


@pytest.mark.parametrize("line", ["lab up", "lab trees", "demo"])
def test_who_is_not_root_is_told_to_be(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CEPHQOS_CACHE", str(tmp_path))  # no tree is there
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(line.split()) == 2
    assert capsys.readouterr().err.endswith(
        "cephqos: the lab needs root, for namespaces and mounts: run it with sudo\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        *("lab list", "lab status --name mine", "lab down --name mine", "lab exec --name mine ls"),
        *("lab fault stop --osd 0 --name mine", "run baseline --check --lab mine"),
    ],
)
def test_a_lab_of_root_is_told_to_be_roots(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CEPHQOS_LABS", str(tmp_path))
    marked.make(tmp_path / "mine", "lab")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1000)
    assert main(line.split()) == 2
    assert "the lab needs root" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variable", "line", "status", "said"),
    [
        ("CEPHQOS_CACHE", "lab trees", 1, "/proc/none: No such file or directory"),
        (
            "CEPHQOS_LABS",
            "lab down --name mine",
            2,
            "no lab 'mine' is up (up: none); nothing to end",
        ),
    ],
)
def test_a_folder_that_cannot_be_made_is_named(
    variable: str,
    line: str,
    status: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/sbin/{program}")
    monkeypatch.setenv(variable, "/proc/none")
    assert main(line.split()) == status
    assert capsys.readouterr().err.splitlines()[-1] == f"cephqos: {said}"


def test_labs_that_cannot_be_kept_are_no_riddle() -> None:
    with pytest.raises(UsageError, match=r"^/proc/none: labs cannot be kept there: No such file"):
        make_lab(LabPaths(Path("/proc/none"), "mine"))


@pytest.mark.parametrize(
    "line",
    [
        "doctor host --path.procfs=/closed/x",
        "doctor prometheus http://127.0.0.1:1 --rules /closed/x",
        "rules check --out /closed/x",
    ],
)
def test_a_place_that_is_closed_to_the_user_is_a_mistake_and_no_finding(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 1 says that something was found, or that files are not up to date."""
    really = os.stat

    def closed(path: Any, *given: Any, **more: Any) -> os.stat_result:
        if str(path).startswith("/closed/"):
            raise PermissionError(13, "Permission denied", path)
        return really(path, *given, **more)

    monkeypatch.setattr(os, "stat", closed)
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("cephqos: ") and "/closed/x" in error and "Permission denied" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("replay", "cephqos replay: expected archive ("),
        ("compare", "cephqos compare: expected archive ("),
        ("doctor prometheus", "cephqos doctor prometheus: expected url ("),
    ],
)
def test_what_is_missing_is_said_with_its_help(
    typed: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(typed.split())
    assert capsys.readouterr().err.startswith(said)
