"""webhook.py HOST:PORT FILE: prints Alertmanager's alerts, one line each, and keeps them in FILE.

Standard library only.
"""

import http.client
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LARGEST = 8 << 20
MOST_RECORDED = 10
KEEP = 16 << 20  # bytes of FILE; then it is started again, and the one before is kept as FILE.1


def line_of(alert: dict[str, Any], receiver: str) -> str:
    """One line for people. Control characters of a cluster's strings do not reach the terminal."""
    labels, notes = alert.get("labels", {}), alert.get("annotations", {})
    about = " ".join(f"{k}={v}" for k, v in sorted(labels.items()) if k != "alertname" and v)
    what = f"{alert.get('status')} {labels.get('alertname')} to {receiver}"
    text = f"{what}: {notes.get('summary', '')} [{about}]"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def recorded(message: dict[str, Any]) -> bool:
    """Let the exporters of RECORDERS (HOST:PORT) keep what they recorded before these alerts."""
    few = message["alerts"][:MOST_RECORDED]  # an exporter takes 32 KiB
    wanted = ("status", "fingerprint", "startsAt", "labels")
    body = {
        "groupKey": message.get("groupKey"),
        "truncatedAlerts": len(message["alerts"]) - len(few),
        "alerts": [{key: alert.get(key) for key in wanted} for alert in few],
    }
    whole = True
    for exporter in os.environ.get("RECORDERS", "").split():
        connection = http.client.HTTPConnection(exporter, timeout=20)
        try:
            connection.request("POST", "/-/record", json.dumps(body))
            status = connection.getresponse().status
            said = "" if status == 200 else f"HTTP status {status}"
            whole = whole and status in (200, 404)  # 404: it records nothing
        except (OSError, http.client.HTTPException) as error:
            said, whole = str(error), False
        finally:
            connection.close()
        if said:
            print(f"webhook: {exporter} keeps no piece: {said}", file=sys.stderr, flush=True)
    return whole


class Receiver(BaseHTTPRequestHandler):
    """Takes alerts by POST; GET tells whether it can keep them."""

    file: Path
    timeout = 20

    def do_GET(self) -> None:
        try:
            self._keep([])
        except OSError as error:
            print(f"webhook: {error}", file=sys.stderr, flush=True)
            return self._answer(503)
        self._answer(200)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length") or ""
        if not (length.isascii() and length.isdecimal() and 0 < int(length[:20]) <= LARGEST):
            return self._answer(413)
        try:
            message = json.loads(self.rfile.read(int(length)))
            alerts = list(message["alerts"])
            lines = [line_of(alert, str(message.get("receiver"))) for alert in alerts]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return self._answer(400)
        except OSError:  # nothing more came in time
            self.close_connection = True
            return None
        try:
            self._keep(alerts)
        except OSError as error:
            print(f"webhook: {error}", file=sys.stderr, flush=True)
            return self._answer(503)  # Alertmanager sends them again
        print(
            *(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}" for line in lines),
            sep="\n",
            flush=True,
        )
        critical = message.get("receiver") == "critical" and message.get("status") != "resolved"
        self._answer(200 if not critical or recorded(message) else 503)

    def _keep(self, alerts: list[dict[str, Any]]) -> None:
        if self.file.exists() and self.file.stat().st_size > KEEP:
            self.file.rename(self.file.with_name(self.file.name + ".1"))
        with self.file.open("a", encoding="utf-8") as file:
            for alert in alerts:
                file.write(json.dumps({"received": time.time(), **alert}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Only alerts are printed."""


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    Receiver.file = Path(sys.argv[2])
    ThreadingHTTPServer((host, int(port)), Receiver).serve_forever()


if __name__ == "__main__":
    main()
