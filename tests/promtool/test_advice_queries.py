"""The table Advice has the figures of `cephqos advise`."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.board_panels import fill
from tests.promtool.agreement import agrees
from tests.recorded import RELEASES

from cephqos_base.profiles import Share, shares_of
from cephqos_base.recorded import PerCluster, PerHostClass
from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY, QosSeries
from cephqos_dashboards.queries.advice import PROFILES_GIVE
from cephqos_loadgen.advise.candidates import candidates
from cephqos_loadgen.advise.facts import AdvisedOsd, Facts
from cephqos_loadgen.advise.outcome import Outcome, outcome

CAPACITIES = (100.0, 250.0)
CUSTOM = {cls: Share(0.3, 1, 0) for cls in (CLIENT, RECOVERY, BEST_EFFORT)}
CLUSTERS = {
    "18": ("high_client_ops", shares_of(18, "high_client_ops") or {}),
    "20": ("balanced", shares_of(20, "balanced") or {}),
    "custom": ("custom", CUSTOM),
}
Samples = Mapping[str, float]


def advised(profile: str, shares: Mapping[str, Share]) -> Mapping[str, Outcome]:
    osds = [
        AdvisedOsd(
            osd=f"osd.{number}",
            in_force="mclock_scheduler",
            profile=profile,
            capacity=capacity,
            shares=shares,
        )
        for number, capacity in enumerate(CAPACITIES)
    ]
    facts = Facts(cluster="c", seconds=60.0, osds=osds)
    found = (outcome(it, facts) for it in candidates(facts))
    return {it.candidate.name: it for it in found if it.candidate.profile not in ("", "custom")}


def expected(profile: str, shares: Mapping[str, Share]) -> Mapping[str, Samples]:
    """What each column shows, by profile; what is not known has no sample, and no limit is 0."""
    its = advised(profile, shares)

    def known(of: Mapping[str, float | None]) -> Samples:
        return {name: round(value, 6) for name, value in of.items() if value is not None}

    def reserved(cls: str) -> Samples:
        return known({name: it.reserved[cls] for name, it in its.items()})

    return {
        "osds": {profile: float(len(CAPACITIES))},
        "client": reserved(CLIENT),
        "recovery": reserved(RECOVERY),
        "best_effort": reserved(BEST_EFFORT),
        "limit": known({name: it.limits.get(BEST_EFFORT, 0.0) for name, it in its.items()}),
    }


def case(name: str) -> Mapping[str, object]:
    profile, shares = CLUSTERS[name]
    whole, best_effort = sum(CAPACITIES), shares[BEST_EFFORT].reservation or 0.0
    series = {f'{PerCluster.CAPACITY_OPS}{{cluster="c"}}': whole}
    of_class = f'{{cluster="c", figure="reserved", class="{BEST_EFFORT}"}}'
    series[PerHostClass.OPS + of_class] = whole * best_effort
    for number in range(len(CAPACITIES)):
        about = f'cluster="c", ceph_daemon="osd.{number}", profile="{profile}"'
        series[f"{QosSeries.SCHEDULER_INFO}{{{about}}}"] = 1.0
    restarts = f'{QosSeries.SCHEDULER_INFO}{{cluster="c", ceph_daemon="osd.9", profile=""}}'
    columns = expected(profile, shares)
    return {
        "interval": "1m",
        "input_series": [
            {"series": it, "values": f"{value:g}x2"}
            for it, value in {**series, restarts: 1.0}.items()
        ],
        "promql_expr_test": [
            {
                "expr": f"round({fill(query.expr, {'cluster': 'c', 'detail': 'c'})}, 0.000001)",
                "eval_time": "1m",
                "exp_samples": [
                    {"labels": f'{{profile="{of}"}}', "value": value}
                    for of, value in columns.get(query.name, {}).items()
                ],
            }
            for query in PROFILES_GIVE
        ],
    }


@pytest.mark.parametrize("release", RELEASES)
def test_the_table_has_the_figures_of_the_command(release: str, tmp_path: Path) -> None:
    assert expected(*CLUSTERS["20"])["best_effort"] == dict.fromkeys(
        ("balanced", "high_client_ops", "high_recovery_ops"), 17.5
    )
    assert expected(*CLUSTERS["custom"])["best_effort"] == {}
    tests = [*map(case, CLUSTERS)]
    document = {"evaluation_interval": "1m", "tests": tests}
    agrees(release, document, tmp_path)
