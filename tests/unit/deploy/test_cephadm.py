"""Specifications for cephadm: what the exporter makes of their settings."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from cephqos_exporter import core_options
from cephqos_exporter.cli import read_settings
from cephqos_exporter.cluster.cluster_options import KEYRING
from cephqos_exporter.flight_recorder import options as recorder_options
from cephqos_stack.logs import COLLECTOR_CONFIG, COLLECTOR_GATES

ROOT = Path(__file__).parents[3]
CEPHADM = ROOT / "deploy" / "cephadm"


PAGE = ROOT / "docs/install/cephadm.md"


def document(name: str) -> Any:
    return yaml.safe_load((CEPHADM / name).read_text())


def spec(name: str) -> Any:
    return document(name)["spec"]


@pytest.mark.parametrize(("name", "role"), [("exporter.yml", "osd"), ("cluster.yml", "cluster")])
def test_its_environment_is_one_that_the_exporter_takes(name: str, role: str) -> None:
    read = spec(name)
    settings = read_settings({}, dict(one.split("=", 1) for one in read["envs"]))
    assert settings[core_options.ROLE] == (role,)
    assert settings[core_options.LISTEN_ADDRESS] == (f":{read['ports'][0]}",)
    mounted = [one[2].removeprefix("destination=") for one in read["bind_mounts"]]
    if role == "osd":
        host_paths = core_options.PROC, core_options.SYS, core_options.DEV
        wanted = {settings[option] for option in host_paths}
        assert {*wanted, "/run/ceph"} == set(mounted)
        assert any(p.startswith("/run/ceph/") for p in settings[core_options.SOCKETS])
    else:
        assert str(Path(settings[KEYRING]).parent) in mounted


@pytest.mark.parametrize("name", ["exporter.yml", "cluster.yml", "collector.yml"])
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
    assert f" {label} " in Path("docs/install/cephadm.md").read_text().replace("\n", " ")


def test_the_collector_finds_its_logs_with_the_fsid_in_their_path_and_keeps_its_state() -> None:
    config = yaml.safe_load(COLLECTOR_CONFIG.read_text())
    read = spec("collector.yml")
    [[_, source, destination, _]] = read["bind_mounts"]
    logs = destination.removeprefix("destination=")
    assert source == f"source={logs}"
    [*_, pattern] = [
        operator["regex"]
        for operator in config["receivers"]["file_log/daemons"]["operators"]
        if operator.get("parse_from") == 'attributes["log.file.path"]'
    ]
    fsid = "01234567-89ab-cdef-0123-456789abcdef"
    found = re.search(pattern, f"{logs.replace('FSID', fsid)}/ceph-osd.3.log")
    assert found and found["fsid"] == fsid
    assert list(read["volume_mounts"]) == read["dirs"]
    assert f":-{read['volume_mounts']['state']}}}" in COLLECTOR_CONFIG.read_text()
    known = set(re.findall(r"\$\{env:(\w+)", COLLECTOR_CONFIG.read_text()))
    assert {one.partition("=")[0] for one in read["envs"]} | {"NODE_NAME"} <= known


@pytest.mark.parametrize("name", ["exporter", "cluster", "collector"])
def test_the_pages_command_fills_in_all_that_is_to_be_filled_in(name: str) -> None:
    page = Path("docs/install/cephadm.md").read_text()
    [command] = re.findall(rf"^sed (.*) deploy/cephadm/{name}\.yml", page, re.MULTILINE)
    script = f"ceph() {{ echo 0-1-2; }}; sed {command} {CEPHADM / name}.yml"
    yours = {"IMAGE": "r.org/a:1", "COLLECTOR": "r.org/b:1", "LOKI": "http://l:3100"}
    done = subprocess.run(
        ["bash", "-c", script], env=yours, capture_output=True, text=True, check=True, timeout=30
    )
    filled = yaml.safe_dump(yaml.safe_load(done.stdout))
    assert not re.search(r"FSID|IMAGE|=LOKI", filled)
    assert "image: r.org/" in filled
    assert filled.count("0-1-2") == {"exporter": 1, "cluster": 0, "collector": 2}[name]


def test_its_image_starts_without_arguments_as_the_unit_and_compose_start_it() -> None:
    dockerfile = (ROOT / "deploy" / "images" / "Dockerfile").read_text()
    target = dockerfile.split("AS collector\n")[1].split("\nFROM ")[0]
    [words] = re.findall(r"^CMD (\[.*\])$", target, re.MULTILINE)
    common = yaml.safe_load((ROOT / "deploy" / "compose" / "common.yml").read_text())
    assert yaml.safe_load(words) == common["services"]["collector"]["command"]
    assert COLLECTOR_GATES in words
    config = yaml.safe_load(words)[0].removeprefix("--config=")
    assert f"COPY --chmod=644 {COLLECTOR_CONFIG.relative_to(ROOT)} {config}\n" in target
    ignored = (ROOT / "deploy" / "images" / "Dockerfile.dockerignore").read_text()
    assert f"!{COLLECTOR_CONFIG.parent.relative_to(ROOT)}\n" in ignored


def test_the_key_is_the_documented_one() -> None:
    page = Path("docs/install/cephadm.md").read_text()
    [command] = re.findall(r"^ceph auth get-or-create .*$", page, re.MULTILINE)
    assert command in (ROOT / "docs/install/security.md").read_text()


def test_the_keyring_belongs_to_the_user_of_the_container() -> None:
    """`client-keyring set` reads UID:GID, whatever Ceph's manual says; else it sets no keyring."""
    page = Path("docs/install/cephadm.md").read_text()
    [command] = re.findall(r"^ceph orch client-keyring set .*$", page, re.MULTILINE)
    read = spec("cluster.yml")
    assert f" --owner {read['uid']}:{read['gid']}" in command
    assert f" label:{document('cluster.yml')['placement']['label']} " in command


