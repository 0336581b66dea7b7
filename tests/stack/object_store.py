"""As much of S3 as Loki asks for, in memory: put, get, head, list, delete."""

import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from xml.sax.saxutils import escape

_ROW = "<Contents><Key>{}</Key><LastModified>{}</LastModified><Size>{}</Size></Contents>"
_TIME = "2026-01-01T00:00:00.000Z"


class ObjectStore:
    """One bucket for whoever signs with the key `reader`. `objects` is what it holds."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []  # methods
        self.refused: list[str] = []  # requests that were not understood
        store = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                status, body = store.answer(self, self.rfile.read(length))
                self.send_response(status)
                self.send_header("ETag", '"1"')
                self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = handle_any

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        url = urllib.parse.urlsplit(request.path)
        _, bucket, *rest = urllib.parse.unquote(url.path).split("/", 2)
        key, method = "".join(rest), request.command
        self.asked.append(method)
        signed = "Credential=reader/" in request.headers.get("Authorization", "")
        if not signed or bucket != self.bucket or "chunked" in str(request.headers).lower():
            self.refused.append(f"{method} {request.path}")
            return 403, b"<Error><Code>AccessDenied</Code></Error>"
        if method == "PUT":
            self.objects[key] = body
            return 200, b""
        if method == "DELETE":
            self.objects.pop(key, None)
            return 204, b""  # as S3 says of what is not there, too: Loki deletes one at its start
        if not key:
            return 200, self._listed(dict(urllib.parse.parse_qsl(url.query))).encode()
        if key not in self.objects:
            return 404, b"<Error><Code>NoSuchKey</Code></Error>"
        return 200, self.objects[key]

    def _listed(self, query: dict[str, str]) -> str:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        rows: list[str] = []
        folders: set[str] = set()
        for key, body in sorted(self.objects.items()):
            if key.startswith(prefix):
                inner, found, _ = key[len(prefix) :].partition(delimiter or "\0")
                if found and delimiter:
                    folders.add(prefix + inner + delimiter)
                else:
                    rows.append(_ROW.format(escape(key), _TIME, len(body)))
        common = [
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        ]
        return (
            "<ListBucketResult><IsTruncated>false</IsTruncated>"
            f"{''.join([*rows, *common])}</ListBucketResult>"
        )
