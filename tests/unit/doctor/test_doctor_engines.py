"""`cephqos doctor prometheus` at engines that are no Prometheus, and behind pairs of them.

The answers are those of the engines' own sources: what they have no page for, and how.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aiohttp import web
from tests.fake_server import serving

from cephqos_alerts.output.build import FILES
from cephqos_base.series import ClusterSeries, DaemonSeries, ExporterSeries
from cephqos_base.version import __version__
from cephqos_doctor.cli import PROMETHEUS_CHECKS
from cephqos_doctor.finding import Diagnosis, diagnose
from cephqos_doctor.prometheus_facts import (
    RECORDED,
    LoadedRule,
    PrometheusFacts,
    gather,
    our_rules,
)

BUILDS: Mapping[str, dict[str, str]] = {
    # Always this one, for Grafana's sake.
    "VictoriaMetrics": {"version": "2.24.0"},
    "Thanos": {"version": "0.42.5", "revision": "abc", "goVersion": "go1.26"},
    "Mimir": {"application": "Grafana Mimir", "version": "2.17.1", "revision": "abc"},
    "Prometheus": {"version": "3.5.0", "revision": "abc", "goVersion": "go1.26"},
}
# The status of what an engine has no page for.
WITHOUT = {
    "VictoriaMetrics": {"format_query": 400, "alertmanagers": 400},
    "Thanos": {"status/config": 404, "format_query": 404, "alertmanagers": 404},
    "Mimir": {"targets": 404, "status/config": 404, "format_query": 404, "alertmanagers": 404},
    "Prometheus": {},
}
Series = dict[str, list[dict[str, str]]]
EXPORTER = {"job": "cephqos", "instance": "a:10130"}


@pytest.fixture(autouse=True)
def few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """One file of them: each rule is a request to the engine."""
    few = {"state.yml": FILES["state.yml"]}
    monkeypatch.setattr("cephqos_doctor.prometheus_facts.FILES", few)
    assert our_rules(15.0)


class Engine:
    """Series by a part of the query that asks for them."""

    def __init__(self, name: str, series: Series | None = None, *, rules: bool = True) -> None:
        self.name, self.rules = name, rules
        self.without: Callable[[LoadedRule], bool] = lambda rule: False
        self.series: Series = {
            ExporterSeries.BUILD_INFO: [EXPORTER | {"version": __version__}],
            f"group({RECORDED})": [{}],
            **(series or {}),
        }

    async def answer(self, request: web.Request) -> web.Response:
        page = request.path.removeprefix("/api/v1/")
        if status := WITHOUT[self.name].get(page):
            return web.Response(status=status, text="unsupported path requested")
        sent = dict(await request.post())
        answers = {
            "status/buildinfo": BUILDS[self.name],
            "status/config": {"yaml": "scrape_configs: []\n"},
            "rules": {"groups": self._groups()},
            "targets": {"activeTargets": []},
            "alertmanagers": {"activeAlertmanagers": [{"url": "http://a/api/v2/alerts"}]},
            "format_query": sent.get("query", ""),
            "query": {"result": self._result(str(sent.get("query", "")))},
        }
        return web.json_response({"status": "success", "data": answers[page]})

    def _groups(self) -> list[dict[str, Any]]:
        """As the engine's parser prints them, which is not how they were written."""
        groups: dict[str, dict[str, Any]] = {}
        for rule in our_rules(15.0) if self.rules else ():
            if self.without(rule):
                continue
            group = {"name": rule.group, "file": "r.yml", "interval": rule.interval, "rules": []}
            printed = rule.expr if self.name == "Prometheus" else f"({rule.expr})"
            groups.setdefault(rule.group, group)["rules"].append(
                {"name": rule.name, "query": printed}
            )
        return list(groups.values())

    def _result(self, query: str) -> Any:
        if query == "time()":
            return []
        found = [series for part, series in self.series.items() if query.startswith(part)]
        return [{"metric": labels, "value": [0, "60"]} for labels in (found or [[]])[0]]


async def diagnosis(engine: Engine) -> tuple[Diagnosis, PrometheusFacts]:
    async with serving(engine.answer) as url:
        facts = await gather(url, headers={}, grafana_headers={})
    return diagnose("prometheus", PROMETHEUS_CHECKS, facts), facts


@pytest.mark.parametrize("name", BUILDS)
async def test_an_engine_on_which_all_is_well_has_no_finding(name: str) -> None:
    told, facts = await diagnosis(Engine(name))
    assert facts.failure == ""
    assert told.findings == ()


