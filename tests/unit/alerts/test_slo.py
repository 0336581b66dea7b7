"""SLOs: what may be written, and what becomes of it."""

from typing import Any

import pytest
import yaml

from cephqos_alerts.rules.render import render
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.groups import BURN_ALERTS, slo_groups
from cephqos_alerts.slo.spec import Slo, parse_slos
from cephqos_base import yamlfile
from cephqos_base.bounds import BOUNDS_BY_SOURCE as BOUNDS
from cephqos_base.errors import ConfigError
from cephqos_base.recorded import PerSlo
from cephqos_exporter.collectors.histograms import DEFAULT_LONGEST_SECONDS

GOOD: dict[str, Any] = {
    "name": "write",
    "source": "osd",
    "op": "write",
    "threshold": 0.0512,
    "objective": 0.99,
}


def parse_text(text: str) -> list[Slo]:
    return parse_slos(yamlfile.parse(text, "slo.yaml"))


def parse(**changes: Any) -> Slo:
    entry = {key: value for key, value in (GOOD | changes).items() if value is not None}
    return parse_text(yaml.safe_dump({"version": 1, "slos": [entry]}))[0]


def test_an_slo_is_read_as_written() -> None:
    slo = parse(window="7d", media="hdd", labels={"team": "storage"})
    assert slo == Slo(
        name="write",
        source="osd",
        op="write",
        threshold=0.0512,
        objective=0.99,
        window=7 * 86400,
        media="hdd",
        labels={"team": "storage"},
    )


def test_a_threshold_between_two_bounds_is_refused_with_the_nearest_two() -> None:
    with pytest.raises(
        ConfigError,
        match=r"slos\[0\]\.threshold: found 0\.05; allowed: a bucket .* 0\.0256 and 0\.0512",
    ):
        parse(threshold=0.05)


def test_each_source_has_bounds_of_its_own() -> None:
    assert parse(source="fio", threshold=0.016).threshold == 0.016
    with pytest.raises(ConfigError, match=r"0\.0128 and 0\.0256"):
        parse(threshold=0.016)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "Write it"}, r"slos\[0\]\.name: found 'Write it'; allowed: a name of a-z"),
        ({"source": "guess"}, r"source: found 'guess'; allowed: one of osd, fio, probe"),
        ({"op": "erase"}, r"op: found 'erase'; allowed: one of read, write, rw"),
        ({"source": "fio", "op": "rw"}, r"op: found 'rw'; allowed: one of read, write$"),
        ({"objective": 1}, r"objective: found 1; allowed: a number from 0\.5"),
        ({"objective": True}, r"objective: found true; allowed: a number"),
        ({"threshold": 900}, r"threshold: found 900; allowed: a number from 0\.0001 to 104"),
        ({"window": "1w"}, r"window: found '1w'; allowed: 1d to 90d"),
        ({"window": "365d"}, r"window: found '365d'; allowed: 1d to 90d"),
        ({"media": "tape"}, r"media: found 'tape'; allowed: one of hdd, ssd"),
        ({"source": "probe", "media": "ssd"}, r"media: found 'ssd'; allowed: source osd"),
        ({"labels": {"cause": "x"}}, r"labels\.cause: found label 'cause'; allowed: a label name"),
        ({"labels": {"team": 3}}, r"labels\.team: found 3; allowed: text"),
        ({"objective": None}, r"objective: found nothing; allowed: a value"),
        ({"quantile": 0.9}, r"quantile: found an unknown key"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"^slo\.yaml:\d+: .*{said}"):
        parse(**changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slos: [", "allowed: valid YAML"),
        ("version: 2\nslos: []", "version: found 2; allowed: 1"),
        ("version: 1\nslos: []", "allowed: a list of at least one"),
        ("version: 1\nslos: [3]", "found 3; allowed: an SLO"),
        ("version: 1\nrules: []\nslos: []", "rules: found an unknown key"),
    ],
)
def test_a_file_that_is_no_list_of_slos_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_text(text)


def test_the_same_name_twice_is_refused() -> None:
    text = yaml.safe_dump({"version": 1, "slos": [GOOD, GOOD]})
    with pytest.raises(ConfigError, match="name: found 'write' twice; allowed: each name once"):
        parse_text(text)


def test_bounds_of_the_op_histograms_are_those_that_the_exporter_shows() -> None:
    assert BOUNDS["osd"][0] == 0.0001
    assert BOUNDS["osd"][-1] <= DEFAULT_LONGEST_SECONDS < 2 * BOUNDS["osd"][-1]
    assert all(
        later == pytest.approx(2 * earlier)
        for earlier, later in zip(BOUNDS["osd"], BOUNDS["osd"][1:], strict=False)
    )


def _rules(slo: Slo) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = render(slo_groups([slo], RuleSettings()), RuleSettings())[
        "groups"
    ][0]["rules"]
    return found


def test_burn_rates_of_a_month_are_the_well_known_ones() -> None:
    assert [burn.burn_rate(parse()) for burn in BURN_ALERTS] == pytest.approx([14.4, 6, 3, 1])


def test_an_slo_gets_two_critical_alerts_and_two_warnings_each_over_two_windows() -> None:
    alerts = [rule for rule in _rules(parse()) if "alert" in rule]
    assert [a["labels"]["severity"] for a in alerts] == [
        "critical",
        "critical",
        "warning",
        "warning",
    ]
    for alert, (long, short) in zip(
        alerts, [("1h", "5m"), ("6h", "30m"), ("1d", "2h"), ("3d", "6h")], strict=True
    ):
        assert f'window="{long}"' in alert["expr"]
        assert f'window="{short}"' in alert["expr"]
        # The cause stands in the text. As a label it would make another alert of each change.
        assert "cause" not in alert["expr"]
        assert "cephqos_main_cause" in alert["annotations"]["description"]


def test_the_line_that_dashboards_draw_is_where_the_alert_begins() -> None:
    slo = parse()
    bounds = {r["labels"]["window"]: r["expr"].strip() for r in _bounds_of(slo)}
    assert bounds == {
        "1h": "vector(14.4)",
        "6h": "vector(6)",
        "1d": "vector(3)",
        "3d": "vector(1)",
    }
    for alert in (rule for rule in _rules(slo) if "alert" in rule):
        factor = float(bounds[alert["labels"]["window"]][len("vector(") : -1])
        assert f"> {factor * slo.budget:.6g} and" in alert["expr"]


def _bounds_of(slo: Slo) -> list[dict[str, Any]]:
    return [rule for rule in _rules(slo) if rule.get("record") == PerSlo.BURN_BOUND]


def test_labels_of_an_slo_are_on_its_series() -> None:
    recorded = [r for r in _rules(parse(labels={"team": "storage"})) if "record" in r]
    assert recorded[0]["labels"] == {"slo": "write", "team": "storage"}


def test_media_selects_the_osds() -> None:
    assert 'osd:cephqos_media:info{media="hdd"}' in _rules(parse(media="hdd"))[0]["expr"]
    assert "media" not in _rules(parse())[0]["expr"]


def test_a_bound_is_matched_as_prometheus_writes_it() -> None:
    assert 'le="0.8192"' in _rules(parse(source="fio", threshold=0.8192))[0]["expr"]


def test_no_bound_is_a_whole_number_which_prometheus_3_would_write_otherwise() -> None:
    assert not [bound for bounds in BOUNDS.values() for bound in bounds if bound == int(bound)]
