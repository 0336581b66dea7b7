"""What the terminal shows of a run: rows, their widths, plain lines, and the time that is left."""

import contextlib
import io
import os
import re
import time
from collections.abc import Callable

import pytest
from rich.console import Console
from tests.shipped_plans import only, shipped_plan

from cephqos_loadgen.engines.fio_output import ClientStatus, IoTotals, JobStatus
from cephqos_loadgen.live import terminal
from cephqos_loadgen.live.forecast import Forecast
from cephqos_loadgen.live.state import Live, LiveScrub, RunPlace
from cephqos_loadgen.plan.estimate import point_seconds, run_seconds
from cephqos_loadgen.progress import Bar, Frame, Progress, table

Patch = pytest.MonkeyPatch

NOW = 1_000_000.0


def live() -> Live:
    """In the middle of the second of four repeats, a scrub and recovery beside the clients."""
    found = Live(RunPlace("r1", "client-vs-scrub", "fsid", "policy=balanced", 1))
    point = shipped_plan("client-vs-scrub", only=only(policy="balanced")).points[0]
    for phase in point.phases:
        if phase.name != "alone":  # the clients without a scrub are behind it
            found.begin(phase)
    found.where.phases = dict.fromkeys(found.where.phases, NOW - 5)
    for client in ("client.0", "client.1"):
        found.start_client("client", client, "rbd")
        done = IoTotals(1000, 4096000, 1000, 2.0, 0.0, 0.009, {2_000_000: 980, 9_000_000: 20})
        job = JobStatus({"write": done, "read": IoTotals()}, NOW - 1, 1.0)
        found.status("client", client, ClientStatus(NOW, {"v": job}))
    found.scrub = LiveScrub("scrub", 100, 300, NOW - 5)
    found.recovering(NOW - 2, 0, 200)
    found.recovering(NOW, 40, 160)
    found.repeats, found.eta = (1, 4), 100.0
    found.repeat_started, found.repeat_expected = NOW - 5, 20.0
    return found


def rows(found: Live) -> dict[str, Bar]:
    return {bar.title.strip(): bar for bar in terminal.frame(found, NOW).bars}


def test_run_repeat_phases_clients_scrub_and_recovery_have_a_row_each() -> None:
    found = rows(live())
    assert list(found) == ["run", "repeat", "scrub", "client", "librbd", "recovery"]
    assert found["run"] == Bar("run", 0.3125, "1 of 4 repeats, 1 min 40 s left")
    assert found["repeat"] == Bar("repeat", 0.25, "15 s left")
    assert found["client"] == Bar("client", 0.25, "5 s of 20 s")
    assert found["librbd"].text == "2,000 IOPS  7.81 MiB/s  p99 9 ms"
    assert found["scrub"] == Bar("scrub", 0.25, "100 of 400 objects, 15 s left")
    assert found["recovery"] == Bar("recovery", 0.2, "160 copies to move, 20/s, 8 s left")


def test_a_slow_recovery_has_no_rate_of_0() -> None:
    found = Live(RunPlace("r1", "s"))
    found.recovering(NOW - 20, 0, 200)
    found.recovering(NOW, 8, 192)
    assert rows(found)["recovery"].text == "192 copies to move, 0.4/s, 8 min left"


def test_pools_that_are_filled_have_a_row_with_the_time_that_is_left() -> None:
    found = Live(RunPlace("r1", "s"))
    found.will_fill("data", "bytes", "volume.0", 4 << 30)
    found.will_fill("data", "bytes", "volume.1", 4 << 30)
    found.filled("data", "bytes", "volume.0", 2 << 30)
    found.fills["data", "bytes"].started = NOW - 30
    assert rows(found)["fill data"] == Bar("fill data", 0.25, "2 GiB of 8 GiB, 1 min 30 s left")
    found.fill_ended("data", "bytes")
    assert list(rows(found)) == ["run"]


