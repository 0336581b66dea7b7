"""One place makes text from elsewhere harmless for a terminal, and everything that is shown passes
it: names from clusters, archives, scenarios and servers stay text."""

import ast
import contextlib
import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, ConfigError
from cephqos_base.terminal import (
    can_draw,
    json_text,
    printable,
    printable_lines,
    say,
    say_json,
    say_text,
)
from cephqos_doctor.finding import Diagnosis, Finding
from cephqos_exporter import log
from cephqos_loadgen.progress import Bar, Frame, Progress, table
from cephqos_loadgen.top.build import build_picture
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.screen.layout import Line, plain
from cephqos_loadgen.top.screen.page import draw as draw_page
from cephqos_loadgen.top.screen.page import whole
from cephqos_loadgen.top.screen.view import View
from cephqos_loadgen.top.watch import Watch

from ..hostile_text import HIDDEN, HOSTILE, obeyed
from ..top_samples import FSID, FakeSource, example


@pytest.fixture(params=tuple(HOSTILE.values()), ids=tuple(HOSTILE))
def hostile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# -- the functions ---------------------------------------------------------------------------------


@given(st.text())
def test_printable_text_is_one_line_that_a_terminal_cannot_obey(text: str) -> None:
    safe = printable(text)
    assert not obeyed(safe)
    assert "\n" not in safe
    assert printable(safe) == safe


@given(st.text())
def test_printable_lines_keep_their_newlines_and_tabs_only(text: str) -> None:
    safe = printable_lines(text)
    assert not obeyed(safe) - {"\t"}
    assert safe.count("\n") == text.count("\n")
    assert safe.count("\t") == text.count("\t")


@given(st.text(st.characters(exclude_categories=HIDDEN)))
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert printable(text) == printable_lines(text) == text


def test_hidden_characters_are_shown_by_their_code() -> None:
    assert printable("a\x1b[2J\x9b\u202e\udcff\U000e0041") == (
        "a\\x1b[2J\\x9b\\u202e\\udcff\\U000e0041"
    )


@given(st.text())
def test_json_is_read_back_as_it_was_and_is_ascii(text: str) -> None:
    written = json_text({text: [text]}, indent=1)
    assert json.loads(written) == {text: [text]}
    assert written.isascii()
    assert not obeyed(written)


def test_what_is_said_fits_every_encoding_of_a_terminal() -> None:
    raw = io.BytesIO()
    ascii_only = io.TextIOWrapper(raw, encoding="ascii")
    say("µs …", file=ascii_only)
    assert raw.getvalue() == b"\\xb5s \\u2026\n"


# -- everything that shows something ---------------------------------------------------------------


