"""The live screen of `cephqos top`, compared as a whole with tests/golden/top.

`CEPHQOS_WRITE_SCREENS=1` writes them instead; read the difference before it is committed.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cephqos_base.servers import NoAnswer
from cephqos_loadgen.top.picture import TopSamples
from cephqos_loadgen.top.screen.app import Top
from cephqos_loadgen.top.screen.layout import Line, plain
from cephqos_loadgen.top.screen.view import View
from cephqos_loadgen.top.watch import Watch

from ..top_samples import FSID, NOW, FakeSource, example, without

SCREENS = Path(__file__).parents[2] / "golden" / "top"


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The screen has the local time."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def top(source: FakeSource, view: View | None = None, age: float = 1.0) -> Top:
    watch = Watch(source, interval=0.2, now=lambda: NOW + age)
    return Top(watch, view or View())


class Screen:
    """A terminal that is not there: keys are put into it, and its text can be read."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self.lines: list[str] = []
        self.pressed: asyncio.Queue[str] = asyncio.Queue()

    def show(self, lines: Sequence[Line]) -> None:
        self.lines = [plain(spans) for spans in lines]

    async def keys(self) -> AsyncGenerator[str, None]:
        while True:
            yield await self.pressed.get()


class Pilot:
    """Presses keys, and waits."""

    def __init__(self, app: Top, screen: Screen) -> None:
        self.app, self.screen = app, screen

    async def press(self, *keys: str) -> None:
        for key in keys:
            self.screen.pressed.put_nowait(key)
        await self.pause(0.02)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def shown(self) -> str:
        """The characters on the screen."""
        return "\n".join(self.screen.lines) + "\n"


@asynccontextmanager
async def running(app: Top, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Pilot]:
    screen = Screen(size)
    task = asyncio.create_task(app.run_on(screen))
    try:
        yield Pilot(app, screen)
    finally:
        screen.pressed.put_nowait("ctrl+c")
        async with asyncio.timeout(20):
            await task


