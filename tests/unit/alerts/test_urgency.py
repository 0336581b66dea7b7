"""The rule of severity (docs/operate/alerts.md): each alert follows it, and so does its runbook."""

import re
from pathlib import Path
from typing import Final

import pytest
from tests.runbooks import ENTRIES

from cephqos_alerts.cli import DEFAULT_SLOS, load_slos
from cephqos_alerts.output.build import FILES, LOGS
from cephqos_alerts.rules.rule import CAN_WAIT, Alert, Severity, Urgency
from cephqos_alerts.rules.runbooks import WARNING_SUFFIX
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.groups import slo_groups

_GROUPS: Final = [
    *(group for groups in FILES.values() for group in groups),
    *slo_groups(load_slos(DEFAULT_SLOS), RuleSettings()),
    LOGS,
]
ALERTS: Final = [rule for group in _GROUPS for rule in group.rules if isinstance(rule, Alert)]
SENT: Final = [alert for alert in ALERTS if alert.severity != "none"]
_ALERT: Final = pytest.mark.parametrize("alert", SENT, ids=lambda it: f"{it.name}-{it.severity}")


def _line(alert: Alert, head: str) -> str:
    found = re.search(rf"^- \*\*{head}\*\*: (.+)$", ENTRIES[alert.name], re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.parametrize(
    ("clients_suffer", "ends_tonight", "to_do", "sent", "severity"),
    [
        (True, True, True, True, "critical"),
        (True, False, True, True, "warning"),
        (False, True, True, True, "warning"),
        (False, False, False, True, "info"),
        (True, True, True, False, "none"),
    ],
)
def test_severity_follows_from_facts(
    clients_suffer: bool, ends_tonight: bool, to_do: bool, sent: bool, severity: Severity
) -> None:
    facts = Urgency(
        clients_suffer=clients_suffer, ends_tonight=ends_tonight, to_do=to_do, sent=sent
    )
    assert facts.severity == severity


def test_the_page_has_the_rule() -> None:
    page = Path("docs/operate/alerts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .+ \| ([^|]+) \|$", page, re.MULTILINE)
    assert {severity: wait for severity, wait in rows if severity in CAN_WAIT} == CAN_WAIT


@_ALERT
def test_clients_suffer_by_the_runbook_of_a_critical_alert(alert: Alert) -> None:
    assert alert.severity != "critical" or "client" in _line(alert, "Who suffers")


@_ALERT
def test_an_alert_and_its_runbook_agree_on_whether_it_can_wait(alert: Alert) -> None:
    said = _line(alert, "Can it wait").replace("`", "")
    if alert.name.endswith(WARNING_SUFFIX):
        assert f"The warning {alert.name} " in said and "can wait until morning" in said
    else:
        assert re.match(rf"{re.escape(alert.urgency.can_wait.replace('`', ''))}[.;]", said)


@_ALERT
def test_an_alert_and_its_runbook_begin_with_the_same_command(alert: Alert) -> None:
    assert alert.first and alert.likely
    names = {"ceph_daemon": "osd.N", "instance": "HOST:10130", "device": "DEVICE"}
    # Of several OSDs, it is the worst.
    line = re.sub(r"{{ with printf .*{{ else }}(osd\.N){{ end }}", r"\1", alert.first.line)
    line = re.sub(r"{{ \$labels\.(\w+) }}", lambda it: names[it[1]], line)
    line = line.replace("localhost:9090", "PROMETHEUS:9090")
    assert f"`{line}`" in _line(alert, "Look at this")


@_ALERT
def test_an_alert_says_how_long_it_has_lasted(alert: Alert) -> None:
    assert [bool(it) for it in (alert.hold or alert.held, alert.within)].count(True) == 1
