"""Samples straight from exporters. Rates are computed here, from the last two scrapes."""

import asyncio
import math
import time
from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from cephqos_base.servers import HttpServer, NoAnswer
from cephqos_loadgen.top.figures import WANTED, Labels, PageSamples, Selection, Values, wanted_now
from cephqos_loadgen.top.picture import Missing, TopSamples
from cephqos_loadgen.top.screen.text import duration

# A line of a page is read if it begins with one of these: a wanted metric, with or without labels.
_PREFIXES: Final = tuple(f"{name}{end}" for name in sorted(WANTED) for end in "{ ")


class _Exporter:
    """One exporter and its last two scrapes, which stay when it goes away."""

    def __init__(self, connection: HttpServer) -> None:
        self.connection = connection
        self._reader = SeriesReader()
        self.before: PageSamples | None = None
        self.now: PageSamples | None = None
        self.trouble = ""

    async def scrape(self) -> None:
        try:
            page = await self.connection.get("/metrics")
            # A large page takes seconds to parse. It is parsed in a thread, so keys still work.
            samples = await asyncio.to_thread(self._reader.read, page, time.time())
        except (NoAnswer, ValueError) as error:
            self.trouble = str(error)
            return
        self.trouble = ""
        self.before, self.now = self.now, samples


class Exporters:
    """One or more exporters as one source."""

    def __init__(self, connections: Sequence[HttpServer]) -> None:
        self._exporters = [_Exporter(connection) for connection in connections]

    @property
    def name(self) -> str:
        first = self._exporters[0].connection.shown
        others = len(self._exporters) - 1
        return f"exporter {first}" if not others else f"exporters {first} and {others} more"

    async def fetch(self, selection: Selection) -> TopSamples:
        """Scrape all of them; NoAnswer if none answers."""
        await asyncio.gather(*(exporter.scrape() for exporter in self._exporters))
        down = [exporter for exporter in self._exporters if exporter.trouble]
        if len(down) == len(self._exporters):
            raise NoAnswer(down[0].trouble)
        known = [exporter for exporter in self._exporters if exporter.now is not None]
        return TopSamples(
            time=time.time(),
            values=await asyncio.to_thread(_figures, known, selection),
            rules=False,
            with_rates=any(exporter.before is not None for exporter in known),
            from_prometheus=False,
            troubles=tuple(map(_trouble, down)),
        )


def _trouble(exporter: _Exporter) -> Missing:
    why = f"no answer: {exporter.trouble}"
    if exporter.now is not None:
        why += f"; its values are {duration(time.time() - exporter.now.time)} old"
    return Missing(f"exporter {exporter.connection.shown}", why)


def _figures(exporters: Iterable[_Exporter], selection: Selection) -> dict[str, Values]:
    """Every figure over all exporters. Each is scraped at its own time, so rates are computed per
    exporter."""
    figures: dict[str, Values] = {}
    for name, figure in wanted_now(selection, rules=False).items():
        values: Values = figures.setdefault(name, {})
        for exporter in exporters:
            assert exporter.now is not None  # noqa: S101 - chosen by the caller
            for key, value in figure.computed(exporter.before, exporter.now, selection).items():
                figure.put(values, key, value)
    return figures


class SeriesReader:
    """Reads the pages of one exporter. The text of a series is parsed when it is first seen: of a
    later page only the values are read, which takes a quarter of the time.
    """

    def __init__(self) -> None:
        self._known: dict[
            str, tuple[str, Labels]
        ] = {}  # name and labels, by the text of the series

    def read(self, page: bytes, when: float) -> PageSamples:
        """The wanted samples of a page; ValueError if this is no page of metrics of cephqos."""
        text = page.decode(errors="replace")
        values = {}
        for line in text.split("\n"):
            if line.startswith(_PREFIXES):
                series_text, _, written = line.rpartition(" ")
                value = float(written)
                if math.isfinite(value):
                    values[series_text] = value
        if not values and "# TYPE" not in text:
            raise ValueError("this is not a page of metrics")
        if "cephqos_" not in text:
            raise ValueError("these metrics are not of cephqos: expected a cephqos-exporter")
        # Series that are not on this page are forgotten.
        known = {text: self._known[text] for text in values if text in self._known}
        self._known = known | _parsed(text for text in values if text not in known)
        samples: dict[str, dict[str, tuple[Labels, float]]] = {}
        for series_text, value in values.items():
            name, labels = self._known[series_text]
            samples.setdefault(name, {})[series_text] = (labels, value)
        return PageSamples(when, samples)


def _parsed(series: Iterable[str]) -> dict[str, tuple[str, Labels]]:
    """Name and labels of each series."""
    parsed: dict[str, tuple[str, Labels]] = {}
    for series_text in series:
        for family in text_string_to_metric_families(f"{series_text} 0\n"):
            for sample in family.samples:
                parsed[series_text] = (sample.name, sample.labels)
    return parsed
