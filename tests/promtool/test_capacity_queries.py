"""What `cephqos capacity` asks a Prometheus, evaluated by its own tool over made-up series."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.promtool.agreement import agrees
from tests.recorded import RELEASES

from cephqos_base.recorded import PerOsd
from cephqos_base.series import QosSeries
from cephqos_insight.capacity.from_prometheus import NOW, range_queries

STEPS = 260  # of 15 s: more than an hour
OF_0 = {"cluster": "c1", "ceph_daemon": "osd.0"}
OF_1 = {"cluster": "c1", "ceph_daemon": "osd.1"}


def _selector(name: str, labels: Mapping[str, str]) -> str:
    return f"{name}{{{','.join(f'{key}={json.dumps(it)}' for key, it in labels.items())}}}"


# Twice the exporters, as of a pair.
SERIES = {
    _selector(PerOsd.DELIVERED_OPS, OF_0): f"100x{STEPS - 10} 900x10",
    _selector(PerOsd.DELIVERED_OPS, OF_1): f"50x{STEPS}",
    _selector(PerOsd.DEVICE_WORK, OF_0 | {"unit": "requests"}): f"300x{STEPS}",
    _selector(PerOsd.SATURATED_OPS, OF_0): f"_x{STEPS - 9} 800x4 1000x4",
    _selector(QosSeries.DELIVERED_OPS, OF_0 | {"instance": "a"}): f"0+1500x{STEPS}",
    _selector(QosSeries.DELIVERED_OPS, OF_0 | {"instance": "b"}): f"0+1500x{STEPS}",
    _selector(QosSeries.CAPACITY_OPS, OF_0 | {"instance": "a"}): f"2000x{STEPS}",
    _selector(QosSeries.CAPACITY_OPS, OF_0 | {"instance": "b"}): f"2000x{STEPS}",
}
RULES, RAW = range_queries(3600, rules=True), range_queries(3600, rules=False)
EXPECTED = {
    RULES["delivered"]: [(OF_0, 900), (OF_1, 50)],
    RULES["requests"]: [(OF_0, 300)],
    RULES["saturated_ops"]: [(OF_0, 900)],
    RULES["saturated_samples"]: [(OF_0, 10)],
    RULES["cpu_samples"]: [],
    RAW["delivered"]: [(OF_0, 100)],
    NOW["capacity"]: [(OF_0, 2000)],
    NOW["info"]: [],
}


@pytest.mark.parametrize("release", RELEASES)
def test_a_question_about_capacities_is_answered_once_per_osd(release: str, tmp_path: Path) -> None:
    checks = [
        {
            "expr": f"round({query})",  # rates have errors in the last figure
            "eval_time": f"{15 * STEPS}s",
            "exp_samples": [
                {"labels": _selector("", labels), "value": value} for labels, value in samples
            ],
        }
        for query, samples in EXPECTED.items()
    ]
    test = {
        "interval": "15s",
        "input_series": [{"series": it, "values": values} for it, values in SERIES.items()],
        "promql_expr_test": checks,
    }
    agrees(release, {"evaluation_interval": "15s", "tests": [test]}, tmp_path)
