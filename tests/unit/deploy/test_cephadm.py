"""Specifications for cephadm: what the exporter makes of their settings."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cephqos_exporter import options
from cephqos_exporter.cli import read_settings
from cephqos_exporter.cluster.options import KEYRING

ROOT = Path(__file__).parents[3]
CEPHADM = ROOT / "deploy" / "cephadm"


def document(name: str) -> Any:
    return yaml.safe_load((CEPHADM / name).read_text())


def spec(name: str) -> Any:
    return document(name)["spec"]


@pytest.mark.parametrize(("name", "role"), [("exporter.yml", "osd"), ("cluster.yml", "cluster")])
def test_its_environment_is_one_that_the_exporter_takes(name: str, role: str) -> None:
    read = spec(name)
    settings = read_settings({}, dict(one.split("=", 1) for one in read["envs"]))
    assert settings[options.ROLE] == (role,)
    assert settings[options.LISTEN_ADDRESS] == (f":{read['ports'][0]}",)
    mounted = [one[2].removeprefix("destination=") for one in read["bind_mounts"]]
    if role == "osd":
        wanted = (settings[options.PROC], settings[options.SYS], settings[options.DEV])
        assert {*wanted, "/run/ceph"} == set(mounted)
        assert any(p.startswith("/run/ceph/") for p in settings[options.SOCKETS])
    else:
        assert str(Path(settings[KEYRING]).parent) in mounted


@pytest.mark.parametrize("name", ["exporter.yml", "cluster.yml"])
def test_it_has_no_more_rights_than_it_needs(name: str) -> None:
    read = spec(name)
    given = document(name)["extra_container_args"]
    assert {"--cap-drop=ALL", "--read-only", "--user=167:167"} <= set(given)
    assert "--security-opt=no-new-privileges" in given
    # Some versions of cephadm would make arguments of the exporter of them. All split at blanks.
    assert "args" not in read
    assert not [one for one in given if " " in one]
    assert not read.get("privileged")
    assert all("ro=true" in mount for mount in read["bind_mounts"])
    assert not re.search(r"key\s*=|password|secret", (CEPHADM / name).read_text(), re.IGNORECASE)


def test_selinux_and_apparmor_let_only_the_role_osd_look_at_osds() -> None:
    """OSDs are in privileged containers, and ordinary ones may not look at those."""
    off = {"--security-opt=label=disable", "--security-opt=apparmor=unconfined"}
    assert off <= set(document("exporter.yml")["extra_container_args"])
    assert not off & set(document("cluster.yml")["extra_container_args"])


@pytest.mark.parametrize("name", ["exporter.yml", "cluster.yml"])
def test_its_label_is_no_one_elses(name: str) -> None:
    """A label `osd` may be that of a specification of OSDs, which then takes the host's disks."""
    label = document(name)["placement"]["label"]
    assert label.startswith("cephqos-")
    assert f" {label} " in (CEPHADM / "README.md").read_text().replace("\n", " ")


def test_the_key_is_the_documented_one() -> None:
    page = (CEPHADM / "README.md").read_text()
    [command] = re.findall(r"^ceph auth get-or-create .*$", page, re.MULTILINE)
    assert command in (ROOT / "exporter" / "SECURITY.md").read_text()


def test_the_scrape_jobs_fit_into_a_list_of_jobs() -> None:
    text = (CEPHADM / "scrape.yml").read_text()
    jobs = yaml.safe_load(f"scrape_configs:\n{text}")["scrape_configs"]
    assert [job["job_name"] for job in jobs] == ["cephqos", "cephqos-cluster"]


def test_the_page_makes_all_rules_into_the_one_file_that_cephadm_loads(tmp_path: Path) -> None:
    page = (CEPHADM / "README.md").read_text()
    (tmp_path / "alerts").symlink_to(ROOT / "alerts")
    [command] = re.findall(r"^\{ echo groups:.*$", page, re.MULTILINE)
    subprocess.run(["bash", "-euc", command], cwd=tmp_path, check=True, timeout=30)
    made = tmp_path / "custom_alerts.yml"
    committed = [
        group
        for file in sorted((ROOT / "alerts" / "rules").glob("*.yml"))
        for group in yaml.safe_load(file.read_text())["groups"]
    ]
    groups = yaml.safe_load(made.read_text())["groups"]
    assert groups == committed
    assert len({group["name"] for group in groups}) == len(groups)
    [most] = re.findall(r"mon_config_key_max_entry_size (\d+)", page)
    assert made.stat().st_size < int(most)
    assert "mgr/cephadm/services/prometheus/alerting/custom_alerts.yml" in page


def test_a_template_is_removed_before_ceph_is_upgraded_under_the_key_that_it_was_stored_with() -> (
    None
):
    """The new manager refuses what the old one's template asks for, and the upgrade stops."""
    page = (CEPHADM / "README.md").read_text()
    [stored] = re.findall(r"^ceph config-key set (\S+prometheus\.yml) ", page, re.MULTILINE)
    upgrade = page.split("**Ceph itself.**")[1]
    lines = upgrade.split("```")[1].splitlines()
    assert f"ceph config-key rm {stored}" in lines
    start = next(n for n, line in enumerate(lines) if line.startswith("ceph orch upgrade start"))
    assert lines.index(f"ceph config-key rm {stored}") < start
    assert "#upgrade-remove" in page.split("## 5.")[0]
