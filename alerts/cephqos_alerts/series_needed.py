"""`cephqos rules series`: the metrics that rules, dashboards and commands read.

An operator with little room keeps only these: `keep` prints the relabelling for the scrape job.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any, Final

from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.names import names_in
from cephqos_alerts.rules.rule import without_texts
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.groups import slo_groups
from cephqos_alerts.slo.spec import Slo
from cephqos_base import series as series_names

# Metrics of exporters: no recorded series (with a colon), and none that Prometheus adds to a scrape
# (`up`), which relabelling cannot drop.
_EXPORTER_METRIC: Final = re.compile(r"(?<![\w:])(?:cephqos|process)_\w+(?![\w:(])")


def read_by(expressions: Iterable[str]) -> set[str]:
    names: set[str] = set()
    for expr in expressions:
        names.update(_EXPORTER_METRIC.findall(without_texts(expr)))
    return names


def series(slos: Sequence[Slo]) -> list[str]:
    groups = [*(group for of_file in FILES.values() for group in of_file)]
    groups += slo_groups(slos, RuleSettings())
    of_rules = (rule.expr for group in groups for rule in group.rules)
    names = read_by([*of_rules, *_expressions_of_dashboards()])
    for name in names_in(series_names):  # which commands read
        bucket = series_names.bucket(name)
        if bucket in names:  # a histogram: rules and dashboards read its buckets
            names |= {bucket, series_names.count(name), series_names.total(name)}
        else:
            names.add(name)
    return sorted(names)


def keep(names: Sequence[str]) -> Sequence[str]:
    """What a scrape job needs to keep only these, as lines of YAML."""
    return (
        "metric_relabel_configs:",
        "  - source_labels: [__name__]",
        f"    regex: {'|'.join(names)}",
        "    action: keep",
    )


def _expressions_of_dashboards() -> Iterator[str]:
    """From their JSON, since alerts may not import the package that makes them."""
    for file in (files("cephqos_dashboards") / "generated").iterdir():
        yield from _expressions_in(json.loads(file.read_text(encoding="utf-8")))


def _expressions_in(node: Any) -> Iterator[str]:
    """Of panels, annotations and variables, wherever they are in the JSON of a dashboard."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query", "definition") and isinstance(value, str):
                yield value
            else:
                yield from _expressions_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from _expressions_in(value)
