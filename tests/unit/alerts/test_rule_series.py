"""Every series that a rule reads is shown by something of ours; operate/alerts.md says by what."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cephqos_alerts import series_needed
from cephqos_alerts.cli import load_slos
from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.rule import without_comments
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.spec import Slo
from cephqos_base.command import main
from cephqos_exporter.cluster.cluster_source import ClusterSource
from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels
from cephqos_exporter.not_understood import NotUnderstood, NotUnderstoodTotals
from cephqos_exporter.probe.latencies import Measured
from cephqos_exporter.scrape.own_metrics import OwnMetrics
from cephqos_exporter.scrape.part import Part
from cephqos_loadgen.live.metrics import LiveMetrics

from ..collectors.test_cluster_poller import Clock, RecordedReader, poller
from ..mclock_osds import CLUSTER_TARGET, OSD_TARGET, policy
from ..osd_views import OSD, RecordedOsd
from ..scenario.test_scenario_live import live

README: Final = Path("docs/operate/alerts.md").read_text(encoding="utf-8")
PAGE: Final = Path("tests/golden/example_host.prom")
# What Prometheus adds to every scrape itself.
PROMETHEUS: Final = {"up", "scrape_duration_seconds", "scrape_samples_post_metric_relabeling"}
# What Prometheus adds; the last where its own labels and ours have the same name.
TARGET: Final = {"job", "instance", "exported_cluster"}
FIO: Final = Slo(name="fio", source="fio", op="write", threshold=0.016, objective=0.9)
_SELECTOR: Final = re.compile(r"(?<![\w:])((?:ceph|up\b|scrape)\w*(?![\w:]))(?:\{([^}]*)\})?")
_LABEL: Final = re.compile(r'(\w+)="')

Shown = dict[str, set[str]]  # series to its labels


def _expressions() -> Iterable[str]:
    slos = [*load_slos(Path("alerts/slo")), FIO]
    for text in build_rules(RuleSettings(), slos).values():
        for group in yaml.safe_load(text)["groups"]:
            for rule in group["rules"]:
                yield without_comments(rule["expr"])


@cache
def _read() -> Mapping[str, set[str]]:
    """Series that rules read, and the labels by which they select them."""
    found: dict[str, set[str]] = {}
    for name, matchers in _SELECTOR.findall("\n".join(_expressions())):
        if name != "ceph_daemon":  # a label
            labels = found.setdefault(name, set())
            labels |= set(re.findall(r"(\w+)(?:=~|!~|!=|=)\"", matchers or ""))
    return found


def _add(shown: Shown, samples: Iterable[tuple[str, str]]) -> None:
    for name, labels in samples:
        shown.setdefault(name, set()).update(_LABEL.findall(labels), TARGET)


def _families(families: Iterable[Family]) -> Iterable[tuple[str, str]]:
    for family in families:
        for suffix, labels, _ in family.samples:
            yield family.name + suffix, labels


def _puzzled() -> Iterable[Family]:
    """What the exporter says of itself after a reply that it does not understand."""
    part = Part(labels=render_labels(OSD.labels), not_understood=NotUnderstoodTotals())
    assert part.not_understood is not None
    odd = NotUnderstood()
    odd.add("class", "7")
    part.not_understood.take("mclock", "osd.3", odd)
    return OwnMetrics(process=False).families([part], 0.1)


async def _cluster() -> Iterable[tuple[str, str]]:
    """What the cluster role shows while a cluster rests, scrubs and recovers, and always trims."""
    reader, clock = RecordedReader("reef"), Clock()
    left = 9

    def trims(name: str, reply: Any) -> Any:
        nonlocal left
        if name == "status":
            trimming = {"state_name": "active+clean+snaptrim", "count": 1}
            reply["pgmap"]["pgs_by_state"].append(trimming)
        if name == "trimming":
            left -= 1
            group = {"pgid": "2.1", "state": "active+clean+snaptrim", "acting_primary": 0}
            return {"pg_stats": [{**group, "snaptrimq_len": left}]}
        return reply

    reader.change = trims
    polling = poller(reader, clock)
    source = ClusterSource(lambda: polling, clock=clock)
    found: list[tuple[str, str]] = []
    for reader.moment in ("idle", "scrub", "recovery"):
        assert await polling.poll()
        found += _families(await source.collect(float("inf")))
        clock.now += 10
    await source.close()
    return found


@pytest.fixture(scope="module")
def shown() -> Mapping[str, set[str]]:
    found: Shown = {name: set(TARGET) for name in PROMETHEUS}
    _add(found, re.findall(r"^(\w+)(\{.*\})? ", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    targets = policy({**OSD_TARGET, "baseline": 400}, CLUSTER_TARGET)
    _add(found, _families(_puzzled()))
    _add(found, _families(RecordedOsd("pacific").scrape(targets)))
    _add(found, _families(targets.finish()))
    with_db = RecordedOsd("reef")
    with_db.counters("bluefs")["slow_total_bytes"] = 1
    _add(found, _families(with_db.scrape(MclockCollector())))
    _add(found, asyncio.run(_cluster()))
    probe = Measured()
    probe.add("p", "write", 0.01)
    _add(found, _families(probe.families("c1", True)))
    for metric in LiveMetrics(live()).collect():
        _add(found, ((s.name, render_labels(s.labels)) for s in metric.samples))
    return found


@pytest.mark.parametrize("name", sorted(_read()))
def test_a_series_that_rules_read_is_shown_with_the_labels_they_select_by(
    name: str, shown: Mapping[str, set[str]]
) -> None:
    assert name in shown, f"nothing shows {name}"
    assert _read()[name] <= shown[name]


def test_rules_read_no_series_that_bears_a_name_of_cephs_own() -> None:
    """Where Ceph's exporter is scraped as well, ours are dropped, and its own have other labels."""
    assert not [name for name in _read() if name.startswith("ceph_")]


@pytest.mark.parametrize("name", sorted(set(_read()) - PROMETHEUS))
def test_the_documentation_says_who_shows_a_series_that_rules_read(name: str) -> None:
    assert re.search(rf"`{name}`", README), f"docs/operate/alerts.md does not say who shows {name}"


def test_the_list_of_series_to_keep_has_what_rules_dashboards_and_commands_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["rules", "series"]) == 0
    names = capsys.readouterr().out.split()
    every = set(series_needed.series([*load_slos(Path("alerts/slo")), FIO]))
    assert set(_read()) - PROMETHEUS <= every >= set(names)
    assert names == sorted(set(names))
    assert {"process_cpu_seconds_total", "cephqos_tenants_squared_seconds_total"} <= set(names)
    assert all(re.fullmatch(r"(cephqos|process)_[a-z0-9_]+", name) for name in names)
    assert {f"cephqos_probe_latency_seconds_{it}" for it in ("bucket", "count", "sum")} <= {*names}


def test_names_are_found_in_expressions_but_not_in_their_texts_labels_and_recorded_series() -> None:
    expr = (
        'sum by (cluster) (rate(cephqos_a_total{x="cephqos_b"}[5m])) / cephqos_osd:c:d # cephqos_e'
    )
    assert series_needed.read_by([expr]) == {"cephqos_a_total"}


def test_what_is_kept_is_what_one_relabelling_lets_through(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["rules", "series", "--keep"]) == 0
    [rule] = yaml.safe_load(capsys.readouterr().out)["metric_relabel_configs"]
    assert (rule["source_labels"], rule["action"]) == (["__name__"], "keep")
    assert re.fullmatch(rule["regex"], "cephqos_daemon_up")
    assert not re.fullmatch(rule["regex"], "ceph_osd_op")
