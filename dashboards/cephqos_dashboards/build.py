"""All files of dashboards: the pure core of `cephqos dashboards build`."""

import json
from typing import Final

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
)
from cephqos_dashboards.frame import Board, render

BOARDS: Final[tuple[Board, ...]] = tuple(
    module.BOARD for module in (overview, latency, background, osd, cpu, devices, run, exporter)
)


def build_dashboards() -> dict[str, str]:
    """File name to content. The same sources give the same bytes."""
    return {f"{board.uid}.json": _text(board) for board in BOARDS}


def _text(board: Board) -> str:
    return json.dumps(render(board), cls=JSONEncoder, indent=1, ensure_ascii=False) + "\n"
