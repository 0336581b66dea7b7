"""Which Grafana is taken, and how it is started."""

import contextlib
import os
import signal
import stat
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from cephqos_base.errors import UsageError
from cephqos_dashboards.provisioning import Sources
from cephqos_loadgen.errors import LabError
from cephqos_stack.grafana import own
from cephqos_stack.grafana.find import find_grafana
from cephqos_stack.grafana.own import IMAGE, DockerGrafana, Grafana

SOURCES = Sources(prometheus="http://127.0.0.1:1", loki="http://127.0.0.1:2")


def program(file: Path, text: str = "exit 0") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def home(folder: Path) -> Path:
    program(folder / "bin" / "grafana")
    (folder / "conf").mkdir()
    (folder / "conf" / "defaults.ini").write_text("")
    return folder


async def test_a_directory_comes_before_the_path_which_comes_before_docker(
    tmp_path: Path,
) -> None:
    program(tmp_path / "path" / "grafana-server")
    program(tmp_path / "docker" / "docker")
    known = {
        "GRAFANA_HOME": str(home(tmp_path / "home")),
        "PATH": f"{tmp_path / 'path'}:{tmp_path / 'docker'}:/usr/bin:/bin",
    }
    found = await find_grafana(known)
    assert isinstance(found, Grafana)
    assert f"--homepath={tmp_path / 'home'}" in found._argv(tmp_path)
    del known["GRAFANA_HOME"]
    found = await find_grafana(known)
    assert isinstance(found, Grafana)
    assert str(tmp_path / "path" / "grafana-server") in found._argv(tmp_path)
    known["PATH"] = f"{tmp_path / 'docker'}:/usr/bin:/bin"
    assert isinstance(await find_grafana(known), DockerGrafana)
    program(tmp_path / "docker" / "docker", "echo 'no engine' >&2; exit 1")
    assert await find_grafana(known) is None


async def test_what_is_named_and_is_no_grafana_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected bin/grafana"):
        await find_grafana({"GRAFANA_HOME": str(tmp_path)})


@pytest.mark.parametrize("docker", [False, True])
def test_our_own_listens_on_loopback_and_makes_nobody_administrator(
    docker: bool, tmp_path: Path
) -> None:
    one = DockerGrafana("docker") if docker else Grafana(home(tmp_path / "home"))
    other = DockerGrafana("docker") if docker else Grafana(tmp_path / "home")
    argv, given = one._argv(tmp_path), one._variables(tmp_path)
    assert given["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert given["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Editor"
    assert given["GF_AUTH_BASIC_ENABLED"] == "false"
    assert len(given["GF_SECURITY_ADMIN_PASSWORD"]) > 20
    password = given["GF_SECURITY_ADMIN_PASSWORD"]
    assert password != other._variables(tmp_path)["GF_SECURITY_ADMIN_PASSWORD"]
    assert password not in " ".join(argv), "everybody could read it"
    if docker:
        assert "--env=GF_SECURITY_ADMIN_PASSWORD" in argv


def test_the_first_page_shows_a_quarter_of_an_hour_and_its_address_fits_80_columns() -> None:
    address = Grafana(None, "grafana").home_url
    assert parse_qs(urlsplit(address).query) == {"from": ["now-15m"], "to": ["now"]}
    assert len("Grafana:      " + address.replace(str(urlsplit(address).port), "65535")) <= 80


async def test_an_image_that_cannot_be_pulled_is_said_in_one_line(tmp_path: Path) -> None:
    docker = program(tmp_path / "docker", f'[ $1 = pull ] && echo "no route for {IMAGE}"; exit 1')
    with pytest.raises(LabError, match=f"cannot pull {IMAGE}: no route"):
        async with DockerGrafana(str(docker)).showing(SOURCES, tmp_path / "work"):
            pass


@pytest.mark.parametrize("end", ["input closes", "terminated", "ends by itself"])
def test_what_runs_in_the_container_ends_with_its_client(end: str) -> None:
    """The script that the container runs, in a process of ours."""
    lasts = "0.2" if end == "ends by itself" else "60"
    argv = ["sh", "-c", own._UNTIL_INPUT_CLOSES, "sh", "sleep", lasts]
    script = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)
    try:
        if end != "ends by itself":
            with pytest.raises(subprocess.TimeoutExpired):
                script.wait(0.5)
        assert script.stdin
        if end == "input closes":
            script.stdin.close()
        elif end == "terminated":
            script.terminate()
        script.wait(10)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGKILL)
        script.communicate()


async def test_one_that_does_not_start_is_said_with_its_last_words(tmp_path: Path) -> None:
    program(home(tmp_path / "home") / "bin" / "grafana", "echo 'no such database'; exit 1")
    with pytest.raises(LabError, match="Grafana did not start: no such database"):
        async with Grafana(tmp_path / "home").showing(SOURCES, tmp_path / "work"):
            pass


# Answers at its port; its home page is there at the third time, or never.
_SERVER = """
exec python3 -c "
import http.server, os
asked = []
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        board = self.path == '/api/dashboards/uid/cephqos-overview'
        asked.append(board)
        self.send_response(200 if not board or {shown} < sum(asked) else 404)
        self.end_headers()
http.server.HTTPServer(('127.0.0.1', int(os.environ['GF_SERVER_HTTP_PORT'])), Page).serve_forever()
"
"""


@pytest.mark.parametrize("shown", [2, 10**9])
async def test_one_that_has_none_of_our_dashboards_is_no_success(
    shown: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_SHOW_SECONDS", 20.0 if shown == 2 else 1.0)
    server = _SERVER.replace("{shown}", str(shown))
    program(home(tmp_path / "home") / "bin" / "grafana", server)
    grafana = Grafana(tmp_path / "home")
    if shown == 2:
        async with grafana.showing(SOURCES, tmp_path / "work"):
            pass
    else:
        with pytest.raises(LabError, match=r"none of our dashboards: it does not see .*/work"):
            async with grafana.showing(SOURCES, tmp_path / "work"):
                pass
