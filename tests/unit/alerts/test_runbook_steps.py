"""Runbooks begin with five lines; steps follow. The line "Look at this" and each step are something
to run, on every release, and say what the output means. tests/stack/test_runbooks.py runs them."""

import re
from typing import Final

import pytest
from tests.runbooks import ENTRIES, FIRST, INDEX

from cephqos_alerts.output.build import LOGS
from cephqos_alerts.rules.rule import Alert
from cephqos_alerts.rules.runbooks import WARNING_SUFFIX, runbook_page
from cephqos_alerts.texts.health_checks import MEANINGS
from cephqos_base.errors import UsageError

from .test_rules import NAMES, RULES

# Sent to nobody, or announcements: there is nothing to look at.
SILENT: Final = {"CephQosOsdDown", "CephQosMaintenance", "CephQosTestRun"}
ALERTS: Final = sorted({*NAMES, *(rule.name for rule in LOGS.rules if isinstance(rule, Alert))})
_CODE: Final = re.compile(r"^ *```\w+\n.*?^ *```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
# In words: what the output of a step means.
_LEAST_WORDS: Final = 4
# A list of what changes something would never be whole. So Ceph's commands that only look are
# named, and of other programs the words that change.
_LOOKS: Final = re.compile(
    r"ceph (?:-s|status|report|versions|df|features|health(?: detail)?|crash (?:ls|info)|log last"
    r"|config (?:get|show|show-with-defaults|dump|help|log)|orch (?:ps|ls|host ls|status|device ls)"
    r"|osd (?:df|dump|find|metadata|perf|tree|ls|stat|pool (?:ls|get|stats|autoscale-status))"
    r"|osd (?:blocked-by|crush (?:rule )?dump)"
    r"|pg (?:\S+ (?:query|list_unfound)|dump_stuck|dump|ls(?:-by-\w+)?|stat|map)"
    r"|balancer status|mgr (?:dump|module ls)|mon (?:dump|stat)|fs (?:ls|status|dump)"
    r"|tell \S+ (?:dump_\w+|config (?:get|show|diff)|perf dump|version|status|ops|bluefs stats"
    r"|bluestore allocator \w+ block))"
    r"(?![\w-])"
)
_CEPH: Final = re.compile(r"(?:^|\$\(|-- |sudo )(ceph \S.*)")
_CHANGES: Final = re.compile(
    r"\b(?:kill|pkill|rm|mv|reboot|mkfs\S*|dd)\b |mark_unfound_lost|systemctl (?!status)\w"
    r"|kubectl .*\b(?:delete|apply|edit|scale|rollout)\b|sysctl -w|>\s*/(?:etc|proc|sys)"
)


def changes_something(line: str) -> bool:
    parts = (part.strip() for part in re.split(r"&&|[;|]", line))
    asked = [found[1] for found in map(_CEPH.search, parts) if found]
    return bool(_CHANGES.search(line)) or not all(map(_LOOKS.match, asked))


def first_lines(alert: str) -> dict[str, str]:
    """The list at the beginning, by its bold words."""
    listed = re.match(r"\n((?:- .+\n)+)\n", ENTRIES[alert])
    return dict(
        re.findall(r"^- \*\*([\w ]+)\*\*: (.+)$", listed[1] if listed else "", re.MULTILINE)
    )


def steps(alert: str) -> list[str]:
    """The line `Look at this`, and the numbered steps behind `Look further`."""
    further = ENTRIES[alert].partition("**Look further**")[2]
    listed = re.split(r"^(?=[^\s\d])", further, maxsplit=1, flags=re.MULTILINE)[0]
    numbered = re.split(r"^\d+\. ", listed, flags=re.MULTILINE)[1:]
    return [first_lines(alert)["Look at this"], *numbered]


@pytest.mark.parametrize("alert", [name for name in ALERTS if name not in SILENT])
def test_a_runbook_begins_with_five_lines(alert: str) -> None:
    assert tuple(first_lines(alert)) == FIRST


@pytest.mark.parametrize("alert", [name for name in ALERTS if name not in SILENT])
def test_a_runbook_has_three_steps_that_say_what_their_output_means(alert: str) -> None:
    found = steps(alert)
    assert len(found) >= 3
    for step in found[:3]:
        assert _CODE.search(step), step
        words = re.findall(r"[A-Za-z]{2,}", _CODE.sub("", step))
        assert len(words) >= _LEAST_WORDS, step


@pytest.mark.parametrize("alert", [name for name in ALERTS if name not in SILENT])
def test_the_first_three_steps_are_for_every_release(alert: str) -> None:
    assert not [step for step in steps(alert)[:3] if "18.2 and later" in step]


@pytest.mark.parametrize("alert", [name for name in ALERTS if name not in SILENT])
def test_what_is_typed_first_changes_nothing(alert: str) -> None:
    typed = [line for step in steps(alert) for line in re.split(r"[`\n]", step)]
    assert [line for line in typed if changes_something(line)] == []


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("ceph osd reweight osd.3 0.8", True),
        ("ceph tell osd.3 config set osd_max_backfills 1", True),
        ("ceph orch daemon restart osd.3", True),
        ("cephadm shell -- ceph orch daemon restart osd.3", True),
        ("ceph osd pool set rbd size 2", True),
        ("sudo ceph config rm osd osd_op_queue", True),
        ("ceph balancer off", True),
        ("ceph osd dump && ceph osd out 3", True),
        ("kill -9 123", True),
        ("systemctl restart ceph-osd@3", True),
        ("ceph osd tree down", False),
        ("ceph tell osd.N dump_ops_in_flight", False),
        ("cephadm shell -- ceph orch ps", False),
        ("systemctl status cephqos-exporter", False),
        ("ceph osd metadata osd.N | grep rotational", False),
    ],
)
def test_a_command_that_changes_something_is_known(line: str, changes: bool) -> None:
    assert changes_something(line) == changes


def test_each_health_check_has_its_meaning_and_its_row_in_the_runbook() -> None:
    text = ENTRIES["CephQosHealthCheckFails"]
    rows = re.findall(r"^\| (`[^|]+?)(?:, while [^|]+)? \|", text, re.MULTILINE)
    checks = [name.replace("…", "X") for row in rows for name in re.findall("`([^`]+)`", row)]
    [rule] = (it for it in RULES if it.get("alert") == "CephQosHealthCheckFails")
    for pattern in MEANINGS:
        assert [name for name in checks if re.fullmatch(pattern, name)], pattern
        assert pattern in rule["expr"]
    every = "|".join(MEANINGS)
    assert [name for name in checks if not re.fullmatch(every, name)] == []


def test_the_index_names_every_alert_once() -> None:
    index = INDEX.partition("\n## ")[0]
    elsewhere = re.findall(r"\]\((\.\./\S+)\)", index)
    assert {link.partition("#")[0] for link in elsewhere} == {"../others.md"}
    assert sorted(re.findall(r"\]\((?!\.\./)(\S+)\)", index)) == sorted(
        f"{runbook_page(name)}.md#{name.lower()}"
        for name in ALERTS
        if name not in SILENT and not name.endswith(WARNING_SUFFIX)
    )


def test_an_alert_without_a_runbook_says_where_to_add_it() -> None:
    with pytest.raises(UsageError, match="CephQosNew has no runbook: add it to RUNBOOKS"):
        runbook_page("CephQosNew")