def _said(text: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        say(text, Path(text.replace("\0", "")))
        say_text(text)
        say_json({text: text})
    return out.getvalue().replace("\t", "")


def _diagnosed(text: str) -> str:
    return Diagnosis(text, ("c",), (("c", Finding(text, text, text)),)).text()


def _config_error(text: str) -> str:
    return str(ConfigError(where=text, key=text, found=text, allowed=text))


def _refused_option(text: str) -> str:
    with contextlib.redirect_stderr(io.StringIO()) as out, contextlib.suppress(SystemExit):
        Parser(prog="cephqos").parse_args([f"--{text}"])
    return out.getvalue()


def _logged(text: str) -> str:
    record = logging.LogRecord(text, logging.INFO, text, 1, "%s", (text,), None)
    return "\n".join(form.format(record) for form in (log._Json(), log._Logfmt()))


def _progress_in_lines(text: str) -> str:
    out = io.StringIO()
    _work(Progress(out), text)
    return out.getvalue()


def _rows(text: str) -> str:
    frame = Frame(text, (Bar(text, 0.5, text), Bar(text, None, text)), text, text)
    console = Console(width=200, file=io.StringIO())
    with console.capture() as capture:
        console.print(table(frame))
    return capture.get()


def _work(progress: Progress, text: str) -> None:
    with progress.step(text) as tell:
        tell(text)
    frame = Frame(text, (Bar(text, 0.5, text),), text, text)
    with progress.follow(text, frame) as show:
        show(frame)
    progress.note(text)
    progress.note(f"  {text}")


def _text_of(lines: list[Line]) -> str:
    return "\n".join(map(plain, lines))


def _top(text: str) -> str:
    """Every screen, with the text in the place of every name of the cluster."""
    samples = example()
    values = {
        name: found | {(key[0], *[text] * (len(key) - 1)): value for key, value in found.items()}
        for name, found in samples.values.items()
    }
    names = ("alertname", "severity", "ceph_daemon", "class", "summary", text)
    alerts = ({"cluster": FSID, **dict.fromkeys(names, text)},)
    selection = Selection(FSID, text)
    picture = build_picture(replace(samples, values=values, alerts=alerts), selection)
    source = FakeSource(samples)
    source.name = text
    watch = Watch(source, 2.0)
    shown = []
    for known in (picture, None):
        watch.picture = known
        for watch.trouble in ("", text):
            views = [View(filter=text), View(page="notes"), View(opened=text), View(typing=True)]
            for view in views:
                shown += draw_page(known, watch.status(), view, (160, 60))
            if known:
                shown += whole(known, watch.status(), View(), 120)
    return _text_of(shown)


SHOWN_BY: dict[str, Callable[[str], str]] = {
    "say": _said,
    "an error of a configuration": _config_error,
    "an option that is refused": _refused_option,
    "doctor": _diagnosed,
    "the exporter's log": _logged,
    "progress in lines": _progress_in_lines,
    "progress in rows": _rows,
    "top": _top,
}


@pytest.mark.parametrize("shown_by", SHOWN_BY.values(), ids=tuple(SHOWN_BY))
def test_no_text_from_elsewhere_drives_a_terminal(
    hostile: str, shown_by: Callable[[str], str]
) -> None:
    shown = shown_by(hostile)
    assert shown
    assert not obeyed(shown)


def test_an_error_is_one_line_whatever_is_in_it(
    hostile: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cephqos_base import command

    async def fails(_: object) -> int:
        raise CephqosError(hostile)

    monkeypatch.setattr(command, "load", lambda _: lambda it: it.set_defaults(run=fails))
    assert command.main(["top"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert not obeyed(line)


def test_markup_and_emoji_names_on_a_terminal_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = _on_terminal(HOSTILE["markup"], monkeypatch)
    assert drawn.count(HOSTILE["markup"]) >= 6  # twice from notes, and where steps begin and end


def test_escape_sequences_on_a_terminal_are_rich_s_own(
    hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|[\r\n]")
    plain_text = own.sub("", _on_terminal(hostile, monkeypatch))
    assert not obeyed(plain_text)
    if "\x1b[2J" in hostile:
        assert "\\x1b[2J" in plain_text


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = _on_terminal("busy", monkeypatch, kind="dumb")
    assert "busy" in drawn
    assert "\x1b" not in drawn


@pytest.mark.parametrize(
    ("kind", "missing", "drawn"),
    [("xterm", "", True), ("dumb", "", False), ("xterm", "stdin", False), ("", "", True)],
)
def test_only_a_terminal_that_can_move_its_cursor_is_drawn_on(
    kind: str, missing: str, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", kind)
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(getattr(sys, name), "isatty", lambda name=name: name != missing)
    assert can_draw() is drawn


def _on_terminal(text: str, monkeypatch: pytest.MonkeyPatch, kind: str = "xterm") -> str:
    """What arrives at a real terminal."""
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setenv("COLUMNS", "200")
    master, slave = os.openpty()
    with os.fdopen(slave, "w", encoding="utf-8", errors="surrogateescape") as terminal:
        _work(Progress(terminal), text)
    drawn = b""
    with contextlib.suppress(OSError):
        while piece := os.read(master, 100_000):
            drawn += piece
    os.close(master)
    return drawn.decode()


# -- nobody else prints ----------------------------------------------------------------------------

PACKAGES = (
    *("exporter/cephqos_base", "exporter/cephqos_exporter", "deploy/cephqos_doctor"),
    "deploy/cephqos_insight",
    *("loadgen/cephqos_loadgen", "alerts/cephqos_alerts", "dashboards/cephqos_dashboards"),
    "deploy/cephqos_stack",
)
MAY_PRINT = {
    "exporter/cephqos_base/terminal.py": "the one place",
    "loadgen/cephqos_loadgen/progress.py": "gives rich a Text of printable characters",
}


def prints(source: str) -> Iterator[int]:
    """Lines that write to a terminal by other means than say."""
    for node in ast.walk(ast.parse(source)):
        name = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if (isinstance(node, ast.Name) and node.id == "print") or (
            isinstance(node, ast.Attribute)
            and (
                node.attr in ("print", "from_markup", "print_exception", "print_exc", "displayhook")
                or re.match(r"sys\.(__)?std(out|err)(__)?\.(write|buffer)", name)
            )
        ):
            yield node.lineno


@pytest.mark.parametrize(
    "line",
    [
        "print(pool)",
        "for_each(print)",
        "console.print(pool)",
        "sys.stdout.write(pool)",
        "sys.stderr.buffer.write(pool)",
        "Text.from_markup(pool)",
    ],
)
def test_other_ways_to_print_are_found(line: str) -> None:
    assert list(prints(line))


def test_only_one_module_prints() -> None:
    found = {
        f"{file}:{line}"
        for package in PACKAGES
        for file in sorted(Path(package).rglob("*.py"))
        if str(file) not in MAY_PRINT
        for line in prints(file.read_text(encoding="utf-8"))
    }
    assert not found


def test_only_one_module_decides_what_can_be_printed() -> None:
    """A second function for it would differ in newlines, in bidirectional marks, in surrogates."""
    deciding = re.compile(r"unicodedata\.category|isprintable\(\) else")
    files = [file for package in PACKAGES for file in Path(package).rglob("*.py")]
    found = [str(f) for f in files if deciding.search(f.read_text(encoding="utf-8"))]
    assert found == ["exporter/cephqos_base/terminal.py"]
