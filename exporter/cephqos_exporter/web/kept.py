"""Requests to the recorder: keep what was recorded (`POST /-/record`), show what is kept."""

import asyncio
import hashlib
import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import orjson
from aiohttp import web

from cephqos_exporter.flight_recorder.pieces import NoRoom, Reason
from cephqos_exporter.flight_recorder.recorder import DiskBusy, Recorder
from cephqos_exporter.web.auth import RateLimiter
from cephqos_exporter.web.config import RateLimit
from cephqos_exporter.web.forward import forward
from cephqos_exporter.web.server import RECORD

log = logging.getLogger(__name__)

# To read the body of a request. connections.py limits its size.
BODY_SECONDS: Final = 10.0
# A disk that hangs is not waited for longer.
DISK_SECONDS: Final = 10.0
# Alertmanager sends a group of alerts in one request, and tries again after 5xx.
_LIMIT: Final = RateLimit(interval=6.0, burst=10)
_MOST_AT_ONCE: Final = 4
_MOST_ALERTS: Final = 100
_MOST_EXPORTERS_NAMED: Final = 5  # in the message about exporters that kept nothing
_LONGEST_NAME: Final = 200
_FINGERPRINT: Final = re.compile(r"[0-9A-Za-z._-]{1,80}")
_TIME: Final = re.compile(r"[0-9TZ:.+-]{1,40}")
# Sends a body with headers. Gives the response, and whether the client took all of it.
Send = Callable[[bytes, Mapping[str, str]], Awaitable[tuple[web.StreamResponse, bool]]]


class RecordRequests:
    """Answers requests to the recorder, a few at a time."""

    def __init__(self) -> None:
        self._limiter = RateLimiter(_LIMIT)
        # Apart, so that clients that read slowly do not prevent that something is kept.
        self._keeping = 0
        self._showing = 0

    async def keep(
        self, request: web.BaseRequest, recorder: Recorder, tls: ssl.SSLContext | None = None
    ) -> web.StreamResponse:
        """Keep recordings for the alerts of a webhook, here and on the exporters that the request
        is forwarded to. `tls`: how to reach them."""
        if refusal := _not_from_a_program(request):
            return refusal
        if self._keeping >= _MOST_AT_ONCE or not self._limiter.allows():
            headers = {"Retry-After": f"{_LIMIT.interval:.0f}"}
            return web.Response(status=503, text="too many requests to keep\n", headers=headers)
        self._keeping += 1
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
            reasons = firing(body)
            if not reasons:
                return web.json_response({"kept": None})
            response, not_kept_by = await asyncio.gather(
                _keep(recorder, reasons),
                forward(RECORD, recorder.forward_to, body, request.headers, tls),
            )
        except TimeoutError:
            return web.Response(status=503, text="not kept: too slow\n")
        except ValueError as exc:
            return web.Response(status=400, text=f"not kept: {exc}\n")
        finally:
            self._keeping -= 1
        if not not_kept_by:
            return response
        recorder.missed(len(not_kept_by))
        names = ", ".join(not_kept_by[:_MOST_EXPORTERS_NAMED])
        text = f"not kept by {len(not_kept_by)} exporters: {names}\n"
        log.warning("%s", text.strip())
        # 5xx makes Alertmanager send it again. An error of our own already does that.
        return web.Response(status=503, text=text) if response.status == 200 else response

    async def show(self, path: str, recorder: Recorder, send: Send) -> web.StreamResponse:
        """Send all that is kept, or one segment of a piece: `/-/record/PIECE/SEGMENT`.

        A place is held until the client has taken it all, because it is in memory until then.
        """
        if self._showing >= _MOST_AT_ONCE:
            return web.Response(status=503, text="too many requests\n")
        self._showing += 1
        try:
            async with asyncio.timeout(DISK_SECONDS):
                body, kind = await _read(path, recorder)
            if body is None:
                return web.Response(status=404, text="not found\n")
            response, taken = await send(body, {"Content-Type": kind})
            if not taken:
                recorder.not_taken()
            return response
        except (TimeoutError, DiskBusy, OSError) as exc:
            return web.Response(status=503, text=f"not read: {exc or 'the disk is too slow'}\n")
        finally:
            self._showing -= 1


