"""Runbooks begin with three steps. Each is something to run, on every release, and says what its
output means. `tests/stack/test_runbooks.py` runs them."""

import re
from pathlib import Path
from typing import Final

import pytest

from cephqos_alerts.alerts.logs import LOGS
from cephqos_alerts.rules.rule import Alert

from .test_rules import NAMES

RUNBOOKS: Final = Path("docs/operate/runbooks.md").read_text(encoding="utf-8")
# Sent to nobody, or announcements: there is nothing to look at.
SILENT: Final = {"CephQosOsdDown", "CephQosMaintenance", "CephQosTestRun"}
ALERTS: Final = [*NAMES, *(rule.name for rule in LOGS.rules if isinstance(rule, Alert))]
_CODE: Final = re.compile(r"^ *```\w+\n.*?^ *```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
# In words: what the output of a step means.
_LEAST_WORDS: Final = 4
_CHANGES: Final = re.compile(
    r"ceph (?:config (?:set|rm)|osd (?:out|in|down|set|unset|pool set|rm)|pg (?:repair|deep-scrub))"
    r"|mark_unfound_lost|^kill|systemctl (?!status)"
)


def section(alert: str) -> str:
    return RUNBOOKS.split(f"\n## {alert}\n")[1].split("\n## ")[0]


def steps(alert: str) -> list[str]:
    """The numbered steps behind `Look first`."""
    first = section(alert).partition("**Look first**")[2]
    listed = re.split(r"^\*\*", first, maxsplit=1, flags=re.MULTILINE)[0]
    return re.split(r"^\d+\. ", listed, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("alert", [name for name in ALERTS if name not in SILENT])
def test_a_runbook_begins_with_three_steps_that_say_what_their_output_means(alert: str) -> None:
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
    assert [line for line in typed if _CHANGES.search(line.strip())] == []


def test_the_index_names_every_alert_once() -> None:
    index = RUNBOOKS.partition("\n## ")[0]
    assert sorted(re.findall(r"\]\(#(\w+)\)", index)) == sorted(
        name.lower() for name in ALERTS if name not in SILENT
    )
