"""Dashboards with a variable for the label of a site (`dashboards install --site-label`)."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from cephqos_base.series import DaemonSeries
from cephqos_base.site import keep, only

_LABEL_VALUES: Final = re.compile(r"label_values\((.*), (\w+)\)")


def of_sites(text: str, labels: Sequence[str]) -> str:
    """The JSON of a dashboard that shows one site at a time, the one that the user chose."""
    if not labels:
        return text
    links = "".join(f"&var-{label}=${{{label}}}" for label in labels)
    board = json.loads(text.replace("&var-cluster=${cluster}", f"&var-cluster=${{cluster}}{links}"))
    variables = board["templating"]["list"]
    for query in queries_of(board):
        query["expr"] = _chosen(query["expr"], labels)
    for variable in variables:
        if variable["type"] == "query":
            variable["query"]["query"] = _chosen(variable["query"]["query"], labels)
    sources = [it for it in variables if it["type"] == "datasource"]
    others = [it for it in variables if it["type"] != "datasource"]
    board["templating"]["list"] = [*sources, *map(_variable, labels), *others]
    return json.dumps(board, ensure_ascii=False, indent=1) + "\n"


def queries_of(board: Any) -> Iterator[Any]:
    """What asks Prometheus: targets of panels, also of those in rows, and annotations."""
    yield from (it for it in board["annotations"].get("list", ()) if "expr" in it)
    for panel in board["panels"]:
        for one in (panel, *panel.get("panels", ())):
            yield from (it for it in one.get("targets", ()) if "prometheus" in str(it))


def _chosen(query: str, labels: Sequence[str]) -> str:
    site = {label: f"${label}" for label in labels}
    if match := _LABEL_VALUES.fullmatch(query):
        return f"label_values({only(match[1], site)}, {match[2]})"
    return only(keep(query, labels), site)


def values_of(label: str) -> str:
    return f"label_values({DaemonSeries.UP}, {label})"


def labels_of_sites(board: Any) -> list[str]:
    """The labels of sites that an installed dashboard has variables for."""
    return [
        variable["name"]
        for variable in board["templating"]["list"]
        if variable["type"] == "query"
        and variable["name"] != "cluster"
        and variable["query"]["query"] == values_of(variable["name"])
    ]


def _variable(label: str) -> dict[str, Any]:
    return {
        "type": "query",
        "name": label,
        "label": label,
        "query": {"qryType": 1, "query": values_of(label), "refId": "variable"},
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "refresh": 2,
        "sort": 7,
    }
