"""Who waits for whom as the dashboard asks it: the same edges as `cephqos blame`, and few."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.board_panels import fill
from tests.promtool.agreement import agrees
from tests.recorded import RELEASES

from cephqos_dashboards.queries import waiting
from cephqos_doctor.blame import edges, roots, tenants_of, waits
from cephqos_doctor.who import Answers

Rates = Sequence[tuple[str, Mapping[str, str], float]]  # a series' name, labels, and its rate
WINDOW = 120
ACCOUNT, REPLICAS, TENANTS = (
    f"cephqos_{it}_seconds_total" for it in ("account", "account_replica", "tenants")
)


def labels(osd: int, **more: str) -> Mapping[str, str]:
    return {"cluster": "c", "instance": "h", "ceph_daemon": f"osd.{osd}", **more}


FEW: Rates = [
    ("cephqos_osd_op_latency_seconds_count", labels(0, op="write"), 10.0),
    ("cephqos_osd_op_latency_seconds_count", labels(1, op="write"), 4.0),
    (ACCOUNT, labels(0, state="queue", by="client"), 1.0),
    (ACCOUNT, labels(0, state="replica", by="osd.1"), 4.0),
    (ACCOUNT, labels(1, state="store_device"), 2.0),
    (REPLICAS, labels(1, state="store_device"), 6.0),
    (REPLICAS, labels(1, state="queue"), 2.0),
    (TENANTS, labels(0, kind="image", pool_id="3", tenant="17af", state="waiting"), 6.0),
    (TENANTS, labels(0, kind="other", state="waiting"), 2.0),
    (TENANTS, labels(0, kind="image", pool_id="3", tenant="02bc", state="working"), 9.0),
]
MANY: Rates = [
    it
    for osd in range(1000)
    for it in (
        (ACCOUNT, labels(osd, state="store_device"), 0.1),
        (ACCOUNT, labels(osd, state="replica", by=f"osd.{osd % 7}"), 0.2),
        (REPLICAS, labels(osd, state="store_device"), 5.0),
        (TENANTS, labels(osd, kind="image", pool_id="3", tenant=f"{osd}", state="waiting"), 1.0),
    )
]


def said(rates: Rates) -> dict[str, float]:
    """The edges of the command, as the panel writes them."""
    of = {
        name: [(labels, rate) for one, labels, rate in rates if one == name]
        for name in (ACCOUNT, REPLICAS, TENANTS)
    }
    answers: Answers = {
        "seconds": [(labels, rate * WINDOW) for labels, rate in of[TENANTS]],
        "samples": [],
        "pools": [({"cluster": "c", "pool_id": "3", "pool": "3"}, 1.0)],
    }
    found = edges(roots(waits(of[ACCOUNT], of[REPLICAS])), tenants_of(answers))
    return {f"{it.waiter} > {it.waits_for}": it.seconds for it in found if it.waiter != "other"}


Samples = Sequence[tuple[str, float]]


def case(rates: Rates, expected: Mapping[str, Samples]) -> dict[str, object]:
    series = []
    for name, named, rate in rates:
        inner = ",".join(f"{key}={json.dumps(value)}" for key, value in named.items())
        series.append({"series": f"{name}{{{inner}}}", "values": f"0+{rate * 60:g}x4"})
    tests = [
        {
            "expr": expr,
            "eval_time": "4m",
            "exp_samples": [{"labels": labels, "value": value} for labels, value in samples],
        }
        for expr, samples in expected.items()
    ]
    return {"interval": "1m", "input_series": series, "promql_expr_test": tests}


@pytest.mark.parametrize("release", RELEASES)
def test_the_panel_has_the_edges_of_the_command_and_at_most_ten_of_a_kind(
    release: str, tmp_path: Path
) -> None:
    chosen = {"detail": "c", "host": ".+", "osd": "osd.0", "__rate_interval": "2m"}
    expr, now, compared = (
        fill(it.expr, chosen) for it in (waiting.EDGES, waiting.NOW, waiting.COMPARED)
    )
    few = [(f'{{id="{edge}"}}', round(seconds, 3)) for edge, seconds in said(FEW).items()]
    assert len(few) == 5
    expected = {
        f"round(sum by (id) ({expr}), 0.001)": few,
        now: [('{state="queue client"}', 0.1), ('{state="replica"}', 0.4)],
        compared: [
            ('{when="now", state="queue"}', 0.1),
            ('{when="now", state="replica"}', 0.4),
        ],
    }
    none = {compared: [('{when="now: no operation", state="none"}', 0.0)]}
    bound = {f"count({expr})": [("{}", 30.0)]}
    tests = [case(FEW, expected), case([], none), case(MANY, bound)]
    document = {"evaluation_interval": "1m", "tests": tests}
    agrees(release, document, tmp_path)
