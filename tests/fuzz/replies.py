"""Mutated replies of daemons, and what they may not do to a page.

    python -m tests.fuzz.replies --replies 1000000 --seed 1

Everything of the exporter runs but its sockets: what `asok.Batch` gives is made here from recorded
replies. Each page has daemons that lie and one that does not.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families
from tests.by_signal import clean_up_when_ended
from tests.recorded import RECORDINGS
from tests.replay.daemons import RecordedDaemon

from cephqos_exporter.ceph import asok
from cephqos_exporter.ceph.discovery import Socket
from cephqos_exporter.cli import read_settings
from cephqos_exporter.collectors import build_enabled
from cephqos_exporter.collectors.base import CollectorInputs
from cephqos_exporter.core_options import MAX_SERIES
from cephqos_exporter.flight_recorder.operations import OPERATIONS_HEAD, Operations
from cephqos_exporter.flight_recorder.triggers import Triggers
from cephqos_exporter.scrape.own_metrics import OwnMetrics
from cephqos_exporter.scrape.scraper import Scraper

RELEASES: Final = ("pacific/load", "reef/load", "tentacle/load")
LIARS: Final = 6  # on each page
PAGES_OF_A_DAEMON: Final = 5  # then it restarts, so that what is kept of it is asked again
PARSED_EVERY: Final = 50  # pages that prometheus_client reads too, in both formats

JUNK: Final[tuple[Any, ...]] = (
    None, True, "", "x", "12", "NaN", "a\nb", 'a"b', "é", "\x00", "ceph_daemon", "__name__",
    -1, 0, 1e-320, 1e308, -1e308, 2**64 - 1, -(2**63), 10**30,
    [], {}, [[]], {"a": {"b": []}}, [None] * 50, "x" * 5000, "{{[[",
)  # fmt: skip
RAW: Final = (b"NaN", b"1e999", b"-1e999", b"Infinity", b'"\\ud800"', b"\xff", b"[" * 300, b"")

# One line of the text format as Prometheus' scanner takes it.
_LABEL: Final = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n\0]|\\["\\n])*+"'
_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_SAMPLE: Final = rf"{_NAME}(?:\{{{_LABEL}(?:,{_LABEL})*+\}})? (?:[-+0-9.eE]++|NaN|[-+]Inf)\n"
_TYPE: Final = "(?:counter|gauge|histogram|summary|untyped)"
_HEAD: Final = rf"# HELP {_NAME} [^\n]*\n# TYPE {_NAME} {_TYPE}\n"
PAGE: Final = re.compile(rf"(?:{_HEAD}(?:{_SAMPLE})++)*+")


@dataclass
class Figures:
    """What came of it."""

    replies: int = 0
    pages: int = 0
    lost: int = 0  # pages that were not made, or lack samples of the daemon that does not lie
    refused: int = 0  # pages that Prometheus would not take
    absurd: int = 0  # samples that are NaN, infinite, or a count below 0
    left_out: int = 0
    failures: int = 0  # of a collector on a daemon
    why: list[str] = field(default_factory=list)

    @property
    def bad(self) -> int:
        return self.lost + self.refused + self.absurd

    def note(self, why: str) -> None:
        if len(self.why) < 10:
            self.why.append(why)


class Liars:
    """Answers for every daemon; mutates those of the liars."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.mutated = 0
        self.good = [RecordedDaemon.load(RECORDINGS / name).replies for name in RELEASES]
        self.parsed = [{p: json.loads(b) for p, b in one.items()} for one in self.good]
        self._told: dict[tuple[str, str], bytes] = {}  # the last lie, by socket and command

    def answers(self, path: str, prefixes: Sequence[str]) -> asok.Answers:
        number = int(path.rsplit(".", 2)[1])
        good = self.good[number % len(self.good)]
        bodies = {prefix: good.get(prefix, b"ERROR: (22) unknown command") for prefix in prefixes}
        if number:
            if len(prefixes) > 1:  # what is made of a lie and kept comes to be used
                told = {p: self._told[path, p] for p in prefixes if (path, p) in self._told}
                bodies |= {p: body for p, body in told.items() if self.rng.random() < 0.5}
            for prefix in self._chosen(prefixes):
                bodies[prefix] = self._mutated(number % len(self.good), prefix)
                self._told[path, prefix] = bodies[prefix]
                self.mutated += 1
        return asok.Answers(bodies=dict(bodies), pid=1)

    def _chosen(self, prefixes: Sequence[str]) -> Sequence[str]:
        if len(prefixes) == 1:  # who it is: else there would be no daemon to lie
            return prefixes if self.rng.random() < 0.02 else ()
        return self.rng.sample(prefixes, min(len(prefixes), self.rng.choice((1, 2, 5, 9))))

    def _mutated(self, release: int, prefix: str) -> bytes:
        rng = self.rng
        value = self.parsed[release].get(prefix, {})
        if rng.random() < 0.15:
            return _bytes_changed(self.good[release].get(prefix, b"{}"), rng)
        for _ in range(rng.choice((1, 1, 3, 10))):
            value = mutate(value, rng)
        try:
            body = json.dumps(value).encode()
        except RecursionError:
            body = b"["
        if rng.random() < 0.1:
            numbers = [m.span() for m in re.finditer(rb"(?<=[:\[, ])-?\d+", body)]
            if numbers:
                start, end = rng.choice(numbers)
                body = body[:start] + rng.choice(RAW) + body[end:]
        return body


