"""The same role has the same room and the same rights in every setting."""

import re
from typing import Any

import pytest
import yaml

from cephqos_base.version import __version__
from cephqos_exporter.cli import every_option, read_settings
from cephqos_exporter.core_options import LISTEN_ADDRESS, PROC

from .programs import DEPLOY

_UNITS = {"m": 20, "mi": 20, "g": 30, "gi": 30}
# What the role cluster needs at 100,000 placement groups, with its child: docs/install/cluster.md.
LEAST = 512 << 20


def document(path: str) -> Any:
    return yaml.safe_load((DEPLOY / path).read_text())


def size(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w+)", text.lower()).groups()  # type: ignore[union-attr]
    return int(number) << _UNITS[unit]


def in_compose() -> str:
    limit = document("compose/compose.attach.yml")["services"]["cluster"]["mem_limit"]
    return str(re.fullmatch(r"\$\{\w+:-(\w+)\}", limit)[1])  # type: ignore[index]


def in_a_unit() -> str:
    text = (DEPLOY / "systemd" / "cephqos-cluster.service").read_text()
    [limit] = re.findall(r"^MemoryMax=(\w+)$", text, re.MULTILINE)
    return str(limit)


def in_cephadm() -> str:
    arguments = document("cephadm/cluster.yml")["extra_container_args"]
    return next(str(one.partition("=")[2]) for one in arguments if one.startswith("--memory="))


def in_the_chart() -> str:
    return str(document("helm/cephqos/values.yaml")["cluster"]["resources"]["limits"]["memory"])


@pytest.mark.parametrize("limit", [in_compose, in_a_unit, in_cephadm, in_the_chart])
def test_the_role_cluster_has_room_for_a_large_cluster_everywhere(limit: Any) -> None:
    assert size(limit()) >= LEAST


def test_the_collector_has_the_same_room_everywhere() -> None:
    compose = document("compose/common.yml")["services"]["collector"]["mem_limit"]
    unit = (DEPLOY / "collector" / "cephqos-collector.service").read_text()
    arguments = document("cephadm/collector.yml")["extra_container_args"]
    limits = {
        re.fullmatch(r"\$\{\w+:-(\w+)\}", compose)[1],  # type: ignore[index]
        *re.findall(r"^MemoryMax=(\w+)$", unit, re.MULTILINE),
        *(one.partition("=")[2] for one in arguments if one.startswith("--memory=")),
        document("helm/cephqos/values.yaml")["logs"]["resources"]["limits"]["memory"],
    }
    assert {size(limit) for limit in limits} == {512 << 20}
    assert len(limits) == 3  # as 512m, 512M and 512Mi


def test_pages_name_the_ports_that_the_settings_use() -> None:
    """The exporter's own default, and one more for each role beside it on the same host."""
    port = LISTEN_ADDRESS.default[0].rpartition(":")[2]
    assert LISTEN_ADDRESS in every_option()
    for name, number in (("exporter", int(port)), ("cluster", int(port) + 1)):
        packaged = document(f"packages/conf/{name}.yml")["web"]["listen-address"]
        assert packaged == [f":{number}"]
        assert document(f"cephadm/{name}.yml")["spec"]["ports"] == [number]
        role = "osd" if name == "exporter" else name
        assert document("helm/cephqos/values.yaml")[role]["port"] == number
    jobs = yaml.safe_load("jobs:\n" + (DEPLOY / "cephadm" / "scrape.yml").read_text())["jobs"]
    targets = [target for job in jobs for target in job["static_configs"][0]["targets"]]
    assert {target.rpartition(":")[2] for target in targets} == {port, str(int(port) + 1)}


def test_every_setting_that_scrapes_beside_cephs_exporter_drops_the_same_series() -> None:
    drop = {"source_labels": ["__name__"], "regex": "ceph_.*", "action": "drop"}
    jobs = document("prometheus/prometheus.yml")["scrape_configs"]
    jobs += yaml.safe_load("jobs:\n" + (DEPLOY / "cephadm" / "scrape.yml").read_text())["jobs"]
    osds = [job for job in jobs if job["job_name"] == "cephqos"]
    assert [job["metric_relabel_configs"] for job in osds] == [[drop], [drop]]
    chart = (DEPLOY / "helm" / "cephqos" / "templates" / "osd.yaml").read_text()
    assert '(dict "sourceLabels" (list "__name__") "regex" "ceph_.*" "action" "drop")' in chart


def test_no_rule_and_no_dashboard_needs_what_is_dropped() -> None:
    """The pages say so of `ceph_.*`. Names of labels begin so too."""
    root = DEPLOY.parent
    labels = {"ceph_daemon", "ceph_version"}
    files = [*(root / "alerts" / "rules").glob("*.yml")]
    files += (root / "dashboards" / "cephqos_dashboards" / "generated").glob("*.json")
    assert len(files) > 10
    for file in files:
        assert set(re.findall(r"\bceph_\w+", file.read_text())) <= labels, file.name


def test_the_doctor_in_a_container_is_told_of_the_hosts_processes_as_the_exporter_is() -> None:
    page = (DEPLOY.parent / "docs/operate/doctor.md").read_text()
    chart = (DEPLOY / "helm" / "cephqos" / "templates" / "osd.yaml").read_text()
    [told] = re.findall(r"--path\.procfs=(\S+)", chart)
    assert f"cephqos doctor host --path.procfs={told} " in page
    # In cephadm's container the environment says it, which the doctor reads as the exporter does.
    envs = document("cephadm/exporter.yml")["spec"]["envs"]
    settings = read_settings({}, dict(one.split("=", 1) for one in envs))
    assert settings[PROC] == told
    dockerfile = (DEPLOY / "images" / "Dockerfile").read_text()
    assert "PATH=/opt/cephqos-exporter/bin:" in dockerfile


def test_the_chart_takes_images_and_labels_of_this_version() -> None:
    chart = document("helm/cephqos/Chart.yaml")
    assert {chart["version"], chart["appVersion"]} == {__version__}
