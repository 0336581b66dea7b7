"""A quick slice of `make alert-budget`: what the configuration as generated would send."""

from typing import Any, Final

import pytest
import yaml
from tests.bench.notifications import AlertTimeline, Sent, notifications, route_of

from cephqos_alerts.output.alertmanager import alertmanager_config
from cephqos_alerts.rules.settings import Changes, RuleSettings

CONFIG: Final[Any] = yaml.safe_load(alertmanager_config(RuleSettings()))
DAY: Final = 86400.0
_VIOLATED: Final = {
    "alertname": "CephQosReservationViolated",
    "class": "client",
    "cluster": "c1",
    "severity": "critical",
}


def of(begin: float, end: float, **labels: str) -> AlertTimeline:
    return AlertTimeline({"cluster": "c1", "severity": "warning", **labels}, [(begin, end)])


def violated(number: int, begin: float = 0, end: float = 1800, **labels: str) -> AlertTimeline:
    return of(begin, end, **_VIOLATED | {"ceph_daemon": f"osd.{number}"} | labels)


def sent(*alerts: AlertTimeline, until: float = 7 * DAY) -> list[Sent]:
    return notifications(CONFIG, alerts, until)


def test_slow_osds_of_a_cluster_are_one_incident_however_many() -> None:
    found = sent(*(violated(number) for number in range(300)))
    assert [(it.receiver, it.alerts, it.opens) for it in found] == [("critical", 300, True)]


def test_alerts_of_other_names_are_other_incidents() -> None:
    found = sent(of(0, DAY, alertname="CephQosScrubStalled"), of(0, DAY, alertname="CephQosX"))
    assert [it.opens for it in found] == [True, True]


def test_what_many_osds_have_is_silent_while_the_cluster_has_its_alert() -> None:
    wide = _VIOLATED | {"alertname": "CephQosReservationViolatedWidely"}
    found = sent(of(0, 3600, **wide), *(violated(number) for number in range(300)))
    assert {it.alerts for it in found} == {1}


def test_a_warning_that_counts_osds_that_are_down_silences_nothing_of_the_cluster() -> None:
    down = of(0, DAY, alertname="CephQosDaemonNotAnswering")
    target = of(0, DAY, alertname="CephQosPolicyTargetViolated", scope="cluster")
    assert len(sent(down, target, until=DAY)) == 2


def test_an_osd_that_is_down_is_silent_and_other_osds_are_not() -> None:
    down = of(0, 3600, alertname="CephQosOsdDown", ceph_daemon="osd.1", severity="none")
    found = [it for it in sent(down, violated(1), violated(2)) if it.receiver == "critical"]
    assert [it.alerts for it in found] == [1]


@pytest.mark.parametrize(("severity", "times"), [("critical", 168), ("warning", 2), ("info", 1)])
def test_a_week_without_action_has_as_many_notifications_as_the_page_says(
    severity: str, times: int
) -> None:
    assert len(sent(of(0, 8 * DAY, alertname="CephQosX", severity=severity))) == times


def test_an_alert_that_joins_a_group_is_sent_with_the_next_look_at_it() -> None:
    found = sent(violated(1), violated(2, begin=600))
    assert [(it.at, it.alerts, it.opens) for it in found] == [(30, 1, True), (630, 2, False)]


def test_names_of_severities_are_those_of_the_operator() -> None:
    settings = RuleSettings(changes=Changes(severities={"critical": "page"}))
    config = yaml.safe_load(alertmanager_config(settings))
    assert route_of(config, {"severity": "page"}).receiver == "critical"
    assert "critical" not in str(config["inhibit_rules"])
