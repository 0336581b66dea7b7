"""The cost of a recording: of this process and of its clients of the cluster, together."""

from types import SimpleNamespace
from typing import Any

import pytest

from cephqos_loadgen.run import one_repeat
from cephqos_loadgen.run.one_repeat import CostMeter


def test_the_cost_is_what_this_process_and_its_clients_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = {11: 5.0, 12: 1.0, 13: 40.0}
    clock = SimpleNamespace(wall=100.0, own=2.0)
    monkeypatch.setattr(one_repeat, "cpu_seconds", lambda pid: used[pid])
    monkeypatch.setattr(one_repeat, "leaf", lambda pid: pid)
    monkeypatch.setattr("time.monotonic", lambda: clock.wall)
    monkeypatch.setattr("time.process_time", lambda: clock.own)
    session: Any = SimpleNamespace(
        cluster=SimpleNamespace(pid=11), watch_cluster=SimpleNamespace(pid=12)
    )
    exporter: Any = SimpleNamespace(pid=13)
    meter = CostMeter(session, exporter)
    used.update({11: 5.5, 12: 1.25, 13: 43.0})
    clock.wall, clock.own = 110.0, 3.0
    cost = meter.spent()
    assert (cost.wall_seconds, cost.own_cpu_seconds) == (10.0, 1.0)
    assert (cost.client_cpu_seconds, cost.exporter_cpu_seconds) == (0.75, 3.0)
    assert cost.core_share == pytest.approx((1.0 + 0.75) / 10.0)
    exporter.pid = 14  # it was started again: only its present process counts
    used[14] = 0.5
    assert meter.spent().exporter_cpu_seconds == 0.5