async def until(pilot: Pilot, condition: Callable[[], bool]) -> None:
    """Let the app work until it is so: a busy machine takes its time."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, pilot.shown()
        await pilot.pause(0.05)
    await pilot.pause(0.02)


async def fetched(pilot: Pilot, app: Top, osd: str | None = None, tenants: bool = False) -> None:
    """Until the answer for what is selected now has come and is drawn."""
    source = app.watch.source
    assert isinstance(source, FakeSource)

    def came() -> bool:
        answered = app.watch.picture is not None or bool(app.watch.trouble)
        selection = app.watch.selection
        wanted = (selection.osd, selection.tenants) == (osd, tenants)
        return answered and wanted and selection == source.asked[-1] and app.idle

    await until(pilot, came)


def compare(name: str, screen: str) -> None:
    file = SCREENS / f"{name}.txt"
    if os.environ.get("CEPHQOS_WRITE_SCREENS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(screen, encoding="utf-8")
    assert screen == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=["80x24", "160x50"])
@pytest.mark.parametrize(
    ("name", "keys", "samples"),
    [
        ("main", [], example()),
        ("filtered", ["/", *"violated", "enter"], example()),
        ("osd", ["down", "enter"], example()),
        ("help", ["?"], example()),
        ("tenants", ["t"], example()),
        ("without-rules", [], without("violated", "demand", "cause", rules=False)),
        ("nothing", ["n"], TopSamples(time=NOW, values={}, rules=False)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_the_screen_is(
    name: str, keys: list[str], samples: TopSamples, size: tuple[int, int]
) -> None:
    app = top(FakeSource(samples))
    async with running(app, size=size) as pilot:
        await fetched(pilot, app)
        await pilot.press(*keys)
        await fetched(pilot, app, "osd.3" if name == "osd" else None, name == "tenants")
        screen = pilot.shown()
    compare(f"{name}-{size[0]}x{size[1]}", screen)


async def test_prometheus_going_away_and_coming_back() -> None:
    source = FakeSource()
    app = top(source, age=34)
    async with running(app) as pilot:
        await fetched(pilot, app)
        source.answer = NoAnswer("connection refused")
        await until(pilot, lambda: "NO ANSWER" in pilot.shown())
        gone = pilot.shown()
        assert "NO ANSWER. Values are 34 s old. Asking every 0.2 s: connection refused" in gone
        assert "osd.3   client      violated" in gone
        source.answer = example()
        await until(pilot, lambda: "NO ANSWER" not in pilot.shown())
        assert "VIOLATED: client on 2 OSDs" in pilot.shown()


async def test_a_prometheus_that_was_never_there_is_told_with_the_reason() -> None:
    app = top(FakeSource(NoAnswer("connection refused")))
    async with running(app) as pilot:
        await fetched(pilot, app)
        assert "NO ANSWER. Asking every 0.2 s: connection refused" in pilot.shown()
        assert "cephqos top --exporter http://HOST:10130" in pilot.shown()


async def test_no_osd_is_a_fault_only_when_there_was_time_for_a_first_scrape() -> None:
    source, clock = FakeSource(TopSamples(time=NOW, values={}, rules=False)), [NOW]
    watch = Watch(source, interval=0.2, now=lambda: clock[0], patience=30.0)
    app = Top(watch, View())
    async with running(app, size=(100, 24)) as pilot:
        await until(pilot, lambda: len(source.asked) > 1)
        assert "waiting for the first scrape" in pilot.shown()
        assert "NO DATA" not in pilot.shown()
        clock[0] += 31
        await until(pilot, lambda: "NO DATA: no OSD is known" in pilot.shown())
        source.answer = example()
        await until(pilot, lambda: "VIOLATED: client on 2 OSDs" in pilot.shown())


async def test_while_paused_nothing_is_asked_and_the_screen_says_so() -> None:
    source = FakeSource()
    app = top(source)
    async with running(app) as pilot:
        await fetched(pilot, app)
        await pilot.press("p")
        await until(pilot, lambda: "PAUSED" in pilot.shown() and app.idle)
        asked = len(source.asked)
        await pilot.pause(0.6)
        assert len(source.asked) == asked
        await pilot.press("p")
        await until(pilot, lambda: len(source.asked) > asked)


async def test_values_that_grow_old_without_a_failure_are_marked_with_their_age() -> None:
    app = top(FakeSource(), age=12)
    async with running(app) as pilot:
        await fetched(pilot, app)
        assert "cephqos top  12 s old" in pilot.shown().split("\n")[0]


async def test_an_opened_osd_is_asked_for_at_once() -> None:
    source = FakeSource()
    app = top(source)
    async with running(app) as pilot:
        await fetched(pilot, app)
        await pilot.press("down", "enter")
        await fetched(pilot, app, "osd.3")
        assert "THROTTLES   bluestore 100%" in pilot.shown()
        await pilot.press("escape")
        await fetched(pilot, app)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_a_key_that_quits_ends_the_app(key: str) -> None:
    app = top(FakeSource())
    async with running(app) as pilot:
        await pilot.press(key)
        await until(pilot, lambda: app.view.over)


async def test_the_list_scrolls_with_the_cursor() -> None:
    app = top(FakeSource(), View(sort="name"))
    async with running(app) as pilot:
        await fetched(pilot, app)
        assert "osd.10" not in pilot.shown()
        await pilot.press("end")
        await until(pilot, lambda: ">osd.11" in pilot.shown())


async def test_without_colour_the_screen_has_the_same_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = top(FakeSource())
    async with running(app) as pilot:
        await fetched(pilot, app)
        compare("main-80x24", pilot.shown())


async def test_a_terminal_without_other_characters_gets_none() -> None:
    samples = replace(example(), alerts=({"alertname": "Überlauf", "severity": "critical"},))
    app = Top(Watch(FakeSource(samples), 0.2, now=lambda: NOW + 1), View(), ascii_only=True)
    async with running(app) as pilot:
        await fetched(pilot, app)
        screen = pilot.shown()
    assert screen.isascii()
    assert "?berlauf" in screen and "~" in screen and "#####" in screen


@pytest.mark.parametrize("columns", [60, 80, 200])
async def test_how_to_leave_is_on_every_screen(columns: int) -> None:
    """With several clusters and something missing, the keys are more than a row holds."""
    samples = without("lag")
    up = {("f" * 36, "osd.0", ""): 1.0, **samples.values["up"]}
    app = top(FakeSource(replace(samples, values={**samples.values, "up": up})))
    async with running(app, size=(columns, 24)) as pilot:
        await fetched(pilot, app)
        assert "c cluster" in pilot.shown() or columns < 80
        assert pilot.shown().split("\n")[23].startswith("q quit   ? help")


async def test_a_page_that_is_too_long_says_so() -> None:
    app = top(FakeSource())
    async with running(app, size=(80, 14)) as pilot:
        await fetched(pilot, app)
        await pilot.press("?")
        await until(pilot, lambda: "KEYS" in pilot.shown())
        assert "more lines: make the terminal taller" in pilot.shown().split("\n")[12]


async def test_names_of_thousands_of_osds_and_who_takes_the_work_can_be_read_at_80_columns() -> (
    None
):
    samples = example()
    many = {(FSID, f"osd.{number}", ""): 1.0 for number in range(12, 10_001)}
    scheduler = {(*key[:2], "wpq", "", "", ""): 1.0 for key in many}
    values = {
        **samples.values,
        "up": {**samples.values["up"], **many},
        "scheduler": {**samples.values["scheduler"], **scheduler},
    }
    app = top(FakeSource(replace(samples, values=values)))
    async with running(app) as pilot:
        await fetched(pilot, app)
        assert re.search(r"^ osd\.7 +client +violated .*  by recov", pilot.shown(), re.MULTILINE)
        await pilot.press("end")
        await until(pilot, lambda: ">osd.10000 wpq" in pilot.shown())


async def test_hostile_names_do_not_reach_the_terminal() -> None:
    hostile = replace(
        example(), alerts=({"alertname": "\x1b]0;x\x07[red]", "severity": "critical"},)
    )
    app = top(FakeSource(hostile))
    async with running(app, size=(160, 50)) as pilot:
        await fetched(pilot, app)
        assert "\x1b" not in pilot.shown()
        assert r"\x1b]0;x\x07[red]" in pilot.shown()


async def test_an_osd_that_others_wait_for_is_not_said_to_wait_for_itself() -> None:
    slow = {"alertname": "CephQosReplicaSlow", "severity": "critical", "cluster": FSID}
    labels = {**slow, "ceph_daemon": "osd.1"}
    app = top(FakeSource(replace(example(), alerts=(labels,))))
    async with running(app, size=(160, 50)) as pilot:
        await fetched(pilot, app)
        assert "CephQosReplicaSlow  osd.1: others wait for it" in pilot.shown()
