"""The committed dashboards: generated, complete, and asking only for what is there."""

import itertools
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.board_panels import (
    UIDS,
    ShownQuery,
    boards,
    committed_files,
    other_promql,
    panels,
    promql,
    queries,
)

from cephqos_alerts.cli import load_slos
from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.render import DASHBOARDS
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.recorded import PerClass
from cephqos_base.thresholds import THRESHOLDS
from cephqos_dashboards import cli
from cephqos_dashboards.build import BOARDS
from cephqos_loadgen.live.notify import annotation

from ..alerts.test_rule_series import Shown, shown  # noqa: F401 - a fixture

# What Prometheus and Loki say of themselves, where they are scraped.
FOREIGN = {
    "up": {"job", "instance"},
    "scrape_duration_seconds": {"job", "instance"},
    "scrape_samples_post_metric_relabeling": {"job", "instance"},
    "prometheus_rule_group_last_duration_seconds": {"rule_group"},
    "prometheus_rule_group_iterations_missed_total": {"rule_group"},
    "prometheus_rule_evaluation_failures_total": {"rule_group"},
    "loki_distributor_lines_received_total": set[str](),
    "loki_discarded_samples_total": set[str](),
    "ALERTS": {"alertname", "alertstate", "severity", "cluster", "ceph_daemon", "class"},
    "ALERTS_FOR_STATE": {"alertname", "severity", "cluster", "ceph_daemon", "class"},
}
# What the cluster role and the probe show of themselves while they work.
OF_A_CLUSTER_OR_PROBE = {
    "cephqos_cluster_command_seconds_total": {"cluster", "command"},
    "cephqos_probe_failures_total": {"cluster", "pool", "op", "reason"},
    "cephqos_recovery_cluster_eta_seconds": {"cluster", "bound"},
    "cephqos_scrub_pool_backlog_eta_seconds": {"cluster", "pool", "level", "bound"},
}
# Only a replayed run's series have it.
REPLAYED = {"run"}
_SELECTOR = re.compile(
    r"(?<![\w:\"])((?:cephqos|ceph|up\b|scrape|process|prometheus|loki|ALERTS"
    r"|osd|osd_class|cluster|cluster_class|instance_class|media_class|media|media_at)[\w:]*)(?:\{([^}]*)\})"
    r"|(?<![\w:\"])((?:cephqos_|prometheus_|loki_|cluster:)[\w:]+)(?![\w:{])"
)


