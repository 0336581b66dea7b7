"""The committed rules, tests and routing as Prometheus' and Alertmanager's own tools see them."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.promtool.rendered import OF_OSD, description_of, rendered
from tests.recorded import RELEASES
from tests.release_tools import run, tool
from tests.rules.cases import promtool_document
from tests.rules.files import GROUPS, write
from tests.rules.judged import rules_case

from cephqos_alerts.output.alertmanager import alertmanager_config, parse_receivers
from cephqos_alerts.rules.render import render
from cephqos_alerts.rules.rule import NOT_SENT, Alert, RuleGroup
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.texts.known import MOSTLY
from cephqos_base import yamlfile
from cephqos_base.recorded import PerClass, PerClusterClass, PerOsd, PerOsdPlace
from cephqos_base.series import (
    AccountSeries,
    ClusterSeries,
    DaemonSeries,
    DisksSeries,
    TenantsSeries,
)

ALERTS = Path("alerts")
EXAMPLES = sorted((ALERTS / "alertmanager" / "examples").glob("*.yml"))
_OF_0_28 = ("ntfy", "teams", "telegram")
# ntfy makes its message itself.
_WITH_TEXTS = [example for example in EXAMPLES if example.stem != "ntfy"]


@pytest.mark.parametrize("release", RELEASES)
def test_promtool_of_every_release_takes_the_rules_without_complaint(release: str) -> None:
    rules = sorted(str(file) for file in (ALERTS / "rules").glob("*.yml"))
    said = run([*tool(release, "promtool"), "check", "rules", "--lint=all", "--lint-fatal", *rules])
    assert said.count("SUCCESS") == len(rules)


# Prometheus 2.53 and the newest there is, which leaves out the sample at the far end of a window.
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("release", [pytest.param("reef", marks=pytest.mark.full), "tentacle"])
@pytest.mark.parametrize("group", GROUPS)
def test_alerts_fire_stay_silent_and_resolve_when_they_should(
    group: str, release: str, tmp_path: Path
) -> None:
    argv = [*tool(release, "promtool"), "test", "rules", str(write(group, tmp_path))]
    assert "SUCCESS" in run(argv, within=900)


def test_the_rules_judge_as_the_judge_in_python_does(tmp_path: Path) -> None:
    """tests/unit/alerts/test_judge.py judges the same series without rules."""
    file = tmp_path / "judged.yml"
    file.write_text(yaml.safe_dump(promtool_document("judged", [rules_case()])))
    assert "SUCCESS" in run([*tool("tentacle", "promtool"), "test", "rules", str(file)])


@pytest.mark.parametrize("release", RELEASES)
def test_the_link_of_an_alert_opens_its_cluster_and_osd_an_hour_before_and_half_an_hour_after(
    release: str, tmp_path: Path
) -> None:
    alert = Alert(
        name="Linked", about=(), expr="up == 0", urgency=NOT_SENT, summary="", description=""
    )
    group = RuleGroup(name="links", rules=[alert])
    document = render([group], RuleSettings(dashboard_url="https://grafana/d"))
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(document))
    around = f"from={(7200 - 3600) * 1000}&to={(7200 + 1800) * 1000}"
    annotations = {
        "summary": "",
        "description": "Where: osd.3, cluster c1.",
        "dashboard_url": f"https://grafana/d/cephqos-osd?var-cluster=c1&var-osd=osd.3&{around}",
    }
    labels = {"cluster": "c1", "ceph_daemon": "osd.3"}
    expected = {"exp_labels": labels | {"severity": "none"}, "exp_annotations": annotations}
    case = {
        "interval": "15s",
        "input_series": [{"series": 'up{cluster="c1",ceph_daemon="osd.3"}', "values": "0x500"}],
        "alert_rule_test": [
            {"eval_time": "2h", "alertname": "Linked", "exp_alerts": [expected]},
        ],
    }
    (tmp_path / "test.yml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [case]})
    )
    argv = [*tool(release, "promtool"), "test", "rules", "test.yml"]
    assert "SUCCESS" in run(argv, cwd=tmp_path)


_LABELS = OF_OSD | {"class": "client", "cause": "limit", "by": "", "instance": "h:1"}
_WORK = f'{TenantsSeries.SECONDS}{{cluster="c1",ceph_daemon="osd.3",state="working"'
_SQUARES = f'{TenantsSeries.SQUARES}{{cluster="c1",ceph_daemon="osd.3",state="working"}}'
_WAITED = f'{AccountSeries.SECONDS}{{cluster="c1"'
# What a description looks up, and the value that it finds.
_LOOKED_UP: dict[str, float | str] = {
    f'{_WORK},kind="image",pool_id="3",tenant="17af"}}': "0+105",
    f'{_WORK},kind="other"}}': "0+45",
    _SQUARES: "0+450",
    f'{_WAITED},ceph_daemon="osd.3",state="store_device"}}': "0+135",
    f'{_WAITED},ceph_daemon="osd.3",state="replica",by="osd.4"}}': "0+45",
    f'{_WAITED},ceph_daemon="osd.5",state="replica",by="osd.3"}}': "0+120",
    f'{PerClass.ATTAINED_OPS}{{cluster="c1",ceph_daemon="osd.3",class="client"}}': 300,
    f'{PerClass.RESERVED_OPS}{{cluster="c1",ceph_daemon="osd.3",class="client"}}': 600,
    f'{PerClass.VIOLATED_SECONDS}{{cluster="c1",ceph_daemon="osd.3",class="client"}}': 600,
    f'{PerOsd.FINDING}{{cluster="c1",ceph_daemon="osd.3",class="client",cause="limit"'
    ',finding="AtLimitWhileIdle"}': 320,
    f'{PerClusterClass.MAIN_CAUSE}{{cluster="c1",class="client",cause="cpu",by="osd.4"}}': 1,
    f'{PerClass.MAIN_CAUSE}{{cluster="c1",ceph_daemon="osd.3",class="client",cause="limit"}}': 1,
    f'{PerOsdPlace.SECONDS}{{cluster="c1",ceph_daemon="osd.3",at="replica_write"}}': 2,
    f'{PerOsd.INSTANCE}{{cluster="c1",ceph_daemon="osd.3",instance="h:1"}}': 1,
    f'{PerOsd.REPLICA_SLOWNESS}{{cluster="c1",ceph_daemon="osd.3"}}': 40,
    f'{PerOsd.CONDITION}{{cluster="c1",ceph_daemon="osd.3",condition="cpu_short"}}': 1,
    f'{ClusterSeries.POOL_INFO}{{cluster="c1",pool_id="3",pool="rbd"}}': 1,
    f'{DaemonSeries.UP}{{cluster="c1",ceph_daemon="osd.3",instance="h:1",reason="hangs"}}': 0,
}


@pytest.mark.parametrize(
    ("name", "known", "not_known"),
    [
        (
            "CephQosReservationViolated",
            "reservation: it is 300 normalised ops/s short. It gets 50% of its reservation."
            " Violated for 10m 0s of the last 1h. In each second its client operations wait 12s,"
            " longest in state store_device. Where: osd.3 on host h, cluster c1. Since: ",
            "reservation. Where: osd.3, cluster c1. Since: 23:55 UTC, 31 December. Can it wait",
        ),
        (
            "CephQosReservationViolated",
            " cause: limit. Most of its work is for image 17af of pool rbd. Can it wait",
            "31 December. Can it wait",
        ),
        (
            "CephQosReplicaSlow",
            "or not. In each second client operations wait 8s for it. A"
            " replica write takes 2s on it, 40 times the median of its peers. Where:",
            "or not. Where:",
        ),
        (
            "CephQosReplicaSlow",
            " wait for a CPU. Most of its work is for image 17af of pool rbd. Can it wait",
            "look at its log and its network. Can it wait",
        ),
        (
            "CephQosAtLimitWhileIdle",
            "Worst first: osd.3 on host h (320 normalised ops/s). Where: cluster c1.",
            "Worst first: not known. Where: cluster c1.",
        ),
        ("CephQosDaemonNotAnswering", "at h:1: hangs. Its clients", "at h:1. Its clients"),
        (
            "CephQosDaemonNotAnswering",
            "Likely cause: the CPU. Its threads wait for a CPU. Can it",
            "Likely cause: the OSD hangs, or its device does. Can it",
        ),
        (
            "CephQosLatencySloBurn",
            "Likely cause: cpu by osd.4, on most OSDs whose clients wait. Can it wait",
            "within the last 1h. Can it wait",
        ),
    ],
)
def test_what_is_not_known_is_left_out_of_a_description(
    name: str, known: str, not_known: str, tmp_path: Path
) -> None:
    template = description_of(name)
    looked_up = {series: f"{figure}x9" for series, figure in _LOOKED_UP.items()}
    shown = [
        rendered(template, _LABELS, value, found, tmp_path, name=name)
        for found, value in ((looked_up, 300), ({}, 0))
    ]
    assert known in shown[0]
    assert not_known in shown[1]
    assert "unknown" not in shown[1]


def test_an_slo_that_burns_without_demand_names_the_osd_that_is_slow(tmp_path: Path) -> None:
    slow = {
        f'{PerOsd.FINDING}{{cluster="c1",ceph_daemon="osd.3",cause="device",finding="OsdSlow"}}': (
            "0.2x9"
        ),
        f'{PerOsd.INSTANCE}{{cluster="c1",ceph_daemon="osd.3",instance="h:1"}}': "1x9",
    }
    name = "CephQosLatencySloBurn"
    shown = rendered(description_of(name), _LABELS, 0.1, slow, tmp_path, name=name)
    assert "Likely cause: osd.3 on host h is slow (device). Can it wait" in shown


@pytest.mark.parametrize(("slow", "said"), [(4, True), (1, False)])
def test_an_alert_about_several_osds_says_what_all_of_them_share(
    slow: int, said: bool, tmp_path: Path
) -> None:
    """Of 24 OSDs the first four have model X, as has one other; the first eight are on one host."""
    name, of_alert = "CephQosStoreSlow", {"cluster": "c1", "op": "commit"}
    told = 'cluster="c1",op="commit",finding="StoreSlow"'
    found = {f'{PerOsd.FINDING}{{{told},ceph_daemon="osd.{osd}"}}': "3x9" for osd in range(slow)}
    for osd in range(24):
        of_osd = f'cluster="c1",ceph_daemon="osd.{osd}"'
        model = "X" if osd < 5 else "Y"
        info = f'{DisksSeries.INFO}{{{of_osd},layer="disk",device="sd{osd}",model="{model}"}}'
        found |= {info: "1x9", f'{PerOsd.INSTANCE}{{{of_osd},instance="h{osd // 8}:1"}}': "1x9"}
    shown = rendered(description_of(name), of_alert, slow, found, tmp_path, name=name)
    assert ("All of them have model X (others that have it: 1)." in shown) == said
    assert ("All of them have the host h0 (others that have it: 4)." in shown) == said


def test_a_tenant_is_named_only_if_it_clearly_has_most_of_the_work(tmp_path: Path) -> None:
    """60 % of a few samples may be less than half of all. So may 60 % of what samples saw, where
    the OSD counted less than that."""
    out = ""
    for osd, mine, samples, counted in (
        ("osd.1", 6, 2, None),
        ("osd.2", 6, 50, None),
        ("osd.3", 5, 5000, None),
        ("osd.4", 6, 5000, 7.5),
        ("osd.5", 6, 5000, 9.5),
    ):
        shown = {
            f'{_WORK},kind="image",pool_id="3",tenant="17af"}}'.replace("osd.3", osd): (
                f"0+{mine}x9"
            ),
            f'{_WORK},kind="other"}}'.replace("osd.3", osd): f"0+{10 - mine}x9",
            _SQUARES.replace("osd.3", osd): f"0+{100 / samples}x9",
        }
        if counted:
            shown[f'{_WAITED},ceph_daemon="{osd}",state="store_device"}}'] = f"0+{counted}x9"
        template = f"{{{{ $labels.ceph_daemon }}}}{MOSTLY}"
        out += rendered(template, _LABELS | {"ceph_daemon": osd}, 3, shown, tmp_path)
    for osd in ("osd.1", "osd.3", "osd.4"):
        assert f'text="{osd}"' in out
    for osd in ("osd.2", "osd.5"):
        assert f'text="{osd} Most of its work is for image 17af of pool 3."' in out


@pytest.mark.parametrize("release", RELEASES)
def test_amtool_of_every_release_takes_the_configuration(release: str) -> None:
    config = str(ALERTS / "alertmanager" / "alertmanager.yml")
    assert "SUCCESS" in run([*tool(release, "amtool"), "check-config", config])


def with_receivers(example: Path, directory: Path) -> tuple[Path, str]:
    """The configuration with the receivers of an example: its file and its text."""
    receivers = parse_receivers(yamlfile.read(example))
    text = alertmanager_config(RuleSettings(), receivers=receivers)
    file = directory / "alertmanager.yml"
    file.write_text(text, encoding="utf-8")
    return file, text


@pytest.mark.parametrize(
    ("release", "example"),
    [
        pytest.param(release, example, id=f"{example.stem}-{release}")
        for release in RELEASES
        for example in EXAMPLES
        if release != "pacific" or example.stem not in _OF_0_28
    ],
)
def test_amtool_of_every_release_takes_the_examples_of_receivers(
    release: str, example: Path, tmp_path: Path
) -> None:
    file, _ = with_receivers(example, tmp_path)
    assert "SUCCESS" in run([*tool(release, "amtool"), "check-config", str(file)])


def test_slack_shows_names_and_does_not_obey_them(tmp_path: Path) -> None:
    _, text = with_receivers(ALERTS / "alertmanager" / "examples" / "slack.yml", tmp_path)
    message = _notification("firing", 1)
    for annotation in ("summary", "description"):
        message["alerts"][0]["annotations"][annotation] = f"{annotation} <!channel> &lt; <@U1>"
    data = tmp_path / "data.json"
    data.write_text(json.dumps(message), encoding="utf-8")
    page = next(it for it in yaml.safe_load(text)["receivers"] if it["name"] == "critical")
    argv = [*tool("reef", "amtool"), "template", "render", f"--template.data={data}"]
    said = "".join(
        run([*argv, "--template.glob=/dev/null", f"--template.text={template}"])
        for template in _templates(page)
    )
    for annotation in ("summary", "description"):
        assert f"{annotation} &lt;!channel&gt; &amp;lt; &lt;@U1&gt;" in said
    assert "<!" not in said and "<@" not in said
    assert "<https://runbook/" in said, "our own links are links"


@pytest.mark.parametrize("example", _WITH_TEXTS, ids=lambda path: path.stem)
def test_texts_of_the_examples_are_rendered_by_alertmanagers_own_templates(
    example: Path, tmp_path: Path
) -> None:
    """check-config does not look into them: one that fails is found out by the first alert."""
    _, text = with_receivers(example, tmp_path)
    data = tmp_path / "data.json"
    data.write_text(json.dumps(_notification("firing", 2)), encoding="utf-8")
    page = next(it for it in yaml.safe_load(text)["receivers"] if it["name"] == "critical")
    argv = [*tool("reef", "amtool"), "template", "render", f"--template.data={data}"]
    said = "".join(
        run([*argv, "--template.glob=/dev/null", f"--template.text={template}"])
        for template in _templates(page)
    )
    for part in (
        "summary 0",
        "and 2 in all",
        "description 1",
        "https://runbook/",
        "https://board/",
    ):
        assert part in said


def _templates(value: Any) -> Iterator[str]:
    """Every text in which Alertmanager would put something."""
    if isinstance(value, str):
        if "{{" in value:
            yield value
    else:
        for inner in value.values() if isinstance(value, dict) else value if value else ():
            if isinstance(inner, dict | list | str):
                yield from _templates(inner)


def _notification(status: str, count: int) -> dict[str, Any]:
    alerts = [
        {
            "status": status,
            "labels": {"alertname": "CephQosReservationViolated", "ceph_daemon": f"osd.{i}"},
            "annotations": {
                "summary": f"summary {i}",
                "description": f"description {i}",
                "runbook_url": f"https://runbook/{i}",
                "dashboard_url": f"https://board/{i}",
            },
            "startsAt": "2026-01-01T00:00:00Z",
        }
        for i in range(count)
    ]
    common = {"severity": "critical", "cause": "device"}
    return {"receiver": "critical", "status": status, "alerts": alerts, "commonLabels": common}


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"alertname": "CephQosReservationViolated", "severity": "critical"}, "critical"),
        (
            {"alertname": "CephQosLatencySloBurn", "severity": "critical", "slo": "ssd-write"},
            "critical",
        ),
        ({"alertname": "CephQosLatencySloBurnCanWait", "severity": "warning"}, "warning"),
        ({"alertname": "CephQosTestRun", "severity": "none"}, "nobody"),
        ({"alertname": "CephQosOsdDown", "severity": "none"}, "nobody"),
        ({"alertname": "CephQosReservationViolatedCanWait", "severity": "warning"}, "warning"),
        ({"alertname": "CephQosTooManySeries", "severity": "info"}, "info"),
        ({"alertname": "CephQosMaintenance", "severity": "none"}, "nobody"),
        ({"alertname": "CephQosWatchdog", "severity": "none"}, "watchdog"),
        ({"alertname": "SomebodyElses"}, "warning"),
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


def test_the_agents_of_a_large_cluster_have_settings_that_prometheus_takes() -> None:
    agent = Path("deploy/scale/agent.yml")
    argv = [*tool("reef", "promtool"), "check", "config", "--agent", "--syntax-only", str(agent)]
    assert "SUCCESS" in run(argv)
