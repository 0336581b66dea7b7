"""webhook.py HOST:PORT FILE: prints Alertmanager's alerts, one line each, and keeps them in FILE.

It also asks exporters to keep their recordings. Standard library only.
"""

import http.client
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LARGEST = 8 << 20  # bytes of a message
MOST_RECORDED = 10  # alerts in one request to an exporter, which takes 32 KiB
KEEP = 16 << 20  # bytes of FILE; then it is started again, and the one before is kept as FILE.1


def line_of(alert: dict[str, Any], receiver: str) -> str:
    """One line for people. Control characters of a cluster's strings do not reach the terminal."""
    labels, annotations = alert.get("labels", {}), alert.get("annotations", {})
    shown = " ".join(f"{k}={v}" for k, v in sorted(labels.items()) if k != "alertname" and v)
    status = f"{alert.get('status')} {labels.get('alertname')} to {receiver}"
    text = f"{status}: {annotations.get('summary', '')} [{shown}]"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def keep_recordings(message: dict[str, Any]) -> bool:
    """Ask the exporters of RECORDERS (HOST:PORT) to keep what they recorded before these alerts.

    False if one did not: Alertmanager is then made to send the alerts again.
    """
    sent = message["alerts"][:MOST_RECORDED]
    fields = ("status", "fingerprint", "startsAt", "labels")
    body = {
        "groupKey": message.get("groupKey"),
        "truncatedAlerts": len(message["alerts"]) - len(sent),
        "alerts": [{key: alert.get(key) for key in fields} for alert in sent],
    }
    all_kept = True
    for exporter in os.environ.get("RECORDERS", "").split():
        connection = http.client.HTTPConnection(exporter, timeout=20)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/-/record", json.dumps(body), headers)
            status = connection.getresponse().status
            problem = "" if status == 200 else f"HTTP status {status}"
            if status not in (200, 404):  # 404: this exporter records nothing, now or later
                all_kept = False
        except (OSError, http.client.HTTPException) as error:
            problem, all_kept = str(error), False
        finally:
            connection.close()
        if problem:
            print(f"webhook: {exporter} keeps no piece: {problem}", file=sys.stderr, flush=True)
    return all_kept


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
        # A page in a browser can send no JSON here, and says that it is one.
        if self.headers.get_content_type() != "application/json" or "Origin" in self.headers:
            return self._answer(415)
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
        # Recordings are kept only for alerts that fire for the receiver `critical`.
        self._answer(200 if not critical or keep_recordings(message) else 503)

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
