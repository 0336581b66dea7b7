"""The promise about names: what a release had and is gone stands in the changelog."""

from pathlib import Path

import pytest
from tests.reference import names

from cephqos_base import series

BEFORE: set[names.Name] = {
    ("metric", "cephqos_a", ""),
    ("metric", "cephqos_a", "shard"),
    ("alert", "CephQosB", "warning"),
    ("series", "osd:cephqos_c:rate", ""),
}


def test_what_the_last_release_had_is_there_or_its_end_is_in_the_changelog() -> None:
    released = names.read(names.RELEASED.read_text(encoding="utf-8"))
    assert names.untold(released, names.today(), Path("CHANGELOG.md").read_text()) == []


def test_the_list_has_metrics_with_labels_recorded_series_and_alerts() -> None:
    found = names.today()
    assert ("metric", series.DaemonSeries.UP, "reason") in found
    assert ("series", "osd_class:cephqos_attained_ops:rate", "") in found
    assert ("alert", "CephQosReservationViolated", "critical") in found
    assert names.read(names.written(found)) == found


@pytest.mark.parametrize(
    ("gone", "changelog", "said"),
    [
        ([], "", []),
        ([0, 1], "## New\n", ["metric cephqos_a"]),
        ([0, 1], "## New\n- `cephqos_a` is `cephqos_d`.\n", []),
        ([1], "## New\n- `cephqos_a` is better.\n", ["metric cephqos_a shard"]),
        ([1], "## New\n- `cephqos_a` has no label `shard`.\n", []),
        ([2], "# C\n\n## New\n\n## Old\n- `CephQosB` is a warning.\n", ["alert CephQosB warning"]),
        ([3], "## New\n### Part\n- `osd:cephqos_c:rate` is gone\n", []),
    ],
)
def test_a_name_that_is_gone_must_stand_in_the_newest_section(
    gone: list[int], changelog: str, said: list[str]
) -> None:
    order = sorted(BEFORE, key=lambda name: (name[1] != "cephqos_a", name[0], name))
    now = BEFORE - {order[number] for number in gone}
    assert names.untold(BEFORE, now, changelog) == said
