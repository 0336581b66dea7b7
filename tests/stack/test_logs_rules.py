"""What Loki has of recorded logs of three releases, and which rules they fire.

The lines are real; only their times are moved to now. Each release is a cluster, found by the
path of its logs as with cephadm.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.lab.conftest import LabPool
from tests.log_pipeline import TriedPipeline
from tests.recorded import RELEASES
from tests.waiting import until

from cephqos_alerts.output.build import log_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.servers import fetch
from cephqos_stack.logs import LogSpec

from .log_files import RECORDED, STAMP, entries, need_tools, recorded_to

pytestmark = pytest.mark.full


RULES = log_rules(RuleSettings())
FSID = {name: f"00000000-0000-0000-0000-{number:012}" for number, name in enumerate(RELEASES)}
REST = "CephQosSlowRequestBurst", "CephQosHeartbeatMissed", "CephQosScrubErrors"
CRASHED = {("CephQosDaemonCrashed", "osd.1"), ("CephQosDaemonCrashed", "osd.2")}


@dataclass(frozen=True)
class Collected:
    pipeline: TriedPipeline
    logs: Path

    def written(self, release: str) -> list[str]:
        """All entries of the files of a release."""
        files = sorted((self.logs / FSID[release]).glob("*.log"))
        return [entry for file in files for entry in entries(file.read_text())]

    async def have(self, release: str) -> list[tuple[int, dict[str, str], str]]:
        """Time, labels and text of what Loki has of a release."""
        return await self.pipeline.lines(f'{{cluster="{FSID[release]}"}}')


@pytest.fixture(scope="module")
def collected(labs: LabPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collected]:
    need_tools()
    folder = tmp_path_factory.mktemp("logs")
    for release in RELEASES:
        recorded_to(folder / "log" / FSID[release], release)
    spec = LogSpec(
        folder=folder, logs=folder / "log", cluster="unknown", host="h", rules=RULES, audit=True
    )
    pipeline = TriedPipeline(spec)
    found = Collected(pipeline, folder / "log")
    labs.call(pipeline.__aenter__())
    try:
        labs.call(_all_there(found))
        yield found
    finally:
        labs.call(pipeline.__aexit__(None, None, None))


async def _all_there(found: Collected) -> None:
    async def complete() -> bool:
        counts = [await found.pipeline.count(f'{{cluster="{FSID[r]}"}}') for r in RELEASES]
        return counts == [len(found.written(release)) for release in RELEASES]

    await until(complete, "every entry once in Loki", 60)


@pytest.mark.parametrize("release", RELEASES)
async def test_entries_arrive_whole_with_backtraces_and_dumps(
    collected: Collected, release: str
) -> None:
    have = await collected.have(release)
    assert sorted(line for _, _, line in have) == sorted(collected.written(release))
    assert any("FAILED ceph_assert" in line and line.count("\n") > 10 for _, _, line in have)
    assert any(line.startswith("--- begin dump") and "--- end dump" in line for _, _, line in have)


@pytest.mark.parametrize("release", RELEASES)
async def test_the_time_is_that_of_the_line(collected: Collected, release: str) -> None:
    for time, _, line in await collected.have(release):
        if line.startswith("--- begin dump"):
            line = line[line.rindex("     0> ") + 8 :]  # its last event is the crash
        stamp = datetime.fromisoformat(line.split(" ")[0]).timestamp()
        assert -1e-6 < time / 1e9 - stamp < 0.0011, line  # a float holds no more than microseconds


@pytest.mark.parametrize("release", RELEASES)
async def test_labels_and_metadata_are_those_of_the_golden_file(
    collected: Collected, release: str, compare: Callable[[str, Path], None]
) -> None:
    names = ("log", "severity", "ceph_daemon", "subsystem", "level")
    rows = []
    for _, labels, line in sorted(await collected.have(release), key=lambda row: row[0]):
        known = {*names, "cluster", "host", "thread", "detected_level", "__stream_shard__"}
        assert not set(labels) - known, f"a label more: {labels}"
        words = " ".join(f"{labels.get(name, '-'):<9}" for name in names)
        text = STAMP.sub("TIME", line.split("\n")[0])[:90].split(" ", 1)[1]
        rows.append(f"{words} {line.count(chr(10)) + 1:>3} {text}\n")
    compare("".join(sorted(rows)), RECORDED / f"{release}.txt")


@pytest.mark.parametrize("release", RELEASES)
async def test_rules_find_what_they_are_about_and_nothing_else(
    collected: Collected, release: str
) -> None:
    fired = set()
    for rule in yaml.safe_load(RULES)["groups"][0]["rules"]:
        # What happened within the last minutes, so that no window is too short for a slow machine.
        for row in await collected.pipeline.query(rule["expr"].replace("[5m]", "[15m]")):
            labels: dict[str, Any] = row["metric"]
            if labels.get("cluster") == FSID[release]:
                about = labels.get("ceph_daemon") or labels["option"]
                fired.add((rule["alert"], about))
    by_rule = {name: {about for alert, about in fired if alert == name} for name, _ in fired}
    print(release, by_rule)
    assert fired >= CRASHED
    assert all(by_rule.get(name) for name in REST), by_rule
    newer = release != "pacific"  # which has no limits for its benchmark, and reverts in silence
    assert bool(by_rule.get("CephQosBenchmarkRejected")) is newer
    assert by_rule.get("CephQosSettingReverted", set()) == (
        {"osd_max_backfills"} if newer else set()
    )


async def test_what_a_dump_repeats_is_not_counted(collected: Collected) -> None:
    counted = await collected.pipeline.count('{log="osd"} |= "OSD bench result of"')
    shown = await collected.pipeline.count(
        '{log="osd", severity!="debug"} |= "OSD bench result of"'
    )
    assert counted > shown > 0


async def test_rules_are_loaded_by_the_ruler_and_evaluated(collected: Collected) -> None:
    async def evaluated() -> bool:
        url = f"{collected.pipeline.loki_url}/prometheus/api/v1/rules"
        groups = json.loads(await fetch(url))["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert all(not rule.get("lastError") for rule in rules), rules
        return len(rules) == 6 and all(rule["health"] == "ok" for rule in rules)

    await until(evaluated, "six rules without an error", 120)
