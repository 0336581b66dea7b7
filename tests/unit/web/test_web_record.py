"""Requests to the recorder: authenticated as all others, bounded, and never a reason to fail."""

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cephqos_exporter.config import Settings
from cephqos_exporter.flight_recorder import options
from cephqos_exporter.flight_recorder.recorder import Recorder
from cephqos_exporter.web import forward, kept, server
from cephqos_exporter.web.connections import REQUEST_BYTES
from cephqos_exporter.web.kept import firing

from .test_web_server import HASH, MUTUAL, Scrapes, WebClient, serving, trusting, web_file

ALERT = {
    "status": "firing",
    "labels": {"alertname": "CephQosDaemonNotAnswering", "ceph_daemon": "osd.3"},
    "annotations": {"summary": "osd.3 does not answer"},
    "startsAt": "2026-11-25T03:00:00.123Z",
    "endsAt": "0001-01-01T00:00:00Z",
    "generatorURL": "http://prometheus:9090/graph",
    "fingerprint": "0a1b2c3d4e5f6a7b",
}


@asynccontextmanager
async def recording(
    folder: Path, web_config: Path | None = None, forward: Sequence[str] = ()
) -> AsyncIterator[WebClient]:
    given = {options.MINUTES.name: 10.0, options.PATH.name: str(folder / "recorded")}
    recorder = Recorder(Settings().given(given | {options.FORWARD.name: tuple(forward)}))
    recorder.start()
    async with serving(Scrapes(), web_config=web_config, recorder=recorder) as client:
        yield client
    await recorder.close()


def request(body: bytes, path: str = "/-/record", **headers: str) -> bytes:
    headers = {"Content-Type": "application/json", **headers}
    named = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    length = f"Content-Length: {len(body)}\r\n"
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{length}{named}\r\n".encode() + body


