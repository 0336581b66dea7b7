"""Who waits for whom as the dashboard asks it: the same edges as `cephqos blame`, and few."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.board_panels import fill
from tests.promtool.agreement import agrees
from tests.recorded import RELEASES

from cephqos_dashboards.queries import waiting
from cephqos_insight.blame import edges, roots, tenants_of, waits
from cephqos_insight.who import Answers

Samples = Sequence[tuple[str, float]]  # labels as promtool writes them, and the value
Rates = Sequence[tuple[str, Mapping[str, str], float]]  # a series' name, labels, and its rate
WINDOW = 120
ACCOUNT, REPLICAS, TENANTS = (
    f"cephqos_{it}_seconds_total" for it in ("account", "account_replica", "tenants")
)


def labels(osd: int, **more: str) -> Mapping[str, str]:
    return {"cluster": "c", "instance": f"h{osd}", "ceph_daemon": f"osd.{osd}", **more}


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


def said(rates: Rates, primaries: Sequence[str]) -> Samples:
    """The edges of the command behind what clients of these OSDs wait for, as the panel writes
    them."""
    of = {
        name: [(labels, rate) for one, labels, rate in rates if one == name]
        for name in (ACCOUNT, REPLICAS, TENANTS)
    }
    answers: Answers = {
        "seconds": [(labels, rate * WINDOW) for labels, rate in of[TENANTS]],
        "squares": [],
        "counted": [],
        "counted_for_others": [],
        "pools": [({"cluster": "c", "pool_id": "3", "pool": "3"}, 1.0)],
    }
    primary_waits = [it for it in waits(of[ACCOUNT], of[REPLICAS]) if it.waiter in primaries]
    found = edges(roots(primary_waits), tenants_of(answers))
    return [
        (f'{{id="{it.waiter} > {it.waits_for}"}}', round(it.seconds, 3))
        for it in found
        if it.waiter != "other"
    ]


def named(name: str, its_labels: Mapping[str, str]) -> str:
    inner = ",".join(f"{key}={json.dumps(value)}" for key, value in its_labels.items())
    return f"{name}{{{inner}}}"


def case(rates: Rates, expected: Mapping[str, Samples]) -> dict[str, object]:
    series = {named(name, of): f"0+{rate * 60:g}x4" for name, of, rate in rates}
    return promtool_case(series, expected, minute=4)


def promtool_case(
    values: Mapping[str, str], expected: Mapping[str, Samples], *, minute: int
) -> dict[str, object]:
    """A case of promtool. `values`: by series, one for each minute."""
    series = [{"series": one, "values": values[one]} for one in values]
    tests = [
        {
            "expr": expr,
            "eval_time": f"{minute}m",
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
    now, compared = (fill(it.expr, chosen) for it in (waiting.NOW, waiting.COMPARED))
    expr = fill(waiting.EDGES.expr, {**chosen, "osd": ".+"})
    few = said(FEW, ["osd.0", "osd.1"])
    assert len(few) == 5
    expected = {
        f"round(sum by (id) ({expr}), 0.001)": few,
        now: [('{state="queue client"}', 0.1), ('{state="replica"}', 0.4)],
        compared: [
            ('{when="now", state="queue"}', 0.1),
            ('{when="now", state="replica"}', 0.4),
        ],
    }
    none = {
        f"count by (when, state) ({compared})": [
            ('{when="now: no operation", state="none"}', 1.0),
        ],
        f"{compared} >= 0": [],  # without a figure
    }
    bound = {f"count({expr})": [("{}", 30.0)]}
    tests = [case(FEW, expected), case([], none), case(MANY, bound)]
    document = {"evaluation_interval": "1m", "tests": tests}
    agrees(release, document, tmp_path)


@pytest.mark.parametrize("release", RELEASES)
def test_the_edges_are_of_clients_of_the_host_and_osd_that_are_chosen(
    release: str, tmp_path: Path
) -> None:
    expected = {}
    for osd in (0, 1):
        edges_of_osd = said(FEW, [f"osd.{osd}"])
        for host, daemon in ((f"h{osd}", ".+"), (".+", f"osd.{osd}")):
            expr = fill(waiting.EDGES.expr, {"detail": "c", "host": host, "osd": daemon})
            expected[f"round(sum by (id) ({expr}), 0.001)"] = edges_of_osd
    agrees(release, {"evaluation_interval": "1m", "tests": [case(FEW, expected)]}, tmp_path)


@pytest.mark.parametrize("release", RELEASES)
def test_the_bars_show_what_an_operation_waited_an_hour_and_a_day_ago(
    release: str, tmp_path: Path
) -> None:
    expr = fill(waiting.COMPARED.expr, {"detail": "c", "host": ".+", "osd": ".+"})
    values = {
        named("cephqos_osd_op_latency_seconds_count", labels(0, op="write")): "0+600x1450",
        named(ACCOUNT, labels(0, state="cpu")): "0+30x1450",
        # 1 second per second for 200 minutes, 2 until minute 1400, then 4.
        named(ACCOUNT, labels(0, state="store_device")): ("0+60x200 12120+120x1199 156240+240x49"),
    }
    bars = [
        (f'{{when="{when}", state="{state}"}}', seconds)
        for when, device in (("1 day ago", 0.1), ("1 hour ago", 0.2), ("now", 0.4))
        for state, seconds in (("store_device", device), ("cpu", 0.05))
    ]
    document = promtool_case(values, {f"round({expr}, 0.001)": bars}, minute=1450)
    agrees(release, {"evaluation_interval": "1m", "tests": [document]}, tmp_path)
