"""Opens every dashboard in a real Grafana and looks at it: `make test-grafana`.

    GRAFANA_HOME=/usr/share/grafana   a Grafana of your own is started from there
    GRAFANA_URL=http://host:3000      that one is used; GRAFANA_TOKEN, where it wants one

Without both, a `grafana-server` on the PATH, or Docker, with the image GRAFANA_IMAGE if it is set.

It opens two dashboards before a Prometheus that is not there, then all of them before a 16.2
without mClock, rules and cluster role. Then it tells the dashboards' story on a lab and opens each
dashboard in two sizes, light and dark. It fails where a panel shows an error or "No data", or where
Grafana refused a query. Pictures are left in PICTURES (default: build/pictures).
"""

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from tests.board_panels import UIDS, boards, panels
from tests.board_story import story, story_lab
from tests.by_signal import clean_up_when_ended
from tests.grafana.browser import Browser, Tab, browser, find_chromium

from cephqos_base import dashboards
from cephqos_dashboards.provisioning import Sources
from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.progress import Progress
from cephqos_stack.grafana.find import HOW_TO_GET, find_grafana
from cephqos_stack.grafana.place import Grafana
from cephqos_stack.stack import Stack, StackSpec

SIZES: Final = ((1600, 1000), (1280, 800))
THEMES: Final = ("dark", "light")
_HIGHEST: Final = 12_000
_SETTLED_WITHIN: Final = 90.0  # seconds
# What a panel says that has neither data nor a reason, or that failed.
_COMPLAINTS: Final = """
[...document.querySelectorAll('[data-testid^="data-testid Panel header"]')]
  .map(panel => {
    const text = panel.innerText || '';
    const error = panel.querySelector('[data-testid="data-testid Panel status error"]');
    const bare = /\\bNo data\\b|Cannot visualize|Data is missing|Unable to find/.test(text);
    const said = text.split('\\n').slice(0, 4).join(' | ');
    return error || bare ? said + (error ? ' [error]' : '') : '';
  }).filter(Boolean)
"""
_BUSY: Final = """
document.querySelectorAll('[aria-label="Panel loading bar"], [data-testid="data-testid Loading"]')
  .length + (document.querySelector('.preloader') ? 1 : 0)
"""
_PANELS: Final = "document.querySelectorAll('[data-testid^=\"data-testid Panel header\"]').length"
_TOASTS: Final = """
[...document.querySelectorAll('[data-testid^="data-testid Alert error"]')].map(it => it.innerText)
"""
# An empty cell of a column with links has one without text, which nobody can click.
_LINKS: Final = """
[...document.querySelectorAll('a[href*="cephqos-osd?"]')].filter(it => it.innerText.trim())
  .map(it => it.href)
"""
_HEIGHT: Final = """
Math.max(...[...document.querySelectorAll('*')].filter(it => it.scrollHeight > it.clientHeight)
  .map(it => it.scrollHeight), document.body.scrollHeight)
"""


# Rows that are folded: in Grafana 10, and from 11 on.
_UNFOLD: Final = """
[...document.querySelectorAll(`.dashboard-row--collapsed button.dashboard-row__title,
    [data-testid="dashboard-row-container"] button[aria-expanded="false"]`)]
  .forEach(row => row.click())
"""


@dataclass(frozen=True)
class BoardView:
    """What is looked at: values of variables, from when on, and a word for the pictures' names."""

    variables: Mapping[str, str]
    begin: float
    name: str = ""
    loki: str = ""  # its URL; without one, rows with logs stay folded


async def look_at(
    tab: Tab,
    grafana: Grafana,
    uid: str,
    view: BoardView,
    size: tuple[int, int],
    theme: str,
    out: Path,
    *,
    quiet: bool = False,
) -> list[str]:
    """Open a dashboard, leave its pictures, and say what is wrong with it."""
    width, height = size
    query = {f"var-{name}": value for name, value in view.variables.items()}
    query |= {"from": str(int(view.begin * 1000)), "to": str(int(time.time() * 1000))}
    address = grafana.board_url(uid, query | {"theme": theme})
    await tab.size(width, height)
    await tab.open(address)
    await _settled(tab)
    if view.loki:
        await tab.evaluate(_UNFOLD)
        await _settled(tab)
    name = f"{view.name}{uid}-{width}x{height}-{theme}"
    await tab.picture(out / f"{name}.png")
    expected = _expected(uid, view)
    await tab.size(width, min(_HIGHEST, int(await tab.evaluate(_HEIGHT)) + 120))
    await _settled(tab, expected)
    await tab.picture(out / f"{name}-whole.png")
    found = [*await tab.evaluate(_COMPLAINTS), *await tab.evaluate(_TOASTS)]
    found += tab.refused("/api/ds/query") + tab.refused("/api/datasources")
    found += [link for link in await tab.evaluate(_LINKS) if not _leads_on(link, view)]
    if (shown := await tab.evaluate(_PANELS)) < expected:
        found.append(f"{shown} of {expected} panels are shown")
    for complaint in () if quiet else found:
        print(f"    {name}: {complaint}", flush=True)
    return [f"{name}: {complaint}" for complaint in found]


