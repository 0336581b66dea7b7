"""Checks of a Grafana: does it have our dashboards, of this version?"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import cephqos_dashboards
from cephqos_base import dashboards
from cephqos_dashboards.site import labels_of_sites, of_sites
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.prometheus_facts import PrometheusFacts

_GENERATED: Final = Path(cephqos_dashboards.__file__).parent / "generated"
_MEND: Final = "cephqos dashboards install DIR   # and let Grafana's provisioning read DIR"


def _comparable(dashboard: Mapping[str, Any]) -> str:
    """Title, panels and variables as text, without what Grafana or a user changes."""
    kept = {key: _without_ids(dashboard.get(key)) for key in ("title", "panels", "templating")}
    variables = kept["templating"].get("list") if isinstance(kept["templating"], dict) else None
    for variable in variables if isinstance(variables, list) else ():
        if isinstance(variable, dict):
            for chosen in ("current", "options"):  # filled in by Grafana
                variable.pop(chosen, None)
    return json.dumps(kept, sort_keys=True)


def _without_ids(value: Any) -> Any:
    """A copy without numeric ids, which Grafana gives to panels, and without queries of logs, which
    may be of another collector. Ids that are texts stay."""
    if isinstance(value, dict):
        return {
            key: _without_ids(inner)
            for key, inner in value.items()
            if not (key == "id" and isinstance(inner, int))
            and not (key == "expr" and "loki" in str(value.get("datasource")))
        }
    return [_without_ids(inner) for inner in value] if isinstance(value, list) else value


def _generated(uid: str, board: Mapping[str, Any]) -> Any:
    """Our dashboard, for the labels of sites that it was installed with."""
    labels: Sequence[str] = ()
    with contextlib.suppress(KeyError, TypeError):  # it has another shape, and is another
        labels = labels_of_sites(board)
    return json.loads(of_sites((_GENERATED / f"{uid}.json").read_text(), labels))


def _grafana(facts: PrometheusFacts) -> Iterator[Finding]:
    if facts.grafana_failure:
        yield Finding(
            facts.grafana,
            f"no usable answer: {facts.grafana_failure}",
            f"curl -fsS {quoted(facts.grafana)}/api/health   # 401: --grafana-header FILE",
        )


def _boards(facts: PrometheusFacts) -> Iterator[Finding]:
    if facts.dashboards is None:  # Grafana was not asked, or did not answer
        return
    missing = [uid for uid in dashboards.ALL if uid not in facts.dashboards]
    if missing:
        yield Finding("Grafana", f"dashboards are missing: {', '.join(missing)}", _MEND)
    different = []
    for uid, board in facts.dashboards.items():
        generated = _generated(uid, board)
        if _comparable(board) != _comparable(generated):
            different.append(uid)
    if different:
        yield Finding(
            "Grafana",
            f"dashboards differ from this version's: {', '.join(sorted(different))}",
            _MEND,
        )


def _no_grafana(facts: PrometheusFacts) -> str:
    return "" if facts.grafana else "no --grafana"


def _no_dashboards(facts: PrometheusFacts) -> str:
    if facts.dashboards is not None:
        return ""
    return _no_grafana(facts) or "Grafana gives no usable answer"


CHECKS: Final = (
    Check("grafana-reachable", _grafana, _no_grafana),
    Check("dashboards-of-this-version", _boards, _no_dashboards),
)