def test_a_phase_whose_end_nobody_knows_has_no_bar() -> None:
    found = Live(RunPlace("r1", "s"))
    point = shipped_plan("client-vs-recovery", only=only(policy="balanced", media="ssd")).points[0]
    client = next(phase for phase in point.phases if phase.name == "client")
    found.begin(client)
    found.where.phases = {"client": NOW - 65}
    assert rows(found)["client"] == Bar("client", None, "1 min 5 s so far, until recovery done")


def test_rados_bench_shows_its_mean_latency_for_it_has_no_percentiles() -> None:
    assert terminal.latency(IoTotals(10, 40960, 10, 0.05)) == "mean 5 ms"
    assert terminal.latency(IoTotals()) == ""


def test_recovery_is_timed_over_seconds_not_over_one_lump_of_statistics() -> None:
    found = Live(RunPlace("r1"))
    for second in range(31):  # 10 objects a second, which show every five seconds
        found.recovering(NOW + second, second // 5 * 50, 1000)
    assert found.recovery is not None
    assert found.recovery.rate == pytest.approx(10, abs=5)


# -- widths --------------------------------------------------------------------------------------


def drawn(frame: Frame, width: int) -> list[str]:
    # The open part of a bar is a colour.
    console = Console(width=width, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        console.print(table(frame))
    return re.sub(r"\x1b\[[0-9;]*m", "", capture.get()).split("\n")


@pytest.mark.parametrize("width", [30, 60, 80, 120, 200])
def test_no_row_is_wider_than_the_terminal_and_titles_are_always_there(width: int) -> None:
    lines = drawn(terminal.frame(live(), NOW), width)
    assert all(len(line) <= width for line in lines), lines
    titles = ["run", "repeat", "scrub", "client", "librbd", "recovery"]
    assert [line.split()[0] for line in lines[1:7]] == titles


def test_words_are_whole_from_80_columns_on_and_the_bars_are_of_one_length() -> None:
    lines = drawn(terminal.frame(live(), NOW), 80)
    assert not any("…" in line for line in lines), lines
    bars = [len(re.findall("[━╸╺]", line)) for line in lines if "%" in line]
    assert len(bars) == 5
    assert len({*bars}) == 1 and bars[0] > 20


def test_a_bar_that_is_not_quite_full_does_not_say_that_it_is_done() -> None:
    full, nearly = drawn(Frame("h", (Bar("a", 1.0, "x"), Bar("b", 0.999, "x")), "", ""), 60)[1:3]
    assert "100%" in full
    assert "99%" in nearly


# -- plain lines ---------------------------------------------------------------------------------


def test_a_stream_that_is_no_terminal_gets_a_line_per_change_and_else_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    stream = io.StringIO()
    with Progress(stream).follow("run 1", Frame("h", (), "start", "a")) as show:
        for second in range(25):
            clock = float(second)
            show(Frame("h", (), f"line {second}", "b" if second >= 3 else "a"))
    assert stream.getvalue().splitlines() == [
        "run 1 …",
        "     3 s  line 3",
        "    13 s  line 13",
        "    23 s  line 23",
        "run 1: done in 24.0 s",
    ]


def test_without_rich_a_terminal_gets_plain_lines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)

    class FakeTerminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = FakeTerminal()
    progress = Progress(stream)
    with progress.step("making"):
        pass
    assert stream.getvalue().splitlines()[0] == "making …"
    assert "\x1b" not in stream.getvalue()


def test_a_terminal_gets_the_rows_in_place_and_notes_above_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    master, slave = os.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as terminal:
        progress = Progress(terminal)
        first = Frame("heading", (Bar("client", 0.5, "5 s of 10 s"),), "", "a")
        with progress.follow("run 1", first) as show:
            progress.note("a note")
            show(first._replace(bars=(Bar("client", 0.75, "7 s of 10 s"),)))
    # The kernel hands a terminal's output over in pieces, and ends with an error once it is closed.
    drawn = ""
    with contextlib.suppress(OSError):
        while piece := os.read(master, 100_000):
            drawn += piece.decode()
    os.close(master)
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn)
    assert plain.index("a note") < plain.index("7 s of 10 s")
    assert "\x1b[" in drawn
    assert "━" in plain
    assert re.search(r"run 1: done in \d\.\d s\s*$", plain)