def _leads_on(link: str, view: BoardView) -> bool:
    """Whether a link to an OSD takes cluster, OSD and time range with it."""
    found = dict(parse_qsl(urlsplit(link).query))
    same = found.get("var-cluster") == view.variables.get("cluster")
    return same and {"var-osd", "var-datasource", "from", "to"} <= found.keys()


def _expected(uid: str, view: BoardView) -> int:
    """How many panels there are, without those in folded rows."""
    found = panels(boards()[uid]) if view.loki else boards()[uid]["panels"]
    return sum(panel["type"] != "row" for panel in found)


async def _settled(tab: Tab, expected: int = 1) -> None:
    """Until so many panels are there and nothing loads any more, for two seconds."""
    calm = 0
    with contextlib.suppress(TimeoutError):  # the caller counts panels, and says what is missing
        async with asyncio.timeout(_SETTLED_WITHIN):
            while calm < 4:
                await asyncio.sleep(0.5)
                there = await tab.evaluate(_PANELS) >= expected
                calm = calm + 1 if there and not await tab.evaluate(_BUSY) else 0


async def look_at_all(
    grafana: Grafana,
    view: BoardView,
    chromium: Browser,
    out: Path,
    sizes: Sequence[tuple[int, int]] = SIZES,
    themes: Sequence[str] = THEMES,
) -> list[str]:
    found: list[str] = []
    tab = await chromium.tab()
    await tab.headers(grafana.headers)
    for uid in UIDS:
        for size in sizes:
            for theme in themes:
                found += await look_at(tab, grafana, uid, view, size, theme, out)
        print(f"  {view.name}{uid}: {len(found)} complaints so far", flush=True)
    return found


async def main() -> int:
    grafana = await find_grafana(os.environ)
    if grafana is None:
        print(f"Grafana: {HOW_TO_GET}", file=sys.stderr)
        return 2
    if find_chromium() is None:
        print("no Chromium found: apt-get install chromium", file=sys.stderr)
        return 2
    out = Path(os.environ.get("PICTURES", "build/pictures")).absolute()
    out.mkdir(parents=True, exist_ok=True)
    found = await look_at_nothing(grafana, out)
    found += await look_at_little(grafana, out) + await look_at_the_story(grafana, out)
    print(f"pictures are in {out}")
    for complaint in found:
        print(f"WRONG {complaint}")
    return 1 if found else 0


@contextlib.asynccontextmanager
async def opened(grafana: Grafana, prometheus: str, loki: str = "") -> AsyncIterator[Browser]:
    """A browser, and Grafana before this Prometheus."""
    with tempfile.TemporaryDirectory(prefix="cephqos-grafana-") as name:
        folder = Path(name)
        sources = Sources(prometheus=prometheus, loki=loki)
        async with grafana.showing(sources, folder / "grafana"), browser(folder) as chromium:
            yield chromium


async def look_at_the_story(grafana: Grafana, out: Path) -> list[str]:
    """Everything has something to show: two sizes, light and dark."""
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="cephqos-archives-") as archives:
        async with Lab(story_lab(f"grafana-{os.getpid()}"), progress) as lab:
            with progress.step("telling the story, three minutes"):
                telling = story(lab, Path(archives), climax=600)
                told = await telling.__aenter__()
            try:
                variables = {k: told.variables[k] for k in ("cluster", "osd", "run")}
                prometheus, loki = told.stack.prometheus_url, told.logs.loki_url
                view = BoardView(variables, told.begin, loki=loki)
                async with opened(grafana, prometheus, loki) as chromium:
                    return await look_at_all(grafana, view, chromium, out)
            finally:
                await telling.__aexit__(None, None, None)


async def look_at_nothing(grafana: Grafana, out: Path) -> list[str]:
    """A data source that is not there: panels show Grafana's error for it, and none is silent."""
    found: list[str] = []
    view = BoardView({}, time.time() - 600, "nothing-")
    async with opened(grafana, "http://127.0.0.1:9", "http://127.0.0.1:9") as chromium:
        tab = await chromium.tab()
        await tab.headers(grafana.headers)
        for uid in (dashboards.OVERVIEW, dashboards.OSD):
            said = await look_at(tab, grafana, uid, view, SIZES[0], THEMES[0], out, quiet=True)
            if not any(complaint.endswith("[error]") for complaint in said):
                found.append(f"nothing-{uid}: no panel says that its data source is not there")
    return found


async def look_at_little(grafana: Grafana, out: Path) -> list[str]:
    """16.2 with WPQ, a Prometheus without rules, no cluster role: panels say what is missing."""
    async with Lab(story_lab(f"little-{os.getpid()}", "pacific", "wpq"), Progress()) as lab:
        begin = time.time()
        async with Stack(lab, StackSpec(name="little", rules=False, cluster_role=False)) as stack:
            await asyncio.sleep(15)
            view = BoardView({"cluster": lab.state.fsid, "osd": "osd.0"}, begin, "little-")
            async with opened(grafana, stack.prometheus_url) as chromium:
                return await look_at_all(grafana, view, chromium, out, SIZES[:1], THEMES[:1])


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(asyncio.run(main()))
