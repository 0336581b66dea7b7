"""Replies that are JSON and not what the command promises: they cost their own samples only."""

import json
import logging
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.recorded import RECORDINGS, RELEASES
from tests.replay.daemons import RecordedDaemon, ReplayedHost

from cephqos_exporter.app import build_scraper
from cephqos_exporter.cli import read_settings

ROUNDS = 20
JUNK: tuple[Any, ...] = (
    None,
    True,
    "x",
    "12",
    -1,
    1e308,
    2**64 - 1,
    [],
    {},
    [[]],
    {"a": {"b": []}},
)


def mutate(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """Replace, drop or repeat a part somewhere inside."""
    if depth and (not isinstance(value, dict | list) or not value or rng.random() < 0.3):
        return rng.choice(JUNK)
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        changed = dict(value)
        if rng.random() < 0.2:
            del changed[key]
        else:
            changed[key] = mutate(value[key], rng, depth + 1)
        return changed
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        changed_list = list(value)
        action: Callable[[], None] = rng.choice(
            (lambda: changed_list.pop(at), lambda: changed_list.insert(at, value[at]))
        )
        if rng.random() < 0.3:
            action()
        else:
            changed_list[at] = mutate(value[at], rng, depth + 1)
        return changed_list
    return rng.choice(JUNK)


def mutated(recording: RecordedDaemon, rng: random.Random) -> RecordedDaemon:
    replies = dict(recording.replies)
    asked = sorted(set(replies) - {"config get", "status"})  # else it is another daemon
    for prefix in rng.sample(asked, rng.choice((1, 2, 5))):
        value = json.loads(replies[prefix])
        for _ in range(rng.choice((1, 3, 20))):
            value = mutate(value, rng)
        replies[prefix] = json.dumps(value).encode()
    return RecordedDaemon(replies)


@pytest.mark.parametrize("release", RELEASES)
async def test_whatever_a_daemon_says_the_page_is_whole_and_its_neighbour_unharmed(
    tmp_path: Path, release: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL + 1)  # every failed collector logs its traceback
    rng = random.Random(release)  # noqa: S311
    good = RecordedDaemon.load(RECORDINGS / release / "load")
    host = ReplayedHost(tmp_path)
    bad, _ = host.add(good), host.add(good)
    scraper = build_scraper(
        read_settings({"discovery.sockets": str(tmp_path), "web.disable-exporter-metrics": "1"}, {})
    )
    failures = 0

    async def page() -> str:
        return (await scraper.page(10)).body(openmetrics=False).decode()

    async with host:
        await page()
        whole = await page()
        neighbours = whole.count('ceph_daemon="osd.1"')
        assert neighbours > 200
        for _ in range(ROUNDS):
            bad.recording = mutated(good, rng)
            bad.stop()
            bad.start()  # so that what is kept for good is asked again
            for _ in range(2):
                came = await page()
                seen = [
                    (sample.name, tuple(sample.labels.items()))
                    for family in text_string_to_metric_families(came)
                    for sample in family.samples
                ]
                assert len(set(seen)) == len(seen), "a series twice"
                assert came.count('ceph_daemon="osd.1"') >= neighbours - 1  # oldest op's age
                failures += len(re.findall(r"cephqos_collector_success{.*osd\.0.*} 0", came))
    await scraper.close()
    assert failures > 5  # the mutations do hurt, and it shows
