"""Which Grafana is taken, how it is started, and what is put into one that runs."""

import contextlib
import json
import os
import signal
import stat
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web
from tests.board_panels import UIDS, boards
from tests.fake_server import serving

from cephqos_base.errors import UsageError
from cephqos_dashboards.cli import GENERATED
from cephqos_dashboards.provisioning import Sources
from cephqos_loadgen.errors import LabError
from cephqos_stack.grafana import own
from cephqos_stack.grafana.find import find_grafana
from cephqos_stack.grafana.other import OtherGrafana, own_copy
from cephqos_stack.grafana.own import IMAGE, DockerGrafana, OwnGrafana

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


async def test_a_url_comes_before_a_directory_which_comes_before_the_path_and_docker(
    tmp_path: Path,
) -> None:
    program(tmp_path / "path" / "grafana-server")
    program(tmp_path / "docker" / "docker")
    known = {
        "GRAFANA_URL": "http://host:3000",
        "GRAFANA_HOME": str(home(tmp_path / "home")),
        "PATH": f"{tmp_path / 'path'}:{tmp_path / 'docker'}:/usr/bin:/bin",
    }
    found = await find_grafana(known)
    assert isinstance(found, OtherGrafana) and found.url == "http://host:3000"
    del known["GRAFANA_URL"]
    found = await find_grafana(known)
    assert isinstance(found, OwnGrafana)
    assert f"--homepath={tmp_path / 'home'}" in found._argv(tmp_path)
    del known["GRAFANA_HOME"]
    found = await find_grafana(known)
    assert isinstance(found, OwnGrafana)
    assert str(tmp_path / "path" / "grafana-server") in found._argv(tmp_path)
    known["PATH"] = f"{tmp_path / 'docker'}:/usr/bin:/bin"
    known["GRAFANA_IMAGE"] = "grafana/grafana:12.4.11"
    found = await find_grafana(known)
    assert isinstance(found, DockerGrafana)
    assert "grafana/grafana:12.4.11" in found._argv(tmp_path)
    program(tmp_path / "docker" / "docker", "echo 'no engine' >&2; exit 1")
    assert await find_grafana(known) is None


async def test_what_is_named_and_is_no_grafana_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected bin/grafana"):
        await find_grafana({"GRAFANA_HOME": str(tmp_path)})
    for url in ("ftp://user:secret@host", "http://user:secret@host:port", "http://me:secret/@h"):
        with pytest.raises(UsageError, match=r"GRAFANA_URL .*expected") as refused:
            await find_grafana({"GRAFANA_URL": url})
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("docker", [False, True])
def test_our_own_listens_on_loopback_and_makes_nobody_administrator(
    docker: bool, tmp_path: Path
) -> None:
    one = DockerGrafana("docker") if docker else OwnGrafana(home(tmp_path / "home"))
    other = DockerGrafana("docker") if docker else OwnGrafana(tmp_path / "home")
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
    address = OwnGrafana(None, "grafana").home_url
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
        async with OwnGrafana(tmp_path / "home").showing(SOURCES, tmp_path / "work"):
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
    grafana = OwnGrafana(tmp_path / "home")
    if shown == 2:
        async with grafana.showing(SOURCES, tmp_path / "work"):
            pass
    else:
        with pytest.raises(LabError, match=r"none of our dashboards: it does not see .*/work"):
            async with grafana.showing(SOURCES, tmp_path / "work"):
                pass


@pytest.mark.parametrize("uid", UIDS)
def test_a_copy_links_to_copies_and_asks_only_its_own_data_source(uid: str) -> None:
    text = (GENERATED / f"{uid}.json").read_text("utf-8")
    copy = own_copy(text, "ab12-", {"prometheus": "Ours (1)", "loki": "Logs"})
    assert copy["uid"] == f"ab12-{uid}"
    shown = json.dumps(copy)
    assert shown.count("/d/ab12-cephqos-") == text.count("/d/cephqos-")
    assert "/d/cephqos-" not in shown
    assert {tag for link in copy["links"] for tag in link["tags"]} == set(copy["tags"])
    assert set(copy["tags"]).isdisjoint(boards()[uid]["tags"])
    regexes = {
        each["query"]: each["regex"]
        for each in copy["templating"]["list"]
        if each["type"] == "datasource"
    }
    assert regexes["prometheus"] == r"/^Ours\ \(1\)$/"


class RunningGrafana:
    """As much of the HTTP API as is asked for; `refuse` is a part of a path."""

    def __init__(self, refuse: str = "") -> None:
        self.refuse = refuse
        self.there: set[str] = set()
        self.bodies: list[Mapping[str, Any]] = []
        self.authorization: set[str | None] = set()
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.authorization.add(request.headers.get("Authorization"))
        if self.refuse and self.refuse in request.path:
            return web.json_response({"message": "Permission denied"}, status=403)
        if request.method == "DELETE":
            self.there.remove(request.path)
            return web.json_response({})
        body = await request.json()
        self.bodies.append(body)
        if "dashboard" not in body:
            kind = "datasources/uid" if "type" in body else "folders"
            self.there.add(f"/api/{kind}/{body['uid']}")
        return web.json_response({})


@asynccontextmanager
async def running(refuse: str = "") -> AsyncIterator[RunningGrafana]:
    grafana = RunningGrafana(refuse)
    async with serving({"* /api/{path:.*}": grafana.answer}) as url:
        grafana.url = url.removeprefix("http://")
        yield grafana


async def test_ours_is_beside_what_is_there_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    async with running() as there:
        grafana = OtherGrafana(f"http://me:pass%20word@{there.url}/")
        address = urlsplit(grafana.home_url)
        assert address.netloc == there.url
        assert address.path == f"/d/{grafana.prefix}cephqos-overview"
        async with grafana.showing(SOURCES, tmp_path):
            assert len(there.there) == 3  # two data sources and a folder
            put = [body for body in there.bodies if "dashboard" in body]
            assert {body["dashboard"]["uid"] for body in put} == {
                f"{grafana.prefix}{uid}" for uid in UIDS
            }
            assert len({body["folderUid"] for body in put}) == 1
            assert not any(body.get("overwrite") for body in put)
        assert there.there == set()
        assert there.authorization == {"Basic bWU6cGFzcyB3b3Jk"}


@pytest.mark.parametrize("refuse", ["/datasources", "/folders", "/dashboards/db"])
async def test_who_may_not_is_told_how_and_nothing_is_left(refuse: str, tmp_path: Path) -> None:
    async with running(refuse) as there:
        grafana = OtherGrafana(f"http://{there.url}", token="t0ken")
        with pytest.raises(LabError, match=r"403 .*set GRAFANA_TOKEN") as refused:
            async with grafana.showing(SOURCES, tmp_path):
                pass
        assert "t0ken" not in str(refused.value)
        assert there.authorization == {"Bearer t0ken"}
        assert there.there == set()


async def test_one_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"^http://127.0.0.1:1 does not answer: "):
        async with OtherGrafana("http://127.0.0.1:1").showing(SOURCES, tmp_path):
            pass
