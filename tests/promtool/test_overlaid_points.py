"""Points of a run laid over one another: each by the seconds since its own load started."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.board_panels import fill
from tests.promtool.agreement import agrees
from tests.recorded import RELEASES

from cephqos_base.series import ClientSeries, RunSeries
from cephqos_dashboards.queries import run

VARIABLES = {"run": "r1", "load": "client"}
# One sample every 5 s: `a` runs from second 10 to 50, `b` from 100 to 140.
A, BETWEEN, B = "_ _ 10x8", "stale _x8", "100x8 stale"


def started(point: str, values: str, phase: str = "client") -> dict[str, str]:
    labels = f'run="r1",point="{point}",repeat="1",phase="{phase}"'
    return {"series": f"{RunSeries.PHASE_START_TIMESTAMP_SECONDS}{{{labels}}}", "values": values}


def iops(values: str, **more: str) -> dict[str, str]:
    labels = {"run": "r1", "load": "client", "client": "client.0", "op": "write", **more}
    inner = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return {"series": f"{ClientSeries.IOPS}{{{inner}}}", "values": values}


@pytest.mark.parametrize("release", RELEASES)
def test_both_points_are_at_the_same_second_of_their_loads(release: str, tmp_path: Path) -> None:
    series = [
        started("policy=a", f"{A} {BETWEEN}"),
        started("policy=b", f"_x19 {B}"),
        started("policy=b", f"_x10 55x9 {B}", phase="alone"),
        iops(f"_ _ 200x8 {BETWEEN} 150x8 stale"),
        iops(f"_ _ 20x8 {BETWEEN} 10x8 stale", client="client.1"),
        iops("7x40", load="other"),
        iops("9x40", run="r2"),
    ]
    since, value = (fill(it.expr, VARIABLES) for it in run.IOPS_BY_POINT)

    def at(second: int, expr: str, point: str, figure: float) -> dict[str, object]:
        samples = [{"labels": f'{{point="policy={point}"}}', "value": figure}]
        return {"expr": expr, "eval_time": f"{second}s", "exp_samples": samples}

    def none(second: int, expr: str) -> Iterator[dict[str, object]]:
        """A row for no point, without a figure."""
        row = {"labels": '{point="none"}', "value": 1}
        counted, figures = f"count by (point) ({expr})", f"({expr}) >= 0"
        yield {"expr": counted, "eval_time": f"{second}s", "exp_samples": [row]}
        yield {"expr": figures, "eval_time": f"{second}s", "exp_samples": []}

    tests = [
        at(31, since, "a", 20),
        at(31, value, "a", 220),
        at(121, since, "b", 20),
        at(121, value, "b", 160),
        *none(75, since),
        *none(75, value),
        *none(31, fill(run.SCRUBBED_BY_POINT[0].expr, VARIABLES)),
    ]
    group = {"interval": "5s", "input_series": series, "promql_expr_test": tests}
    agrees(release, {"evaluation_interval": "5s", "tests": [group]}, tmp_path)