def test_the_committed_files_are_what_their_sources_give() -> None:
    stale = [
        str(file)
        for file, text in cli.built().items()
        if not file.is_file() or file.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make generate`"
    assert {file.stem for file in committed_files()} == set(UIDS)


def test_there_is_a_dashboard_for_every_link_of_an_alert() -> None:
    linked = {link.partition("?")[0] for link in DASHBOARDS.values()}
    assert linked <= set(boards())
    for uid, _, variables in (link.partition("?") for link in DASHBOARDS.values()):
        known = {each["name"] for each in boards()[uid]["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", variables)) <= known


def test_every_alert_links_with_its_time_range() -> None:
    for file in [*Path("alerts/rules").glob("*.yml"), Path("alerts/loki/fake/logs.yml")]:
        text = file.read_text(encoding="utf-8")
        links = re.findall(r"# dashboard_url: (.+)", text)
        assert len(links) == text.count("- alert: "), file
        for link in links:
            assert re.search(r"[?&]from=\S.*&to=\S", link), f"{file}: {link}"


@pytest.mark.parametrize("uid", UIDS)
def test_every_panel_says_how_it_is_read_and_why_it_is_empty(uid: str) -> None:
    for panel in panels(boards()[uid]):
        reads, marked, blind = panel["description"].partition("\n\nIt cannot show: ")
        assert len(reads) > 20, panel["title"]
        assert bool(marked) == (len(blind) > 10), panel["title"]
        empty = panel["fieldConfig"]["defaults"]["noValue"]
        if panel["type"] in ("stat", "bargauge"):
            assert len(empty) <= 20, f"too long to be read in {panel['title']}"
        else:
            assert empty.endswith((".", ".)")), panel["title"]
        assert "no data" not in empty.lower(), panel["title"]


@pytest.mark.parametrize("uid", UIDS)
def test_a_gap_in_a_table_or_on_an_axis_is_blank_and_not_the_reason_of_the_panel(uid: str) -> None:
    for panel in panels(boards()[uid]):
        config = panel["fieldConfig"]
        every = [config["defaults"]["mappings"]]
        for override in config["overrides"]:
            every += [it["value"] for it in override["properties"] if it["id"] == "mappings"]
        for mappings in every if panel["type"] != "state-timeline" else ():
            blank = [it["options"]["match"] for it in mappings if it["type"] == "special"]
            assert {"null+nan", "empty"} <= set(blank), panel["title"]


@pytest.mark.parametrize("uid", UIDS)
def test_a_table_of_several_queries_has_a_row_that_says_why_it_is_empty(uid: str) -> None:
    """Grafana shows the reason of a panel only in a table of one query; else it says "No data". The
    row has no figure: nobody measured one."""
    for panel in panels(boards()[uid]):
        if panel["type"] == "table" and len(panel["targets"]) > 1:
            says = "label_replace(vector(NaN) unless on ()"
            assert any(says in target["expr"] for target in panel["targets"]), panel["title"]


@pytest.mark.parametrize("uid", UIDS)
def test_an_axis_of_shares_that_are_all_0_does_not_end_at_10000_percent(uid: str) -> None:
    for panel in panels(boards()[uid]):
        defaults = panel["fieldConfig"]["defaults"]
        if panel["type"] == "timeseries" and defaults["unit"] == "percentunit":
            assert "max" in defaults or "axisSoftMax" in defaults["custom"], panel["title"]


def test_a_dashboard_has_no_character_that_cannot_be_seen() -> None:
    for file in committed_files():
        unseen = {it for it in file.read_text("utf-8") if unicodedata.category(it) == "Cf"}
        assert not unseen, file


def test_what_a_panel_cannot_show_is_said_where_a_reader_would_be_misled() -> None:
    """Said everywhere, the few that matter are not read."""
    every = [panel["description"] for uid in UIDS for panel in panels(boards()[uid])]
    said = sum("It cannot show:" in description for description in every)
    assert 0 < said < len(every) / 2


def test_the_biggest_tile_of_the_first_row_names_the_osd_to_look_at() -> None:
    tiles = [it for it in panels(boards()["cephqos-overview"]) if it["type"] == "stat"][:5]
    biggest = max(tiles, key=lambda it: it["gridPos"]["w"] * it["gridPos"]["h"])
    assert biggest["title"] == "Look here first"
    assert biggest["options"]["textMode"] == "name", "the name is what is large"
    assert len({(it["gridPos"]["y"], it["gridPos"]["h"]) for it in tiles}) == 1
    assert sum(it["gridPos"]["w"] for it in tiles) == 24


def test_a_legend_tells_dashed_from_dotted() -> None:
    """And a pattern of lines is never all that tells two of them apart."""
    styles = [it for uid in UIDS for panel in panels(boards()[uid]) for it in _styles(panel)]
    assert ("dash", "reservation (dashed)") in styles
    assert ("dot", "limit (dotted)") in styles


def _styles(panel: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Kind of line, and the end of the names of the series that have it."""
    for override in panel["fieldConfig"]["overrides"]:
        for it in override["properties"]:
            if it["id"] == "custom.lineStyle":
                pattern = override["matcher"]["options"].strip("/").replace("\\", "").rstrip("$")
                for target in panel["targets"]:
                    if target.get("legendFormat", "").endswith(pattern):
                        yield it["value"]["fill"], pattern


@pytest.mark.parametrize("uid", UIDS)
def test_titles_are_unique_and_panels_fill_the_grid_without_overlap(uid: str) -> None:
    board = boards()[uid]
    titles = [panel["title"] for panel in panels(board)]
    assert len(titles) == len(set(titles))
    numbers = [panel["id"] for panel in itertools.chain(board["panels"], panels(board))]
    assert len({*numbers}) == len(board["panels"]) + sum(
        len(row.get("panels") or ()) for row in board["panels"] if row["type"] == "row"
    )
    taken: set[tuple[int, int]] = set()
    for panel in (each for each in board["panels"] if each["type"] != "row"):
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells


@pytest.mark.parametrize("uid", UIDS)
def test_titles_are_whole_on_a_page_of_1280_pixels(uid: str) -> None:
    """A letter has 7.2 pixels, the sign of a description 20, the grid 24 columns of 52."""
    for panel in panels(boards()[uid]):
        room = 52 * panel["gridPos"]["w"] - 8 - 16 - 20
        assert 7.2 * len(panel["title"]) <= room, panel["title"]


@pytest.mark.parametrize("uid", UIDS)
def test_data_sources_are_variables(uid: str) -> None:
    board = boards()[uid]
    used = {panel["datasource"]["uid"] for panel in panels(board)}
    assert used <= {"${datasource}", "${loki}"}
    kinds = {each["name"]: each["type"] for each in board["templating"]["list"]}
    assert {f"${{{name}}}" for name, kind in kinds.items() if kind == "datasource"} == used | {
        "${datasource}"
    }


@pytest.mark.parametrize("uid", UIDS)
def test_links_carry_cluster_osd_and_time_range(uid: str) -> None:
    text = json.dumps(boards()[uid])
    for link in re.findall(r'"(/d/cephqos-osd[^"]*)"', text):
        assert "var-cluster=${cluster}" in link
        assert re.search(r"var-osd=\$\{__(field\.labels|data\.fields)\.", link)
        assert "${__url_time_range}" in link
    links = boards()[uid]["links"]
    assert [link["tags"] for link in links] == [["cephqos"], ["ceph-mixin"]]
    for link in links:
        assert link["type"] == "dashboards"
        assert link["includeVars"]
        assert link["keepTime"]


@pytest.mark.parametrize("uid", UIDS)
def test_a_dashboard_says_which_panels_and_data_sources_it_needs(uid: str) -> None:
    required = {(it["type"], it["id"]) for it in boards()[uid]["__requires"]}
    assert required == {
        ("grafana", "grafana"),
        *(("panel", panel["type"]) for panel in panels(boards()[uid])),
        *(("datasource", source) for source in data_sources(uid)),
    }


def data_sources(uid: str) -> set[str]:
    queries = [one for panel in panels(boards()[uid]) for one in panel.get("targets", ())]
    return {one["datasource"]["type"] for one in queries}


def _recorded() -> dict[str, set[str]]:
    """Series that rules record; the labels are those by which anything selects them."""
    found: dict[str, set[str]] = {}
    for text in build_rules(RuleSettings(), load_slos(Path("alerts/slo"))).values():
        for group in yaml.safe_load(text)["groups"]:
            for rule in group["rules"]:
                if "record" in rule:
                    labels = {"cluster", "ceph_daemon", "class", "cause", "instance", "slo"}
                    found.setdefault(rule["record"], set()).update(labels, rule.get("labels", {}))
    return found


def _read(expr: str) -> Iterable[tuple[str, set[str]]]:
    for name, matchers, bare in _SELECTOR.findall(expr):
        yield name or bare, set(re.findall(r"(\w+)(?:=~|!~|!=|=)\"", matchers))


def _of(uid: str) -> list[ShownQuery]:
    return [query for query in promql() if query.uid == uid]


@pytest.mark.parametrize("uid", UIDS)
def test_every_series_and_label_is_known_to_the_exporter_or_the_rules(
    uid: str,
    shown: Mapping[str, set[str]],  # noqa: F811
) -> None:
    known: Shown = {**shown, **_recorded(), **FOREIGN, **OF_A_CLUSTER_OR_PROBE}
    for query in _of(uid):
        assert list(_read(query.expr)), f"{query.where} reads no series"
        for name, labels in _read(query.expr):
            assert name in known, f"{query.where}: nothing shows {name}"
            assert labels <= known[name] | REPLAYED, f"{query.where}: {name}"


def test_variables_and_annotations_read_known_series(
    shown: Mapping[str, set[str]],  # noqa: F811
) -> None:
    known: Shown = {**shown, **_recorded(), **FOREIGN}
    for where, expr in other_promql().items():
        names = [name for name, _ in _read(expr)]
        assert names, where
        assert set(names) <= set(known), where


def test_dashboards_ask_grafana_for_what_runs_and_trials_send() -> None:
    """By tags that each event of a trial has; the exporters' board has none of a cluster."""
    sent = {*annotation("trial_block_started", {"run": "t1"}, 1.5, "$cluster")["tags"]}
    asked = {
        uid: {*each["target"]["tags"]}
        for uid, board in boards().items()
        for each in board["annotations"].get("list") or ()
        if each["datasource"]["type"] == "grafana"
    }
    assert asked.keys() == {*UIDS} - {"cephqos-exporter"}
    assert all(tags <= sent for tags in asked.values())


# The two others read one run, and figures of exporters.
@pytest.mark.parametrize("uid", sorted({*UIDS} - {"cephqos-run", "cephqos-exporter"}))
def test_series_of_single_osds_are_read_only_where_the_cluster_is_small_or_one_is_chosen(
    uid: str,
) -> None:
    """What a dashboard of 10,000 OSDs reads are sums of the cluster and its hosts."""
    sums = re.compile(
        r"(cluster|cluster_class|instance|instance_class|media|cephqos_slo):"
        r"|cephqos_(cluster|host|(recovery|scrub|snaptrim|balance)_(pool|cluster)|probe|client|placement_str)"
        r"|ALERTS"
    )
    for query in _of(uid):
        for name, matchers, bare in _SELECTOR.findall(query.expr):
            if not sums.match(name or bare):
                bounded = '$detail"' in matchers or 'ceph_daemon="$osd"' in matchers
                assert bounded, f"{query.where}: {name or bare}"


# The OSD dashboard reads one OSD.
@pytest.mark.parametrize("uid", sorted({*UIDS} - {"cephqos-osd"}))
def test_lines_per_osd_host_or_device_are_bounded(uid: str) -> None:
    """At 1,000 OSDs no panel draws more than 50 series."""
    many = {"ceph_daemon", "instance", "device", "shard"}
    for query in _of(uid):
        expr = re.sub(r"^\s*histogram_quantile\([\d.]+, ", "", query.expr)
        if re.match(r"\s*(?:count|sum|max)\(", expr):
            continue  # one series
        grouped = re.findall(r"\b(?:sum|max|count|avg|min) by \(([^)]*)\)", expr)
        outer = re.match(r"[\s(]*(?:sum|max|count|avg|min) by \(([^)]*)\)", expr)
        kept = outer[1] if outer else ", ".join(grouped)
        if {*re.split(r",\s*", kept)} & many:
            assert re.search(r"\b(topk|bottomk)\(", query.expr), query.where


def test_what_is_drawn_over_time_is_chosen_once_and_not_at_every_point() -> None:
    """Otherwise a panel draws everything that was ever among the first ten."""
    for query in promql():
        if not query.instant:
            for chosen in re.findall(r"\b(?:topk|bottomk)\(\d+,(.*)", query.expr, re.DOTALL):
                assert "@ end()" in chosen, query.where


def test_alerts_and_the_load_generator_are_not_imported() -> None:
    sources = Path("dashboards/cephqos_dashboards").rglob("*.py")
    for file in sources:
        found = re.findall(r"^\s*(?:from|import) (cephqos_\w+)", file.read_text("utf-8"), re.M)
        assert set(found) <= {"cephqos_base", "cephqos_dashboards"}, file


def test_promql_stands_in_query_modules_only() -> None:
    for file in Path("dashboards/cephqos_dashboards").rglob("*.py"):
        if "queries" not in file.parts:
            text = file.read_text("utf-8")
            assert not re.search(r"\b(rate|topk|sum by|max by|histogram_quantile) ?\(", text), file


def test_nine_boards_and_every_query_has_a_panel() -> None:
    assert len(BOARDS) == len(UIDS) == 9
    assert len(queries()) > 150


def _bounds(panel: Mapping[str, Any]) -> set[float]:
    """Where colours of a panel or of its columns change, but for the 0 and 1 of counts."""
    steps = list(panel["fieldConfig"]["defaults"]["thresholds"]["steps"])
    for override in panel["fieldConfig"]["overrides"]:
        found = [it["value"]["steps"] for it in override["properties"] if it["id"] == "thresholds"]
        steps += itertools.chain(*found)
    return {step["value"] for step in steps} - {None, 0, 1}


def test_what_is_attained_of_a_reservation_is_read_and_not_worked_out_again() -> None:
    """The rules know what they do not judge by it: best effort, and recovery at its limit."""
    assert {it.panel for it in promql() if PerClass.EFFECTIVE_ATTAINMENT in it.expr} == {
        "The worst class gets",
        "Each class gets",
    }
    assert not [
        it.panel
        for it in promql()
        if PerClass.EFFECTIVE_RESERVATION_OPS in it.expr and "/" in it.expr
    ]


def test_colours_change_where_rules_do() -> None:
    by_panel = {panel["title"]: _bounds(panel) for uid in UIDS for panel in panels(boards()[uid])}
    of_rules = {
        "The worst class gets": {THRESHOLDS.reached},
        "Each class gets": {THRESHOLDS.reached},
        "Capacity set too high": {THRESHOLDS.more},
        "Capacity set too low": {THRESHOLDS.more},
    }
    own = {"Error budget left": {0.0001, 0.25}}
    assert {title: bounds for title, bounds in by_panel.items() if bounds} == of_rules | own


def test_hosts_of_a_cluster_are_those_with_an_osd_and_not_with_a_monitor_only() -> None:
    text = (Path(cli.__file__).parent / "generated" / "cephqos-cpu.json").read_text()
    chosen = re.findall(r"group by \(instance\) \(cephqos_daemon_up\{(.*?)\}\)", text)
    assert chosen
    assert all("ceph_daemon=~" in selector for selector in chosen)
