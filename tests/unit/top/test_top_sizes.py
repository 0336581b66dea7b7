"""The screen of `cephqos top` in terminals of any size, with names that nobody expects."""

from dataclasses import replace

import pytest

from cephqos_loadgen.top.build import build_picture
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.picture import TopSamples
from cephqos_loadgen.top.screen.layout import Line
from cephqos_loadgen.top.screen.page import Status, draw
from cephqos_loadgen.top.screen.text import width
from cephqos_loadgen.top.screen.view import View

from ..top_samples import FSID, HOSTILE, example

STATUS = Status(source="Prometheus", clock="12:00:00", interval=5.0, age=1.0)


def drawn(
    samples: TopSamples, size: tuple[int, int], view: View, ascii_only: bool = False
) -> list[Line]:
    picture = build_picture(samples, Selection(osd=view.opened))
    return draw(picture, STATUS, view, size, ascii_only)


@pytest.mark.parametrize("columns", [1, 20, 40, 60, 149, 150, 220])
def test_a_terminal_of_any_size_is_filled_and_no_more(columns: int) -> None:
    """Of 150 columns and 7 rows, a pane below an editor, it ended with a traceback."""
    for rows in range(1, 16):
        for view in (View(), View(opened="osd.7"), View(page="help"), View(page="notes")):
            lines = drawn(example(), (columns, rows), view)
            assert len(lines) == rows
            assert {sum(width(span.text) for span in one) for one in lines} == {columns}


@pytest.mark.parametrize(
    "name", [HOSTILE, "x\u0301" * 40, "\u6f22" * 40], ids=["hostile", "combining", "wide"]
)
@pytest.mark.parametrize("columns", [40, 104, 160])
def test_names_of_any_width_stay_within_the_columns_in_ascii_too(name: str, columns: int) -> None:
    alerts = tuple({**alert, "alertname": name} for alert in example().alerts)
    for ascii_only in (False, True):
        for one in drawn(replace(example(), alerts=alerts), (columns, 40), View(), ascii_only):
            assert sum(width(span.text) for span in one) == columns


def test_an_osd_of_thousands_of_digits_is_one_of_the_list() -> None:
    """Longer than any number that Python reads."""
    name = "osd." + "7" * 5000
    up = {**example().values["up"], (FSID, name, ""): 1.0}
    picture = build_picture(replace(example(), values={**example().values, "up": up}), Selection())
    assert picture.osds[-1].name == name
