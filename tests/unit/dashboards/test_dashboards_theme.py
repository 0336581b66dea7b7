"""Colours of dashboards: readable in light and dark, and told apart by every kind of sight."""

import itertools
import json
import math
import re
from collections.abc import Mapping

import pytest
from grafana_foundation_sdk.models.dashboard import DashboardFieldConfigSourceOverrides
from tests.board_panels import boards, panels

from cephqos_base.causes import CAUSE, CAUSES
from cephqos_base.series import AccountSeries
from cephqos_dashboards import theme
from cephqos_exporter.qos.account.division import LIMIT, STARVED
from cephqos_exporter.qos.account.sums import State

WHITE, DARK = "#FFFFFF", "#181B1F"  # Grafana's panels
# Machado, Oliveira, Fernandes 2009, severity 1.
SIGHTS = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
Light = tuple[float, float, float]


def _light(colour: str) -> Light:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return linear[0], linear[1], linear[2]


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        red, green, blue = _light(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _lab(light: Light, sight: tuple[Light, ...]) -> Light:
    red, green, blue = (
        min(1.0, max(0.0, sum(a * b for a, b in zip(row, light, strict=True)))) for row in sight
    )
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def _distance(one: str, other: str, sight: tuple[Light, ...]) -> float:
    a, b = _lab(_light(one), sight), _lab(_light(other), sight)
    return math.dist(a, b)


COLOURS = {
    **theme.CLASSES,
    **theme.STATES,
    "quiet": theme.QUIET,
    **{cause.name: cause.colour for cause in CAUSES},
    **theme.WAITING,
    **{f"queue {by}": colour for by, colour in theme.QUEUES.items()},
}


def test_a_cause_that_is_the_work_of_a_class_has_its_colour() -> None:
    assert CAUSE["replica_writes"].colour == theme.CLASSES["immediate"]
    assert CAUSE["other_class"].colour == theme.CLASSES["background_recovery"]


@pytest.mark.parametrize("name", COLOURS)
def test_a_colour_is_readable_in_light_and_dark(name: str) -> None:
    assert _contrast(COLOURS[name], WHITE) >= 3
    assert _contrast(COLOURS[name], DARK) >= 3


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("palette", [theme.CLASSES, theme.STATES], ids=["classes", "states"])
def test_colours_of_classes_and_states_stay_apart_for_every_kind_of_sight(
    palette: Mapping[str, str], sight: str
) -> None:
    for one, other in itertools.combinations(palette, 2):
        distance = _distance(palette[one], palette[other], SIGHTS[sight])
        assert distance >= 20, f"{one} and {other}"


def test_a_state_of_waiting_has_a_colour_of_its_own_in_every_panel() -> None:
    assert list(theme.WAITING) == list(State)
    assert len(set(theme.WAITING.values())) == len(theme.WAITING)
    drawn = [
        panel
        for board in boards().values()
        for panel in panels(board)
        if panel["type"] in ("timeseries", "barchart")
        and any(AccountSeries.SECONDS in it["expr"] for it in panel["targets"])
    ]
    assert len(drawn) >= 3
    for panel in drawn:
        text = json.dumps(panel["fieldConfig"]["overrides"])
        assert all(colour in text for colour in theme.WAITING.values()), panel["title"]


def test_a_state_has_its_colour_also_where_nothing_follows_its_name_in_the_legend() -> None:
    for state, colour in theme.WAITING.items():
        assert _last_colour(state) == _last_colour(f"{state} ") == colour


def test_what_the_queue_waits_for_has_a_shade_of_its_own() -> None:
    assert set(theme.QUEUES) == {*theme.CLASSES, LIMIT, STARVED}
    others = [colour for state, colour in theme.WAITING.items() if state != "queue"]
    for one, other in itertools.combinations([*theme.QUEUES.values(), *others], 2):
        if one in theme.QUEUES.values():
            assert _distance(one, other, SIGHTS["full"]) >= 12, f"{one} and {other}"
    assert {by: _last_colour(f"queue {by}") for by in theme.QUEUES} == theme.QUEUES


def _pattern(override: DashboardFieldConfigSourceOverrides) -> str:
    return str(override.matcher.options).strip("/")


def _last_colour(name: str) -> str:
    """As Grafana does it: the last override that fits counts."""
    fits = [it for it in theme.waiting_overrides() if re.search(_pattern(it), name)]
    value = fits[-1].properties[0].value
    assert isinstance(value, dict)
    return str(value["fixedColor"])


def test_a_class_has_its_colour_wherever_it_is_drawn() -> None:
    """Every panel with a series named after a class overrides its colour with the class's own."""
    for uid, board in boards().items():
        for panel in panels(board):
            legends = [target.get("legendFormat", "") for target in panel["targets"]]
            if panel["type"] == "timeseries" and any("{{class}}" in each for each in legends):
                text = json.dumps(panel["fieldConfig"]["overrides"])
                for colour in theme.CLASSES.values():
                    assert colour in text, f"{uid}: {panel['title']}"
