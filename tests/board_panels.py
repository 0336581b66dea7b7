"""The committed dashboards as tests read them: panels, queries, and what a variable stands for."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cephqos_base import dashboards
from cephqos_dashboards.cli import GENERATED

UIDS: Final = dashboards.ALL
_VARIABLE: Final = re.compile(r"\$\{?([a-z_]\w*)\}?")  # not the $1 of label_replace
# What Grafana puts in by itself, for a Prometheus that scrapes every second.
BUILT_IN: Final = {"__rate_interval": "4s", "__range": "180s", "__interval": "1s"}


@dataclass(frozen=True)
class ShownQuery:
    """One query of a panel."""

    uid: str
    panel: str
    kind: str
    ref: str
    expr: str
    instant: bool
    source: str

    @property
    def where(self) -> str:
        return f"{self.uid}: {self.panel} {self.ref}"

    def filled(self, values: Mapping[str, str]) -> str:
        return fill(self.expr, values)


def fill(expr: str, values: Mapping[str, str]) -> str:
    """The expression with all variables put in, as Grafana does it; KeyError for an unknown one."""
    known = {**BUILT_IN, **values}
    return _VARIABLE.sub(lambda match: known[match[1]], expr)


def boards() -> dict[str, Any]:
    """uid to dashboard, as committed."""
    found = [json.loads(file.read_text("utf-8")) for file in sorted(GENERATED.glob("*.json"))]
    return {board["uid"]: board for board in found}


def panels(board: Any) -> Iterator[Any]:
    """All panels of a dashboard, those in collapsed rows too, without the rows."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels") or ()
        else:
            yield panel


def queries() -> list[ShownQuery]:
    """Every query of every panel."""
    return [
        ShownQuery(
            uid=uid,
            panel=panel["title"],
            kind=panel["type"],
            ref=target["refId"],
            expr=target["expr"],
            instant=bool(target.get("instant")),
            source=panel["datasource"]["type"],
        )
        for uid, board in boards().items()
        for panel in panels(board)
        for target in panel["targets"]
    ]


def promql() -> list[ShownQuery]:
    return [query for query in queries() if query.source == "prometheus"]


def other_promql() -> dict[str, str]:
    """PromQL of annotations and variables, by where it is."""
    found: dict[str, str] = {}
    for uid, board in boards().items():
        for each in board["annotations"].get("list") or ():
            if "expr" in each:
                found[f"{uid}: annotation {each['name']}"] = each["expr"]
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                text = variable["query"]["query"]
                found[f"{uid}: variable {variable['name']}"] = _of_variable(text)
    return found


def _of_variable(text: str) -> str:
    if text.startswith("query_result("):
        return text.removeprefix("query_result(").removesuffix(")")
    return text.removeprefix("label_values(").rpartition(",")[0]


def committed_files() -> list[Path]:
    return sorted(GENERATED.glob("*.json"))
