"""Rules are generated, whole, documented and tested."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rules import files
from tests.rules.cases import ALERTING_SLOS, RuleCase, named
from tests.runbooks import ENTRIES, TEXT, entries
from tests.truth.run import SEEN

from cephqos_alerts.cli import load_slos
from cephqos_alerts.output.alertmanager import alertmanager_config
from cephqos_alerts.output.build import FILES, LOGS, build_rules, log_rules
from cephqos_alerts.rules.rule import LABELS_OF_PLACE, Alert, RecordedSeries
from cephqos_alerts.rules.runbooks import ALERTS as ALERTS_OF_PAGES
from cephqos_alerts.rules.runbooks import RUNBOOKS, WARNING_SUFFIX, runbook_page
from cephqos_alerts.rules.settings import WINDOWS, RuleSettings
from cephqos_base.causes import CAUSES
from cephqos_base.units import duration

ALERTS = Path("alerts")
SLOS = load_slos(ALERTS / "slo")
BUILT = build_rules(RuleSettings(), SLOS)
# With alerts of SLOs, which the default ones do not have.
RULES = [
    rule
    for text in build_rules(RuleSettings(), ALERTING_SLOS).values()
    for group in yaml.safe_load(text)["groups"]
    for rule in group["rules"]
]
NAMES = sorted({rule["alert"] for rule in RULES if "alert" in rule})


def told(rule: dict[str, Any]) -> bool:
    """Whether anybody hears of it."""
    severity: str = rule["labels"]["severity"]
    return severity != "none"


@pytest.mark.parametrize("name", sorted(BUILT))
def test_committed_rules_are_what_their_sources_give(name: str) -> None:
    assert (ALERTS / "rules" / name).read_text(encoding="utf-8") == BUILT[name]


def test_the_committed_alertmanager_configuration_is_what_its_source_gives() -> None:
    committed = (ALERTS / "alertmanager" / "alertmanager.yml").read_text(encoding="utf-8")
    assert committed == alertmanager_config(RuleSettings())


def test_there_is_no_rule_file_that_nothing_generates() -> None:
    assert {file.name for file in (ALERTS / "rules").iterdir()} == set(BUILT)


def test_every_alert_has_a_page_of_the_runbooks() -> None:
    assert sorted(ALERTS_OF_PAGES) == sorted(
        {*NAMES, *(rule.name for rule in LOGS.rules if isinstance(rule, Alert))}
    )


@pytest.mark.parametrize("page", RUNBOOKS)
def test_the_headings_of_a_page_of_the_runbooks_are_its_alerts(page: str) -> None:
    assert tuple(entries(page)) == RUNBOOKS[page]


@pytest.mark.parametrize("name", sorted({r["alert"] for r in RULES if "alert" in r and told(r)}))
def test_a_runbook_says_what_it_means_and_when_it_is_a_false_alarm(name: str) -> None:
    assert "\n**Means.** " in ENTRIES[name]
    assert "\n**False alarm.** " in ENTRIES[name]


# It always fires, which is its purpose.
ENDING = [name for name in NAMES if name != "CephQosWatchdog"]
# Its file evaluates every five minutes, since it looks back for a day.
CLOSELY = {"CephQosScrubsOverdueGrowing": 10.0}


def cases_of(alert: str) -> list[RuleCase]:
    """An alert with two severities has two names, and shares its cases."""
    return [
        case for case in files.CASES if case.alert in (alert, alert.removesuffix(WARNING_SUFFIX))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_has_a_test_in_which_it_fires(name: str) -> None:
    fired = [
        named(case.alert, labels)
        for case in cases_of(name)
        for moment in case.moments
        for labels in moment.firing
    ]
    assert name in fired


@pytest.mark.parametrize("name", ENDING)
def test_every_alert_has_a_test_in_which_it_stays_silent(name: str) -> None:
    assert any(case.silent for case in cases_of(name))


@pytest.mark.parametrize("name", ENDING)
def test_every_alert_has_a_test_in_which_it_resolves(name: str) -> None:
    assert any(case.resolves for case in cases_of(name))


@pytest.mark.parametrize("name", ENDING)
def test_every_alert_has_a_test_that_tells_the_minute_at_which_it_begins(name: str) -> None:
    assert min(case.minutes_to_start for case in cases_of(name)) <= CLOSELY.get(name, 2.0)


def test_names_of_cases_are_sentences_of_their_own() -> None:
    names = [(case.alert, case.name) for case in files.CASES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("rule", [r for r in RULES if "alert" in r], ids=lambda r: r["alert"])
def test_every_alert_says_who_how_bad_what_to_do_and_where_to_look(
    rule: dict[str, dict[str, str]],
) -> None:
    annotations = rule["annotations"]
    assert rule["labels"]["severity"] in ("critical", "warning", "info", "none")
    assert not [name for name in annotations if name.endswith("_url")]  # without a URL, no link
    assert len(re.sub("{{.*?}}", "", annotations["summary"])) < 120
    assert "@" not in annotations["description"] + annotations["summary"]


_URLS = RuleSettings(
    runbook_url="https://docs/operate/runbooks/", dashboard_url="https://grafana/d"
)


@pytest.mark.parametrize("text", [*build_rules(_URLS, SLOS).values(), log_rules(_URLS)])
def test_with_urls_each_alert_links_to_its_runbook_and_to_a_dashboard(text: str) -> None:
    for rule in (rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]):
        if name := str(rule.get("alert", "")):
            links = rule["annotations"]
            page = f"{runbook_page(name)}.html#{name.removesuffix(WARNING_SUFFIX).lower()}"
            assert links["runbook_url"] == f"https://docs/operate/runbooks/{page}"
            assert links["dashboard_url"].startswith("https://grafana/d/cephqos-")


def test_runbooks_may_be_elsewhere_than_on_the_site() -> None:
    settings = RuleSettings(runbook_url="https://git/runbooks/{page}.md")
    text = build_rules(settings, SLOS)["helpers.yml"]
    assert "runbook_url: https://git/runbooks/coverage.md#cephqoswatchdog\n" in text
    assert "      dashboard_url" not in text


# What an alert is about, as far as its series tell.
ABOUT = ("cluster", "ceph_daemon", "class", "cause", "pool", "instance", "reason", "flag", "slo")

WORDS = {cause.name: cause.words for cause in CAUSES}


@pytest.mark.parametrize("name", ENDING)
def test_the_text_of_an_alert_names_all_that_it_is_about_and_for_how_long(name: str) -> None:
    fired = [it for case in cases_of(name) for moment in case.moments for it in moment.firing]
    for rule in (rule for rule in RULES if rule.get("alert") == name):
        own = {key: it for key, it in rule["labels"].items() if key not in ("slo", "op")}
        labels = {key for it in fired if own.items() <= it.items() for key in it}
        assert labels, "no case of this rule"
        text = rule["annotations"]["summary"] + rule["annotations"]["description"]
        of_osds = {"ceph_daemon"} if "osd:cephqos_finding:value" in rule["expr"] else set()
        for about in set(ABOUT) - of_osds:
            known = rule["labels"].get(about)  # the same for all of this alert
            said = known and (known in text or WORDS.get(known, known) in text)
            assert (
                about not in labels
                or f"$labels.{about}" in text
                or f"{{ .{about} }}" in text
                or said
            )
        if rule["labels"]["severity"] != "none":
            assert re.search(r"\d(m|h|d)\b", rule["annotations"]["description"])
            assert "$value" in text or name in UNMEASURED


# In osds.yml the expression is made from the labels.
SOURCES = [
    rule
    for groups in FILES.values()
    for group in groups
    for rule in group.rules
    if isinstance(rule, Alert) and rule.severity != "none" and rule.where != "osds"
]
# Some cases leave these out, or have a cause that is no label and stands in the text.
NOT_KNOWN_BY = {"cluster", "job", "instance", "severity", "scope", "seen", "cause", "by"}


@pytest.mark.parametrize("alert", SOURCES, ids=lambda it: f"{it.name}-{it.severity}")
def test_the_source_of_an_alert_says_by_which_labels_it_is_known(alert: Alert) -> None:
    cases = cases_of(alert.name)
    fired = [it for case in cases for moment in case.moments for it in moment.firing]
    scope = alert.labels.get("scope")
    known_by = {*LABELS_OF_PLACE[alert.where], *alert.by}
    own = [labels.keys() - NOT_KNOWN_BY for labels in fired if labels.get("scope") == scope]
    assert known_by - NOT_KNOWN_BY in own


# Something is there or not, is answered or not: there is no figure to tell.
UNMEASURED = {
    *("CephQosCapacityNeverMeasured", "CephQosSchedulersMixed", "CephQosExporterDown"),
    *("CephQosOsdNotScraped", "CephQosClusterExporterAbsent", "CephQosCollectorFailing"),
    *("CephQosClusterLabelTaken", "CephQosNothingScraped"),
    *("CephQosReplyNotUnderstood", "CephQosDaemonNotAnswering"),
}


RECORDED = {rule["record"] for rule in RULES if "record" in rule}


def recorded_names(text: str) -> set[str]:
    """What looks like the name of a recorded series."""
    return set(re.findall(r"\b[a-z_]+:cephqos_\w+(?::\w+)?|\bcephqos_slo:[a-z_:]+", text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TEXT, id="runbooks"),
        *(
            pytest.param(Path(f"docs/internals/{name}.md").read_text(encoding="utf-8"), id=name)
            for name in ("rules", "truth")
        ),
    ],
)
def test_recorded_series_that_documents_name_are_recorded(text: str) -> None:
    # A name that ends in an ellipsis stands for several.
    assert recorded_names(re.sub(r"\S*…\S*", "", text)) <= RECORDED


def test_recorded_series_that_rules_and_staged_faults_use_are_recorded() -> None:
    assert recorded_names(" ".join(rule["expr"] for rule in RULES)) <= RECORDED
    assert {name for name in SEEN if ":" in name} <= RECORDED


def test_every_recorded_series_is_read_by_somebody() -> None:
    """By a rule, a dashboard, a runbook or a command: each is a cost for every OSD."""
    read = [rule["expr"] + str(rule.get("annotations", "")) for rule in RULES]
    read += [path.read_text(encoding="utf-8") for path in Path("dashboards").rglob("*.json")]
    read += [path.read_text(encoding="utf-8") for path in Path("loadgen").rglob("*.py")]
    read += [TEXT]
    assert RECORDED - recorded_names(" ".join(read)) == set()


def _seconds(text: str) -> float:
    amount, unit = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text).groups()  # type: ignore[union-attr]
    return float(amount) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}[unit]


_TIMES = re.compile(r"(?:\[|offset )(\w+?)(?=[]:)])|:(\w+?)\]")
FASTER = RuleSettings(scrape_interval=1.0, time_scale=1 / 15)


def times(settings: RuleSettings) -> list[float]:
    """Every window, step and offset of the rules, every hold, and the slow groups' intervals."""
    groups = [
        group
        for text in build_rules(settings, SLOS).values()
        for group in yaml.safe_load(text)["groups"]
    ]
    return [
        *(
            _seconds(next(filter(None, found)))
            for group in groups
            for rule in group["rules"]
            for found in _TIMES.findall(rule["expr"])
        ),
        *(_seconds(rule["for"]) for group in groups for rule in group["rules"] if "for" in rule),
        *(_seconds(group["interval"]) for group in groups),
    ]


