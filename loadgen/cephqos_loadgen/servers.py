"""Servers that a user names: their addresses, and requests with a deadline and one error for all
that can go wrong."""

import base64
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp

from cephqos_base.errors import UsageError

_MAX_BYTES = 256 << 20


class SourceDown(Exception):
    """The server does not answer, or not what was asked for."""


@dataclass(frozen=True, slots=True)
class Address:
    """A URL without its password, which goes into the header only."""

    url: str
    authorization: str = ""

    @classmethod
    def parse(cls, text: str, option: str, port: int = 9090) -> Self:
        """`http://user:password@host:9090/prefix`; a missing `http://` is added. `port` is for the
        example of the message."""
        full = text if "://" in text else f"http://{text}"
        shown = f"{option} {without_password(text)!r}"
        try:
            parts = urlsplit(full)
            user, password, given_port = parts.username, parts.password, parts.port
        except ValueError as error:
            raise UsageError(f"{shown}: {error}") from error
        odd = any(c.isspace() for c in text)
        if parts.scheme not in ("http", "https") or not parts.hostname or odd:
            raise UsageError(f"{shown}: expected a URL such as http://host:{port}")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        netloc = f"{host}:{given_port}" if given_port else host
        url = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
        return cls(url, _basic(unquote(user), unquote(password or "")) if user else "")

    @classmethod
    def of_exporter(cls, text: str, option: str = "--exporter") -> Self:
        """The same, of an exporter: with or without `/metrics` at its end."""
        return cls.parse(text.rstrip("/").removesuffix("/metrics"), option, port=10130)

    def below(self, path: str) -> Self:
        return replace(self, url=f"{self.url}{path}")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": self.authorization} if self.authorization else {}


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
        self._session = aiohttp.ClientSession(headers=self._address.headers, timeout=self._timeout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def look(self, path: str) -> tuple[int, bytes]:
        """Whatever status there is, and the body."""
        return await self._request("GET", path, None)

    async def get(self, path: str) -> bytes:
        status, body = await self.look(path)
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
            raise SourceDown(in_one_line(error)) from error


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


def without_password(text: str) -> str:
    """For messages."""
    scheme, found, rest = text.rpartition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}"


def in_one_line(error: Exception) -> str:
    """Why a request failed."""
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        number, said = error.os_error.errno, error.os_error.strerror
        # A name that is unknown has a number of its own kind, below zero.
        return (os.strerror(number) if number > 0 else str(said)).lower()
    if isinstance(error, aiohttp.ClientResponseError):
        return f"HTTP status {error.status}"
    return " ".join(str(error).split()) or type(error).__name__


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
