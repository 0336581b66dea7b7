"""Servers that the command line names are looked at before a run: each must be what it is for."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from aiohttp import web
from tests.fake_server import Handler, serving

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.servers import Address
from cephqos_base.urls import without_password
from cephqos_loadgen.check import named_servers
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.live.notify import TOKEN_VARIABLE
from cephqos_loadgen.run.cli import add_run_options, options_from

FSID = "11111111-2222-3333-4444-555555555555"
OTHER = FSID.replace("1", "9")
EXPORTER = f"""\
# HELP cephqos_exporter_build_info Version.
# TYPE cephqos_exporter_build_info gauge
cephqos_exporter_build_info{{version="1"}} 1
cephqos_qos_capacity_ops{{ceph_daemon="osd.0",cluster="{FSID}"}} 315
"""


def page(text: str, status: int = 200) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text, status=status)

    return answer


def served(what: str, answer: Handler) -> AbstractAsyncContextManager[str]:
    return serving({what: answer, "GET /": page("<html>a page for people</html>")})


def with_exporter(url: str) -> RunOptions:
    return RunOptions(out=Path(), exporters=(Address.of_exporter(url).below("/metrics"),))


async def refused(options: RunOptions, fsid: str | None = None) -> str:
    with pytest.raises(UsageError) as error:
        await named_servers.check(options, fsid)
    said = str(error.value)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("end", ["", "/", "/metrics", "/metrics/"])
async def test_an_exporter_may_be_named_with_and_without_its_path(end: str) -> None:
    async with served("GET /metrics", page(EXPORTER)) as url:
        await named_servers.check(with_exporter(url + end), None)
        await named_servers.check(with_exporter(url.removeprefix("http://") + end), FSID)


def test_the_command_line_completes_addresses() -> None:
    parser = Parser()
    add_run_options(parser)
    words = ["baseline", "--exporter", "host:1", "--exporter", "https://me:pw@h/p/metrics/"]
    options = options_from(parser.parse_args([*words, "--loki", "h:3100/", "--grafana", "h/g"]))
    assert [address.url for address in options.exporters] == [
        "http://host:1/metrics",
        "https://h/p/metrics",
    ]
    assert options.loki == Address("http://h:3100")
    assert options.grafana == Address("http://h/g")


async def test_an_exporter_of_another_cluster_is_refused() -> None:
    async with served("GET /metrics", page(EXPORTER)) as url:
        said = await refused(with_exporter(url), OTHER)
    assert f"it shows the cluster {FSID}; expected an exporter of {OTHER}" in said


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        ("<html>\nlog in, please\n</html>", 200, "what is there is no page of metrics"),
        ("up 1\n", 200, "the metrics there are not of cephqos"),
        ("", 200, "the metrics there are not of cephqos"),
        ("gone", 404, "HTTP status 404"),
        ("who?", 401, "HTTP status 401"),
    ],
)
async def test_what_is_no_exporter_is_refused(text: str, status: int, why: str) -> None:
    async with served("GET /metrics", page(text, status)) as url:
        said = await refused(with_exporter(url))
    assert said.startswith(f"--exporter {url}/metrics: {why}; expected a cephqos-exporter, such as")


async def test_the_password_of_an_exporter_is_sent_and_not_shown() -> None:
    async def answer(request: web.Request) -> web.Response:
        known = request.headers.get("Authorization") == "Basic bWU6c2VjcmV0"
        return web.Response(text=EXPORTER, status=200 if known else 401)

    async with served("GET /metrics", answer) as url:
        await named_servers.check(with_exporter(url.replace("://", "://me:secret@")), None)
        said = await refused(with_exporter(url.replace("://", "://me:wrong@")))
    assert "wrong" not in said
    assert "user and password go into the URL" in said
    with pytest.raises(UsageError) as error:
        Address.of_exporter("http://me:secret@host:port")
    assert "secret" not in str(error.value)


async def test_a_grafana_takes_annotations_with_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(request: web.Request) -> web.Response:
        known = request.headers.get("Authorization") == "Bearer of-grafana"
        return web.json_response([] if known else {}, status=200 if known else 401)

    monkeypatch.setenv(TOKEN_VARIABLE, "of-grafana")
    async with served("GET /api/annotations", answer) as url:
        await named_servers.check(RunOptions(out=Path(), grafana=Address(url)), None)
        monkeypatch.delenv(TOKEN_VARIABLE)
        said = await refused(RunOptions(out=Path(), grafana=Address(url)))
        assert f"a service account with the role Editor into {TOKEN_VARIABLE}" in said
    async with served("GET /api/annotations", page("<html>")) as url:
        said = await refused(RunOptions(out=Path(), grafana=Address(url)))
        assert said.startswith(
            f"--grafana {url}: no annotations are there (HTTP status 200); expected"
        )


async def empty_push(request: web.Request) -> web.Response:
    """As Loki: nothing is there for GET, and a push needs a stream."""
    if request.method != "POST":
        return web.Response(status=404)
    assert await request.json() == {"streams": []}
    return web.Response(text="error at least one valid stream is required", status=422)


async def test_a_loki_takes_logs_by_post() -> None:
    async with served("POST /loki/api/v1/push", page("", 204)) as url:
        await named_servers.check(RunOptions(out=Path(), loki=Address(url)), None)
    async with served("* /loki/api/v1/push", empty_push) as url:
        await named_servers.check(RunOptions(out=Path(), loki=Address(url)), None)
    async with served("GET /metrics", page(EXPORTER)) as url:
        said = await refused(RunOptions(out=Path(), loki=Address(url)))
    assert said == (
        f"--loki {url}: /loki/api/v1/push takes no logs (HTTP status 404); expected a Loki, such as"
        " http://host:3100"
    )


async def test_servers_that_are_down_are_refused() -> None:
    down = Address("http://127.0.0.1:1")
    for options in (RunOptions(out=Path(), grafana=down), RunOptions(out=Path(), loki=down)):
        said = await refused(options)
        assert "http://127.0.0.1:1: connection refused; expected a" in said


def test_passwords_are_taken_out_of_messages() -> None:
    assert without_password("http://me:se@cret@host:1/x") == "http://host:1/x"
    assert without_password("me:secret@host:1") == "host:1"
    assert without_password("http://me:se://cret@host:1") == "http://host:1"
    assert without_password("me:se://cret@host:1") == "host:1"
    assert without_password("http://me:se\ncret@host:1") == "http://host:1"
    assert without_password("http://host:1/a?b") == "http://host:1/a?b"


@pytest.mark.parametrize("odd", ["/", "?", "#", "@", "://", " ", "[", ":"])
@pytest.mark.parametrize("scheme", ["", "http://", "ftp://"])
def test_no_message_shows_a_part_of_an_odd_password(scheme: str, odd: str) -> None:
    url = f"{scheme}me:left{odd}right@host:9090"
    try:
        address = Address.parse(url, "--url")
    except UsageError as error:
        assert "left" not in str(error) and "right" not in str(error)
    else:
        assert address.url == "http://host:9090"
        assert "Basic" not in repr(address)


def test_a_password_that_is_not_in_the_url_is_taken_from_netrc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "netrc"
    monkeypatch.setenv("NETRC", str(file))
    assert Address.parse("http://me@host", "--url").headers == {"Authorization": "Basic bWU6"}
    file.write_text("machine host login me password secret\n")
    known = {"Authorization": "Basic bWU6c2VjcmV0"}
    assert Address.parse("http://me@host:9090/x", "--url").headers == known
    assert Address.parse("http://me:secret@elsewhere", "--url").headers == known
    assert Address.parse("http://other@host", "--url").headers != known
    assert Address.parse("http://host", "--url").headers == {}
    file.write_text("machine host password hunter2 hunter2 hunter2\n")
    with pytest.raises(UsageError, match="expected a netrc file") as error:
        Address.parse("http://me@host", "--url")
    assert "hunter2" not in str(error.value)