@pytest.mark.parametrize("name", ["exporter", "cluster"])
def test_the_files_for_tls_are_a_web_configuration_that_the_exporter_is_told_of(name: str) -> None:
    text = "".join((CEPHADM / f"{it}.yml").read_text() for it in (name, "web"))
    whole = yaml.safe_load(text)
    [option] = whole["extra_entrypoint_args"]
    [(folder, mounted)] = whole["spec"]["volume_mounts"].items()
    assert option == f"--web.config.file={mounted}/web.yml"
    web = yaml.safe_load(whole["spec"]["files"][f"{folder}/web.yml"])
    assert set(web) == {"tls_server_config", "basic_auth_users"}
    named = set(web["tls_server_config"].values()) | {"web.yml"}
    assert {f"{folder}/{it}" for it in named} == set(whole["spec"]["files"])
    assert "deploy/cephadm/exporter.yml deploy/cephadm/web.yml" in PAGE.read_text()


@pytest.mark.parametrize("name", ["exporter", "cluster"])
def test_the_recorder_at_the_end_of_a_specification_has_a_directory_of_its_own(name: str) -> None:
    texts = [(CEPHADM / part).read_text() for part in (f"{name}.yml", "recorder.yml")]
    whole = yaml.safe_load("".join(texts))
    assert list(whole["spec"]["volume_mounts"]) == whole["spec"]["dirs"]
    given = dict(word.removeprefix("--").split("=") for word in whole["extra_entrypoint_args"])
    settings = read_settings(given, {})
    assert settings[recorder_options.MINUTES] == 10
    assert [settings[recorder_options.PATH]] == list(whole["spec"]["volume_mounts"].values())
    assert "deploy/cephadm/recorder.yml" in PAGE.read_text()


def test_what_the_manager_lists_are_our_specifications() -> None:
    text = (CEPHADM / "scrape-20.2.yml").read_text()
    for name in ("exporter", "cluster"):
        assert f"'container.{document(f'{name}.yml')['service_id']}'" in text
    assert text.count("'mgr-prometheus'") == 1


def test_first_figures_of_any_number_of_hosts_take_three_commands() -> None:
    """Without the line that names the image."""
    before = PAGE.read_text().split("## 3.")[0]
    lines = "".join(re.findall(r"```sh\n(.*?)```", before, re.DOTALL)).splitlines()
    commands = [line for line in lines if not re.match(r"[A-Z]+=", line)]
    assert len(commands) == 3
    assert "/metrics" in commands[-1]


def test_the_scrape_jobs_fit_into_a_list_of_jobs() -> None:
    text = (CEPHADM / "scrape.yml").read_text()
    jobs = yaml.safe_load(f"scrape_configs:\n{text}")["scrape_configs"]
    assert [job["job_name"] for job in jobs] == ["cephqos", "cephqos-cluster"]


def test_the_page_makes_all_rules_into_the_one_file_that_cephadm_loads(tmp_path: Path) -> None:
    page = Path("docs/install/cephadm.md").read_text()
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
    page = Path("docs/install/cephadm.md").read_text()
    [stored] = re.findall(r"^ceph config-key set (\S+prometheus\.yml) ", page, re.MULTILINE)
    upgrade = page.split("**Ceph itself.**")[1]
    lines = upgrade.split("```")[1].splitlines()
    assert f"ceph config-key rm {stored}" in lines
    start = next(n for n, line in enumerate(lines) if line.startswith("ceph orch upgrade start"))
    assert lines.index(f"ceph config-key rm {stored}") < start
    assert "#upgrade-remove" in page.split("## 5.")[0]
