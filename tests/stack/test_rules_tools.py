"""The committed rules, tests and routing as Prometheus' and Alertmanager's own tools see them."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from .conftest import tool

ALERTS = Path("alerts")
RELEASES = ("pacific", "reef", "tentacle")  # Prometheus 2.42, 2.53 and 3.5


def run(argv: Sequence[str], *, cwd: Path = Path(), within: float = 280) -> str:
    done = subprocess.run(
        argv, cwd=cwd, capture_output=True, text=True, timeout=within, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("release", RELEASES)
def test_promtool_of_every_release_takes_the_rules_without_complaint(release: str) -> None:
    rules = sorted(str(file) for file in (ALERTS / "rules").glob("*.yml"))
    said = run([*tool(release, "promtool"), "check", "rules", "--lint=all", "--lint-fatal", *rules])
    assert said.count("SUCCESS") == len(rules)


@pytest.mark.parametrize("group", [file.stem for file in sorted((ALERTS / "tests").glob("*.yml"))])
def test_alerts_fire_stay_silent_and_resolve_when_they_should(group: str) -> None:
    said = run([*tool("reef", "promtool"), "test", "rules", f"{group}.yml"], cwd=ALERTS / "tests")
    assert "SUCCESS" in said


def test_prometheus_3_evaluates_the_rules_alike() -> None:
    argv = [*tool("tentacle", "promtool"), "test", "rules", "state.yml", "overdue.yml"]
    assert "SUCCESS" in run(argv, cwd=ALERTS / "tests")


@pytest.mark.parametrize("release", RELEASES)
def test_amtool_of_every_release_takes_the_configuration(release: str) -> None:
    config = str(ALERTS / "alertmanager" / "alertmanager.yml")
    assert "SUCCESS" in run([*tool(release, "amtool"), "check-config", config])


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"alertname": "CephQosReservationViolated", "severity": "page"}, "page"),
        ({"alertname": "CephQosReservationViolated", "severity": "ticket"}, "ticket"),
        ({"alertname": "CephQosTooManySeries", "severity": "info"}, "info"),
        ({"alertname": "CephQosMaintenance", "severity": "none"}, "nobody"),
        ({"alertname": "Watchdog", "severity": "none"}, "watchdog"),
        ({"alertname": "SomebodyElses"}, "ticket"),
    ],
    ids=json.dumps,
)
def test_an_alert_goes_to_the_receiver_of_its_severity(
    labels: dict[str, str], receiver: str
) -> None:
    config = f"--config.file={ALERTS / 'alertmanager' / 'alertmanager.yml'}"
    given = [f"{key}={value}" for key, value in labels.items()]
    argv = [*tool("reef", "amtool"), "config", "routes", "test", config, *given]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == [receiver]
