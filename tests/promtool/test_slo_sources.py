"""SLOs of the probe and of test runs, on what both showed of a real device that was held back."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.recorded import RELEASES
from tests.release_tools import run, tool

from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.runbooks import WARNING_SUFFIX
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.spec import Slo

RECORDED: Final = json.loads(Path("tests/recordings/slo_sources.json").read_text(encoding="utf-8"))
HELD: Final = (40, 65)  # seconds
SETTINGS: Final = RuleSettings(scrape_interval=5.0, time_scale=1 / 60)
LABELS: Final = {"team": "storage"}
SLOS: Final = (
    Slo(name="p", source="probe", op="write", threshold=0.0512, objective=0.999, labels=LABELS),
    Slo(name="f", source="fio", op="write", threshold=0.128, objective=0.999, labels=LABELS),
)
METRIC: Final = {"p": "cephqos_probe_latency_seconds", "f": "cephqos_client_latency_seconds"}


def _series(slo: Slo, part: str, le: str = "") -> tuple[str, list[int]]:
    (found,) = [
        (name, values)
        for name, values in RECORDED["series"].items()
        if name.startswith(f"{METRIC[slo.name]}_{part}{{") and le in name
    ]
    return found


def _bad(slo: Slo, begin: int, end: int) -> float:
    """The share of operations between two moments that took longer than the threshold."""
    step = RECORDED["interval"]
    (_, good), (_, total) = (
        _series(slo, "bucket", f'le="{slo.threshold:g}"'),
        _series(slo, "count"),
    )
    fast, done = (values[end // step] - values[begin // step] for values in (good, total))
    return 1 - float(fast) / float(done)


def _alerts(slo: Slo, *burns: tuple[str, str]) -> list[dict[str, Any]]:
    (name, _) = _series(slo, "count")
    kept = ("cluster", "pool") if slo.source == "probe" else ("cluster", "run", "load")
    own = {key: value for key, value in re.findall(r'(\w+)="([^"]*)"', name) if key in kept}
    base = {"alertstate": "firing", "slo": slo.name, "op": "write", **LABELS, **own}
    samples = []
    for severity, window in burns:
        name = "CephQosLatencySloBurn" + (WARNING_SUFFIX if severity == "warning" else "")
        labels = base | {"alertname": name, "severity": severity, "window": window}
        inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
        samples.append({"labels": f"ALERTS{{{inner}}}", "value": 1})
    return samples


def _checks(slo: Slo) -> list[dict[str, Any]]:
    firing = f'ALERTS{{alertstate="firing", slo="{slo.name}"}}'
    every = (("critical", "1h"), ("critical", "6h"), ("warning", "1d"), ("warning", "3d"))
    # An hour is a minute here, and rates look back for 20 s, which smooths what they see.
    seen = f'sum(cephqos_slo:errors:ratio{{slo="{slo.name}", window="1h"}})'
    expected = _bad(slo, 5, 65)
    assert expected > 0.02
    near = f"{expected * 0.5:.4f} < {seen} < {expected * 1.5:.4f}"
    return [
        {"expr": firing, "eval_time": f"{HELD[0]}s"},
        {"expr": firing, "eval_time": "65s", "exp_samples": _alerts(slo, *every)},
        {
            "expr": f"count({near})",
            "eval_time": "65s",
            "exp_samples": [{"labels": "{}", "value": 1}],
        },
    ]


@pytest.mark.parametrize("release", RELEASES)
def test_a_device_held_back_burns_the_budget_of_probe_and_fio(release: str, tmp_path: Path) -> None:
    for name, text in build_rules(SETTINGS, SLOS).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    document = {
        "rule_files": ["slo.yml"],
        "evaluation_interval": "5s",
        "tests": [
            {
                "interval": f"{RECORDED['interval']}s",
                "input_series": [
                    {"series": name, "values": " ".join(map(str, values))}
                    for name, values in RECORDED["series"].items()
                ],
                "promql_expr_test": [check for slo in SLOS for check in _checks(slo)],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    assert "SUCCESS" in run([*tool(release, "promtool"), "test", "rules", "test.yml"], cwd=tmp_path)
