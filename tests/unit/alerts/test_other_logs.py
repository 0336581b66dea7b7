"""`--log-selector` and `--log-daemon-label`: what they accept, and how labels name daemons.

tests/stack/test_logs_elsewhere.py asks a real Loki with the rules and queries that they give.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.recorded import RELEASES
from tests.stack.log_files import RECORDED, entries

from cephqos_alerts.output.build import LOGS, log_rules
from cephqos_alerts.rules.rule import Alert
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


def _in_journal(entry: str) -> list[str]:
    """Without time, thread and level, and without the dump of recent events."""
    found = re.fullmatch(r"(?s)\S+ [0-9a-f]+ +-?\d+ (.*)", entry)
    return [found[1]] if found else []


def _in_container(entry: str) -> list[str]:
    """Each line is one of its own."""
    return f"debug {entry}".splitlines()


def _takes(expr: str, line: str) -> bool:
    """Whether all filters of an expression let a line pass, and its pattern finds something."""
    for kind, pattern in re.findall(r"(\|=|\|~|!~|\| regexp) `([^`]*)`", expr):
        found = pattern in line if kind == "|=" else bool(re.search(pattern, line))
        if found is (kind == "!~"):
            return False
    return True


@pytest.mark.parametrize("form", [_in_journal, _in_container])
@pytest.mark.parametrize("release", RELEASES)
def test_rules_take_the_lines_of_other_collectors_that_they_take_of_ours(
    release: str, form: Callable[[str], list[str]]
) -> None:
    """tests/stack/test_logs_rules.py sends the same lines through our collector."""
    ours = {it.name: it.expr for it in LOGS.rules if isinstance(it, Alert)}
    taken = set[str]()
    for rule in _rules():
        crash = rule["alert"] == "CephQosDaemonCrashed"
        for osd in ("osd.0", "osd.1", "osd.2"):
            texts = entries((RECORDED / release / f"ceph-{osd}.log").read_text())
            logged = [it for it in texts if not it.startswith("---")]
            # A crash is a severity of our collector.
            of_ours = "|~ `FAILED ceph_assert|Caught signal`" if crash else ours[rule["alert"]]
            expected = any(_takes(of_ours, entry) for entry in logged)
            found = [line for it in texts for line in form(it) if _takes(rule["expr"], line)]
            assert bool(found) is expected, (rule["alert"], osd)
            assert not [line for line in found if re.match(r"(debug )?\s*-?\d+> ", line)]
            taken.update({rule["alert"]} if found else ())
    # 16.2 knows neither.
    unknown = (
        {"CephQosBenchmarkRejected", "CephQosSettingReverted"}
        if release == "pacific"
        else set[str]()
    )
    assert taken == ours.keys() - unknown


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