@pytest.mark.parametrize(
    ("leaves_out", "misses"),
    [(lambda rule: rule.group == "cephqos-helpers", False),
     (lambda rule: rule.name == "CephQosWatchdog", True)],
)  # fmt: skip
async def test_helper_alerts_may_be_left_out_together_as_the_chart_does(
    leaves_out: Callable[[LoadedRule], bool], misses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: FILES[name] for name in ("blind.yml", "helpers.yml")}
    monkeypatch.setattr("cephqos_doctor.prometheus_facts.FILES", few)
    engine = Engine("Prometheus")
    engine.without = leaves_out
    told, _ = await diagnosis(engine)
    missing = [one for name, one in told.findings if "are missing" in one.problem]
    assert bool(missing) is misses


@pytest.mark.parametrize("name", ["VictoriaMetrics", "Thanos", "Mimir"])
async def test_what_an_engine_does_not_tell_is_said_to_be_unchecked(name: str) -> None:
    told, _ = await diagnosis(Engine(name))
    skipped = dict(told.skipped)
    assert {"prometheus-version", "alerts-sent"} <= skipped.keys()
    assert "text of rules" in skipped["rules-of-this-version"]
    assert "not checked: prometheus-version" in told.text()
    told, _ = await diagnosis(Engine("Prometheus"))
    assert {why for _, why in told.skipped} == {"no --grafana"}


async def test_rules_that_are_evaluated_elsewhere_are_not_called_missing() -> None:
    """VictoriaMetrics tells of vmalert's only with -vmalert.proxyURL."""
    told, _ = await diagnosis(Engine("VictoriaMetrics", rules=False))
    assert told.findings == ()
    assert "-vmalert.proxyURL" in dict(told.skipped)["rules-complete"]
    nowhere = Engine("VictoriaMetrics", rules=False)
    nowhere.series[f"group({RECORDED})"] = []
    told, _ = await diagnosis(nowhere)
    [(check, finding)] = told.findings
    assert check == "rules-complete"
    assert "not loaded" in finding.problem
    assert "vmalert" in finding.mend


@pytest.mark.parametrize("name", BUILDS)
async def test_targets_that_others_scrape_are_judged_by_the_series_up(name: str) -> None:
    """Agents and remote write: the engine itself scrapes nothing of ours."""
    engine = Engine(name)
    engine.series['up{job=~"cephqos.*"} == 0'] = [{"job": "cephqos", "instance": "b:10130"}]
    engine.series["min by (job) (600 / max_over_time("] = [{"job": "cephqos"}]  # 60 s
    told, _ = await diagnosis(engine)
    by_check = {check: finding for check, finding in told.findings}
    assert by_check["targets-up"].subject == "b:10130"
    assert "every 60 s" in by_check["scrape-interval"].problem


async def test_pairs_that_were_not_merged_are_not_taken_for_two_targets() -> None:
    engine = Engine("VictoriaMetrics")
    up, cluster = DaemonSeries.UP, ClusterSeries.UP
    engine.series[f"count by (cluster, ceph_daemon, job, instance) ({up} == 1) > 1"] = [
        {"cluster": "c", "ceph_daemon": "osd.1"} | EXPORTER
    ]
    told, _ = await diagnosis(engine)
    [(check, finding)] = told.findings
    assert check == "nothing-twice"
    assert "replicas" in finding.problem
    assert "labeldrop" in finding.mend and "--query.replica-label" in finding.mend
    # Two targets are two targets, each of them from however many agents.
    twice = f"count by (cluster, ceph_daemon) (count by (cluster, ceph_daemon, job, instance) ({up}"
    engine = Engine("Prometheus", {twice: [{"ceph_daemon": "osd.1"}]})
    [(_, finding)] = (await diagnosis(engine))[0].findings
    assert "more than one target" in finding.problem
    twice = f"count by (cluster) (count by (cluster, job, instance) ({cluster}"
    engine = Engine("Prometheus", {twice: [{"cluster": "c"}]})
    [(_, finding)] = (await diagnosis(engine))[0].findings
    assert "role cluster" in finding.problem


async def test_a_label_that_hides_the_name_of_an_osd_is_found_too() -> None:
    taken = f'count by (job, instance) ({DaemonSeries.UP}{{exported_cluster!=""}} or'
    engine = Engine("Prometheus", {taken: [EXPORTER]})
    [(check, finding)] = (await diagnosis(engine))[0].findings
    assert check == "label-cluster-free"
    assert "ceph_daemon" in finding.problem


async def test_an_engine_without_a_ruler_has_no_page_for_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(WITHOUT, "Mimir", WITHOUT["Mimir"] | {"rules": 404})
    told, facts = await diagnosis(Engine("Mimir"))
    assert facts.failure == "" and told.findings == ()
    assert "rules-complete" in dict(told.skipped)


async def test_a_mimir_that_wants_to_know_the_tenant_says_how_to_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = ("status/buildinfo", "query", "rules", "targets")
    monkeypatch.setitem(WITHOUT, "Mimir", dict.fromkeys(every, 401))
    told, _ = await diagnosis(Engine("Mimir"))
    [(check, finding)] = told.findings
    assert check == "prometheus-reachable"
    assert "X-Scope-OrgID" in finding.mend
