"""The whole exposition of the real command on a fixture host, compared with the committed page.

Five OSDs on a two-socket host: a 4-shard one of 18.2 on dm-crypt over LVM, 20.2 on a stripe of
NVMe, 16.2 on a loop device, Crimson (a reply in the shape of real ones), and one of 18.2 whose
process cannot be seen. A scrape of quiet daemons, then two of loaded ones; the last page is the one
compared.

To rewrite the page after a wanted change: pytest tests/golden --regenerate
"""

import asyncio
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser
from tests.exporter_process import exporter
from tests.recorded import RECORDINGS
from tests.replay.daemons import RecordedDaemon, ReplayedHost
from tests.replay.host_tree import example_host

from cephqos_exporter.ceph.commands import READ_ONLY_COMMANDS
from cephqos_loadgen.lab.releases import RELEASES
from cephqos_loadgen.lab.trees import tree_path, tree_ready

from .pages import settled

PAGE = Path(__file__).with_name("example_host.prom")
BEFORE = (
    "reef-4-shards/idle",
    "tentacle/idle",
    "pacific/idle",
    "crimson/autumn-random-blocks",
    "reef/idle",
)
AFTER = (
    "reef-4-shards/load",
    "tentacle/load",
    "pacific/load",
    "crimson/autumn-random-blocks",
    "reef/load",
)
FIRST_PID = 5000

# What depends on when and where the test runs, not on what was replayed.
VARIES = re.compile(
    r"^(process_\w+|python_gc_\w+{.*}|cephqos_exporter_build_info{.*}|cephqos_\w+_duration_seconds({.*})?"
    r"|cephqos_qos_reservation_lag_seconds{.*}|cephqos_ops_oldest_age_seconds{.*}"
    r"|cephqos_(ops_sampled_wait|tenants|tenants_squared)_seconds_total{.*}) .*$",
    re.MULTILINE,
)


def recorded(name: str) -> RecordedDaemon:
    """A recording in which the first scrub is due, none is late and the others wait, on any day."""
    daemon = RecordedDaemon.load(RECORDINGS / name)
    due = itertools.chain([b"2020"], itertools.repeat(b"2099"))
    if "dump_scrubs" in daemon.replies:
        daemon.replies["dump_scrubs"] = re.sub(
            rb'("(sched_time|deadline)": ?")20\d\d',
            lambda found: found[1] + (next(due) if found[2] == b"sched_time" else b"2099"),
            daemon.replies["dump_scrubs"],
        )
    return daemon


async def two_pages(tmp_path: Path) -> tuple[str, str, set[str]]:
    """The last scrape's page as text, one more as OpenMetrics, and what was asked."""
    host = example_host(tmp_path / "host", FIRST_PID)
    for osd in range(4):  # where the recorded OSDs say that their data is
        place = host.host.proc / str(FIRST_PID + 100 * osd) / "root/var/lib/ceph"
        (place / "lab").mkdir()
        (place / "lab/osd.0").symlink_to(f"../osd/ceph-{osd}")
    daemons = ReplayedHost(tmp_path / "run")
    for name in BEFORE:
        daemons.add(recorded(name))
    roots = [f"--path.{n}={tmp_path}/host/{d}" for n, d in (("procfs", "proc"), ("sysfs", "sys"))]
    # Scrapes follow one another at once here, and each shows what the histograms say then.
    roots += [f"--path.dev={tmp_path}/host/dev", "--collector.histograms.interval=0"]
    # Read once, however long the scrapes take.
    roots += ["--collector.threads.switches-interval=3600"]
    flags = (f"--discovery.sockets={daemons.directory}", *roots)
    async with daemons:
        with exporter(*flags) as running:
            await asyncio.to_thread(running.get)
            for daemon, name in zip(daemons.daemons, AFTER, strict=True):
                daemon.recording = recorded(name)
            for osd, allowed in enumerate(("0-27,56-83", "28-55,84-111", "0-111")):
                host.classic_osd(FIRST_PID + 100 * osd, osd, step=1, allowed=allowed)
            await asyncio.to_thread(running.get)  # what is asked for only after it was seen
            page = await asyncio.to_thread(running.get)
            openmetrics = await asyncio.to_thread(
                running.get, Accept="application/openmetrics-text;version=1.0.0"
            )
        return page, openmetrics, set(daemons.asked)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, set[str]]:
    return asyncio.run(two_pages(tmp_path_factory.mktemp("golden")))


