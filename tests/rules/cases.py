"""A case: series, and what fires when. And how cases become promtool's files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.findings import EVERY_FINDING

from cephqos_alerts.cli import DEFAULT_SLOS, load_slos
from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.findings import OsdFinding
from cephqos_alerts.rules.runbooks import ALERTS, WARNING_SUFFIX
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.groups import slo_groups
from cephqos_base.recorded import PerClass, PerClusterClass
from cephqos_base.site import keep, only

from .series import STEP, Series

RULES_OF_CHECKOUT: Final = Path("alerts/rules")
# What each file of tests loads (more rules make every step slower), and how often it evaluates.
_ALL: Final = (
    "recording.yml",
    "qos.yml",
    "osds.yml",
    "state.yml",
    "hosts.yml",
    "coverage.yml",
    "blind.yml",
)
RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "judged": ("recording.yml",),
    "state": ("state.yml", "coverage.yml", "helpers.yml"),
    "every": (*_ALL, "helpers.yml"),
    "found": ("osds.yml",),
    "hours": ("osds.yml",),
    "hosts": ("recording.yml", "hosts.yml", "osds.yml", "state.yml"),
    "forgotten": ("state.yml", "helpers.yml"),
    "months": ("osds.yml",),
    "osds": ("osds.yml",),
    "overdue": ("state.yml",),
    "slo": ("recording.yml", "slo.yml"),
    "budget": ("recording.yml", "slo.yml"),
}
_EVERY: Final[Mapping[str, int]] = {
    "overdue": 300,
    "budget": 300,
    "months": 3600,
    "osds": 60,
    "hours": 60,
    "forgotten": 60,
}
# The default ones send no alerts.
ALERTING_SLOS: Final = [replace(slo, alerts=True) for slo in load_slos(DEFAULT_SLOS)]
# What is true of single OSDs is a series for each, from which one alert of the cluster follows:
# cases of these alerts say when the series is there. tests/rules/osds.py has those of the alerts.
_FINDINGS: Final = {finding.name: finding for finding in EVERY_FINDING}
# They name neither a cluster nor a host: each case has a Prometheus of its own.
_ALONE: Final = ("CephQosNothingScraped", "CephQosWatchdog")
# Where a series or an alert belongs.
_PLACE: Final = re.compile(r'\b(cluster|instance)="([^":]*)(:[0-9]+)?"')
_ALERTS: Final = re.compile(
    rf"(ALERTS|osd:cephqos_finding:value|{PerClass.VIOLATED_LASTING})\{{([^}}]*)\}}"
)
# So that nothing else is wrong with the made-up cluster.
_UP: Final = 'up{job="cephqos",instance="host1:10130"}'
_CLUSTER_EXPORTER: Final = 'cephqos_cluster_up{cluster="c1",instance="host0",reason=""}'


@dataclass(frozen=True)
class CaseMoment:
    """What fires at a moment, in minutes: label sets of one alert, without those of the rule."""

    minute: float
    firing: Sequence[Mapping[str, str]]
    # Violated classes without an alert of their own, because that of another OSD names them.
    waiting: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class RuleCase:
    """One promtool test of one alert. Its name is a sentence."""

    name: str
    alert: str
    series: Series
    moments: Sequence[CaseMoment]
    # Recorded series to check as well: (minute, expression, value).
    values: Sequence[tuple[float, str, float]] = ()
    only: bool = False  # nothing else that goes to anyone may fire at the last moment
    interval: int = STEP
    group: str = field(default="qos")

    @property
    def minutes(self) -> float:
        """How long it takes."""
        values = (minute for minute, _, _ in self.values)
        return max(*(moment.minute for moment in self.moments), *values, 0)

    @property
    def fires(self) -> bool:
        return any(moment.firing for moment in self.moments)

    @property
    def resolves(self) -> bool:
        return self.fires and not self.moments[-1].firing

    @property
    def silent(self) -> bool:
        return not self.fires

    @property
    def minutes_to_start(self) -> float:
        """How closely the case tells when the alert begins: from the last silence to it."""
        pairs = zip(self.moments, self.moments[1:], strict=False)
        return min(
            (b.minute - a.minute for a, b in pairs if b.firing and not a.firing),
            default=float("inf"),
        )


def silent(minute: float) -> CaseMoment:
    return CaseMoment(minute, ())


def firing(
    minute: float, *labels: Mapping[str, str], waiting: Sequence[Mapping[str, str]] = ()
) -> CaseMoment:
    return CaseMoment(minute, labels, waiting)


def _check(case: RuleCase, moment: CaseMoment) -> dict[str, Any]:
    finding = _FINDINGS.get(case.alert)
    if finding is None or case.group in ("osds", "state"):
        return _alert_check(case, moment)
    return _finding_check(finding, moment)


def _finding_check(finding: OsdFinding, moment: CaseMoment) -> dict[str, Any]:
    name = finding.name.removeprefix("CephQos")
    by = ("cluster", "ceph_daemon", *finding.by, *finding.labels)
    check: dict[str, Any] = {
        "expr": f'count by ({", ".join(by)}) (osd:cephqos_finding:value{{finding="{name}"}})',
        "eval_time": _time(moment.minute),
    }
    if moment.firing:
        check["exp_samples"] = [
            {"labels": _braced({key: it for key, it in of.items() if key in by}), "value": 1}
            for of in moment.firing
        ]
    return check


def _alert_check(case: RuleCase, moment: CaseMoment) -> dict[str, Any]:
    # ALERTS and not an alert_rule_test, which would repeat every annotation word for word.
    check: dict[str, Any] = {
        "expr": f'ALERTS{{{_of(case.alert)}, alertstate="firing"}}',
        "eval_time": _time(moment.minute),
    }
    if moment.firing:
        check["exp_samples"] = [
            {
                "labels": _selector(
                    {
                        "alertname": named(case.alert, labels),
                        "alertstate": "firing",
                        **_identity(case.alert, labels),
                    }
                ),
                "value": 1,
            }
            for labels in moment.firing
        ]
    return check


def named(alert: str, labels: Mapping[str, str]) -> str:
    """The name of a case's alert, of which the warning may have another one."""
    warning = alert + WARNING_SUFFIX
    return warning if warning in ALERTS and labels.get("severity") == "warning" else alert


