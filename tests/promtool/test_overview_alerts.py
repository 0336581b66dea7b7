"""How many alerts fire, as the first dashboard counts them, by Prometheus' own tool."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.release_tools import tool

from cephqos_dashboards.queries.overview import FIRING

CRITICAL = FIRING[0].expr.replace("$cluster", "c1")
RULES = 'cluster:cephqos_osds:count{cluster="c2"}'


def _alert(severity: str, cluster: str = "c1") -> str:
    return (
        f'ALERTS{{alertname="CephQosX",alertstate="firing",severity="{severity}",'
        f'cluster="{cluster}"}}'
    )


@pytest.mark.parametrize(
    ("fires", "count"),
    [
        pytest.param((RULES, _alert("critical")), 1, id="one fires"),
        pytest.param((RULES, _alert("warning"), _alert("page", "c2")), 0, id="none fires"),
        pytest.param((RULES, _alert("page")), None, id="one fires, called in another word"),
        pytest.param((), None, id="no rules"),
    ],
)
def test_no_alert_is_counted_as_none_only_where_all_are_understood(
    fires: tuple[str, ...], count: int | None, tmp_path: Path
) -> None:
    samples = [] if count is None else [{"labels": "{}", "value": count}]
    case = {
        "input_series": [{"series": it, "values": "1x9"} for it in (*fires, "up")],
        "promql_expr_test": [{"expr": CRITICAL, "eval_time": "1m", "exp_samples": samples}],
    }
    # JSON is YAML, too.
    (tmp_path / "test.yml").write_text(json.dumps({"tests": [case]}))
    argv = [*tool("tentacle", "promtool"), "test", "rules", "test.yml"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
