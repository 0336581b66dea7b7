"""Samples straight from exporters. Rates are computed here, from the last two scrapes."""

import asyncio
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from cephqos_loadgen.top.figures import WANTED, Scrape, Selection, Values, wanted_now
from cephqos_loadgen.top.model import Missing, Samples
from cephqos_loadgen.top.source import Connection, SourceDown
from cephqos_loadgen.top.text import duration

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


class _Exporter:
    """One exporter and its last two scrapes, which stay when it goes away."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.before: Scrape | None = None
        self.now: Scrape | None = None
        self.trouble = ""

    async def scrape(self) -> None:
        try:
            page = await self.connection.get("/metrics")
            # A large page takes seconds to parse: in a thread, keys are answered meanwhile.
            found = await asyncio.to_thread(parse_page, page, time.time())
        except (SourceDown, ValueError) as error:
            self.trouble = str(error)
            return
        self.trouble = ""
        self.before, self.now = self.now, found


class Exporters:
    """One or more exporters as one source."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._exporters = [_Exporter(connection) for connection in connections]

    @property
    def name(self) -> str:
        first = self._exporters[0].connection.shown
        others = len(self._exporters) - 1
        return f"exporter {first}" if not others else f"exporters {first} and {others} more"

    async def fetch(self, selection: Selection) -> Samples:
        """Scrape all of them; SourceDown if none answers."""
        await asyncio.gather(*(exporter.scrape() for exporter in self._exporters))
        down = [exporter for exporter in self._exporters if exporter.trouble]
        if len(down) == len(self._exporters):
            raise SourceDown(down[0].trouble)
        known = [exporter for exporter in self._exporters if exporter.now is not None]
        return Samples(
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
    """Every figure over all exporters. Each has its own clock, so rates are made per exporter."""
    found: dict[str, Values] = {}
    for name, figure in wanted_now(selection, rules=False).items():
        values: Values = found.setdefault(name, {})
        for exporter in exporters:
            assert exporter.now is not None  # noqa: S101 - chosen by the caller
            for key, value in figure.computed(exporter.before, exporter.now, selection).items():
                adds = key in values and figure.how.endswith("sum")
                values[key] = values[key] + value if adds else max(values.get(key, value), value)
    return found


def parse_page(page: bytes, when: float) -> Scrape:
    """The wanted samples of an exporter's page; ValueError if it is no such page."""
    text = page.decode(errors="replace")
    lines = [line for line in text.split("\n") if _is_wanted(line)]
    if not lines and "# TYPE" not in text:
        raise ValueError("this is not a page of metrics")
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families("\n".join([*lines, ""])):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return Scrape(when, samples)


def _is_wanted(line: str) -> bool:
    match = _NAME.match(line)
    return match is not None and match[0] in WANTED
