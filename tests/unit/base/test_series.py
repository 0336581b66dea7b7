"""Every name of a series is one that something of ours shows, and that something of ours reads."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from cephqos_alerts.rules.names import SOURCES
from cephqos_base import recorded, series

from ..alerts.test_rule_series import shown as shown

PAGES = sorted(Path("tests/golden").glob("*.prom"))
RULES = sorted(Path("alerts/rules").glob("*.yml"))
PRODUCT = [
    file
    for folder in ("exporter", "loadgen", "dashboards", "alerts", "deploy")
    for file in Path(folder).rglob("*.py")
]
# Only with settings, work or failures that no recorded page has.
_ON_REQUEST = {
    series.ClusterSeries.COMMAND_SECONDS,
    series.ExporterSeries.RECORDER_LOST,
    series.ExporterSeries.RECORDER_PAGES,
    series.PlacementSeries.CPU_THREADS,
    series.ProbeSeries.FAILURES,
    series.QosSeries.STORE_DB_USED_BYTES,
    series.RecoverySeries.CLUSTER_ETA_SECONDS,
    series.QosSeries.STORE_SPILLED_BYTES,
}


def names(module: ModuleType) -> set[str]:
    """The constants of all classes of the module that name a series."""
    groups = [it for it in vars(module).values() if isinstance(it, type)]
    assert groups
    return {text for group in groups for name, text in vars(group).items() if name.isupper()}


def _families(shown: Mapping[str, set[str]]) -> set[str]:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    found = set(re.findall(r"^# TYPE (cephqos_\w+) ", pages, re.MULTILINE))
    samples = {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}
    return found | {name for name in samples if name.startswith("cephqos_")}


def test_names_of_series_are_of_those_that_are_shown(shown: Mapping[str, set[str]]) -> None:
    assert names(series) - _families(shown) == _ON_REQUEST - _families(shown)


def test_a_name_of_a_series_that_nothing_reads_is_not_kept() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in PRODUCT)
    read = set(re.findall(r"\.([A-Z][A-Z_]+)\b", code))
    groups = [it for it in vars(series).values() if isinstance(it, type)]
    rules = "\n".join(it.read_text(encoding="utf-8") for it in SOURCES.rglob("*.yml"))
    named = set(re.findall(r"\bcephqos_\w+", rules))
    of_rules = named | {re.sub(r"_(bucket|count|sum)$", "", name) for name in named}
    assert groups
    assert not [
        name
        for group in groups
        for name, value in vars(group).items()
        if name.isupper() and name not in read and value not in of_rules
    ]


def test_names_of_series_shown_on_request_stand_in_the_code_that_shows_them() -> None:
    files = [*Path("exporter/cephqos_exporter").rglob("*.py")]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert not [name for name in _ON_REQUEST if f'"{name}"' not in code]


def test_names_of_recorded_series_are_those_that_rules_record() -> None:
    rules = "\n".join(file.read_text(encoding="utf-8") for file in RULES)
    assert names(recorded) <= set(re.findall(r"- record: (\S+)", rules))


def test_no_name_stands_twice() -> None:
    for module in (series, recorded):
        groups = [it for it in vars(module).values() if isinstance(it, type)]
        every = [text for g in groups for name, text in vars(g).items() if name.isupper()]
        assert len(every) == len(set(every))