PLAIN = times(RuleSettings())


def test_the_times_of_the_rules_are_found() -> None:
    assert len(PLAIN) > 200
    assert {60, 300, 900, 3600, 6 * 3600, 86400, 3 * 86400, 30 * 86400} <= set(PLAIN)


@given(st.floats(1 / 1000, 1))
@settings(max_examples=5, deadline=None)
def test_a_time_scale_shortens_every_window_and_hold_in_the_same_proportion(scale: float) -> None:
    """With scrapes as much closer together, nothing is too short to be a window."""
    faster = times(RuleSettings(scrape_interval=15 * scale, time_scale=scale))
    assert len(faster) == len(PLAIN)
    for before, after in zip(PLAIN, faster, strict=True):
        assert after == pytest.approx(before * scale, abs=0.001)  # whole milliseconds


@given(st.floats(1e-6, 1), st.sampled_from([1.0, 5.0, 15.0]))
@settings(max_examples=5, deadline=None)
def test_no_time_gets_shorter_than_scrapes_allow_nor_longer_than_it_was(
    scale: float, interval: float
) -> None:
    found = times(RuleSettings(scrape_interval=interval, time_scale=scale))
    for before, after in zip(PLAIN, found, strict=True):
        assert after == interval or 2 * interval <= after <= max(before, 4 * interval)


