"""All files of dashboards: the pure core of `cephqos dashboards build`."""

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

BOARDS: Final[tuple[Board, ...]] = tuple(
    module.BOARD
    for module in (overview, latency, waiting, background, osd, cpu, devices, run, exporter)
)


def build_dashboards() -> dict[str, str]:
    """File name to content. The same sources give the same bytes."""
    return {f"{board.uid}.json": _text(board) for board in BOARDS}


def _text(board: Board) -> str:
    return diffable(json.loads(json.dumps(render(board), cls=JSONEncoder))) + "\n"


# Lists of which every member has a line: where one changes, a line does.
_A_LINE_EACH: Final = frozenset({"list", "overrides", "panels", "targets", "transformations"})


def diffable(value: Any, margin: str = "") -> str:
    """JSON in which every variable, query, override and setting of a panel has a line."""
    if not isinstance(value, dict) or not any(map(_is_opened, value.items())):
        return json.dumps(value, ensure_ascii=False)
    inner = f"{margin} "
    members = []
    for key, each in value.items():
        if _has_lines(key, each):
            text = _lines("[]", [diffable(one, f"{inner} ") for one in each], inner)
        else:
            text = diffable(each, inner)
        members.append(f"{json.dumps(key)}: {text}")
    return _lines("{}", members, margin)


def _lines(brackets: str, members: Sequence[str], margin: str) -> str:
    begin, end = brackets[0], brackets[1]
    inside = ",\n".join(f"{margin} {member}" for member in members)
    return f"{begin}\n{inside}\n{margin}{end}"


def _has_lines(key: str, value: Any) -> bool:
    return key in _A_LINE_EACH and isinstance(value, list) and bool(value)


def _is_opened(member: tuple[str, Any]) -> bool:
    _, value = member
    inner = value.items() if isinstance(value, dict) else ()
    return _has_lines(*member) or any(map(_is_opened, inner))
