"""The report's page in headless Chromium: light and dark, wide and narrow, and under a hand."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from tests.grafana.browser import Browser, Tab, browser, find_chromium
from tests.recorded import ARCHIVE
from tests.synthetic_archive import Builder, Osds, SyntheticRepeat
from tests.waiting import until

from cephqos_base.command import main

SIZES = {"wide": 1280, "narrow": 390}
MEASURE = Path(__file__).with_name("report_page.js").read_text(encoding="utf-8")
PINNED = Osds(count=4, waiting=3, cpus=("0-7", "0-7", "8-15", "8-15"), reactors=(1, 3, 9, 11))
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    if find_chromium() is None:
        pytest.skip("the report's page was NOT opened: no Chromium (apt-get install chromium)")
    async with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A real recorded run, a long made-up one with scrubs, and one of points over two numbers."""
    base = tmp_path_factory.mktemp("reports")
    random = np.random.default_rng(5)
    rates = (1000 + 200 * random.random(600)).tolist()
    policies = ("wpq", "balanced", "a_profile_with_a_name_that_is_longer_than_usual")
    scrubbed = {
        p: [SyntheticRepeat(rates, seconds=600, scrub_seconds=400.0, jobs=2)] * 2 for p in policies
    }
    axes = {f"{v}x{d}": {"volumes": v, "depth": d} for v in "1248" for d in ("1", "4", "16", "64")}
    grid = {name: [SyntheticRepeat(100.0 * (n + 1), seconds=12)] for n, name in enumerate(axes)}
    archives = {
        "recorded": Path(shutil.copytree(ARCHIVE, base / "recorded")),
        "scrubbed": Builder(points=scrubbed, osds=PINNED).write(base / "scrubbed"),
        "grid": Builder(points=grid, axes=axes).write(base / "grid"),
    }
    for name, archive in archives.items():
        out = base / f"{name}-out"
        assert main(["report", str(archive), "--out", str(out)]) == 0
        archives[name] = out / "report.html"
    return archives


async def opened(chromium: Browser, file: Path, width: int, scheme: str) -> Tab:
    tab = await chromium.tab()
    await tab.size(width, 900)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    await tab.call("Emulation.setEmulatedMedia", features=[feature])
    await tab.open(file.as_uri())

    async def complete() -> bool:
        return bool(await tab.evaluate("document.readyState") == "complete")

    await until(complete, f"{file} is loaded")
    return tab