def on_terminal(say: Callable[[Progress], None], width: int, monkeypatch: Patch) -> str:
    """What arrives at a terminal of that width."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    master, slave = os.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as terminal:
        say(Progress(terminal))
    drawn = ""
    with contextlib.suppress(OSError):
        while piece := os.read(master, 100_000):
            drawn += piece.decode()
    os.close(master)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn).replace("\r\n", "\n")


def test_prose_breaks_between_words_and_commands_stay_as_they_are(monkeypatch: Patch) -> None:
    command = "  ceph config set osd osd_scrub_during_recovery true --and-more-of-it"
    path = f"archive (complete): {'x' * 50}"

    def say(progress: Progress) -> None:
        progress.done("run 1 of 2: balanced, repeat 1", 20.6)
        progress.note(command)
        progress.note(path)

    assert on_terminal(say, 40, monkeypatch).splitlines() == [
        "run 1 of 2: balanced, repeat 1: done in",
        "  20.6 s",
        command,
        "archive (complete):",
        f"  {'x' * 50}",
    ]


def test_the_cursor_rests_below_the_rows_so_that_an_echo_moves_none() -> None:
    frame = Frame("heading", (Bar("client", 0.5, "5 s of 10 s"),), "", "a")
    heading, row, below, end = drawn(frame, 40)
    assert heading == "heading"
    assert "5 s of 10 s" in row
    assert (below, end) == ("", "")


def test_a_reader_that_stopped_reading_ends_nothing() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    Progress(Closed()).note("anything")


def test_figures_of_clients_that_have_gone_silent_are_not_shown_as_if_they_were_of_now() -> None:
    found = live()
    for figures in found.clients.values():
        figures.last_came = NOW - 1
    rows = {bar.title.strip(): bar.text for bar in terminal.frame(found, NOW).bars}
    assert "IOPS" in rows["librbd"]
    rows = {bar.title.strip(): bar.text for bar in terminal.frame(found, NOW + 30).bars}
    assert rows["librbd"] == "no figures for 31 s"


# -- the time that is left -----------------------------------------------------------------------


def test_before_anything_is_known_the_forecast_is_the_plans() -> None:
    whole = shipped_plan("client-vs-scrub", repeats=2)
    assert Forecast(whole).left() == pytest.approx(run_seconds(whole))


def test_repeats_that_took_longer_move_the_forecast_of_all_others() -> None:
    whole = shipped_plan(
        "client-vs-scrub", repeats=2, order="grouped", only={"policy": ("wpq", "balanced")}
    )
    first, second = whole.points
    forecast = Forecast(whole)
    forecast.filled(first)
    planned = forecast.repeat_seconds(second)
    forecast.finished(first, 1, 2 * planned)
    assert forecast.repeat_seconds(first) == pytest.approx(2 * planned)
    assert forecast.repeat_seconds(second) == pytest.approx(2 * planned)
    left = forecast.left(elapsed=planned)
    # the rest of this repeat, two of the next point, and the change to it
    assert left == pytest.approx(planned + 4 * planned + 8)


def test_what_is_measured_while_a_pool_fills_replaces_the_plans_guess() -> None:
    whole = shipped_plan("client-vs-scrub", only=only(policy="wpq"))
    forecast = Forecast(whole)
    rest = point_seconds(whole.points[0])
    assert forecast.left(filling=1000.0) == pytest.approx(1000 + rest, abs=20)
    forecast.filled(whole.points[0])
    assert forecast.left() == pytest.approx(rest, abs=20)


def test_nothing_is_left_of_a_run_that_is_done() -> None:
    whole = shipped_plan("client-vs-scrub", only=only(policy="wpq"))
    forecast = Forecast(whole)
    forecast.finished(whole.points[0], 1, None)
    assert forecast.left() == 0
