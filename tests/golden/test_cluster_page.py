"""The whole exposition of the role cluster on recorded replies, compared with the committed pages.

The real command, with a rados module that replays a cluster of 18.2: three OSDs, two pools, first
at rest, then while a pool is deep-scrubbed, then while it recovers.

To rewrite the pages after a wanted change: pytest tests/golden --regenerate
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families
from tests.exporter_process import ExporterProcess, exporter
from tests.recorded import RECORDINGS
from tests.waiting import wait_until

from cephqos_exporter.ceph.cluster import READ_ONLY_COMMANDS

from .pages import settled

HERE = Path(__file__).parent
MOMENTS = ("scrub", "recovery")

# What depends on when and how often the test asks, not on what was replayed.
VARIES = re.compile(
    r"^(python_gc_\w+{.*}|(?!.* 0$)("
    r"process_\w+|cephqos_exporter_build_info{.*}|cephqos_\w+_duration_seconds({.*})?"
    r"|cephqos_cluster_command(s|_seconds|_bytes)_total{.*}|cephqos_cluster_data_age_seconds{.*}"
    r"|cephqos_\w+_per_second{.*}|cephqos_\w+_eta_seconds{.*}|cephqos_\w+_oldest_seconds{.*}"
    r")) .*$",
    re.MULTILINE,
)


class Replay:
    """A directory for the rados module, and what it was asked."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.become("idle")
        (place / "asked").touch()
        (place / "ceph.conf").touch()

    def become(self, moment: str) -> None:
        (self._place / "now").write_text(moment)

    @property
    def asked(self) -> list[str]:
        return (self._place / "asked").read_text().splitlines()

    @property
    def flags(self) -> list[str]:
        variables = f"REPLAY={RECORDINGS}/cluster/reef REPLAY_STATE={self._place}"
        python = f"env PYTHONPATH={HERE}/replayed {variables} {sys.executable}"
        return [
            "--role=cluster",
            f"--cluster.conf={self._place}/ceph.conf",
            f"--cluster.python={python}",
            "--cluster.ceph=false",
            "--cluster.interval=0.1",
            "--cluster.schedule-interval=0.2",
        ]

    def wait_for_polls(self, number: int) -> None:
        """Until that many more polls have ended: the next one has begun."""
        wanted = self._polls() + number + 1
        wait_until(lambda: self._polls() >= wanted, f"{number} polls")

    def _polls(self) -> int:
        return sum(line.endswith(" status") for line in self.asked)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What was served: first of all, at each moment, and once as OpenMetrics."""
    replay = Replay(tmp_path_factory.mktemp("cluster"))
    with exporter(*replay.flags) as running:
        replay.wait_for_polls(1)
        return served(replay, running) | {"asked": "\n".join(replay.asked)}


def served(replay: Replay, running: ExporterProcess) -> dict[str, str]:
    found = {"first": running.get()}
    for moment in MOMENTS:
        replay.become(moment)
        replay.wait_for_polls(3)
        found[moment] = running.get()
    found["openmetrics"] = running.get(Accept="application/openmetrics-text;version=1.0.0")
    return found


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_page_is_the_committed_one(
    pages: dict[str, str], moment: str, compare: Callable[[str, Path], None]
) -> None:
    compare(settled(pages[moment], VARIES), HERE / f"example_cluster_{moment}.prom")


def test_the_first_scrape_after_a_moment_is_whole(pages: dict[str, str]) -> None:
    """It has been read since the start: nothing is missing that only time brings, but rates."""

    def names(page: str) -> set[str]:
        return {family.name for family in text_string_to_metric_families(page) if family.samples}

    missing = names(pages["scrub"]) - names(pages["first"])
    assert not [name for name in missing if "running" not in name and "per_second" not in name]


def test_the_openmetrics_parser_reads_it(pages: dict[str, str]) -> None:
    parse = openmetrics_parser.text_string_to_metric_families
    families = {family.name for family in parse(pages["openmetrics"])}  # type: ignore[no-untyped-call]
    assert {"cephqos_cluster_up", "cephqos_recovery_pool_objects"} <= families


def test_it_asked_as_the_user_it_was_given_and_only_to_read(pages: dict[str, str]) -> None:
    asked = {tuple(line.split(" ", 1)) for line in pages["asked"].splitlines()}
    assert {name for name, _ in asked} == {"client.cephqos"}
    assert {prefix for _, prefix in asked} == READ_ONLY_COMMANDS
