"""Descriptions of the committed alerts, as Prometheus fills them in."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from tests.release_tools import tool
from tests.rules.cases import ALERTING_SLOS

from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.settings import RuleSettings

OF_OSD: Final = {"cluster": "c1", "ceph_daemon": "osd.3"}


_SETTINGS: Final = RuleSettings()


def description_of(name: str, settings: RuleSettings = _SETTINGS) -> str:
    """The template of an alert; of the critical one, if there is a warning of that name, too."""
    texts = build_rules(settings, ALERTING_SLOS).values()
    files = [yaml.safe_load(text) for text in texts]
    rules = [rule for file in files for group in file["groups"] for rule in group["rules"]]
    of_it = [rule for rule in rules if rule.get("alert") == name]
    rule = min(of_it, key=lambda it: str(it["labels"]["severity"]))
    return str(rule["annotations"]["description"])


def rendered(
    template: str,
    labels: Mapping[str, str],
    value: float,
    looked_up: Mapping[str, str],
    directory: Path,
    *,
    name: str = "MadeUp",
    at: str = "1m",
) -> str:
    """What promtool shows of an alert of this name, with these labels and this value. `looked_up`:
    series with their values, in promtool's notation."""
    alert: dict[str, Any] = {"alert": name, "expr": "made_up", "annotations": {"text": template}}
    (directory / "rules.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "made_up", "rules": [alert]}]})
    )
    of_alert = ",".join(f'{key}="{label}"' for key, label in labels.items())
    shown = {f"made_up{{{of_alert}}}": f"{value}x9000", **looked_up}
    case = {
        "interval": "15s",
        "input_series": [{"series": it, "values": values} for it, values in shown.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": []}],
    }
    # Evaluated at the beginning and at the moment that is looked at.
    document = {"rule_files": ["rules.yml"], "evaluation_interval": at, "tests": [case]}
    (directory / "test.yml").write_text(yaml.safe_dump(document))
    argv = [*tool("tentacle", "promtool"), "test", "rules", "test.yml"]
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr
