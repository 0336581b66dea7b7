"""What can be said of deploy/compose without Docker. tests/compose runs it."""

import configparser
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cephqos_stack.grafana.own import IMAGE

from .programs import DEPLOY, program

STACK = DEPLOY / "compose"
FILES = ("common.yml", "monitoring.yml", "compose.yml", "compose.attach.yml")
TEXT = "".join((STACK / name).read_text() for name in FILES)


def services(name: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((STACK / name).read_text())["services"]
    return found


def test_every_folder_and_file_that_is_mounted_is_in_the_repository() -> None:
    own = re.findall(r"^ +- (\.{1,2}/[^:}]+):", TEXT, re.MULTILINE)
    defaults = re.findall(r"source: \"?\$\{\w+:-(\.{1,2}/[^:}]+)\}", TEXT)
    assert len(own) >= 9 and len(defaults) >= 2
    assert [path for path in [*own, *defaults] if not (STACK / path).exists()] == []
    for name in ("lab.env", "attach.env"):
        folder = STACK / (STACK / name).read_text().split()[0].partition("=")[2]
        assert [file.suffix for file in folder.iterdir()] == [".yml"]


def test_docker_makes_no_folder_where_a_path_of_the_user_is_missing() -> None:
    """A mount in one line would: `/etc/ceph/ceph.conf` would become a folder."""
    short = re.findall(r"^ +- [^\n]*\$\{\w+:?-?[^}\n]*\}:/", TEXT, re.MULTILINE)
    assert short == []
    assert TEXT.count("type: bind") == TEXT.count("create_host_path: false") + TEXT.count(
        "bind: *must_exist"
    )


def test_the_readme_has_every_variable() -> None:
    readme = Path("docs/install/compose.md").read_text()
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", TEXT))  # two $ are for the container's own shell
    limits = {name for name in used if name.endswith(("_MEMORY", "_CPUS"))}
    assert {name for name in used - limits if f"`{name}`" not in readme} == set()


def test_grafana_finds_what_its_provisioning_files_name() -> None:
    grafana = services("monitoring.yml")["grafana"]
    mounts = {v.split(":")[-2]: STACK / v.split(":")[0] for v in grafana["volumes"][:-1]}
    provisioning = mounts["/etc/grafana/provisioning"]
    provider = yaml.safe_load((provisioning / "dashboards/cephqos.yml").read_text())["providers"][0]
    dashboards = mounts[provider["options"]["path"]]
    assert len([json.loads(f.read_text()) for f in dashboards.glob("*.json")]) >= 8
    settings = configparser.ConfigParser()
    settings.read(STACK / "grafana.ini")
    home = Path(settings["dashboards"]["default_home_dashboard_path"])
    assert (mounts[str(home.parent)] / home.name).is_file()
    sources = yaml.safe_load((provisioning / "datasources/cephqos.yml").read_text())["datasources"]
    ports = {source["type"]: source["url"].rpartition(":")[2] for source in sources}
    assert ports == {"prometheus": "9090", "loki": "3100"}


def test_grafana_listens_beyond_loopback_only_with_a_password_and_without_anonymous_users() -> None:
    settings = configparser.ConfigParser()
    settings.read(STACK / "grafana.ini")
    assert settings["server"]["http_addr"] == "127.0.0.1"
    assert settings["security"]["disable_initial_admin_creation"] == "true"
    environment = services("monitoring.yml")["grafana"]["environment"]
    for name in (
        "GF_SERVER_HTTP_ADDR",
        "GF_AUTH_ANONYMOUS_ENABLED",
        "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION",
    ):
        assert environment[name].startswith("${GRAFANA_PASSWORD_FILE:+"), name


def test_the_health_of_grafana_is_asked_where_it_listens(tmp_path: Path) -> None:
    kind, command = services("monitoring.yml")["grafana"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    for address, expected in (("", "127.0.0.1"), ("10.0.0.5", "10.0.0.5")):
        said = subprocess.run(
            ["sh", "-c", "wget() { echo $4; }; " + command.replace("$$", "$")],
            env={"GF_SERVER_HTTP_ADDR": address, "GF_SERVER_HTTP_PORT": "3000"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout.strip() == f"http://{expected}:3000/api/health"


def test_an_image_that_is_named_twice_is_the_same() -> None:
    dockerfile = (DEPLOY / "images" / "Dockerfile").read_text()
    bases = re.findall(r"(COLLECTOR|LOKI)_IMAGE: \$\{\w+:-(.+)\}", TEXT)
    assert len(bases) == 2
    for name, image in bases:
        assert f"ARG {name}_IMAGE={image}\n" in dockerfile
    assert services("monitoring.yml")["grafana"]["image"] == f"${{GRAFANA_IMAGE:-{IMAGE}}}"
    commented = re.findall(r"^#\w+=(.+)$", (STACK / ".env").read_text(), re.MULTILINE)
    assert [image for image in commented if f":-{image}}}" not in TEXT] == []


def resolved(name: str, service: str) -> dict[str, Any]:
    """A service with what it takes from another one: its user and its volumes."""
    found = services(name)[service]
    parent = found.get("extends")
    if not parent:
        return found
    inherited = resolved(parent.get("file", name), parent["service"])
    # Compose joins these lists; of everything else the service's own wins.
    joined = {
        key: [*inherited.get(key, []), *found.get(key, [])]
        for key in ("volumes", "security_opt", "cap_drop")
    }
    return inherited | found | joined


def test_every_service_but_the_lab_has_the_rights_that_the_readme_says_and_no_more() -> None:
    seen = set()
    for name in FILES[1:]:
        for service in set(services(name)) - {"lab"}:
            found = resolved(name, service)
            assert found["cap_drop"] == ["ALL"], service
            assert "no-new-privileges:true" in found["security_opt"], service
            assert found["read_only"] is True, service
            assert found["network_mode"] == "host" and "ports" not in found, service
            assert not found.get("privileged"), service
            assert found["restart"] == "unless-stopped", service
            assert {"mem_limit", "cpus", "healthcheck"} <= found.keys(), service
            looks = ("pid" in found, "label=disable" in found["security_opt"])
            assert looks == ((True, True) if service == "hosts" else (False, False)), service
            seen.add(service)
    assert len(seen) == 10


def test_whoever_ceph_is_a_service_can_write_to_its_volumes() -> None:
    """A new volume has the rights of the image's folder, which know nothing of CEPH_USER."""
    dockerfile = (DEPLOY / "images" / "Dockerfile").read_text()
    own = set(re.findall(r"chown (\d+:\d+) (\S+)", dockerfile))
    seen = 0
    for name in FILES[1:]:
        for service in services(name):
            found = resolved(name, service)
            for volume in found["volumes"]:
                mount = re.fullmatch(r"(\w+):(/[^:]+)", volume) if isinstance(volume, str) else None
                if mount is None or "user" not in found:
                    continue  # a file of the host, read only, or a user that the image has
                seen += 1
                anybody = f"install -d -m 1777 {mount[2]}" in dockerfile
                assert anybody or (found["user"], mount[2]) in own, (name, service, volume)
    assert seen >= 4


def test_the_lab_is_watched_by_the_user_of_its_daemons_whoever_ceph_is_elsewhere() -> None:
    watching = ("hosts", "cluster", "probe", "collector", "load")
    assert {resolved("compose.yml", name)["user"] for name in watching} == {"64045:64045"}
    for name in ("cluster", "probe", "collector"):
        assert resolved("compose.attach.yml", name)["user"] == "${CEPH_USER:-64045:64045}"


def test_public_images_are_pinned_and_replaceable() -> None:
    images = re.findall(r"(?:image|IMAGE): (.+)$", TEXT, re.MULTILINE)
    assert len(images) >= 10
    for image in images:
        assert re.fullmatch(r"\$\{\w+:-[\w./-]+:[\w.-]+(@sha256:[0-9a-f]{64})?\}", image), image
        assert ":latest" not in image


def test_the_lab_gives_its_exporters_the_documented_capabilities() -> None:
    lab = program("compose/lab.py")
    text = (STACK.parents[1] / "docs/install/security.md").read_text()
    for user, caps in lab.USERS.items():
        start = f"ceph auth get-or-create {user} "
        line = next(line for line in text.splitlines() if line.startswith(start))
        words = shlex.split(line.replace("POOL", "probe"))[4:-2]
        assert dict(zip(words[::2], words[1::2], strict=True)) == caps


def test_one_variable_turns_the_recorders_on_and_lets_alerts_reach_them() -> None:
    for name, roles in (
        ("compose.yml", ("hosts", "cluster")),
        ("compose.attach.yml", ("cluster",)),
    ):
        addresses, paths = [], []
        for role in roles:
            service = resolved(name, role)
            options = dict(word[2:].split("=", 1) for word in service["command"])
            assert options["recorder.minutes"] == "${RECORDER_MINUTES:-0}"
            assert "recorded:/var/lib/cephqos-recorder" in service["volumes"]
            addresses.append(options["web.listen-address"])
            paths.append(options["recorder.path"])
        assert len({*paths}) == len(roles)
        env = STACK / ("lab.env" if name == "compose.yml" else "attach.env")
        assert f"RECORDERS={' '.join(addresses)}\n" in env.read_text()
    told = services("monitoring.yml")["webhook"]["environment"]["RECORDERS"]
    assert told == "${RECORDER_MINUTES:+${RECORDERS}}"


def test_the_attached_stack_has_neither_lab_nor_load() -> None:
    attached = services("compose.attach.yml")
    assert not {"lab", "load"} & set(attached)
    assert not any(service.get("privileged") for service in attached.values())


_LOAD = """
import sys
from pathlib import Path
sys.path.insert(0, {stack!r})
import load
load.ARCHIVES = load.BEAT = Path({folder!r})
load.repeat()
"""
_RUN = """#!/bin/sh
trap 'echo interrupted; exit 143' TERM
echo started
while :; do sleep 0.1; done
"""


def test_a_load_that_is_told_to_end_interrupts_its_run_and_waits_for_it(tmp_path: Path) -> None:
    program = tmp_path / "bin/cephqos"
    program.parent.mkdir()
    program.write_text(_RUN)
    program.chmod(0o755)
    settings = {"LOAD_SCENARIO": "x", "LOAD_SCALE": "x", "LOAD_KEEP": "1", "LAB_FSID": "x"}
    archives = tmp_path / "archives"
    archives.mkdir()
    script = _LOAD.format(stack=str(STACK), folder=str(archives))
    load = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, **settings, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert load.stdout and load.stdout.readline() == "started\n"
    load.terminate()
    try:
        said, _ = load.communicate(timeout=20)
    finally:
        load.kill()
    assert said == "interrupted\ncephqos run ended with status 143\n"
    assert load.returncode == 0


def test_the_load_removes_only_archives_that_it_has_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody keeps archives in the same volume: copies, or those of runs that were typed."""
    load = program("compose/load.py")
    monkeypatch.setattr(load, "ARCHIVES", tmp_path)
    for name in ("20260101-mine", "2026-photos"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    for number in range(3):
        before = set(tmp_path.iterdir())
        (tmp_path / f"2026020{number}-run").mkdir()
        (tmp_path / f"2026020{number}-run" / "archive.json").touch()
        load.mark(before)
    (tmp_path / "20260200-run").rename(tmp_path / "20260200-keep-this")
    load.tidy(1)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("20260101-mine", "2026-photos", "20260200-keep-this", "20260202-run")
    }
    assert (tmp_path / "20260101-mine" / "file").exists()


def test_a_load_that_is_told_to_end_while_its_run_starts_interrupts_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = program("compose/load.py")
    monkeypatch.setattr(load, "ARCHIVES", tmp_path)
    monkeypatch.setattr(load, "BEAT", tmp_path / "beat")
    monkeypatch.setenv("LOAD_KEEP", "1")
    monkeypatch.setattr(load, "argv", lambda: ["sleep", "60"])
    begun: list[subprocess.Popen[bytes]] = []
    really = subprocess.Popen

    def popen(argv: list[str]) -> subprocess.Popen[bytes]:
        begun.append(really(argv))
        os.kill(os.getpid(), signal.SIGTERM)  # before anybody has the run
        return begun[0]

    monkeypatch.setattr(load.subprocess, "Popen", popen)
    before = signal.getsignal(signal.SIGTERM)
    try:
        load.repeat()
        assert begun[0].returncode == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)
        for run in begun:
            run.kill()
            run.wait()