async def complaints(tab: Tab, file: Path) -> list[str]:
    """All that is wrong with a page, as far as it can be measured."""
    found = json.loads(await tab.evaluate(f"JSON.stringify(({MEASURE})())"))
    found += [f"request to {url}" for url in tab.requests if url != file.as_uri()]
    return [*found, *(f"error: {error}" for error in tab.errors)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("name", ["recorded", "scrubbed", "grid"])
async def test_nothing_is_wrong_with_the_page(
    chromium: Browser, pages: dict[str, Path], name: str, width: str, scheme: str
) -> None:
    tab = await opened(chromium, pages[name], SIZES[width], scheme)
    assert await complaints(tab, pages[name]) == []
    assert await tab.evaluate("document.querySelectorAll('svg.chart').length") >= 3


WRONG = {
    "<script>nothing.there()</script>": "error",
    "<img src='http://127.0.0.1:9/a.png'>": "request to http://127.0.0.1:9/a.png",
    "<svg class='chart' aria-label='bare' viewBox='0 0 99 99' width='99' height='99'></svg>": (
        "bare: nothing is drawn"
    ),
    "<svg class='chart' aria-label='cut' viewBox='0 0 99 99' width='99' height='99'>"
    "<path d='M1 1L9 9' class='l'/><text x='80' y='50'>a long label</text></svg>": (
        "cut: 'a long label' is cut"
    ),
    "<svg class='chart' aria-label='on top' viewBox='0 0 99 99' width='99' height='99'>"
    "<path d='M1 1L9 9' class='l'/><text x='10' y='50'>one</text><text x='14' y='52'>two</text>"
    "</svg>": "on top: 'one' and 'two' overlap",
    "<div style='width:3000px;height:9px'></div>": "the page is wider than the window",
    "<p style='color:#eee;background:#fff'>pale</p>": "'pale' can hardly be read",
}


@pytest.mark.parametrize("markup", WRONG)
async def test_what_is_wrong_is_noticed(chromium: Browser, tmp_path: Path, markup: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><title>wrong</title><body>{markup}", encoding="utf-8")
    tab = await opened(chromium, file, 1280, "light")

    async def noticed() -> bool:
        return any(WRONG[markup] in found for found in await complaints(tab, file))

    await until(noticed, WRONG[markup])


# -- under a hand ----------------------------------------------------------------------------------


async def mouse(tab: Tab, kind: str, x: float, y: float, clicks: int = 1) -> None:
    button = "none" if kind == "mouseMoved" else "left"
    await tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button,
                   clickCount=0 if button == "none" else clicks)  # fmt: skip


async def of_timeline(tab: Tab, script: str) -> Any:
    return await tab.evaluate(
        "(function(){var chart=Array.from(document.querySelectorAll('svg[data-time]'))"
        ".find(it=>it.querySelector('path[data-name=p95]'));"
        f"chart.scrollIntoView({{block:'start'}});{script}}})()"
    )


async def test_lines_show_their_values_zoom_and_can_be_hidden(
    chromium: Browser, pages: dict[str, Path]
) -> None:
    tab = await opened(chromium, pages["scrubbed"], 1280, "light")
    box = json.loads(await of_timeline(tab, "return JSON.stringify(chart.getBoundingClientRect())"))
    scale = box["width"] / 860
    y = box["top"] + 150 * scale
    left, right = (box["left"] + x * scale for x in (130, 840))
    await mouse(tab, "mouseMoved", (left + right) / 2, y)
    shown = await tab.evaluate("document.getElementById('values').textContent")
    assert shown.startswith("300 s") and "p99: 7.5" in shown
    assert (
        1000 <= float(shown.partition("IOPS  clients: ")[2].split("\n")[0].replace(",", "")) <= 1200
    )

    await mouse(tab, "mousePressed", left + (right - left) * 0.25, y)
    await mouse(tab, "mouseMoved", left + (right - left) * 0.5, y)
    await mouse(tab, "mouseReleased", left + (right - left) * 0.5, y)
    ticks = "return Array.from(chart.querySelectorAll('.times text')).map(t=>t.textContent).join()"
    assert (await of_timeline(tab, ticks)).startswith("150,200,250")
    await mouse(tab, "mouseMoved", (left + right) / 2, y)
    shown = await tab.evaluate("document.getElementById('values').textContent")
    assert shown.startswith("225 s")
    for clicks in (1, 2):
        await mouse(tab, "mousePressed", (left + right) / 2, y, clicks)
        await mouse(tab, "mouseReleased", (left + right) / 2, y, clicks)
    assert (await of_timeline(tab, ticks)).startswith("0,100,200")

    hidden = "return chart.querySelector('path[data-name=p95]').style.display"
    key = "chart.querySelector('.panel .key[data-n=\"1\"]').dispatchEvent(new MouseEvent('click'));"
    assert await of_timeline(tab, key + hidden) == "none"
    assert await of_timeline(tab, key + hidden) == ""
    assert tab.errors == []


async def test_tables_sort_by_number_and_back(chromium: Browser, pages: dict[str, Path]) -> None:
    tab = await opened(chromium, pages["grid"], 1280, "light")
    column = (
        "(function(){var heads=Array.from(document.querySelector('table').tHead.rows[0].cells);"
        "var at=heads.findIndex(h=>h.textContent.startsWith('Throughput'));CLICK"
        "return Array.from(document.querySelector('table').tBodies[0].rows)"
        ".map(r=>r.cells[at].textContent).join(';')})()"
    )
    click = "heads[at].querySelector('button').click();"
    rising = await tab.evaluate(column.replace("CLICK", click))
    falling = await tab.evaluate(column.replace("CLICK", click))
    numbers = [float(text.strip("▲▼ ").replace(",", "")) for text in rising.split(";")]
    assert numbers == sorted(numbers) == [100.0 * n for n in range(1, 17)]
    assert falling.split(";") == rising.split(";")[::-1]