def test_windows_of_rates_hold_four_scrapes() -> None:
    text = "".join(build_rules(RuleSettings(scrape_interval=1.0, time_scale=1e-6), SLOS).values())
    assert set(re.findall(r"\brate\(\w+(?:\{[^}]*\})?\[(\w+)\]", text)) == {"4s"}


def test_texts_tell_the_times_that_hold() -> None:
    fast, plain = (build_rules(it, SLOS)["qos.yml"] for it in (FASTER, RuleSettings()))
    assert "Violated for" in plain
    assert "of the last 1h." in plain
    assert "of the last 4m." in fast
    assert "at least 15m ago" in plain
    assert "at least 1m ago" in fast


@pytest.mark.parametrize("seconds", [0.5, 1, 4, 60, 90, 3600, 5400, 86400, 30 * 86400])
def test_a_duration_reads_back_as_it_was(seconds: float) -> None:
    assert _seconds(duration(seconds)) == seconds


def test_a_name_that_no_setting_has_is_refused() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        RuleSettings().expand("rate(x[@nonsense@])")


def test_every_window_is_used() -> None:
    sources = [
        text
        for groups in FILES.values()
        for group in groups
        for rule in group.rules
        for text in (
            [rule.expr]
            if isinstance(rule, RecordedSeries)
            else [rule.expr, rule.description, f"@{rule.held}@"]
            if isinstance(rule, Alert)
            else []
        )
    ]
    used = set(re.findall(r"@(\w+?)(?:_samples)?@", "".join(sources))) | {"slow_interval"}
    assert set(WINDOWS) <= used


def test_no_alert_has_two_severities() -> None:
    """Others let the critical alert of a name silence all warnings of it."""
    severities: dict[str, set[str]] = {}
    for rule in RULES:
        if "alert" in rule:
            severities.setdefault(rule["alert"], set()).add(rule["labels"]["severity"])
    assert {name: found for name, found in severities.items() if len(found) > 1} == {}