def webhook(*alerts: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": "4", "status": "firing", "alerts": list(alerts)}).encode()


async def status(client: WebClient, sent: bytes) -> int:
    return int((await client.raw(sent)).split(b" ", 2)[1])


async def listed(client: WebClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((await client.get("/-/record"))[1])["pieces"]
    return found


async def test_an_alert_keeps_a_piece_that_can_be_read_and_the_same_one_again_keeps_nothing(
    tmp_path: Path,
) -> None:
    async with recording(tmp_path) as client:
        await client.get("/metrics")
        answer = await client.raw(request(webhook(ALERT)))
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert await status(client, request(webhook(ALERT, ALERT))) == 200
        (piece,) = await listed(client)
        name = "CephQosDaemonNotAnswering osd.3"
        assert [reason["name"] for reason in piece["reasons"]] == [name]
        (segment,) = piece["segments"]
        found, body, _ = await client.get(f"/-/record/{piece['id']}/{segment}")
        assert (found, len(body)) == (200, piece["segments"][segment])
        again = ALERT | {"startsAt": "2026-11-26T03:00:00Z"}
        assert await status(client, request(webhook(again))) == 200
        assert [len(it["reasons"]) for it in await listed(client)] == [2]


async def test_an_alert_beyond_max_alerts_is_kept_too_and_once(tmp_path: Path) -> None:
    async with recording(tmp_path) as client:
        for left_out, reasons in ((2, 2), (2, 2), (3, 3)):
            body = json.dumps({"groupKey": "{}:{}", "alerts": [ALERT], "truncatedAlerts": left_out})
            assert await status(client, request(body.encode())) == 200
            (piece,) = await listed(client)
            assert len(piece["reasons"]) == reasons
        assert piece["reasons"][-1]["name"] == "3 more alerts"


async def test_an_alert_that_has_ended_keeps_nothing(tmp_path: Path) -> None:
    async with recording(tmp_path) as client:
        assert await status(client, request(webhook(ALERT | {"status": "resolved"}))) == 200
        assert await listed(client) == []


def listening(client: WebClient) -> str:
    return "{}:{}".format(*client.address)


async def test_an_alert_at_one_exporter_keeps_a_piece_at_all_addresses_of_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with recording(tmp_path / "b") as b, recording(tmp_path / "c") as c:
        monkeypatch.setattr(
            forward, "_places", lambda _: asyncio.sleep(0, [*map(listening, (b, c))])
        )
        async with recording(tmp_path / "a", None, ["cephqos-osd.rook-ceph:10130"]) as a:
            assert await status(a, request(webhook(ALERT))) == 200
            assert await status(a, request(webhook(ALERT))) == 200
            assert [len(await listed(it)) for it in (a, b, c)] == [1, 1, 1]


async def test_a_name_stands_for_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def two(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", ("10.0.0.1", 10130)), (0, 0, 0, "", ("fd00::1", 10130, 0, 0))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", two)
    assert await forward._places("cephqos-osd:10130") == ["10.0.0.1:10130", "[fd00::1]:10130"]


async def test_addresses_beyond_the_most_are_said_to_be_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "_MOST", 1)
    async with recording(tmp_path / "b") as b, recording(tmp_path / "c") as c:
        addresses = [listening(b), listening(b), listening(c)]
        headers: dict[str, str] = {}
        body = webhook(ALERT)
        missed = await forward.forward("/-/record", addresses, body, headers, None)
        assert missed[0] == "1 more addresses (at most 1 are asked)"


async def test_what_is_forwarded_is_forwarded_no_further(tmp_path: Path) -> None:
    async with recording(tmp_path / "b") as b, recording(tmp_path / "a", None, [listening(b)]) as a:
        headers = {"Cephqos-Forwarded": "1"}
        assert await status(a, request(webhook(ALERT), **headers)) == 200
        assert [len(await listed(it)) for it in (a, b)] == [1, 0]


async def test_an_exporter_that_did_not_keep_it_is_named_and_alertmanager_tries_again(
    tmp_path: Path,
) -> None:
    async with recording(tmp_path / "b") as b:
        gone, wrong = listening(b), "no-such-name.invalid:1"
    async with (
        serving(Scrapes()) as off,
        recording(tmp_path / "a", None, [gone, wrong, listening(off)]) as a,
    ):
        answer = (await a.raw(request(webhook(ALERT)))).decode()
        assert len(await listed(a)) == 1, "kept here all the same"
    assert answer.startswith("HTTP/1.1 503") and "not kept by 3 exporters" in answer
    for said in (gone, wrong, f"{listening(off)} (HTTP status 404)"):
        assert said in answer


@pytest.mark.parametrize("more", ["", MUTUAL])
async def test_it_is_forwarded_over_tls_with_the_password_that_came(
    tmp_path: Path, certificates: Path, more: str
) -> None:
    """To exporters with the same certificate, in which their names need not be."""
    config = web_file(tmp_path, certificates, more)
    config.write_text(f"{config.read_text()}\nbasic_auth_users: {{prometheus: {HASH}}}")
    good = {"Authorization": "Basic " + base64.b64encode(b"prometheus:secret").decode()}
    tls = trusting(certificates, "client" if more else "")
    async with (
        recording(tmp_path / "b", config) as b,
        recording(tmp_path / "a", config, [listening(b)]) as a,
    ):
        url = f"https://{listening(a)}/-/record"
        body = webhook(ALERT)
        json_too = {**good, "Content-Type": "application/json"}
        async with a._session.post(url, data=body, headers=json_too, ssl=tls) as answer:
            assert answer.status == 200, await answer.text()
        _, found, _ = await b.get("/-/record", tls=tls, **good)
    assert len(json.loads(found)["pieces"]) == 1


async def test_it_is_behind_the_same_password_as_the_metrics(tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users: {{prometheus: {HASH}}}")
    good = base64.b64encode(b"prometheus:secret").decode()
    async with recording(tmp_path, config) as client:
        assert await status(client, request(webhook(ALERT))) == 401
        assert await status(client, request(webhook(ALERT), Authorization="Basic eA==")) == 401
        assert (await client.get("/-/record"))[0] == 401
        assert (await client.get("/-/record/a/b"))[0] == 401
        assert await status(client, request(webhook(ALERT), Authorization=f"Basic {good}")) == 200


async def test_an_exporter_that_does_not_record_says_so(tmp_path: Path) -> None:
    async with serving(Scrapes()) as client:
        answer = await client.raw(request(webhook(ALERT)))
        assert answer.startswith(b"HTTP/1.1 404") and b"--recorder.minutes=10" in answer
        assert (await client.get("/-/record"))[0] == 404


async def test_a_flood_is_refused_and_scrapes_go_on(tmp_path: Path) -> None:
    async with recording(tmp_path) as client:
        found = [await status(client, request(webhook(ALERT))) for _ in range(30)]
        assert found[:10] == [200] * 10 and 503 in found
        assert (await client.get("/metrics"))[0] == 200
        assert len(await listed(client)) == 1


async def test_bodies_that_do_not_come_are_not_waited_for_and_hold_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "BODY_SECONDS", 0.5)
    async with recording(tmp_path) as client:
        slow = []
        for _ in range(8):
            reader, writer = await asyncio.open_connection(*client.address)
            writer.write(request(b"x" * 100)[:-50])
            slow.append((reader, writer))
        assert (await client.get("/metrics"))[0] == 200
        for reader, writer in slow:
            async with asyncio.timeout(10):
                assert (await reader.readline()).startswith(b"HTTP/1.1 503")
            writer.close()
        assert await listed(client) == []


async def test_segments_that_are_not_taken_hold_a_place_until_they_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits in memory for slow clients is bounded, and nothing else is held up by it."""
    in_memory: list[int] = []

    async def large(*_: object) -> bytes:
        in_memory.append(1)
        return bytes(32 << 20)

    monkeypatch.setattr(Recorder, "segment", large)
    monkeypatch.setattr(server, "ANSWER_SECONDS", 2.0)
    asked = b"GET /-/record/a/b HTTP/1.1\r\nHost: x\r\n\r\n"
    async with recording(tmp_path) as client:
        slow = []
        for _ in range(kept._MOST_AT_ONCE):
            reader, writer = await asyncio.open_connection(*client.address, limit=1 << 12)
            writer.write(asked)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            slow.append(writer)
        refused = [await status(client, asked[:-2] + b"Connection: close\r\n\r\n") for _ in "123"]
        assert refused == [503] * 3
        assert len(in_memory) == kept._MOST_AT_ONCE
        assert await status(client, request(webhook(ALERT))) == 200, "it is kept all the same"
        assert (await client.get("/metrics"))[0] == 200
        async with asyncio.timeout(10):
            while (await client.get("/-/record"))[0] != 200:
                await asyncio.sleep(0.1)
        for writer in slow:
            writer.close()
        recorder = client.server.service.recorder
        assert recorder is not None
        assert recorder._lost["slow_client"] >= 1


@pytest.mark.parametrize(
    "sent",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "text/plain; application/json"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-origin"},
    ],
    ids=str,
)
async def test_a_page_in_a_browser_cannot_have_something_kept(
    tmp_path: Path, sent: dict[str, str]
) -> None:
    async with recording(tmp_path) as client:
        assert await status(client, request(webhook(ALERT), **sent)) in (403, 415)
        assert await listed(client) == []


async def test_the_type_that_alertmanager_sends_is_taken(tmp_path: Path) -> None:
    async with recording(tmp_path) as client:
        sent = {"Content-Type": "application/json; charset=utf-8"}
        assert await status(client, request(webhook(ALERT), **sent)) == 200


async def test_a_redirect_of_another_exporter_is_not_followed(tmp_path: Path) -> None:
    """It would be sent the password, and could be any address that only this host reaches."""
    inside: list[str] = []

    async def redirecting(request: web.BaseRequest) -> web.Response:
        inside.append(request.path)
        if request.path == "/inside":
            return web.Response(text="{}")
        return web.Response(status=307, headers={"Location": f"http://{request.host}/inside"})

    runner = web.ServerRunner(web.Server(redirecting))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    async with recording(tmp_path, None, [f"{host}:{port}"]) as client:
        headers = {"Authorization": "Basic eA=="}
        answer = await client.raw(request(webhook(ALERT), **headers))
    await runner.cleanup()
    assert answer.startswith(b"HTTP/1.1 503") and b"HTTP status 307" in answer
    assert inside == ["/-/record"]


async def test_a_body_above_the_limit_ends_its_connection_only(tmp_path: Path) -> None:
    async with recording(tmp_path) as client:
        assert not (await client.raw(request(b"[" * (REQUEST_BYTES + 1)))).startswith(
            b"HTTP/1.1 200"
        )
        assert await status(client, request(webhook(ALERT))) == 200


PATHS = [
    "/-/record/../../etc/passwd", "/-/record/%2e%2e/x", "/-/record//", "/-/record/a/b/c",
    "/-/record/%00/x", "/-/record/" + "a" * 3000, "/-/records",
]  # fmt: skip


async def test_no_path_leads_elsewhere(tmp_path: Path) -> None:
    async with recording(tmp_path) as client:
        for path in PATHS:
            asked = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            assert await status(client, asked.encode()) in (400, 404), path
            assert await status(client, request(webhook(ALERT), path)) in (400, 404, 405), path


BAD = [
    b"", b"null", b"[]", b'"x"', b"{", b"\xff\xfe", b"[" * 20_000, b'{"alerts":{}}',
    b'{"alerts":[1]}', b'{"alerts":[{}]}', b'{"alerts":[{"fingerprint":"../x","startsAt":"1"}]}',
    b'{"alerts":[{"fingerprint":1,"startsAt":"1"}]}',
    webhook(ALERT | {"startsAt": "x" * 1000}), webhook(ALERT | {"fingerprint": "a\nb"}),
    webhook(*[ALERT] * 101)[:1 << 20], b'{"alerts":[],"truncatedAlerts":"1"}',
    b'{"alerts":[],"truncatedAlerts":1e30}', b'{"alerts":[],"truncatedAlerts":true}',
]  # fmt: skip


@pytest.mark.parametrize("body", BAD, ids=lambda it: it[:24].decode(errors="replace"))
def test_what_is_no_webhook_is_refused_in_one_line(body: bytes) -> None:
    with pytest.raises(ValueError, match="expected") as found:
        firing(body)
    assert "\n" not in str(found.value) and len(str(found.value)) < 200


def test_labels_of_any_kind_become_one_printable_line() -> None:
    every: list[Any] = [{}, [], None, {"alertname": 7}, {"alertname": "a\n\x1b[2J" + "b" * 9999}]
    for labels in every:
        (reason,) = firing(webhook(ALERT | {"labels": labels}))
        assert reason.name.isprintable() and 0 < len(reason.name) <= 200


def test_mutated_webhooks_leave_nothing_odd() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)  # noqa: S311 - no secret
    good = webhook(ALERT)
    for _ in range(2000):
        body = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(body))
            body[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
        try:
            found = firing(bytes(body))
        except ValueError:
            continue
        for reason in found:
            assert reason.name.isprintable(), f"seed {seed}"
            assert kept._FINGERPRINT.fullmatch(reason.fingerprint), f"seed {seed}"
