"""The configuration of Alertmanager: receivers of one's own, and the examples of them."""

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from cephqos_alerts.output.alertmanager import RECEIVERS, alertmanager_config, parse_receivers
from cephqos_alerts.output.build import FILES, LOGS, alerts_about
from cephqos_alerts.rules.rule import Alert, Subject
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.groups import SLO_ALERTS
from cephqos_base import yamlfile
from cephqos_base.errors import ConfigError

EXAMPLES = sorted(Path("alerts/alertmanager/examples").glob("*.yml"))
README = Path("docs/install/alertmanager.md").read_text(encoding="utf-8")


def _config(example: Path) -> Any:
    own = parse_receivers(yamlfile.read(example))
    return yaml.safe_load(alertmanager_config(RuleSettings(), receivers=own))


def _routed(route: dict[str, Any]) -> set[str]:
    own = {route["receiver"]} if "receiver" in route else set()
    return own.union(*(_routed(it) for it in route.get("routes", [])))


def test_receivers_that_are_asked_for_are_those_that_routes_lead_to() -> None:
    assert _routed(yaml.safe_load(alertmanager_config(RuleSettings()))["route"]) == set(RECEIVERS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_receiver_for_every_route(example: Path) -> None:
    config = _config(example)
    assert _routed(config["route"]) == {receiver["name"] for receiver in config["receivers"]}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_tells_what_is_wrong_what_to_do_and_where_to_look(example: Path) -> None:
    for receiver in _config(example)["receivers"]:
        # A webhook gets the whole alert, and makes its own text.
        if (
            receiver["name"] in ("critical", "warning", "info")
            and "webhook_configs" not in receiver
        ):
            for part in ("summary", "description", "runbook_url", "dashboard_url"):
                assert f"Annotations.{part}" in str(receiver), (receiver["name"], part)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_no_secret_in_it_and_is_named_in_the_documentation(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    assert not [
        word
        for word in ("password:", "routing_key:", "api_key:", "hooks.slack.com/services/T")
        if word in text
    ]
    assert f"`examples/{example.name}`" in README


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("receivers: [", "own.yml:1: found "),
        ("- name: critical", "own.yml:1: found a list; allowed: the key receivers, with a list"),
        (
            "receivers: [critical]",
            "own.yml:1: receivers[0]: found 'critical'; allowed: a receiver, with a na",
        ),
        (
            "receivers: [{name: critical}, {name: nobody}]",
            "own.yml:1: receivers: found critical, nobody; allowed: also watchdog, warning, info",
        ),
    ],
)
def test_receivers_that_cannot_be_used_are_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_receivers(yamlfile.parse(text, "own.yml"))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_every_subject_that_an_inhibition_names_has_alerts() -> None:
    for subject in get_args(Subject):
        assert alerts_about(subject), subject


def test_an_inhibition_names_only_alerts_that_exist() -> None:
    groups = [*(group for groups in FILES.values() for group in groups), LOGS]
    rules = [rule for group in groups for rule in group.rules]
    known = {rule.name for rule in rules if isinstance(rule, Alert)} | {*SLO_ALERTS}
    for rule in yaml.safe_load(alertmanager_config(RuleSettings()))["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            if matcher.startswith("alertname"):
                assert set(matcher.split('"')[1].split("|")) <= known
