"""Causes: one file each, and the same in rules, runbooks and glossary."""

import re
from pathlib import Path
from typing import Final

import pytest
from tests.reference.rules import RULES_PAGE, rules_page
from tests.rules.files import CASES

from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.render import render
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base import yamlfile
from cephqos_base.causes import CAUSES, Cause, read_cause
from cephqos_base.errors import ConfigError
from cephqos_base.recorded import PerClass

_FILE: Final = """
cause: cpu
words: CPU
colour: "#B4527A"
rank: 85
means: Its threads have no CPU left.
seen: a thread is at its ceiling
expr: (up) * 0 + @cpu_rank@
"""
RULES = [
    rule
    for group in render(FILES["recording.yml"], RuleSettings())["groups"]
    for rule in group["rules"]
    if rule["record"] == PerClass.EVIDENCE
]
_CAUSE: Final = pytest.mark.parametrize("cause", CAUSES, ids=str)


def test_no_two_causes_have_a_rank() -> None:
    ranks = [rank for it in CAUSES for rank in (it.rank, *(o.rank for o in it.other_ranks))]
    both = {rank for rank in ranks if ranks.count(rank) > 1}
    assert both <= {45}, (
        "an OSD at its I/O limit has device, one that waits for no known OSD other_osd"
    )


def test_each_cause_is_a_recording_rule_of_its_own_most_urgent_first() -> None:
    assert [rule["labels"] for rule in RULES] == [{"cause": cause.name} for cause in CAUSES]
    assert [cause.rank for cause in CAUSES] == sorted((it.rank for it in CAUSES), reverse=True)


@_CAUSE
def test_the_operators_yaml_says_what_a_cause_means_and_rests_on(cause: Cause) -> None:
    (expr,) = (rule["expr"] for rule in RULES if rule["labels"] == {"cause": cause.name})
    comment = " ".join(line[2:] for line in expr.splitlines() if line.startswith("# "))
    for said in (cause.means, cause.seen, cause.blind):
        assert RuleSettings().expand(said) in comment


def test_a_rule_gives_the_ranks_of_its_cause_and_no_others() -> None:
    for cause, rule in zip(CAUSES, RULES, strict=True):
        given = {int(rank) for rank in re.findall(r"\* 0 \+ (\d\d?)\b", rule["expr"])} - {1}
        said = {cause.rank, *(other.rank for other in cause.other_ranks)}
        assert given == said - {1}, cause


@_CAUSE
def test_a_case_of_the_rules_has_the_cause_in_the_lead(cause: Cause) -> None:
    leads = {it.get("cause") for case in CASES for moment in case.moments for it in moment.firing}
    assert cause.name in leads, "write a case in tests/rules"


@_CAUSE
def test_the_runbook_says_what_to_do_about_a_cause(cause: Cause) -> None:
    page = Path("docs/operate/runbooks/reservations.md").read_text(encoding="utf-8")
    by_cause = page.partition("**By cause.**")[2].partition("\n## ")[0]
    assert f"\n- **{cause}**" in by_cause


@_CAUSE
def test_the_glossary_says_what_a_cause_is(cause: Cause) -> None:
    assert f"| **{cause}** |" in Path("docs/start/glossary.md").read_text(encoding="utf-8")


def test_the_documentation_has_the_list_of_causes() -> None:
    assert RULES_PAGE.read_text(encoding="utf-8") == rules_page()


def test_a_cause_is_read_from_its_file() -> None:
    cause = read_cause(yamlfile.parse(_FILE, "cpu.yml"))
    assert (cause.name, cause.words, cause.rank) == ("cpu", "CPU", 85)
    assert not cause.by and not cause.ends_tonight and not cause.own_load


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("rank: 85", "rank: 0", "rank"),
        ('"#B4527A"', "pink", "a colour such as"),
        ("cause: cpu", "cause: the CPU", "a name of a-z"),
        ("seen: a thread is at its ceiling\n", "", "seen"),
        ("means:", "mean:", "mean"),
    ],
)
def test_a_file_that_lacks_something_is_refused(right: str, wrong: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        read_cause(yamlfile.parse(_FILE.replace(right, wrong), "cpu.yml"))
    assert str(caught.value).startswith("cpu.yml:")
