"""`cephqos rules series`: the metrics that rules, dashboards and commands read."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any, Final

from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.groups import slo_groups
from cephqos_alerts.slo.spec import Slo
from cephqos_base import series as series_names

_TEXTS: Final = re.compile(r'"[^"]*"|#.*')
# Metrics of exporters: no recorded series (with a colon), and none that Prometheus adds to a scrape
# (`up`), which relabelling cannot drop.
_SHOWN: Final = re.compile(r"(?<![\w:])(?:cephqos|process)_\w+(?![\w:(])")


def read_by(expressions: Iterable[str]) -> set[str]:
    return {name for expr in expressions for name in _SHOWN.findall(_TEXTS.sub("", expr))}


def series(slos: Sequence[Slo]) -> list[str]:
    names = read_by([*_of_rules(slos), *_of_dashboards()])
    for name in _of_commands():
        bucket = series_names.bucket(name)
        is_histogram = bucket in names  # as rules and dashboards read it
        histogram = {bucket, series_names.count(name), series_names.total(name)}
        names |= histogram if is_histogram else {name}
    return sorted(names)


def keep(names: Sequence[str]) -> Sequence[str]:
    """What a scrape job needs to keep only these, as lines of YAML."""
    return (
        "metric_relabel_configs:",
        "  - source_labels: [__name__]",
        f"    regex: {'|'.join(names)}",
        "    action: keep",
    )


def _of_rules(slos: Sequence[Slo]) -> Iterator[str]:
    groups = [group for groups in FILES.values() for group in groups]
    for group in (*groups, *slo_groups(slos, RuleSettings())):
        yield from (rule.expr for rule in group.rules)


def _of_dashboards() -> Iterator[str]:
    """Of their files: rules know nothing of the program that makes them."""
    for file in (files("cephqos_dashboards") / "generated").iterdir():
        yield from _expressions(json.loads(file.read_text(encoding="utf-8")))


def _expressions(node: Any) -> Iterator[str]:
    """Of panels, annotations and variables."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query", "definition") and isinstance(value, str):
                yield value
            else:
                yield from _expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from _expressions(value)


def _of_commands() -> Iterator[str]:
    """The names in cephqos_base.series; histograms are there without suffix."""
    for group in vars(series_names).values():
        if isinstance(group, type):
            yield from (name for key, name in vars(group).items() if key.isupper())