def mutate(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """A copy with a part somewhere inside replaced, renamed, dropped, repeated or nested."""
    if depth and (not isinstance(value, dict | list) or not value or rng.random() < 0.15):
        return _instead_of(value, rng)
    if isinstance(value, dict) and value:
        return _dict_changed(value, rng, depth)
    if isinstance(value, list) and value:
        changed = list(value)
        at = rng.randrange(len(changed))
        action = rng.random()
        if action < 0.1:
            changed.pop(at)
        elif action < 0.2:
            changed.insert(at, changed[at])
        else:
            changed[at] = mutate(changed[at], rng, depth + 1)
        return changed
    return rng.choice(JUNK)


def _dict_changed(value: dict[str, Any], rng: random.Random, depth: int) -> dict[str, Any]:
    changed = dict(value)
    key = rng.choice(list(changed))
    action = rng.random()
    if action < 0.1:
        del changed[key]
    elif action < 0.25:  # names become metrics and labels
        odd = rng.choice(("a b", "é", 'q"', "n\n", "", "7", "ceph_daemon", "le", "a@b", "x" * 400))
        changed[rng.choice((odd, key + odd))] = changed.pop(key)
    else:
        changed[key] = mutate(changed[key], rng, depth + 1)
    return changed


def _instead_of(value: Any, rng: random.Random) -> Any:
    action = rng.random()
    if isinstance(value, int | float) and action < 0.4:
        return rng.choice((-value, value * 1e300 if abs(value) < 1e8 else 1e300, value + 0.5, -1))
    if action < 0.5:
        nested: Any = value
        for _ in range(rng.choice((1, 5, 70, 300))):
            nested = [nested] if rng.random() < 0.5 else {"a": nested}
        return nested
    return rng.choice(JUNK)


def _bytes_changed(body: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(body) + 1)
    match rng.randrange(4):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + rng.randbytes(rng.choice((1, 4, 100))) + body[at:]
        case 2:
            return body[:at] + bytes([rng.randrange(256)]) + body[at + 1 :]
    return body[:at] + body[at + rng.choice((1, 10, 1000)) :]


def _scraper(find: Callable[[], list[Socket]], operations: Operations) -> Scraper:
    off = dict.fromkeys(("threads", "disks", "placement"), "false")  # they read no replies
    flags = {f"collector.{name}": value for name, value in off.items()}
    inputs = CollectorInputs(read_settings(flags | {"collector.perf.min-priority": "3"}, {}))
    return Scraper(
        host=inputs.host,
        find=find,
        collectors=build_enabled(inputs),
        reporter=OwnMetrics(process=False),
        patience=0.5,
        max_series=MAX_SERIES.default,
        look=operations.look,
    )


async def fuzz(replies: int, seed: int, figures: Figures) -> None:
    """Make pages until so many replies were mutated."""
    liars = Liars(random.Random(seed))  # noqa: S311 - to be repeated, not to be secret

    class FuzzBatch:
        """Stands for `asok.Batch`."""

        silent = False

        def __init__(self, path: str, requests: Sequence[tuple[str, bytes]], *_: object) -> None:
            self.answers = liars.answers(path, [prefix for prefix, _ in requests])

        async def run(self) -> asok.Answers:
            return self.answers

    ages = [0] * (LIARS + 1)

    def find() -> list[Socket]:
        return [
            Socket(Path(f"/fuzz/ceph-osd.{i}.asok"), "osd", str(i), (i, ages[i] * (i > 0)))
            for i in range(LIARS + 1)
        ]

    triggers, operations = Triggers(), Operations()
    scraper = _scraper(find, operations)
    with mock.patch.object(asok, "Batch", FuzzBatch):
        least = 0
        for _ in range(3):
            least = (await _page(scraper)).count('ceph_daemon="osd.0"')
        while liars.mutated < replies:
            number = figures.pages
            ages[1:] = [(number + i) // PAGES_OF_A_DAEMON + 1 for i in range(1, LIARS + 1)]
            await _judge(scraper, triggers, operations, figures, least)
            figures.replies = liars.mutated
        await scraper.close()


async def _page(scraper: Scraper) -> str:
    return (await scraper.page(600)).body(openmetrics=False).decode()


async def _judge(
    scraper: Scraper, triggers: Triggers, operations: Operations, figures: Figures, least: int
) -> None:
    figures.pages += 1
    try:
        made = await scraper.page(600)
        page = made.body(openmetrics=False).decode()
        openmetrics = made.body(openmetrics=True).decode()
        triggers.look(made, float(figures.pages))  # of the recorder, as is what follows
        json.loads(operations.take().decode().removeprefix(OPERATIONS_HEAD) or "[]")
    except Exception as exc:
        figures.lost += 1
        figures.note(f"page {figures.pages}: {type(exc).__name__}: {exc}")
        return
    if page.count('ceph_daemon="osd.0"') < least - 3:  # ages of the oldest op come and go
        figures.lost += 1
        figures.note(f"page {figures.pages}: samples of osd.0 are missing")
    refusal = refused(page, openmetrics, thorough=figures.pages % PARSED_EVERY == 1)
    if refusal:
        figures.refused += 1
        figures.note(f"page {figures.pages}: {refusal}")
    for line in absurd(page):
        figures.absurd += 1
        figures.note(f"page {figures.pages}: {line}")
    figures.failures += len(re.findall(r"^cephqos_collector_success{.*} 0$", page, re.M))
    counts = re.findall(r"^cephqos_daemon_samples_left_out{.*} (\d+)$", page, re.M)
    figures.left_out += sum(map(int, counts))


def refused(page: str, openmetrics: str, *, thorough: bool) -> str:
    """Why Prometheus would not take a page; empty if it would."""
    matched = PAGE.match(page)
    end = matched.end() if matched else 0
    if end != len(page):
        return f"not the format: {page[end : end + 200]!r}"
    series = [line.rpartition(" ")[0] for line in page.splitlines() if line[0] != "#"]
    if len(set(series)) != len(series):
        return "a series twice"
    heads = re.findall(r"^# TYPE (\S+)", page, re.M)
    if len(set(heads)) != len(heads):
        return "a family twice"
    if thorough:
        try:
            list(text_string_to_metric_families(page))
            list(openmetrics_parser.text_string_to_metric_families(openmetrics))  # type: ignore[no-untyped-call]
        except ValueError as exc:
            return f"prometheus_client: {exc}"
    return ""


def absurd(page: str) -> Iterator[str]:
    """Samples that say nothing."""
    for block in page.split("# HELP ")[1:]:
        head, _, samples = block.partition("\n# TYPE ")[2].partition("\n")
        kind = head.rpartition(" ")[2]
        counts = kind in ("counter", "histogram", "summary")
        for found in re.finditer(r"^.* (-(?!0(?:\.0)?$)\S+|\S*(?:NaN|Inf))$", samples, re.M):
            if counts or found[1][-1] in "Nf":
                yield found[0]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.replies")
    parser.add_argument("--replies", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)  # every failed collector logs its traceback
    print(f"seed {arguments.seed}, {arguments.replies:,} replies", flush=True)
    figures = Figures()
    started = time.process_time()
    with contextlib.suppress(KeyboardInterrupt):  # what was done until then counts
        asyncio.run(fuzz(arguments.replies, arguments.seed, figures))
    spent = time.process_time() - started
    print(f"{figures.replies:,} mutated replies, {figures.pages:,} pages, {spent:,.0f} s of CPU:")
    print(
        f"  {figures.lost:,} pages lost\n"
        f"  {figures.refused:,} pages that Prometheus would refuse\n"
        f"  {figures.absurd:,} samples shown that are NaN, infinite or a count below 0\n"
        f"  {figures.left_out:,} samples left out, {figures.failures:,} failures of a collector on"
        " a daemon, all shown"
    )
    for why in figures.why:
        print(f"  {why}")
    return 1 if figures.bad else 0


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(main())
