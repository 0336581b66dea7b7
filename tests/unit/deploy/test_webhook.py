"""The webhook of the compose stack, asked over real sockets by whoever is no Alertmanager."""

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from cephqos_exporter.web.connections import REQUEST_BYTES
from cephqos_exporter.web.kept import firing

from .programs import program


@pytest.fixture
def webhook() -> ModuleType:
    return program("compose/webhook.py")


@pytest.fixture
def port(webhook: ModuleType, tmp_path: Path) -> Iterator[int]:
    webhook.Receiver.file = tmp_path / "alerts.jsonl"
    webhook.Receiver.timeout = 0.5
    server = ThreadingHTTPServer(("127.0.0.1", 0), webhook.Receiver)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def posted(port: int, body: bytes, length: str | None = None, *, to: str = "/", **sent: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Content-Length": str(len(body)) if length is None else length}
    headers |= {"Content-Type": "application/json", **sent}
    try:
        connection.request("POST", to, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_page_in_a_browser_cannot_send_alerts(port: int) -> None:
    assert posted(port, b'{"alerts": []}', **{"Content-Type": "text/plain"}) == 415
    assert posted(port, b'{"alerts": []}', Origin="https://elsewhere.example") == 415
    assert posted(port, b'{"alerts": []}') == 200


@pytest.mark.parametrize(
    ("body", "length", "status"),
    [
        (b"{}", "abc", 413),
        (b"{}", "-1", 413),
        (b"{}", "\N{SUPERSCRIPT TWO}", 413),
        (b"{}", "9" * 5000, 413),
        (b"{", None, 400),
        (b"{}", None, 400),
        (b"[]", None, 400),
        (b"[" * 100_000, None, 400),
        (b'{"alerts": [1]}', None, 400),
        (b'{"alerts": [{"labels": {"alertname": "A\\u001b[2J"}}]}', None, 200),
    ],
)
def test_what_is_no_message_of_alertmanager_is_refused_in_silence(
    port: int,
    body: bytes,
    length: str | None,
    status: int,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert posted(port, body, length) == status
    out, error = capfd.readouterr()
    assert not error
    assert "\x1b" not in out
    kept = tmp_path / "alerts.jsonl"
    assert kept.exists() == (status == 200)
    if status == 200:
        assert json.loads(kept.read_text())["labels"]["alertname"] == "A\x1b[2J"


def test_a_body_that_does_not_come_is_not_waited_for(
    port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        posted(port, b"{", "100")
    assert not capfd.readouterr().err


def test_an_alert_is_kept_and_told_with_its_receiver(
    port: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alert = {"status": "firing", "labels": {"alertname": "A"}}
    message = json.dumps({"receiver": "critical", "alerts": [alert]}).encode()
    assert posted(port, message, to="/critical") == 200
    kept = [json.loads(line) for line in (tmp_path / "alerts.jsonl").read_text().splitlines()]
    assert [alert["labels"]["alertname"] for alert in kept] == ["A"]
    assert "firing A to critical" in capfd.readouterr().out


def test_exporters_that_record_are_told_of_critical_alerts_and_alertmanager_tries_again(
    port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What they get is what the exporter understands, however large the group is."""
    got: list[bytes] = []

    class Exporter(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200 if self.path == "/-/record" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    labels = {"alertname": "A", "description": "x" * 2000}
    alerts = [
        {
            "status": "firing",
            "labels": labels,
            "fingerprint": f"f{n}",
            "startsAt": "2026-11-25T03:00:00Z",
        }
        for n in range(40)
    ]
    message = {"receiver": "critical", "status": "firing", "groupKey": "{}", "alerts": alerts}
    with ThreadingHTTPServer(("127.0.0.1", 0), Exporter) as exporter:
        thread = threading.Thread(target=exporter.serve_forever, args=(0.05,))
        thread.start()
        monkeypatch.setenv("RECORDERS", f"127.0.0.1:{exporter.server_port}")
        for change in ({}, {"receiver": "warning"}, {"status": "resolved"}):
            assert posted(port, json.dumps(message | change).encode()) == 200
        exporter.shutdown()
        thread.join()
    (body,) = got
    assert len(body) <= REQUEST_BYTES
    assert [it.name for it in firing(body)] == ["A"] * 10 + ["30 more alerts"]
    assert posted(port, json.dumps(message).encode()) == 503
    assert "keeps no piece" in capfd.readouterr().err


def test_control_characters_of_an_alert_do_not_reach_the_terminal(webhook: ModuleType) -> None:
    alert = {"status": "firing", "labels": {"alertname": "A", "pool": "\x1b[2J\n"}}
    line = webhook.line_of(alert, "critical")
    assert line.startswith("firing A to critical") and line.isprintable()


def asked(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    finally:
        connection.close()


def test_one_that_cannot_keep_what_comes_is_not_healthy_and_alertmanager_tries_again(
    webhook: ModuleType, port: int, tmp_path: Path
) -> None:
    """A full disk, or a volume of another user: refusing each alert while `up` says healthy."""
    message = b'{"alerts": [{"labels": {"alertname": "A"}}]}'
    assert asked(port) == 200
    webhook.Receiver.file = tmp_path / "nowhere" / "alerts.jsonl"
    assert asked(port) == 503
    assert posted(port, message) == 503
    webhook.Receiver.file = tmp_path / "alerts.jsonl"
    assert (asked(port), posted(port, message)) == (200, 200)
