"""What silences what, by a real Alertmanager with the committed rules of inhibition."""

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.waiting import wait_until

from cephqos_alerts.output.alertmanager import alertmanager_config
from cephqos_alerts.rules.runbooks import WARNING_SUFFIX
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.programs import free_ports

CRITICAL = {"severity": "critical"}
WARNING = {"severity": "warning"}
BASE = {"cluster": "c1"}


def warning(alert: dict[str, str]) -> dict[str, str]:
    """The warning of an alert that has two severities."""
    return {**alert, **WARNING, "alertname": alert["alertname"] + WARNING_SUFFIX}


OSD = {**BASE, "ceph_daemon": "osd.1", "class": "client"}
VIOLATED = {
    **OSD,
    "alertname": "CephQosReservationViolated",
    "severity": "critical",
}
WIDE = {
    **{key: value for key, value in VIOLATED.items() if key != "ceph_daemon"},
    "alertname": "CephQosReservationViolatedWidely",
}
SILENT = {**BASE, "ceph_daemon": "osd.1", "alertname": "CephQosDaemonNotAnswering"}
BURN = {**BASE, "alertname": "CephQosLatencySloBurn", "slo": "s"}
FLAG = {**BASE, "alertname": "CephQosMaintenance", "severity": "none"}
RUN = {**BASE, "alertname": "CephQosTestRun", "severity": "none", "run": "r"}
SLOW = {
    **BASE,
    "alertname": "CephQosReplicaSlow",
    "ceph_daemon": "osd.1",
    "severity": "critical",
}


@pytest.fixture(scope="module")
def alertmanager(small_lab: RunningLab) -> Iterator[str]:
    with _started(small_lab, "ours", alertmanager_config(RuleSettings())) as url:
        yield url


@pytest.fixture(scope="module")
def of_stack(small_lab: RunningLab) -> Iterator[str]:
    """With what kube-prometheus-stack has by default, and nothing of ours."""
    named = [
        ("severity = critical", "severity =~ warning|info", ["namespace", "alertname"]),
        ("severity = warning", "severity = info", ["namespace", "alertname"]),
        ("alertname = InfoInhibitor", "severity = info", ["namespace"]),
    ]
    config = {
        "route": {"receiver": "null"},
        "receivers": [{"name": "null"}],
        "inhibit_rules": [
            {"source_matchers": [source], "target_matchers": [target], "equal": equal}
            for source, target, equal in named
        ],
    }
    with _started(small_lab, "stack", json.dumps(config)) as url:
        yield url


@contextlib.contextmanager
def _started(lab: RunningLab, name: str, text: str) -> Iterator[str]:
    """Alertmanager alone, in a lab, for the files that its package puts beside it."""
    config = lab.paths.work / f"alertmanager-{name}.yml"
    config.write_text(text, encoding="utf-8")
    (port,) = free_ports(1)
    argv = ["prometheus-alertmanager", f"--config.file={config}", "--cluster.listen-address="]
    argv += [f"--storage.path={lab.paths.work / name}", "--log.level=error"]
    argv += [f"--web.listen-address=127.0.0.1:{port}"]
    process = subprocess.Popen(lab.enter_argv(argv), process_group=0)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=10)


def _wait(url: str) -> None:
    def ready() -> bool:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/-/ready", timeout=10).close()  # noqa: S310
            return True
        return False

    wait_until(ready, "Alertmanager answers")