def _of(alert: str) -> str:
    return (
        f'alertname=~"{alert}({WARNING_SUFFIX})?"'
        if alert + WARNING_SUFFIX in ALERTS
        else f'alertname="{alert}"'
    )


def _identity(alert: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Without cause and culprit, which change while the alert fires: its text names them."""
    in_text = ("cause", "by") if _cause_in_text(alert, labels) else ()
    return {key: value for key, value in labels.items() if key not in in_text}


def _cause_in_text(alert: str, labels: Mapping[str, str]) -> bool:
    named = alert.startswith(("CephQosReservationViolated", "CephQosPolicyTargetViolated"))
    return named and labels.get("cause") != "replica_writes"


def _causes(case: RuleCase, moment: CaseMoment) -> dict[str, Any]:
    """What the texts of these alerts name, and for whom classes without an alert wait."""
    places = ("cluster", "ceph_daemon", "class")
    named = (*moment.firing, *moment.waiting)
    wanted = [name for name in places if name in named[0]]
    key = ", ".join(wanted)
    series = PerClass.MAIN_CAUSE if "ceph_daemon" in wanted else PerClusterClass.MAIN_CAUSE
    wanted += ["cause", "by"]
    of_whom = f'ALERTS{{{_of(case.alert)}, alertstate="firing"}}'
    if moment.waiting:
        of_whom = f'({of_whom} or on ({key}) {PerClass.VIOLATED_LASTING}{{class!=""}})'
    return {
        "expr": f"max by ({key}, cause, by) ({series} and on ({key}) {of_whom})",
        "eval_time": _time(moment.minute),
        "exp_samples": [
            {"labels": _braced({name: of[name] for name in wanted if name in of}), "value": 1}
            for of in named
        ],
    }


def _selector(labels: Mapping[str, str]) -> str:
    return f"ALERTS{_braced(labels)}"


def _braced(labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{{{inner}}}"


def _time(minutes: float) -> str:
    return f"{round(minutes * 60)}s"


def _test(case: RuleCase) -> dict[str, Any]:
    checks = [_check(case, moment) for moment in case.moments]
    checks += [
        _causes(case, moment)
        for moment in case.moments
        if case.alert not in _FINDINGS
        and (moment.firing or moment.waiting)
        and all("cause" in it and _cause_in_text(case.alert, it) for it in moment.firing)
    ]
    checks += [
        {
            "expr": expr,
            "eval_time": _time(minute),
            "exp_samples": [{"labels": "{}", "value": value}],
        }
        for minute, expr, value in case.values
    ]
    series = case.series
    if case.only:
        series = {_UP: "1x400", **series, _CLUSTER_EXPORTER: "1x400"}
        others = f'severity!="none", alertname!~"{case.alert}({WARNING_SUFFIX})?"'
        checks.append(
            {
                "expr": f'count by (alertname) (ALERTS{{alertstate="firing", {others}}})',
                "eval_time": _time(case.moments[-1].minute),
            }
        )
    return {
        "name": case.name,
        "interval": f"{case.interval}s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": checks,
    }


def _together(cases: Sequence[RuleCase], site_label: str = "") -> dict[str, Any]:
    """Cases as clusters beside one another in one Prometheus: a tenth of the work. With a label of
    sites, clusters and hosts have the same names in all of them."""
    numbered = [(number, _test(case)) for number, case in enumerate(cases, 1)]
    if site_label:
        tests = [_at_site({site_label: f"site-{number}"}, test) for number, test in numbered]
    else:
        tests = [_beside(number, test) for number, test in numbered]
    series = [one for test in tests for one in test["input_series"]]
    assert len({one["series"] for one in series}) == len(series)
    (interval,) = {test["interval"] for test in tests}
    return {
        "name": "\n".join(test["name"] for test in tests),
        "interval": interval,
        "input_series": series,
        "promql_expr_test": [check for test in tests for check in test["promql_expr_test"]],
    }


def _beside(number: int, test: Mapping[str, Any]) -> dict[str, Any]:
    """The test with names of clusters and hosts that no other has: c1-3, host1-3."""

    def moved(text: str) -> str:
        return _PLACE.sub(rf'\1="\2-{number}\3"', text)

    def check(of: Mapping[str, Any]) -> dict[str, Any]:
        own = f'=~".*-{number}(:.*)?"'
        its = rf"(\1{{\2, cluster{own}}} or \1{{\2, instance{own}}})"
        samples = [{**one, "labels": moved(one["labels"])} for one in of.get("exp_samples", ())]
        return {**of, "expr": _ALERTS.sub(its, moved(of["expr"])), "exp_samples": samples}

    return {
        "name": f"{number}: {test['name']}",
        "interval": test["interval"],
        "input_series": [{**one, "series": moved(one["series"])} for one in test["input_series"]],
        "promql_expr_test": [check(one) for one in test["promql_expr_test"]],
    }


def _at_site(site: Mapping[str, str], test: Mapping[str, Any]) -> dict[str, Any]:
    """The test with this label in all series, and in what is expected of them."""
    label = next(iter(site))

    def labelled(series: str) -> str:
        return only(series, site) if series != "{}" else series

    def check(of: Mapping[str, Any]) -> dict[str, Any]:
        samples = [{**one, "labels": labelled(one["labels"])} for one in of.get("exp_samples", ())]
        return {**of, "expr": only(keep(of["expr"], [label]), site), "exp_samples": samples}

    return {
        "name": f"{site[label]}: {test['name']}",
        "interval": test["interval"],
        "input_series": [
            {**one, "series": labelled(one["series"])} for one in test["input_series"]
        ],
        "promql_expr_test": [check(one) for one in test["promql_expr_test"]],
    }


def _groups_of(file: str) -> list[str]:
    if file == "slo.yml":
        return [group.name for group in slo_groups(ALERTING_SLOS, RuleSettings())]
    return [group.name for group in FILES[file]]


def promtool_document(
    group: str,
    cases: Sequence[RuleCase],
    rules: Path = RULES_OF_CHECKOUT,
    site_label: str = "",
) -> dict[str, Any]:
    """The cases of a group as `promtool test rules` reads them, on the rules in a folder."""
    together = [case for case in cases if case.alert not in _ALONE]
    tests = [_test(case) for case in cases if case.alert in _ALONE]
    return {
        "rule_files": [str(rules.absolute() / name) for name in RULES.get(group, _ALL)],
        "evaluation_interval": f"{_EVERY.get(group, STEP)}s",
        # Else promtool takes the groups of each run in another order, and minutes move by a step.
        "group_eval_order": [name for file in RULES.get(group, _ALL) for name in _groups_of(file)],
        "tests": [*tests, _together(together, site_label)] if together else tests,
    }
