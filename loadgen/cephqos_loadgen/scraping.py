"""Reading web pages of our own servers, and an exporter's metrics as plain numbers."""

import asyncio
import urllib.request
from collections import defaultdict
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

# (name, sorted labels)
Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Scrape:
    """All samples of one scrape and when it was taken."""

    time: float
    samples: dict[Series, float]

    def by(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """Sums of a metric's samples that have `labels`, by the value of `label`."""
        sums: dict[str, float] = defaultdict(float)
        for (sample, pairs), value in self.samples.items():
            if sample == name:
                found = dict(pairs)
                if label in found and labels.items() <= found.items():
                    sums[found[label]] += value
        return dict(sums)

    def most(self, name: str, label: str, **labels: str) -> dict[str, float]:
        """Like `by`, but the largest sample instead of the sum."""
        largest: dict[str, float] = {}
        for (sample, pairs), value in self.samples.items():
            if sample == name:
                found = dict(pairs)
                if label in found and labels.items() <= found.items():
                    key = found[label]
                    largest[key] = max(value, largest.get(key, value))
        return largest


def parse_scrape(text: str, time: float) -> Scrape:
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return Scrape(time, samples)


async def fetch(url: str, within: float = 5.0) -> bytes:
    """The body of a page; raises OSError, also for a status that is not a success."""

    def get() -> bytes:
        with urllib.request.urlopen(url, timeout=within) as reply:  # noqa: S310 - our own URL
            body: bytes = reply.read()
            return body

    return await asyncio.to_thread(get)


async def scrape(url: str, within: float = 5.0) -> Scrape:
    """Fetch a metrics page; raises OSError or ValueError."""
    text = (await fetch(url, within)).decode()
    return parse_scrape(text, asyncio.get_running_loop().time())


def quantile(buckets: dict[float, float], q: float) -> float | None:
    """The q-quantile of cumulative buckets (`le` -> count), linear within a bucket as in PromQL."""
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0.0
    if total <= 0:
        return None
    rank = q * total
    lower, below = 0.0, 0.0
    for bound in bounds:
        count = buckets[bound]
        if count >= rank:
            if bound == float("inf"):
                return lower
            return lower + (bound - lower) * (rank - below) / (count - below)
        lower, below = bound, count
    return lower
