"""The command `cephqos top`: what it refuses, and what it prints without a terminal."""

import asyncio
import json
import re
import subprocess
import sys

import pytest

from cephqos_base.command import build_parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_loadgen.top import cli
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.picture import TopSamples
from cephqos_loadgen.top.screen.layout import plain
from cephqos_loadgen.top.screen.page import Status, whole
from cephqos_loadgen.top.screen.view import View
from cephqos_loadgen.top.watch import Watch

from ..top_samples import FakeSource, example, without


def start(*options: str) -> int:
    arguments = build_parser().parse_args(["top", *options])
    status: int = asyncio.run(arguments.run(arguments))
    return status


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--interval", "0"], "--interval 0: expected 0.2 to 3600 seconds"),
        (["--window", "0.5"], "--window 0.5: expected 1 to 3600 seconds"),
        (["--once", "--url", "ftp://x"], "--url 'ftp://x': expected a URL such as"),
        (["--once", "--ca-cert", "/nonexistent"], "--ca-cert /nonexistent: "),
        ([], "no terminal: use --once for plain text or --json"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(options: list[str], expected: str) -> None:
    with pytest.raises(UsageError) as caught:
        start(*options)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_terminal_that_cannot_move_its_cursor_is_no_place_for_the_live_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(getattr(sys, name), "isatty", lambda: True)
    with pytest.raises(UsageError, match=r"^TERM=dumb: .*use --once or --json$"):
        start()


def test_once_and_json_do_not_load_curses() -> None:
    program = (
        "import sys; from cephqos_base.command import main;"
        " main(['top', '--once', '--url', '127.0.0.1:1']); print('curses' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"
    assert "no answer from Prometheus http://127.0.0.1:1: connection refused" in done.stderr


def test_no_answer_is_a_failure_with_status_one() -> None:
    with pytest.raises(CephqosError, match="no answer from exporter http") as caught:
        start("--json", "--exporter", "127.0.0.1:1")
    assert caught.value.exit_status == 1


def test_the_path_of_a_metrics_page_may_be_given_or_not() -> None:
    for url in ("http://127.0.0.1:1", "127.0.0.1:1/metrics", "http://127.0.0.1:1/metrics/"):
        with pytest.raises(CephqosError, match=r"exporter http://127\.0\.0\.1:1: "):
            start("--once", "--exporter", url)


def test_url_and_exporter_exclude_one_another() -> None:
    with pytest.raises(SystemExit):
        start("--url", "x", "--exporter", "y")


async def test_json_and_text_come_from_the_same_model(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = build_parser().parse_args(["top", "--json"])
    await cli._print_once(Watch(FakeSource(), 2.0), View(), arguments)
    data = json.loads(capsys.readouterr().out)
    assert data["source"] == FakeSource.name
    assert len(data["osds"]) == 12
    arguments = build_parser().parse_args(["top", "--once"])
    await cli._print_once(Watch(FakeSource(), 2.0), View(filter="violated"), arguments)
    printed = capsys.readouterr().out
    violated = {
        (osd["name"], it["attained"], it["reserved"])
        for osd in data["osds"]
        for it in osd["classes"]
        if it["state"] == "violated"
    }
    assert len(violated) == 2
    for name, attained, reserved in violated:
        row = rf"{name}\s+client\s+violated\s+{attained:,.0f}\s+{reserved:,.0f}"
        assert re.search(row, printed), f"{name}: text and JSON are of one model"
    rows = re.findall(r"^.(osd\.\d+) +client ", printed, re.MULTILINE)
    assert set(rows) == {name for name, _, _ in violated}
    assert "q quit" not in printed


async def test_a_printout_may_be_ascii_only(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = build_parser().parse_args(["top", "--once", "--ascii"])
    await cli._print_once(Watch(FakeSource(), 2.0), View(), arguments)
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert "#####" in printed and "\\u2588" not in printed


async def test_a_printout_has_every_osd_and_every_reason() -> None:
    watch = Watch(FakeSource(without("lag", "cluster_up")), 2.0, selection=Selection())
    await watch.refresh()
    assert watch.picture
    status = Status(source="x", clock="12:00:00", interval=2)
    printed = "\n".join(map(plain, whole(watch.picture, status, View(), 100)))
    assert all(f"osd.{number} " in printed for number in range(12))
    assert "no exporter runs with --role=cluster" in printed


async def test_a_selection_that_changes_while_it_is_fetched_is_fetched_again() -> None:
    class Slow(FakeSource):
        async def fetch(self, selection: Selection) -> TopSamples:
            found = await super().fetch(selection)
            if len(self.asked) == 1:
                watch.selection = Selection(osd="osd.3")
            return found

    source = Slow(example())
    watch = Watch(source, 2.0)
    await watch.refresh()
    assert [selection.osd for selection in source.asked] == [None, "osd.3"]
    assert watch.picture and watch.picture.detail
