"""Converts between prometheus_client's metrics and ours."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, cast

from prometheus_client import Metric

from cephqos_exporter.families import Family, FamilyType
from cephqos_exporter.labels import LabelText, render_labels

_ENDS: Final = {"counter": "_total", "info": "_info"}  # of samples, not of a metric's name
_LABEL: Final = re.compile(r'([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")


def families_of(metrics: Iterable[Metric]) -> Iterator[Family]:
    """Ours, without the times at which counters were created."""
    for metric in metrics:
        name = metric.name + _ENDS.get(metric.type, "")
        family = Family(name, cast(FamilyType, metric.type), metric.documentation)
        for sample in metric.samples:
            if sample.name != f"{metric.name}_created":
                value = float(sample.value)
                number = int(value) if value.is_integer() else value
                labels = _text(tuple(sample.labels.items()))
                family.add(labels, number, sample.name.removeprefix(name))
        yield family


@lru_cache(maxsize=1024)
def _text(labels: tuple[tuple[str, str], ...]) -> LabelText:
    return render_labels(dict(labels))


def metric_of(name: str, kind: FamilyType, text: str, lines: Iterable[str]) -> Metric:
    """prometheus_client's, from the lines of a page. A name is written as OpenMetrics has it."""
    metric = Metric(name, text, kind)
    for line in "".join(lines).split("\n")[:-1]:
        series, _, number = line.rpartition(" ")
        sample, _, labels = series.partition("{")
        metric.add_sample(sample, dict(_labels(labels)), float(number))
    return metric


@lru_cache(maxsize=1 << 16)
def _labels(text: str) -> dict[str, str]:
    return {name: _ESCAPED.sub(_unescaped, value) for name, value in _LABEL.findall(text)}


def _unescaped(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]