def test_the_page_is_the_committed_one(
    pages: tuple[str, str, set[str]], compare: Callable[[str, Path], None]
) -> None:
    compare(settled(pages[0], VARIES), PAGE)


def test_both_parsers_read_the_same_samples(pages: tuple[str, str, set[str]]) -> None:
    def samples(families: Iterable[Metric]) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        # The text format's parser adds _total to counters that lack it.
        found = [
            (s.name.removesuffix("_total"), tuple(s.labels.items()))
            for family in families
            for s in family.samples
        ]
        assert len(set(found)) == len(found), "a series twice"
        return set(found)

    as_text = samples(text_parser.text_string_to_metric_families(pages[0]))
    parse = openmetrics_parser.text_string_to_metric_families
    assert samples(parse(pages[1])) == as_text  # type: ignore[no-untyped-call]
    assert len(as_text) > 1500


def test_the_last_bucket_of_every_histogram_is_its_count(
    pages: tuple[str, str, set[str]],
) -> None:
    last, counts = {}, {}
    for family in text_parser.text_string_to_metric_families(pages[0]):
        for sample in family.samples if family.type == "histogram" else ():
            labels = frozenset((k, v) for k, v in sample.labels.items() if k != "le")
            if sample.labels.get("le") == "+Inf":
                last[family.name, labels] = sample.value
            elif sample.name.endswith("_count"):
                counts[family.name, labels] = sample.value
    assert last == counts
    assert len(last) > 10


def promtool() -> list[str]:
    """promtool of this machine or, for root, of a release tree."""
    if shutil.which("promtool"):
        return ["promtool"]
    found = [tree_path(release) for release in RELEASES.values() if tree_ready(release)]
    if not found or os.geteuid() != 0:
        pytest.skip("promtool is missing: apt-get install prometheus, or cephqos lab trees as root")
    # tests/clock preloads what is not in the tree.
    return ["env", "--unset=LD_PRELOAD", "chroot", str(found[-1]), "promtool"]


def test_promtool_has_nothing_to_say_about_our_own_names(pages: tuple[str, str, set[str]]) -> None:
    checked = subprocess.run(
        [*promtool(), "check", "metrics"],
        input=pages[0],
        capture_output=True,
        text=True,
        check=False,
    )
    said = (checked.stdout + checked.stderr).splitlines()
    assert not [line for line in said if not line.startswith("ceph_")]


def test_no_command_outside_the_read_only_list_was_sent(
    pages: tuple[str, str, set[str]],
) -> None:
    assert pages[2] <= READ_ONLY_COMMANDS
    assert "counter dump" in pages[2]


def test_every_osd_is_up_and_no_collector_failed_but_those_without_a_process(
    pages: tuple[str, str, set[str]],
) -> None:
    page = pages[0]
    assert len(re.findall(r'^cephqos_daemon_up{.*reason=""} 1$', page, re.MULTILINE)) == 5
    failed = re.findall(r"^cephqos_collector_success{(.*)} 0$", page, re.MULTILINE)
    assert all('ceph_daemon="osd.4"' in labels for labels in failed), failed
    collectors = {re.search(r'collector="(\w+)"', labels)[1] for labels in failed}  # type: ignore[index]
    assert collectors <= {"threads", "disks", "placement", "cgroup"}
    assert not re.search(r"^cephqos_collector_host_success{.*} 0$", page, re.MULTILINE)
