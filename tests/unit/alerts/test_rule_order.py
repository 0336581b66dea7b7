"""Recorded series feed on one another: what a rule reads is recorded before it, or marked."""

from graphlib import CycleError, TopologicalSorter

import pytest

from cephqos_alerts.cli import DEFAULT_SLOS, load_slos
from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup, series_read
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.groups import slo_groups

GROUPS = (
    *(group for groups in FILES.values() for group in groups),
    *slo_groups(load_slos(DEFAULT_SLOS), RuleSettings()),
)
# Mimir refuses more; so does whoever reads them.
MOST_RULES_OF_A_GROUP = 20


def wrong_reads(groups: tuple[RuleGroup, ...]) -> list[str]:
    """Reads of what is recorded later, or by the rule itself, unmarked; and needless marks."""
    rules = [rule for group in groups for rule in group.rules]
    found = []
    for place, rule in enumerate(rules):
        for read in series_read(rule.expr):
            places = [
                at
                for at, it in enumerate(rules)
                if isinstance(it, RecordedSeries) and read.may_be(it.record, it.labels)
            ]
            if places and (max(places) >= place) != read.marked:
                name = rule.record if isinstance(rule, RecordedSeries) else rule.name
                found.append(f"{name} reads {read.name}{'' if read.marked else ' unmarked'}")
    return sorted(set(found))


def test_what_a_rule_reads_is_recorded_before_it_or_marked_as_of_the_evaluation_before() -> None:
    assert wrong_reads(GROUPS) == []


def circle(groups: tuple[RuleGroup, ...], *, marked: bool) -> bool:
    """Whether series feed on themselves; `marked`: by way of marked reads, too."""
    rules = [rule for group in groups for rule in group.rules if isinstance(rule, RecordedSeries)]
    needs = {
        place: {
            at
            for read in series_read(rule.expr)
            if marked or not read.marked
            for at, other in enumerate(rules)
            if read.may_be(other.record, other.labels)
        }
        for place, rule in enumerate(rules)
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError:
        return True
    return False


def test_series_feed_on_themselves_only_by_way_of_the_evaluation_before() -> None:
    assert circle(GROUPS, marked=True)
    assert not circle(GROUPS, marked=False)


@pytest.mark.parametrize(
    ("second", "wrong"),
    [
        ("osd:b:bool", ["osd:a:bool reads osd:b:bool unmarked"]),
        ("previously(osd:b:bool)", []),
        ('osd:b:bool{at="x"}', []),
        ('previously(osd:b:bool{at="y"})', []),
        ("# not osd:b:bool\nup", []),
    ],
)
def test_a_read_of_what_comes_later_is_found_by_name_and_static_labels(
    second: str, wrong: list[str]
) -> None:
    first = RecordedSeries(record="osd:b:bool", labels={"at": "x"}, expr="up")
    later = RecordedSeries(record="osd:b:bool", labels={"at": "y"}, expr="up")
    reader = RecordedSeries(record="osd:a:bool", expr=second)
    assert wrong_reads((RuleGroup(name="g", rules=(first, reader, later)),)) == wrong


def test_a_group_has_no_more_rules_than_mimir_takes() -> None:
    """With an operator's own SLOs as well: there are groups for each of them."""
    assert {g.name: len(g.rules) for g in GROUPS if len(g.rules) > MOST_RULES_OF_A_GROUP} == {}
