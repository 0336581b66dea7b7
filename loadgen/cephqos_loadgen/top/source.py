"""What both sources share: HTTP with a deadline, and one error for all that can go wrong."""

import base64
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp

from cephqos_base.errors import UsageError
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.model import TopSamples

_MAX_BYTES = 256 << 20


class SourceDown(Exception):
    """The server does not answer, or not what was asked for."""


class Source(Protocol):
    """Where samples come from."""

    @property
    def name(self) -> str:
        """What the user knows it by, without a password."""

    async def fetch(self, selection: Selection) -> TopSamples:
        """The samples of now; raises SourceDown."""


@dataclass(frozen=True, slots=True)
class Address:
    """A URL without its password, which goes into the header only."""

    url: str
    authorization: str = ""

    @classmethod
    def parse(cls, text: str, option: str) -> Self:
        """`http://user:password@host:9090/prefix`; a missing `http://` is added."""
        full = text if "://" in text else f"http://{text}"
        try:
            parts = urlsplit(full)
            user, password, port = parts.username, parts.password, parts.port
        except ValueError as error:
            raise UsageError(f"{option} {text!r}: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{option} {text!r}: expected a URL such as http://host:9090")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        netloc = f"{host}:{port}" if port else host
        url = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
        return cls(url, _basic(unquote(user), unquote(password or "")) if user else "")


class HttpServer:
    """One server. Every request has a deadline; every failure is a SourceDown in one line."""

    def __init__(
        self, address: Address, *, within: float = 10.0, ca_cert: Path | None = None
    ) -> None:
        self._address = address
        self._timeout = aiohttp.ClientTimeout(total=within)
        self._within = within
        self._tls = _tls(ca_cert)
        self._session: aiohttp.ClientSession | None = None

    @property
    def shown(self) -> str:
        return self._address.url

    async def __aenter__(self) -> Self:
        known = self._address.authorization
        headers = {"Authorization": known} if known else {}
        self._session = aiohttp.ClientSession(headers=headers, timeout=self._timeout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str) -> bytes:
        status, body = await self._request("GET", path, None)
        if status != 200:
            raise SourceDown(f"HTTP status {status}")
        return body

    async def post(self, path: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        status, body = await self._request("POST", path, form)
        if status in (401, 403):
            raise SourceDown(f"HTTP status {status}: user and password go into the URL")
        return status, body

    async def _request(
        self, method: str, path: str, form: Mapping[str, str] | None
    ) -> tuple[int, bytes]:
        assert self._session is not None  # noqa: S101 - entered
        url = f"{self._address.url}{path}"
        try:
            async with self._session.request(method, url, data=form, ssl=self._tls) as reply:
                return reply.status, await _body(reply)
        except TimeoutError:
            raise SourceDown(f"no answer within {self._within:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise SourceDown(_in_one_line(error)) from error


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


async def _body(reply: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in reply.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > _MAX_BYTES:
            raise SourceDown(f"the answer is larger than {_MAX_BYTES >> 20} MiB")
    return b"".join(parts)


def _tls(ca_cert: Path | None) -> ssl.SSLContext | bool:
    if ca_cert is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(ca_cert))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"--ca-cert {ca_cert}: {error}") from error


def _in_one_line(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return os.strerror(error.os_error.errno).lower()
    return " ".join(str(error).split()) or type(error).__name__
