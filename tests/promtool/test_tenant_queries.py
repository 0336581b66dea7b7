"""Shares of tenants as dashboards ask for them: those of `cephqos who`, with a bound of errors."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.board_panels import fill, promql
from tests.promtool.agreement import agrees
from tests.recorded import RELEASES

from cephqos_base.series import TENANT_STATES
from cephqos_base.tenant_shares import OsdTenants, TenantShare
from cephqos_insight.who import Answers, shares_of

WINDOW = 120
SECONDS = "cephqos_tenants_seconds_total"
SQUARES = "cephqos_tenants_squared_seconds_total"
PANELS = {
    ("cephqos-overview", "working"): "Tenants with most of the work",
    ("cephqos-overview", "waiting"): "Tenants that wait most",
    ("cephqos-osd", "working"): "Tenants that it works for",
    ("cephqos-osd", "waiting"): "Tenants that wait here",
}


def of_osd(osd: int, state: str, **more: str) -> Mapping[str, str]:
    return {"cluster": "c", "ceph_daemon": f"osd.{osd}", "state": state, **more}


def image(osd: int, state: str, name: str) -> Mapping[str, str]:
    return of_osd(osd, state, kind="image", pool_id="3", tenant=name)


# Seconds and their squares per second.
RATES = [
    (SECONDS, image(0, "working", "17af"), 6.0),
    (SECONDS, image(0, "working", "02bc"), 1.6),
    (SECONDS, of_osd(0, "working", kind="other"), 0.4),
    (SECONDS, image(0, "waiting", "17af"), 1.0),
    (SECONDS, image(0, "waiting", "02bc"), 9.0),
    (SECONDS, image(1, "working", "02bc"), 8.0),
    (SECONDS, image(1, "waiting", "17af"), 10.0),
    (SQUARES, of_osd(0, "working"), 30.0),
    (SQUARES, of_osd(0, "waiting"), 200.0),
    (SQUARES, of_osd(1, "working"), 64.0),
    (SQUARES, of_osd(1, "waiting"), 100.0),
]


def exprs(uid: str, state: str) -> list[str]:
    """The panel's queries: the shares, and how far off they may be."""
    chosen = {"cluster": "c", "detail": "c", "osd": "osd.0"}
    panel = PANELS[uid, state]
    return [fill(it.expr, chosen) for it in promql() if (it.uid, it.panel) == (uid, panel)]


def tenants_of(osd: str) -> OsdTenants:
    """What the command finds for an OSD, or for the cluster if `osd` is ""."""
    answers: Answers = {
        "seconds": [(labels, rate * WINDOW) for name, labels, rate in RATES if name == SECONDS],
        "squares": [(labels, rate * WINDOW) for name, labels, rate in RATES if name == SQUARES],
        "counted": [],
        "counted_for_others": [],
    }
    (found,) = [it for it in shares_of(answers) if it.osd == osd]
    return found


def shares(tenants: OsdTenants, state: str) -> Mapping[str, TenantShare]:
    """By the labels of the panel's series. A panel has no tenant of which nothing was sampled."""
    named = {
        f'{{kind="image", pool_id="3", tenant="3/{it.key.tenant}"}}': it for it in tenants.tenants
    }
    every = {**named, '{kind="other"}': tenants.other}
    found = {labels: getattr(it, state) for labels, it in every.items()}
    return {labels: share for labels, share in found.items() if share.seconds}


def asked(expr: str, decimals: int, expected: Mapping[str, float]) -> Mapping[str, object]:
    return {
        "expr": f"round({expr}, {10**-decimals:f})",
        "eval_time": "4m",
        "exp_samples": [
            {"labels": labels, "value": round(value, decimals)}
            for labels, value in expected.items()
        ],
    }


def cases(uid: str, osd: str, state: str) -> list[Mapping[str, object]]:
    share_expr, bound_expr = exprs(uid, state)
    tenants = tenants_of(osd)
    found = shares(tenants, state)
    assert len(found) >= 2
    bound = 0.98 / tenants.samples[state] ** 0.5
    for it in found.values():
        assert it.share - bound < it.low < it.high < it.share + bound
    by_labels = {labels: it.share for labels, it in found.items()}
    return [asked(share_expr, 3, by_labels), asked(bound_expr, 3, {"{}": bound})]


@pytest.mark.parametrize("release", RELEASES)
def test_both_dashboards_have_the_shares_of_the_command_and_a_bound_of_its_intervals(
    release: str, tmp_path: Path
) -> None:
    series = []
    for name, labels, rate in RATES:
        inner = ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
        series.append({"series": f"{name}{{{inner}}}", "values": f"0+{rate * 60:g}x4"})
    tests = [
        case
        for uid, osd in (("cephqos-overview", ""), ("cephqos-osd", "osd.0"))
        for state in TENANT_STATES
        for case in cases(uid, osd, state)
    ]
    group = {"interval": "1m", "input_series": series, "promql_expr_test": tests}
    agrees(release, {"evaluation_interval": "1m", "tests": [group]}, tmp_path)
