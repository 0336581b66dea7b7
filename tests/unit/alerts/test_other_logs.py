"""`--log-selector` and `--log-daemon-label`: what they accept, and how labels name daemons.

tests/stack/test_logs_elsewhere.py asks a real Loki with the rules and queries that they give.
"""

import re
from pathlib import Path

import pytest
import yaml

from cephqos_alerts.output.build import log_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base import other_logs
from cephqos_base.command import main
from cephqos_base.errors import UsageError
from cephqos_base.other_logs import OtherLogs

FSID = "01234567-89ab-cdef-0123-456789abcdef"
PODS = OtherLogs('{namespace="rook-ceph"}', "pod")


@pytest.mark.parametrize(
    "selector",
    ['{job="a"}', '{ a =~ "b.*" , c!~`d`, }', r'{unit=~"ceph-.*\\.service", x!=""}', '{a="}"}'],
)
def test_selectors_of_logql_are_taken_as_they_are(selector: str) -> None:
    assert other_logs.parse(selector, "unit") == OtherLogs(selector, "unit")


@pytest.mark.parametrize(
    ("selector", "label", "said"),
    [
        ('job="a"', "", "expected a selector of LogQL"),
        ("{}", "", "expected a selector of LogQL"),
        ("{job=a}", "", "expected a selector of LogQL"),
        ('{job="a"} |= "b"', "", "expected a selector of LogQL"),
        ('{cluster="$cluster"}', "", "rules have no variables"),
        ('{cluster="${cluster}"}', "", "rules have no variables"),
        ('{job="a"}', "po d", "--log-daemon-label po d: expected a label"),
        ("", "pod", "expected --log-selector beside it"),
    ],
)
def test_what_gives_no_query_is_refused(selector: str, label: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        other_logs.parse(selector, label)


def test_dashboards_have_variables_and_the_default_label() -> None:
    selector = '{cluster="$cluster"}'
    assert other_logs.parse(selector, "", dashboards=True) == OtherLogs(selector, "ceph_daemon")
    assert other_logs.parse("", "") is None


@pytest.mark.parametrize(
    ("label", "daemon", "cluster"),
    [
        ("osd.3", "osd.3", ""),
        ("mgr.host-1.abcdef", "mgr.host-1.abcdef", ""),
        (f"ceph-{FSID}@osd.12.service", "osd.12", FSID),
        (f"ceph-{FSID}@mon.node-1-abcde.service", "mon.node-1-abcde", FSID),
        ("ceph-osd@3.service", "osd.3", ""),
        ("rook-ceph-osd-3-7679fc657f-b2srh", "osd.3", ""),
        ("rook-ceph-mon-a-6b8d9c-x7k2p", "mon.a", ""),
        ("rook-ceph-mds-my-fs-a-7679fc657f-b2srh", "mds.my-fs-a", ""),
        ("sshd.service", "sshd.service", ""),
        ("", "", ""),
    ],
)
def test_a_label_names_the_daemon_and_a_unit_of_cephadm_the_cluster(
    label: str, daemon: str, cluster: str
) -> None:
    [rule] = [it for it in _rules() if it["alert"] == "CephQosDaemonCrashed"]
    of_daemon, of_cluster = re.findall(r'regexReplaceAll "([^"]*)"', rule["expr"])
    # Go's ${1} is Python's \1.
    assert re.sub(of_daemon, r"\1.\2", label) == daemon
    assert re.sub(of_cluster, r"\1", label, count=1) == cluster


def _rules() -> list[dict[str, str]]:
    rules: list[dict[str, str]] = yaml.safe_load(log_rules(RuleSettings(logs=PODS)))["groups"][0][
        "rules"
    ]
    return rules


def test_every_rule_reads_the_named_streams_and_none_of_our_collector() -> None:
    for rule in _rules():
        assert rule["expr"].count(PODS.selector) == 1, rule["alert"]
        assert "severity=" not in rule["expr"] and "{log=" not in rule["expr"], rule["alert"]


def test_rules_of_other_logs_need_a_file_to_go_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    selector = ("--log-selector", PODS.selector, "--log-daemon-label", "pod")
    assert main(["rules", "build", "--out", str(tmp_path / "rules"), *selector]) == 2
    assert "--log-selector goes into the file that --loki names" in capsys.readouterr().err
    file = tmp_path / "logs.yml"
    argv = ["--out", str(tmp_path / "rules"), "--loki", str(file), *selector]
    assert main(["rules", "build", *argv]) == 0
    assert file.read_text() == log_rules(RuleSettings(logs=PODS))
    assert main(["rules", "check", *argv]) == 0
