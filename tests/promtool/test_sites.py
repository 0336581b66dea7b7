"""Clusters of the same name at two sites, told apart by a label that scrape jobs add."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.promtool.rendered import description_of, rendered
from tests.release_tools import run, tool
from tests.rules.files import write

from cephqos_alerts.output.alertmanager import alertmanager_config
from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.site import only
from cephqos_dashboards.cli import GENERATED
from cephqos_dashboards.site import labels_of_sites, of_sites, queries_of
from cephqos_insight import shared, who
from cephqos_loadgen.top.figures import FIGURES, Selection

LABEL = "k8s_cluster"
SITES = RuleSettings(site_labels=[LABEL])


# As many clusters as there are cases: all have the same name, and their hosts and OSDs, too.
@pytest.mark.timeout(1000)
@pytest.mark.parametrize(
    "group", ["hosts", *(pytest.param(it, marks=pytest.mark.full) for it in ("across", "qos"))]
)
def test_clusters_of_the_same_name_at_other_sites_do_not_mix(group: str, tmp_path: Path) -> None:
    argv = [*tool("tentacle", "promtool"), "test", "rules", str(write(group, tmp_path, LABEL))]
    assert "SUCCESS" in run(argv, within=900)


def test_promtool_takes_the_rules_of_sites_without_complaint(tmp_path: Path) -> None:
    for name, text in build_rules(SITES, []).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = sorted(map(str, tmp_path.iterdir()))
    argv = [*tool("tentacle", "promtool"), "check", "rules", "--lint=all", "--lint-fatal", *files]
    assert run(argv).count("SUCCESS") == len(files)


def test_the_text_of_an_alert_tells_of_its_own_site(tmp_path: Path) -> None:
    osd = {"cluster": "rook-ceph", "ceph_daemon": "osd.3"}
    looked_up = {}
    for site, host, cause in (("eu", "ceph1:1", "device"), ("us", "ceph2:2", "cpu")):
        labels = ",".join(f'{name}="{it}"' for name, it in {**osd, LABEL: site}.items())
        looked_up[f'{PerOsd.INSTANCE}{{{labels},instance="{host}"}}'] = "1x9000"
        looked_up[f'{PerClass.MAIN_CAUSE}{{{labels},class="client",cause="{cause}"}}'] = "1x9000"
    template = description_of("CephQosReservationViolated", SITES)
    alert = {**osd, "class": "client", LABEL: "us"}
    shown = rendered(template, alert, 3.0, looked_up, tmp_path)
    assert "Where: osd.3 on host ceph2, cluster rook-ceph, k8s_cluster us." in shown
    assert "Likely cause: cpu." in shown
    assert "ceph1" not in shown


def test_alerts_of_one_site_silence_none_of_another() -> None:
    config = yaml.safe_load(alertmanager_config(SITES))
    assert LABEL in config["route"]["group_by"]
    assert all(LABEL in rule["equal"] for rule in config["inhibit_rules"])


def queries() -> Iterator[str]:
    """What commands and dashboards ask."""
    yield from who.queries(600.0).values()
    yield from shared.QUERIES.values()
    for figure in FIGURES.values():
        yield from figure.promql(Selection(osd="osd.0"), 60.0)
    for file in sorted(GENERATED.glob("*.json")):
        for query in queries_of(json.loads(file.read_text("utf-8"))):
            yield query["expr"]


def test_a_command_for_one_site_reads_no_series_of_another() -> None:
    promql = [*tool("tentacle", "promtool"), "--experimental", "promql"]
    asked = sorted({_without_variables(query) for query in queries()})
    assert len(asked) > 100
    # To start promtool costs more than to read a query.
    for at in range(0, len(asked), 20):
        some = " or ".join(f"(\n{query}\n)" for query in asked[at : at + 20])
        assert run([*promql, "format", only(some, {LABEL: "eu"})]) == run(
            [*promql, "label-matchers", "set", some, LABEL, "eu"]
        )


def _without_variables(query: str) -> str:
    """As Grafana sends it."""
    windows = {"$__rate_interval": "1m", "$__range": "1h", "$__interval": "1m"}
    for variable, value in windows.items():
        query = query.replace(variable, value)
    return query.replace("${shift}", "5")


def test_a_dashboard_shows_the_site_that_was_chosen() -> None:
    for file in GENERATED.glob("*.json"):
        board = json.loads(of_sites(file.read_text("utf-8"), [LABEL]))
        asked = [query["expr"] for query in queries_of(board)]
        assert all(f'{LABEL}="${LABEL}"' in it for it in asked if it != "vector(0)"), file
        assert labels_of_sites(board) == [LABEL], file
        names = [variable["name"] for variable in board["templating"]["list"]]
        assert names.index(LABEL) < names.index("cluster") if "cluster" in names else LABEL in names
