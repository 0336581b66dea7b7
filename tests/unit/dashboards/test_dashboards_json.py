"""The files of dashboards: short, a line for what is changed at once, and ids that stay."""

import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.board_panels import UIDS, boards, committed_files, panels

from cephqos_dashboards.boards import osd
from cephqos_dashboards.build import diffable
from cephqos_dashboards.frame import BoardRow, render

_LEAVES = st.none() | st.booleans() | st.integers() | st.text()
_KEYS = st.sampled_from(["targets", "panels", "overrides", "list", "title", "options"])
_JSON = st.recursive(
    _LEAVES, lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner), max_leaves=20
)


@given(_JSON)
def test_what_is_written_reads_as_the_same(value: object) -> None:
    assert json.loads(diffable(value)) == value


def test_every_query_has_a_line_of_its_own() -> None:
    lines = [line.strip() for file in committed_files() for line in file.read_text().splitlines()]
    found = [json.loads(line.rstrip(",")) for line in lines if line.startswith('{"expr"')]
    targets = [target for uid in UIDS for p in panels(boards()[uid]) for target in p["targets"]]
    assert all(target in found for target in targets)


def _numbers(rows: Sequence[BoardRow]) -> dict[str | None, int | None]:
    made = render(replace(osd.BOARD, rows=rows))
    return {panel.title: panel.id_val for panel in made.panels or ()}


def test_a_panel_that_is_added_gives_no_other_a_new_number() -> None:
    first, *others = osd.BOARD.rows
    fewer = replace(first, panels=first.panels[1:])
    assert _numbers([fewer, *others]).items() < _numbers(osd.BOARD.rows).items()


def test_a_board_that_is_made_leaves_its_panels_as_they_were() -> None:
    """A panel that has a place keeps it in the next board, whatever is above it there."""
    render(osd.BOARD)
    places = [panel.build().grid_pos for row in osd.BOARD.rows for panel in row.panels]
    assert {(place.x, place.y) for place in places if place} == {(0, 0)}
