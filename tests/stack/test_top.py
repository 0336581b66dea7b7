"""`cephqos top` with real clusters and a real Prometheus: text, JSON, and a real terminal."""

import asyncio
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psutil
import pytest
from tests.lab.conftest import LabPool
from tests.terminal import PROMPT, Terminal
from tests.waiting import until

from cephqos_loadgen.programs import free_ports
from cephqos_loadgen.top.figures import FIGURES, Selection, TopFigure

from .conftest import Watched, watching

CEPHQOS = [sys.executable, "-m", "cephqos_base"]


@pytest.fixture(scope="module")
def reef(labs: LabPool) -> Iterator[Watched]:
    yield from watching(labs, labs.shared("reef"), "top")


@pytest.fixture(scope="module")
def pacific(labs: LabPool) -> Iterator[Watched]:
    yield from watching(labs, labs.shared("pacific"), "top")


async def run(*options: str, command: str = "top", ends: tuple[int, ...] = (0,)) -> str:
    """What a command prints."""
    process = await asyncio.create_subprocess_exec(
        *CEPHQOS, command, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    async with asyncio.timeout(200):
        out, err = await process.communicate()
    assert process.returncode in ends, err.decode()
    return out.decode()


async def as_json(*options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await run("--json", *options))
    return found


@pytest.fixture
async def loaded(reef: Watched) -> AsyncIterator[Watched]:
    """Small writes, for as long as a test takes."""
    if not await _has_pool(reef, "top"):
        await reef.pool("top", 3)
    load = reef.write("top", 290, depth=8)
    await until(lambda: _attains(reef), "client work in Prometheus")
    yield reef
    load.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await load


async def _has_pool(on: Watched, name: str) -> bool:
    return name in (await on.lab.exec(["rados", "lspools"])).stdout.split()


async def _attains(on: Watched) -> bool:
    found = await on.number('min(osd_class:cephqos_attained_ops:rate{class="client"})')
    return found is not None and found > 1


async def test_prometheus_and_exporter_give_the_same_picture(loaded: Watched) -> None:
    stack = loaded.stack
    client: list[float] = []

    async def both() -> tuple[dict[str, Any], dict[str, Any]] | None:
        """On a busy machine the load is not steady, and the cluster's figures come late."""
        found = await asyncio.gather(
            as_json("--url", stack.prometheus_url),
            as_json("--exporter", stack.exporter_url, "--interval", "4"),
        )
        client[:] = [model["classes"][0]["attained"] for model in found if model["classes"]]
        missing = {it["what"] for model in found for it in model["missing"]}
        alike = len(client) == 2 and 0 < max(client) < 3 * min(client)
        return found if alike and "recovery and scrub" not in missing else None

    asked, scraped = await until(both, lambda: f"all is there, and about the same: {client}")
    assert asked["rules"]
    assert not scraped["rules"]
    assert [osd["name"] for osd in asked["osds"]] == [osd["name"] for osd in scraped["osds"]]
    assert asked["cluster"] == scraped["cluster"] == loaded.lab.state.fsid
    for one, other in zip(asked["classes"], scraped["classes"], strict=True):
        assert one["name"] == other["name"]
        assert one["reserved"] == other["reserved"]
    for model in (asked, scraped):
        assert {part["op"] for part in model["latency"]} >= {"write"}
        assert model["threads"] and model["devices"] is not None


async def test_while_the_exporter_misses_scrapes_its_osds_are_shown_as_they_were(
    loaded: Watched,
) -> None:
    """Prometheus drops all series of a scrape that is late: it was "no OSD answers"."""
    port = loaded.stack.exporter_url.rpartition(":")[2]
    (exporter,) = (
        it
        for it in psutil.Process().children(recursive=True)
        if it.cmdline()[-1:] and f"--web.listen-address=127.0.0.1:{port}" in it.cmdline()
    )
    prometheus = ("--prometheus", loaded.stack.prometheus_url)

    async def unheard() -> bool:
        return not await loaded.stack.query("cephqos_daemon_up")

    exporter.suspend()
    try:
        await until(unheard, "a scrape is missed")
        shown = await as_json("--url", loaded.stack.prometheus_url)
        about = await run(*prometheus, "--all", "--json", command="capacity", ends=(0, 1))
    finally:
        exporter.resume()
    assert [osd["up"] for osd in shown["osds"]] == [True, True, True]
    assert shown["classes"][0]["name"] == "client"
    assert shown["classes"][0]["attained"] > 0
    assert "shown as they were" in shown["missing"][0]["why"]
    capacity = json.loads(about)
    assert [osd["media"] for osd in capacity["osds"]] == ["ssd", "ssd", "ssd"]
    assert all(osd["configured"] for osd in capacity["osds"])


async def test_prometheus_understands_every_query_with_rules_and_without(loaded: Watched) -> None:
    stack, fsid = loaded.stack, loaded.lab.state.fsid

    async def alike(figure: TopFigure, selection: Selection) -> bool:
        """What a rule has recorded may be gone a moment later: then once more."""
        found = [await stack.query(it) for it in figure.promql(selection, 10)]
        if len(found) < 2:
            return True
        recorded, raw = ({_key(it, figure.by) for it in vector} for vector in found)
        return recorded <= raw

    for selection in (Selection(), Selection(fsid, "osd.0")):
        for name, figure in FIGURES.items():
            await until(partial(alike, figure, selection), f"{name}: alike with and without rules")


def _key(item: dict[str, Any], by: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item["metric"].get(name, "") for name in by)


async def test_once_prints_plain_text_for_a_person(loaded: Watched) -> None:
    printed = await run("--once", "--url", loaded.stack.prometheus_url)
    assert "\x1b" not in printed
    for expected in (
        r"^cephqos top  Prometheus http",
        "^CLASSES",
        "^client ",
        "^OSDS",
        "osd write",
    ):
        assert re.search(expected, printed, re.MULTILINE), printed


async def test_a_release_without_mclock_is_told_as_such(pacific: Watched) -> None:
    async def scraped() -> bool:
        return bool(await pacific.number("count(cephqos_qos_scheduler_info)"))

    await until(scraped, "the exporter scraped")
    printed = " ".join((await run("--once", "--url", pacific.stack.prometheus_url)).split())
    assert re.search(r"reservations of .* they run wpq, which has no reservations", printed), (
        printed
    )
    assert "NO RESERVATIONS: no OSD has a reservation" in printed


@asynccontextmanager
async def forwarded(port: int, to: int) -> AsyncIterator[None]:
    """A port that leads to another one while the block runs, and is dead before and after."""
    tasks: set[asyncio.Task[None]] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            while data := await reader.read(65536):
                writer.write(data)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", to)
        for pair in ((reader, back), (there, writer)):
            tasks.add(asyncio.create_task(copy(*pair)))

    server = await asyncio.start_server(accept, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_in_a_real_terminal_keys_work_and_prometheus_may_go_and_come(loaded: Watched) -> None:
    (port,) = free_ports(1)
    prometheus = int(loaded.stack.prometheus_url.rpartition(":")[2])
    url = f"http://127.0.0.1:{port}"
    with Terminal(80, 24) as terminal:
        await terminal.shows(PROMPT)
        terminal.type(f"{' '.join(CEPHQOS)} top --interval 0.5 --url {url}", "Enter")
        await terminal.shows("NO ANSWER. Asking every 0.5 s: connection refused", 60)
        async with forwarded(port, prometheus):
            await terminal.shows(r"^>osd\.\d +client")
            terminal.type("s")
            await terminal.shows("by lag")
            terminal.type("/", "osd.2", "Enter")
            await terminal.shows(r"OSDS  1 of \d, by lag, /osd.2")
            terminal.type("Enter")
            await terminal.shows(r"^osd\.2  up  mclock_scheduler")
            await terminal.shows(r"^osd write +[\d,.]+ ")
            terminal.type("Escape")
            await terminal.shows("^>osd.2 ")
        await terminal.shows(r"NO ANSWER. Values are \d+ s old")
        assert ">osd.2" in terminal.screen()
        async with forwarded(port, prometheus):
            await terminal.shows("^(KEPT|VIOLATED|BEHIND)")
            terminal.type("?")
            await terminal.shows("^KEYS")
            terminal.type("q")
            await terminal.shows(PROMPT)
            assert "KEYS" not in terminal.screen()


async def test_a_signal_leaves_the_terminal_as_it_was(loaded: Watched) -> None:
    with Terminal(80, 24) as terminal:
        command = f"NO_COLOR=1 {' '.join(CEPHQOS)} top --url {loaded.stack.prometheus_url}"
        await terminal.shows(PROMPT)
        terminal.type(command, "Enter")
        await terminal.shows("^(KEPT|VIOLATED|BEHIND)", 60)
        coloured = re.findall(r"\x1b\[[0-9;]*3[0-7]m", terminal.tmux("capture-pane", "-p", "-e"))
        assert not coloured
        shell = psutil.Process(int(terminal.tmux("list-panes", "-F", "#{pane_pid}")))
        for child in shell.children():
            child.terminate()
        await terminal.shows(PROMPT)
        terminal.type("echo still $((40+2))", "Enter")
        await terminal.shows("still 42$")
        assert terminal.tmux("display-message", "-p", "#{alternate_on}").strip() == "0"
