"""The first row of the overview: its tiles agree at every moment of a violation."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.board_panels import fill
from tests.promtool.agreement import agrees
from tests.recorded import RELEASES

from cephqos_base.recorded import PerClass, PerCluster, PerHostClass
from cephqos_base.series import DaemonSeries
from cephqos_dashboards.queries import osd, overview

TILES = {"violated": overview.VIOLATED, "look": overview.CULPRIT, "why": overview.WHY}
VARIABLES = {"cluster": "c", "detail": "c", "osd": "osd.1"}
LARGE = {**VARIABLES, "detail": ""}  # too many OSDs to read one by one
# The violation begins at minute 20, has a cause from minute 25 on, and ends at minute 30.
BEGIN, LASTS, END = 20, 25, 30


def series(name: str, values: str, **labels: str) -> Mapping[str, str]:
    inner = ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
    return {"series": f"{name}{{{inner}}}", "values": values}


def _span(before: str, during: float, begin: int = BEGIN) -> str:
    """`before`: `0 ` or `_ `, a sample for each minute up to the begin."""
    return f"{before * begin}{f'{during} ' * (END - begin)}{'0 ' * 10}"


def of(osd: int) -> dict[str, str]:
    return {"cluster": "c", "ceph_daemon": f"osd.{osd}", "class": "client"}


def _cause(osd: int, **cause: str) -> Mapping[str, str]:
    values = "_ " * LASTS + "1 " * (END - LASTS) + "stale"
    return series(PerClass.MAIN_CAUSE, values, **of(osd), **cause)


CLUSTER = [
    series(PerCluster.OSDS, "3x40", cluster="c"),
    # The sum of the host is one evaluation late.
    series(
        PerHostClass.OSDS,
        _span("0 ", 2, BEGIN + 1),
        **{"cluster": "c", "instance": "h", "class": "client", "figure": "violated"},
    ),
    series(DaemonSeries.UP, "1x40", cluster="c", ceph_daemon="osd.0"),
    series(PerClass.VIOLATED, "0x40", **of(0)),
    *(series(PerClass.VIOLATED, _span("0 ", 1), **of(n)) for n in (1, 2)),
    *(series(PerClass.SHORTFALL_OPS, _span("0 ", 100 * n), **of(n)) for n in (1, 2)),
    series(PerClass.CAUSE, _span("_ ", 1), **of(1), cause="device"),
    _cause(1, cause="device", by=""),
    _cause(2, cause="other_osd", by="osd.1"),
]


def asked(expr: str, minute: int, *expected: tuple[Mapping[str, str], float]) -> Mapping[str, Any]:
    samples = [
        {"labels": f"{{{','.join(f'{k}={json.dumps(v)}' for k, v in labels.items())}}}"}
        | {"value": value}
        for labels, value in expected
    ]
    return {"expr": expr, "eval_time": f"{minute}m", "exp_samples": samples}


def tile(
    name: str, minute: int, *expected: tuple[Mapping[str, str], float], large: bool = False
) -> Mapping[str, Any]:
    return asked(fill(TILES[name].expr, LARGE if large else VARIABLES), minute, *expected)


def _document(
    tests: list[Mapping[str, Any]], cluster: list[Mapping[str, str]] = CLUSTER
) -> Mapping[str, Any]:
    group = {"interval": "1m", "input_series": cluster, "promql_expr_test": tests}
    return {"evaluation_interval": "1m", "tests": [group]}


def _says(osd: str, words: str, **labels: str) -> Mapping[str, str]:
    return {**labels, "culprit": osd, "says": words}


@pytest.mark.parametrize("release", RELEASES)
def test_all_tiles_say_no_violation_or_that_one_begins_or_its_cause(
    release: str, tmp_path: Path
) -> None:
    two = ({"class": "client"}, 2)
    none = ({"class": "any class"}, 0)
    begins = _says("osd.2", "osd.2: begins", ceph_daemon="osd.2")
    tests = [
        tile("violated", BEGIN - 1, none),
        tile("look", BEGIN - 1, (_says("osd.0", "no violation", ceph_daemon="osd.0"), 0)),
        tile("why", BEGIN - 1, ({"cause": "any cause"}, 0)),
        *(
            test
            for minute in (BEGIN, BEGIN + 1, LASTS - 1)
            for test in (
                tile("violated", minute, two),
                tile("look", minute, (begins, 201)),
                tile("why", minute, ({"cause": "begins"}, 2)),
            )
        ),
        tile("violated", LASTS, two),
        tile("look", LASTS, (_says("osd.1", "osd.1: device", cause="device"), 2)),
        tile("why", LASTS, ({"cause": "device"}, 1), ({"cause": "other OSD"}, 1)),
        tile("violated", END, none),
        tile("look", END, (_says("osd.0", "no violation", ceph_daemon="osd.0"), 0)),
        tile("why", END, ({"cause": "any cause"}, 0)),
    ]
    agrees(release, _document(tests), tmp_path)


@pytest.mark.parametrize("release", RELEASES)
def test_a_cluster_too_large_for_its_osds_has_the_sums_of_its_hosts(
    release: str, tmp_path: Path
) -> None:
    tests = [
        tile("violated", BEGIN, ({"class": "any class"}, 0), large=True),
        tile("violated", BEGIN + 1, ({"class": "client"}, 2), large=True),
        tile("look", BEGIN + 1, ({"says": "see hosts below"}, -1), large=True),
        tile("why", BEGIN + 1, large=True),
    ]
    agrees(release, _document(tests), tmp_path)


@pytest.mark.parametrize("release", RELEASES)
def test_without_any_figure_of_violations_no_tile_says_that_there_is_none(
    release: str, tmp_path: Path
) -> None:
    osds = [it for it in CLUSTER if it["series"].startswith(DaemonSeries.UP)]
    tests = [
        tile("violated", BEGIN),
        tile("look", BEGIN, (_says("osd.0", "no reservation", ceph_daemon="osd.0"), -1)),
        tile("why", BEGIN),
    ]
    assert osds
    agrees(
        release, _document(tests, [*osds, series(PerCluster.OSDS, "3x40", cluster="c")]), tmp_path
    )


@pytest.mark.parametrize("release", RELEASES)
def test_an_osd_in_demand_without_a_lasting_cause_says_that_it_begins(
    release: str, tmp_path: Path
) -> None:
    expr = fill(osd.CAUSE.expr, VARIABLES)
    client = {"class": "client"}
    tests = [
        asked(expr, BEGIN - 1),
        asked(expr, BEGIN, ({**client, "cause": "begins"}, 1)),
        asked(expr, LASTS, ({**client, "cause": "device"}, 1)),
    ]
    agrees(release, _document(tests), tmp_path)
