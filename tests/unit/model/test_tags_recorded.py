"""The tags of real OSDs (18.2.7 and 20.2.4) move as the model's do.

The recordings are of one OSD with one shard, under writes of 4 KiB and 1 MiB and a deep scrub:
`dump_op_pq_state` every millisecond or so. Kept are rows in which a class changed: moment, class,
how many wait, tag of the first. The few changes that are not explained are of queues that were
empty for a moment between two rows.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest
from tests.model.scheduler.dmclock import Tag, Terms, next_tag

from cephqos_exporter.qos.tags import TAG_MODULO

RECORDINGS = Path("tests/recordings/tags")
ROUNDED = 0.00021  # tags are printed with four decimals, and two are compared
MOST_SERVED = 16  # between two rows: so many 4 KiB writes were under way


@dataclass(frozen=True)
class Row:
    moment: float
    tag: Tag


def changes_of(recorded: dict[str, Any], name: str) -> Iterator[tuple[Row, Row] | None]:
    """From one row to the next; where the queue was seen empty in between, there is none."""

    def moment(value: float | str) -> float:
        return {"min": -inf, "max": inf}[value] if isinstance(value, str) else value

    rows = [
        Row(row[0], Tag(*(moment(value) for value in row[3:]))) if row[2] else None
        for row in recorded["rows"]
        if row[1] == name
    ]
    for before, after in pairwise(rows):
        yield (before, after) if before and after else None


def same(expected: float, seen: float, *, wraps: bool = False) -> bool:
    if expected == seen:
        return True
    off = abs(expected - seen)
    return (min(off % TAG_MODULO, -off % TAG_MODULO) if wraps else off) < ROUNDED


def costs_of(before: Tag, after: Tag, terms: Terms, least: float) -> set[float]:
    """What the new heads may have cost: small ones, 1 MiB, or what limit and weight agree on."""
    costs = {least, max(least, float(1 << 20))}
    if terms.limit and after.limit != before.limit:
        about = (after.limit - before.limit) * terms.limit
        step = (after.proportion - before.proportion) * terms.weight
        around = TAG_MODULO * terms.weight
        whole = step % around + round((about - step % around) / around) * around
        if abs(whole - about) < ROUNDED * terms.limit:
            costs |= {round(whole - others * least) for others in range(4)}
    return {cost for cost in costs if cost >= least}


def heads_after(
    before: Row, after: Row, heads: set[float], terms: Terms, costs: set[float]
) -> set[float]:
    """What the new head may cost, by all ways in which requests served explain the new tag."""
    states = {(before.tag, head) for head in heads}
    found: set[float] = set()
    for _ in range(MOST_SERVED):
        states = {
            (tag, cost)
            for old, head in states
            for tag, cost in served(old, head, before, after, terms, costs)
            if not terms.limit or tag.limit < after.tag.limit + ROUNDED
        }
        found |= {head for tag, head in states if explains(tag, before, after)}
        if found and not terms.limit:
            break  # without a limit, more would explain it by chance
    return found


def served(
    tag: Tag, head: float, before: Row, after: Row, terms: Terms, costs: set[float]
) -> Iterator[tuple[Tag, float]]:
    for cost in costs:
        new = next_tag(tag, terms, cost, -inf)
        if tag.reservation <= after.moment:
            yield rounded(new), cost
        # By weight: its limit does not hold it, and its reservation is not due.
        if tag.limit <= after.moment and tag.reservation > before.moment:
            if terms.reservation:
                paid = new.reservation - head / terms.reservation
                new = new._replace(reservation=paid)
            yield rounded(new), cost


def rounded(tag: Tag) -> Tag:
    """So that what was served in another order is the same."""
    return Tag(*(round(value, 6) for value in tag))


def explains(tag: Tag, before: Row, after: Row) -> bool:
    """Reservation and limit may also be the moment at which the request came."""

    def right(expected: float, seen: float) -> bool:
        came = before.moment - 1 <= seen <= after.moment + ROUNDED and seen >= expected - ROUNDED
        return same(expected, seen) or came

    return (
        same(tag.proportion, after.tag.proportion, wraps=True)
        and right(tag.reservation, after.tag.reservation)
        and right(tag.limit, after.tag.limit)
    )


@pytest.mark.parametrize("release", ["18.2", "20.2"])
def test_each_change_of_a_tag_is_one_that_the_model_makes(release: str) -> None:
    recorded = json.loads((RECORDINGS / f"{release}.json").read_text(encoding="utf-8"))
    least = float(int(recorded["bandwidth"] / recorded["capacity"]))
    explained = changes = 0
    for name, shares in recorded["classes"].items():
        reservation, weight, limit = shares
        terms = Terms(reservation * recorded["bandwidth"], weight, limit * recorded["bandwidth"])
        heads: set[float] = set()
        for change in changes_of(recorded, name):
            if change is None:
                heads = set()
                continue
            before, after = change
            costs = costs_of(before.tag, after.tag, terms, least)
            heads = heads_after(before, after, heads or costs, terms, costs)
            changes += 1
            explained += bool(heads)
            if not heads:
                print(name, before, after)
    assert changes > 40
    assert explained >= 0.85 * changes, f"{explained} of {changes}"
