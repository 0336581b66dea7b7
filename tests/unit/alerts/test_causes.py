"""Causes: one table on the lowest floor, evidence for each, and the same words everywhere."""

import re
from pathlib import Path

import pytest
import yaml

from cephqos_alerts.causes.cause import CauseEvidence
from cephqos_alerts.causes.leading import EVERY
from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.render import render
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.causes import CAUSES
from cephqos_base.recorded import PerClass

DESIGN = Path("docs/internals/rules.md")
_TABLE = re.compile(r"^- \*\*device\*\*.*?(?=\n\n### )", re.MULTILINE | re.DOTALL)
RULES = [
    rule
    for group in render(FILES["recording.yml"], RuleSettings())["groups"]
    for rule in group["rules"]
    if rule["record"] == PerClass.EVIDENCE
]


def test_every_cause_has_its_evidence_most_urgent_first() -> None:
    assert tuple(each.cause for each in EVERY) == CAUSES
    ranks = [cause.rank for cause in CAUSES]
    assert ranks == sorted(set(ranks), reverse=True)


def test_each_cause_is_a_recording_rule_of_its_own() -> None:
    assert [rule["labels"] for rule in RULES] == [{"cause": cause.name} for cause in CAUSES]


@pytest.mark.parametrize("each", EVERY, ids=lambda each: each.cause.name)
def test_the_operators_yaml_says_what_a_cause_means_and_rests_on(each: CauseEvidence) -> None:
    committed = yaml.safe_load(Path("alerts/rules/recording.yml").read_text(encoding="utf-8"))
    (expr,) = (
        rule["expr"]
        for group in committed["groups"]
        for rule in group["rules"]
        if rule.get("labels") == {"cause": each.cause.name}
    )
    comment = " ".join(line[2:] for line in expr.splitlines() if line.startswith("# "))
    for said in (each.means, each.seen, each.blind):
        assert said in comment


def test_ranks_that_rules_give_are_those_of_the_table() -> None:
    for each, rule in zip(EVERY, RULES, strict=True):
        given = {int(rank) for rank in re.findall(r"\* 0 \+ (\d\d?)\b", rule["expr"])} - {1}
        said = {each.cause.rank, *map(int, re.findall(r"\b(\d\d) wh?", each.other_ranks))}
        assert given <= said, each.cause
        assert said - {1} <= given, each.cause


def documented() -> str:
    """Each cause for people: rank, evidence, blind spots."""
    lines = []
    for each in EVERY:
        name = f"**{each.cause}**{', `by`' if each.by else ''}"
        rank = "; ".join(filter(None, [f"{each.cause.rank}", each.other_ranks]))
        seen = each.seen if each.seen.startswith("`") else each.seen[0].upper() + each.seen[1:]
        blind = f" *Blind spots*: {each.blind}." if each.blind else ""
        said = f"{seen}.{blind}"
        if len(said.split()) > 80:
            said = re.sub(r"(?<=\.) (?=Or |Not: |\*Blind)", "\n    - ", said)
        lines.append(f"- {name} ({rank}): {said}")
    return "\n".join(lines)


def test_the_documentation_has_the_table_of_causes(request: pytest.FixtureRequest) -> None:
    text = DESIGN.read_text(encoding="utf-8")
    if request.config.getoption("--regenerate"):
        DESIGN.write_text(_TABLE.sub(lambda _: documented(), text), encoding="utf-8")
    (found,) = _TABLE.findall(DESIGN.read_text(encoding="utf-8"))
    assert found == documented()
