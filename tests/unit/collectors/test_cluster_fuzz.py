"""Mutated replies of monitors and manager: what they say wrong is not shown and not remembered."""

import logging
import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.fuzz.replies import absurd, mutate, refused
from tests.recorded import RELEASES

from cephqos_exporter.cluster.cluster_source import ClusterSource
from cephqos_exporter.daemon_errors import SourceUnavailable
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import Rendered, render

from .test_cluster_poller import Clock, RecordedReader, poller, read, source

LIVES = 8  # exporters, one after the other
POLLS = 20  # of each


def liar(rng: random.Random) -> Callable[[str, Any], Any]:
    """Changes some of the replies of a poll."""

    def change(name: str, reply: Any) -> Any:
        if rng.random() < 0.3:
            for _ in range(rng.choice((1, 1, 3, 10))):
                reply = mutate(reply, rng)
        return reply

    return change


async def shown(source: ClusterSource) -> Rendered:
    """What a scrape gets, which both formats can take."""
    try:
        families = [*await source.collect(0)]
    except SourceUnavailable as exc:
        families = [*exc.families]
    rendered, page = render(families), Page()
    page.add(rendered)
    text, openmetrics = (page.body(openmetrics=one).decode() for one in (False, True))
    assert refused(text, openmetrics, thorough=True) == ""
    assert not list(absurd(text))
    return rendered


async def test_a_cluster_that_says_nonsense_is_well_once_it_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"SEED={seed} pytest tests/unit/collectors/test_cluster_fuzz.py")  # shown if it fails
    rng = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    monkeypatch.setattr(logging.root, "disabled", True)
    failed = 0
    for _ in range(LIVES):
        reader = RecordedReader(rng.choice(RELEASES), rng.choice(("idle", "scrub", "recovery")))
        clock = Clock()
        polling = poller(reader, clock, interval=0.0, schedule_interval=0.01)
        source = ClusterSource(lambda kept=polling: kept, clock=clock, most_pools=50)  # type: ignore[misc]
        monkeypatch.setattr(source, "_ensure_running", lambda kept=polling: kept)
        for _ in range(POLLS):
            reader.change = liar(rng)
            clock.now += rng.choice((5, 60, 1000, -3600))
            failed += not await polling.poll()
            await shown(source)
        reader.change = lambda _, reply: reply
        for _ in range(2):
            clock.now += 5000
            await polling.poll()
        assert polling.failure is None
        rendered = await shown(source)
        assert rendered.left_out == 0
        assert rendered.samples > 100
    assert failed > LIVES, "the mutations do hurt"


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("osd_dump", ("pools", 0, "pool_name")),
        ("osd_dump", ("pools", 0, "pg_num")),
        ("osd_dump", ("osds", 0, "osd")),
        ("pools", ("pool_stats", 0, "poolid")),
        ("pools", ("pool_stats", 0, "stat_sum", "num_objects_degraded")),
        ("primary_0", ("pg_stats", 0, "acting_primary")),
        ("primary_0", ("pg_stats", 0, "stat_sum", "num_objects")),
        ("scrubbing", ("pg_stats", 0, "last_scrub_stamp")),
        ("brief", ("pg_stats", 0, "pgid")),
    ],
)
@pytest.mark.parametrize("wrong", [None, True, 7.5, ["x"], {}])
async def test_one_odd_entry_of_a_list_costs_itself_only_and_is_counted(
    command: str, path: tuple[str | int, ...], wrong: object
) -> None:
    reader = RecordedReader(moment="recovery" if command == "brief" else "scrub")
    reader.change = changing(command, path, wrong)
    polling = poller(reader)
    assert await polling.poll()
    assert set(polling.not_understood.found) == {
        "counter" if command == "pools" and len(path) > 3 else "reply"
    }
    assert polling.state is not None and polling.state.osd_map.pools and polling.state.osd_map.osds
    assert polling.state.states_by_pool is not None


@pytest.mark.parametrize("path", [("fsid",), ("pgmap", "pgs_by_state", 0, "state_name")])
@pytest.mark.parametrize("wrong", [None, True, 7.5, ["x"], {}])
async def test_a_status_that_names_what_is_no_text_is_malformed(
    path: tuple[str | int, ...], wrong: object
) -> None:
    reader = RecordedReader()
    reader.change = changing("status", path, wrong)
    found = source(reader)
    with pytest.raises(SourceUnavailable, match="malformed"):
        await read(found)
    await found.close()


def changing(command: str, path: tuple[str | int, ...], wrong: object) -> Callable[[str, Any], Any]:
    def change(name: str, reply: Any) -> Any:
        if name == command:
            place = reply
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = wrong
        return reply

    return change


async def test_placement_groups_none_of_which_is_understood_are_not_0() -> None:
    reader = RecordedReader(moment="scrub")

    def odd(_: str, reply: Any) -> Any:
        for row in reply.get("pg_stats", ()):
            row["pgid"] = None
        return reply

    reader.change = odd
    found = source(reader)
    shown = {name.partition("{")[0] for name in await read(found)}
    await found.close()
    assert "cephqos_scrub_pool_objects_total" in shown
    assert not shown & {"cephqos_scrub_pool_running_pgs", "cephqos_scrub_pool_schedule_pgs"}
