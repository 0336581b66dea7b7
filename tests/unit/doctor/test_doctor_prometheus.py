"""What the doctor finds in a Prometheus and a Grafana."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.render import render
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base import dashboards
from cephqos_base.version import __version__
from cephqos_doctor import boards, rules, targets
from cephqos_doctor.cli import PROMETHEUS_CHECKS
from cephqos_doctor.prometheus_facts import (
    LoadedRule,
    PrometheusFacts,
    ScrapeTarget,
    our_rules,
    rules_of,
    scrape_interval_of,
)

from .doctor_facts import found, mends


def prometheus(**changed: Any) -> PrometheusFacts:
    """A Prometheus with which all is well."""
    loaded = (LoadedRule(group="cephqos-work", name="a:b", expr="x", interval=15, seconds=0.1),)
    generated = Path(boards.__file__).parents[2] / "dashboards/cephqos_dashboards/generated"
    well: dict[str, Any] = {
        "url": "http://localhost:9090",
        "version": "2.53.0",
        "seconds_apart": 0.0,
        "targets": (
            ScrapeTarget(job="cephqos", instance="a:10130", up=True, error="", interval=15),
        ),
        "exporters": ({"job": "cephqos", "instance": "a:10130", "version": __version__},),
        "rules": loaded,
        "expected": loaded,
        "alertmanagers": 1,
        "dashboards": {
            uid: json.loads((generated / f"{uid}.json").read_text()) for uid in dashboards.ALL
        },
    }
    return PrometheusFacts(**(well | changed))


def target(**changed: Any) -> tuple[ScrapeTarget, ...]:
    [one] = prometheus().targets
    return (dataclasses.replace(one, **changed),)


def rule(**changed: Any) -> tuple[LoadedRule, ...]:
    [one] = prometheus().rules
    return (dataclasses.replace(one, **changed),)


def test_nothing_is_found_where_a_prometheus_is_as_it_should_be() -> None:
    assert found(PROMETHEUS_CHECKS, prometheus()) == {}


@pytest.mark.parametrize(
    ("changed", "check", "said", "mend"),
    [
        ({"version": "2.41.1"}, "prometheus-version", "2.41.1", "2.42"),
        ({"targets": (), "exporters": ()}, "exporters-scraped", "scrapes no", "job_name: cephqos"),
        (
            {"exporters": ({"job": "ceph qos", "version": __version__},)},
            "job-names",
            "jobs named cephqos.*",
            "--job",
        ),
        (
            {"targets": target(up=False, error="EOF", url="https://10.0.0.7:10130/metrics")},
            "targets-up",
            "EOF",
            "curl -fsS https://10.0.0.7:10130/metrics",
        ),
        (
            {"rules": (*rule(file="a.yml"), *rule(file="old/a.yml"))},
            "rules-loaded-once",
            "1 groups are loaded from 2 files and evaluated as often: cephqos-work",
            "ls -l a.yml old/a.yml",
        ),
        ({"targets": target(interval=60.0)}, "scrape-interval", "60 s", "--scrape-interval 60"),
        ({"doubled_counters": ({"ceph_daemon": "osd.1"},)}, "nothing-twice", "double", "drop"),
        ({"doubled_osds": ({"ceph_daemon": "osd.1"},)}, "nothing-twice", "osd.1", "remove"),
        ({"doubled_clusters": ({"cluster": "c"},)}, "nothing-twice", "role cluster", "disable"),
        (
            {"not_understood": ({"ceph_daemon": "osd.3", "collector": "ops", "what": "event"},)},
            "replies-understood",
            "newer than this cephqos",
            "journalctl",
        ),
        (
            {"converting": ("cephqos",)},
            "buckets-kept",
            "converts classic histograms",
            "always_scrape_classic_histograms: true",
        ),
        ({"label_taken": ({"job": "cephqos"},)}, "label-cluster-free", "hides", "labeldrop"),
        (
            {"recorder_lost": ({"instance": "a:10130", "reason": "full"},)},
            "recorder-keeps",
            "keeps no more",
            "record ls --exporter http://a:10130",
        ),
        (
            {"recorder_lost": ({"instance": "a:10130", "reason": "disk"},)},
            "recorder-keeps",
            "lost pages",
            "journalctl",
        ),
        (
            {"recorder_lost": ({"instance": "a:10130", "reason": "forward"},)},
            "recorder-keeps",
            "did not keep",
            "journalctl",
        ),
        (
            {"recorders": ({"instance": "a:10130"},), "recorders_told": False},
            "recorder-told",
            "no alert keeps",
            "/-/record",
        ),
        ({"rules": ()}, "rules-complete", "not loaded", "cephqos rules build"),
        ({"rules": rule(expr="y")}, "rules-of-this-version", "differ", "rules build"),
        ({"rules": (*rule(), *rule(name="old"))}, "rules-complete", "old", "rules build"),
        ({"expected": (*rule(), *rule(name="new"))}, "rules-complete", "missing: new", ""),
        ({"alertmanagers": 0}, "alerts-sent", "are not sent", "alerting:"),
        ({"rules": rule(error="many-to-many")}, "rules-work", "many-to-many", "rules build"),
        ({"rules": rule(seconds=20.0)}, "rules-in-time", "20.0 s", "--scrape-interval 30"),
        (
            {"exporters": ({"job": "cephqos", "instance": "a:1", "version": "0.0.9"},)},
            "exporters-of-this-version",
            "0.0.9",
            "same version",
        ),
        ({"dashboards": {}}, "dashboards-of-this-version", "missing", "dashboards install"),
        ({"grafana_failure": "HTTP 401"}, "grafana-reachable", "401", "--grafana-header"),
        ({"seconds_apart": -30.0}, "clocks-agree", "30.0 s behind", "timedatectl"),
    ],
)
def test_what_is_wrong_with_a_prometheus_is_found_by_one_check(
    changed: dict[str, Any], check: str, said: str, mend: str
) -> None:
    findings = found(PROMETHEUS_CHECKS, prometheus(**changed))
    found_else = set(findings) - {check}
    assert check in findings
    assert found_else <= {"exporters-scraped"}
    [finding] = findings[check]
    assert said in f"{finding.subject} {finding.problem}"
    assert mend in finding.mend
    assert mends(finding)


def test_a_prometheus_that_does_not_answer_is_one_finding() -> None:
    facts = PrometheusFacts(url="http://h:1", failure="refused")
    assert list(found(PROMETHEUS_CHECKS, facts)) == ["prometheus-reachable"]


@pytest.mark.parametrize(
    ("failure", "hint"),
    [
        ("HTTP 401 for /api/v1/query", "--header FILE"),
        ("/api/v1/query: the answer is not JSON: a login page", "--header FILE"),
        ("SSLCertVerificationError: CERTIFICATE_VERIFY_FAILED", "SSL_CERT_FILE=CA.pem"),
    ],
)
def test_a_prometheus_behind_a_login_or_a_certificate_says_how_to_get_in(
    failure: str, hint: str
) -> None:
    facts = PrometheusFacts(url="http://h:1", failure=failure)
    [finding] = found(PROMETHEUS_CHECKS, facts)["prometheus-reachable"]
    assert hint in finding.mend


def test_a_dashboard_with_another_query_differs_and_one_with_other_ids_does_not() -> None:
    held = json.loads(json.dumps(prometheus().dashboards))
    uid = dashboards.OVERVIEW
    held[uid] |= {"id": 12, "version": 7, "refresh": "1m"}
    assert found(boards.CHECKS, prometheus(dashboards=held)) == {}
    held[uid]["panels"] = held[uid]["panels"][1:]
    [finding] = found(boards.CHECKS, prometheus(dashboards=held))["dashboards-of-this-version"]
    assert finding.problem.endswith(uid)


def _first(held: Any, key: str) -> Any:
    """The first value under this key at any depth."""
    for name, inner in held.items() if isinstance(held, dict) else enumerate(held):
        if name == key and inner:
            return inner
        if isinstance(inner, dict | list) and (found_below := _first(inner, key)):
            return found_below
    return None


@pytest.mark.parametrize("of", ["panel", "mappings", "transformations"])
def test_a_dashboard_with_other_options_of_its_panels_differs(of: str) -> None:
    held = json.loads(json.dumps(prometheus().dashboards))
    uid = next(uid for uid in held if of == "panel" or _first(held[uid], of))
    [panel, *_] = [it for it in held[uid]["panels"] if it.get("options")]
    changed = panel if of == "panel" else _first(held[uid], of)[0]
    changed["options"] = {"nonsense": True}
    [finding] = found(boards.CHECKS, prometheus(dashboards=held))["dashboards-of-this-version"]
    assert finding.problem.endswith(uid)


def test_what_grafana_fills_into_the_variables_of_a_dashboard_does_not_count() -> None:
    held = json.loads(json.dumps(prometheus().dashboards))
    chosen = {"text": "a", "value": "a"}
    for dashboard in held.values():
        for variable in dashboard["templating"]["list"]:
            variable |= {"current": chosen, "options": [chosen]}
    assert found(boards.CHECKS, prometheus(dashboards=held)) == {}
    held[dashboards.OVERVIEW]["templating"]["list"][0]["query"] = "another"
    assert "dashboards-of-this-version" in found(boards.CHECKS, prometheus(dashboards=held))


def test_a_dashboard_may_read_the_logs_of_another_collector() -> None:
    held = json.loads(json.dumps(prometheus().dashboards))
    panels = [row for row in held[dashboards.OSD]["panels"] if row["title"].startswith("Log of")]
    target = panels[0]["panels"][0]["targets"][0]
    target["expr"] = '{namespace="rook-ceph"} | pod=~"rook-ceph-${osd:raw}-.*"'
    assert found(boards.CHECKS, prometheus(dashboards=held)) == {}
    target["maxLines"] = 1
    assert "dashboards-of-this-version" in found(boards.CHECKS, prometheus(dashboards=held))


def test_rules_are_made_for_the_interval_at_which_most_are_evaluated() -> None:
    slow = rule(group="cephqos-history", interval=60.0)
    facts = prometheus(rules=(*rule(), *slow), expected=(*rule(), *slow))
    assert found((*targets.CHECKS, *rules.CHECKS), facts) == {}


@pytest.mark.parametrize(("interval", "often"), [(15.0, 1), (15.0, 5), (7.5, 2)])
def test_rules_are_made_for_one_scrape_interval_however_often_they_are_evaluated(
    interval: float, often: int
) -> None:
    settings = RuleSettings(scrape_interval=interval, evaluations_per_scrape=often)
    groups = [group for file in FILES.values() for group in file]
    loaded = rules_of(render(groups, settings))
    assert min(rule.interval for rule in loaded) == interval / often
    assert scrape_interval_of(loaded) == interval
    target = ScrapeTarget(job="cephqos", instance="a:10130", up=True, error="", interval=interval)
    facts = prometheus(targets=(target,), rules=loaded, expected=our_rules(interval))
    assert found((*targets.CHECKS, *rules.CHECKS), facts) == {}