def _call(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
        text = reply.read()
    return json.loads(text) if text else None


def inhibited(url: str, *alerts: dict[str, str], within: float = 30) -> bool:
    """Whether the others silence the last. A label of its own keeps cases apart.

    `within`: seconds after its arrival, for what silences another is looked for a moment later.
    """
    mark = str(time.monotonic_ns())
    marked = [dict(labels, cluster=f"{labels['cluster']}-{mark}") for labels in alerts]
    _call(f"{url}/api/v2/alerts", [{"labels": labels} for labels in marked])
    names = [str(sorted(labels.items())) for labels in marked]

    def told() -> Any:
        found = _call(f"{url}/api/v2/alerts")
        arrived = {str(sorted(it["labels"].items())): it["status"] for it in found}
        return arrived if all(name in arrived for name in names) else None

    wait_until(told, "the alerts arrived")
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if told()[names[-1]]["inhibitedBy"]:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(SILENT, VIOLATED, id="an OSD that is silent, its reservations"),
        pytest.param(
            SILENT | {"alertname": "CephQosOsdDown", "severity": "none"},
            VIOLATED,
            id="an OSD that is down, its reservations",
        ),
        pytest.param(WIDE, VIOLATED, id="a cluster-wide violation, that of an OSD"),
        pytest.param(
            BURN | CRITICAL,
            warning(BURN),
            id="critical, its warning",
        ),
        pytest.param(
            FLAG | {"flag": "norecover"},
            BASE | {"alertname": "CephQosRecoveryStalled", "severity": "warning", "pool": "p"},
            id="norecover, stalled recovery",
        ),
        pytest.param(
            FLAG | {"flag": "nodeep-scrub"},
            BASE | {"alertname": "CephQosScrubsOverdueGrowing", "severity": "warning"},
            id="nodeep-scrub, overdue scrubs",
        ),
        pytest.param(VIOLATED, SLOW, id="an OSD's own page, that others wait for it"),
        pytest.param(SILENT, SLOW, id="an OSD that is silent, that others wait for it"),
        pytest.param(RUN, VIOLATED, id="a test run, a violation"),
        pytest.param(RUN, BURN | CRITICAL, id="a test run, a burning budget"),
    ],
)
def test_it_silences(alertmanager: str, source: dict[str, str], target: dict[str, str]) -> None:
    assert inhibited(alertmanager, source, target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(
            SILENT | {"ceph_daemon": "osd.2"}, VIOLATED, id="a silent OSD, another's reservations"
        ),
        pytest.param(
            warning(WIDE),
            VIOLATED,
            id="a cluster-wide warning, an OSD's critical one",
        ),
        pytest.param(
            warning(WIDE) | {"cause": "replica_writes"},
            warning(VIOLATED),
            id="that replica writes fill OSDs, the warning of an OSD with another cause",
        ),
        pytest.param(
            warning(BURN),
            BURN | CRITICAL,
            id="a warning, the critical one",
        ),
        pytest.param(FLAG | {"flag": "noscrub"}, SILENT, id="noscrub, a silent OSD"),
        pytest.param(FLAG | {"flag": "noout"}, SILENT, id="noout, a silent OSD"),
        pytest.param(
            warning(VIOLATED),
            SLOW,
            id="an OSD's own warning, that others wait for it",
        ),
        pytest.param(SLOW, VIOLATED, id="that others wait for it, an OSD's own page"),
        pytest.param(RUN | {"cluster": "c2"}, VIOLATED, id="a test run on another cluster"),
        pytest.param(
            RUN,
            BASE | {"alertname": "CephQosObjectsUnfound", "severity": "critical", "pool": "p"},
            id="a test run, unfound objects",
        ),
    ],
)
def test_it_does_not_silence(
    alertmanager: str, source: dict[str, str], target: dict[str, str]
) -> None:
    assert not inhibited(alertmanager, source, target, within=1.5)


def test_what_is_silenced_silences_all_the_same(alertmanager: str) -> None:
    """One notification: that of the cluster, and not that others wait for one of its OSDs."""
    assert inhibited(alertmanager, WIDE, VIOLATED, SLOW)


@pytest.mark.parametrize("alert", [VIOLATED, WIDE, BURN | CRITICAL, SILENT | CRITICAL])
def test_kube_prometheus_stack_lets_no_critical_alert_of_ours_silence_a_warning(
    of_stack: str, alert: dict[str, str]
) -> None:
    """Neither of another OSD nor of its own: names differ."""
    of_another = warning(alert) | {"ceph_daemon": "osd.2"}
    assert not inhibited(of_stack, alert, of_another, within=1.5)
    # That its rule is in force: with one name for both it would.
    assert inhibited(of_stack, alert, of_another | {"alertname": alert["alertname"]})
