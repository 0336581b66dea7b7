"""How many steps back a run can need: told before it changes anything."""

from typing import Any

import pytest
from tests.shipped_plans import shipped_plan
from tests.unit.changed_cluster import ChangedCluster

from cephqos_loadgen.cluster import journal_size, undo
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.scenario.parse import parse

PLAN = """\
scenario: s
settings: {osd: {osd_max_backfills: 2}, osd.0: {osd_max_scrubs: 3}}
flags: [noout]
pools: [{name: client, size: 2, images: {size: 8M, count: 3}}]
phases:
  - {name: hold, flags: {set: [norecover], clear: [noin]}}
  - {name: more, change: {osd: {osd_recovery_sleep: 0}}}
  - name: load
    fio: {engine: krbd, pool: client, rw: read, bs: 4K, volumes: 3}
    until: {duration: 1s}
"""


def test_settings_flags_pools_phases_and_mapped_images_count() -> None:
    without = journal_size.most_steps(
        parse("scenario: s\nphases: [{name: w, wait: {}, until: {duration: 1s}}]", "s.yaml"),
        0,
        0,
        0,
    )
    plan = parse(PLAN, "s.yaml")
    counted = journal_size.most_steps(plan, 0, 0, 0) - without
    assert counted >= 2 + 1 + 1 + 2 + 1 + 3
    assert journal_size.most_steps(plan, 100, 0, 0) == journal_size.most_steps(plan, 0, 0, 0) + 200


def test_no_shipped_scenario_comes_near_the_limit_on_a_cluster_of_a_thousand_osds() -> None:
    for name in ("client-vs-recovery", "io-scheduler", "cpu-placement", "qos-demo"):
        assert journal_size.most_steps(shipped_plan(name), 1000, 100, 4000) < undo.MAX_STEPS


async def test_a_run_that_could_need_more_steps_than_are_kept_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster: Any = ChangedCluster()
    plan = parse(PLAN, "s.yaml")
    most = journal_size.most_steps(plan, 2, 0, 0)
    await journal_size.check(cluster, plan)
    monkeypatch.setattr(journal_size, "MAX_STEPS", most - 1)
    with pytest.raises(ClusterUnfit, match=f"can need {most} steps .* and {most - 1} are kept"):
        await journal_size.check(cluster, plan)
    assert cluster.asked == []
