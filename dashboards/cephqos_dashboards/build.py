"""All files of dashboards: the pure core of `cephqos dashboards build`.

`diffable` writes the JSON so that a change of one query, variable or setting changes one line.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from cephqos_dashboards.boards import (
    background,
    cpu,
    devices,
    exporter,
    latency,
    osd,
    overview,
    run,
    waiting,
)
from cephqos_dashboards.frame import Board, render

LEAST_GRAFANA: Final = "10.4.0"
BOARDS: Final[tuple[Board, ...]] = tuple(
    module.BOARD
    for module in (overview, latency, waiting, background, osd, cpu, devices, run, exporter)
)


def build_dashboards() -> dict[str, str]:
    """File name to content. The same sources give the same bytes."""
    return {f"{board.uid}.json": _text(board) for board in BOARDS}


def _text(board: Board) -> str:
    made = json.loads(json.dumps(render(board), cls=JSONEncoder))
    return diffable({"__requires": _required(made), **made}) + "\n"


def _required(board: dict[str, Any]) -> list[dict[str, str]]:
    """What a Grafana must have to show the dashboard, as Grafana writes it into exported ones
    (DashboardExporter.ts). Readers see it there. Grafana drops it at an import, unchecked.
    """
    panels = [one for panel in board["panels"] for one in (panel, *panel.get("panels", ()))]
    sources = [it["query"] for it in board["templating"]["list"] if it["type"] == "datasource"]
    needed = [("datasource", source) for source in sources]
    needed += [("panel", kind) for kind in sorted({panel["type"] for panel in panels} - {"row"})]
    grafana = {"type": "grafana", "id": "grafana", "name": "Grafana", "version": LEAST_GRAFANA}
    return [grafana, *({"type": kind, "id": it, "name": it, "version": ""} for kind, it in needed)]


# Keys of lists whose every member begins on a line of its own.
_LINE_PER_MEMBER: Final = frozenset({"list", "overrides", "panels", "targets", "transformations"})


def diffable(value: Any, margin: str = "") -> str:
    """JSON in which every variable, query, override and setting of a panel has a line. An object is
    written on one line, unless it holds, at any depth, a list that has a line per member.
    """
    if not _has_split_list(value):
        return json.dumps(value, ensure_ascii=False)
    inner = f"{margin} "
    members = []
    for key, member in value.items():
        if _is_split_list(key, member):
            text = _on_lines("[", [diffable(item, f"{inner} ") for item in member], "]", inner)
        else:
            text = diffable(member, inner)
        members.append(f"{json.dumps(key)}: {text}")
    return _on_lines("{", members, "}", margin)


def _on_lines(begin: str, members: Sequence[str], end: str, margin: str) -> str:
    inside = ",\n".join(f"{margin} {member}" for member in members)
    return f"{begin}\n{inside}\n{margin}{end}"


def _is_split_list(key: str, value: Any) -> bool:
    return key in _LINE_PER_MEMBER and isinstance(value, list) and bool(value)


def _has_split_list(value: Any) -> bool:
    return isinstance(value, dict) and any(
        _is_split_list(key, member) or _has_split_list(member) for key, member in value.items()
    )