async def _read(path: str, recorder: Recorder) -> tuple[bytes | None, str]:
    """What the path names, and its type."""
    if path == RECORD:
        return orjson.dumps(await recorder.listing()), "application/json"
    piece, _, name = path.removeprefix(f"{RECORD}/").partition("/")
    return await recorder.segment(piece, name), "application/octet-stream"


def _not_from_a_program(request: web.BaseRequest) -> web.Response | None:
    """The answer to a request that a page in a browser may have sent without its user's knowledge.

    A page can send a form or plain text to any address without asking, but not JSON. With each
    POST a browser says where the page is from. Programs say nothing of it.
    """
    if request.content_type != "application/json":
        text = f"found Content-Type {request.content_type}, expected application/json\n"
        return web.Response(status=415, text=text)
    if "Origin" in request.headers or "Sec-Fetch-Site" in request.headers:
        return web.Response(status=403, text="not for browsers: send no Origin\n")
    return None


async def _keep(recorder: Recorder, reasons: Sequence[Reason]) -> web.Response:
    try:
        async with asyncio.timeout(DISK_SECONDS):
            piece = await recorder.keep(reasons)
    except TimeoutError:
        return web.Response(status=503, text="not kept: too slow\n")
    except NoRoom as exc:
        return web.Response(status=507, text=f"not kept: {exc}\n")
    except (DiskBusy, OSError) as exc:
        return web.Response(status=503, text=f"not kept: {exc}\n")
    return web.json_response({"kept": piece.id, "until_unix_seconds": piece.until})


def firing(body: bytes) -> list[Reason]:
    """The alerts that fire, of Alertmanager's webhook; ValueError where it is something else."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise ValueError(f"expected JSON ({exc})") from None
    alerts = data.get("alerts") if isinstance(data, dict) else None
    if not isinstance(alerts, list) or len(alerts) > _MOST_ALERTS:
        raise ValueError(f"expected the key alerts with a list, of {_MOST_ALERTS} at most")
    reasons = [_reason(alert) for alert in alerts if _fires(alert)]
    left_out = data.get("truncatedAlerts", 0)
    if not isinstance(left_out, int) or isinstance(left_out, bool):
        raise ValueError("expected truncatedAlerts as a whole number")
    if reasons and left_out > 0:
        # Alertmanager's max_alerts leaves some alerts out. There may be a new one among them if
        # their number changes, so the number stands for the time when an alert started.
        group = hashlib.sha256(str(data.get("groupKey")).encode(errors="replace")).hexdigest()[:16]
        reasons.append(
            Reason(
                name=f"{left_out} more alerts", fingerprint=f"group-{group}", started=str(left_out)
            )
        )
    return reasons


def _fires(alert: Any) -> bool:
    if not isinstance(alert, dict):
        raise ValueError("expected each alert as an object")
    return alert.get("status") != "resolved"


def _reason(alert: Mapping[str, Any]) -> Reason:
    labels = alert.get("labels")
    labels = labels if isinstance(labels, dict) else {}
    fingerprint = _text(alert, "fingerprint", _FINGERPRINT)
    started = _text(alert, "startsAt", _TIME)
    words = [labels.get(name) for name in ("alertname", "ceph_daemon")]
    name = " ".join(word for word in words if isinstance(word, str))
    printable = "".join(char for char in name if char.isprintable())
    return Reason(
        name=printable[:_LONGEST_NAME] or "an alert", fingerprint=fingerprint, started=started
    )


def _text(alert: Mapping[str, Any], key: str, pattern: re.Pattern[str]) -> str:
    value = alert.get(key)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"expected each alert with {key}, as Alertmanager writes it")
    return value
