"""Scrapes a lab's OSDs with the exporter's own scrape loop, and reads the page."""

from collections.abc import Sequence
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from cephqos_exporter.ceph.discovery import find_sockets
from cephqos_exporter.core_options import MAX_SERIES
from cephqos_exporter.daemon import Collector, Host
from cephqos_exporter.families import Family
from cephqos_exporter.scrape.part import Part
from cephqos_exporter.scrape.scraper import Reporter, Scraper
from cephqos_loadgen.lab.lab import RunningLab

Labels = dict[str, str]


class LivePage:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        self._samples: dict[str, list[tuple[Labels, float]]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self._samples.setdefault(sample.name, []).append((sample.labels, sample.value))

    def values(self, name: str, **labels: str) -> list[float]:
        """The values of every series of that name with at least those labels."""
        return [value for _, value in self.samples(name, **labels)]

    def sum(self, name: str, **labels: str) -> float:
        """Their sum over OSDs; fails when there are none."""
        found = self.values(name, **labels)
        assert found, f"no {name} with {labels}"
        return sum(found)

    def one(self, name: str, **labels: str) -> float:
        """The value of the only one."""
        found = self.samples(name, **labels)
        assert len(found) == 1, f"{name} {labels}: {found}"
        return found[0][1]

    def samples(self, name: str, **labels: str) -> list[tuple[Labels, float]]:
        """The same with all their labels."""
        wanted = {key.rstrip("_"): text for key, text in labels.items()}.items()
        # The parser adds the suffix to Ceph's counters, which have none.
        found = self._samples.get(name) or self._samples.get(f"{name}_total", [])
        return [(own, value) for own, value in found if wanted <= own.items()]

    def labels(self, name: str) -> list[Labels]:
        return [own for own, _ in self.samples(name)]

    def buckets(self, name: str, **labels: str) -> dict[float, float]:
        """A histogram summed over OSDs: cumulative counts by upper bound."""
        found: dict[float, float] = {}
        wanted = labels.items()
        for own, value in self._samples.get(f"{name}_bucket", []):
            if wanted <= own.items():
                bound = float(own["le"])
                found[bound] = found.get(bound, 0.0) + value
        return dict(sorted(found.items()))


class _NoReport(Reporter):
    def families(self, parts: Sequence[Part], seconds: float) -> Sequence[Family]:
        failed = [one for one in parts if one.labels and not all(one.success.values())]
        assert not failed, [(one.labels, one.success) for one in failed]
        return []


class LiveExporter:
    """The collectors on the OSDs of a lab, as one exporter would run them."""

    def __init__(self, lab: RunningLab, collectors: Sequence[Collector]) -> None:
        self._scraper = Scraper(
            host=Host(),
            find=lambda: find_sockets([f"{lab.paths.sockets}/*.asok"], ["osd"]),
            collectors=collectors,
            reporter=_NoReport(),
            patience=0.5,
            max_series=MAX_SERIES.default,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._scraper.close()

    async def scrape(self) -> LivePage:
        page = await self._scraper.page(timeout=10.0)
        return LivePage(page.body(openmetrics=False).decode())
