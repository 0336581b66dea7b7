"""Servers that a user names: their addresses, and requests with a deadline and one error for all
that can go wrong."""

import base64
import netrc
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp

from cephqos_base.answers import AnswerTooLarge, body_within, in_one_line
from cephqos_base.errors import UsageError
from cephqos_base.textfile import reason_of
from cephqos_base.urls import without_password

_MAX_BYTES = 256 << 20


class SourceDown(Exception):
    """The server does not answer, or its answer is not what was asked for."""


@dataclass(frozen=True, slots=True)
class Address:
    """A URL without user and password; they go into the header `Authorization` only."""

    url: str
    authorization: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str, option: str, port: int = 9090, *, whole: bool = False) -> Self:
        """Read `http://user:password@host:9090/prefix`; a missing `http://` is added.

        A missing password is taken from the user's netrc. An error shows an example with `port`.
        `whole`: path and query are kept; else the query and a slash at the end are dropped.
        """
        full = text if "://" in text else f"http://{text}"
        refusal = f"{option} {without_password(text)!r}: expected a URL such as http://host:{port}"
        if "@" in text:
            refusal += ", with %2F, %3F, %23 and %40 for the characters / ? # @ in a password"
        try:
            parts = urlsplit(full)
            user, password, given_port = parts.username, parts.password, parts.port
        except ValueError:  # the error's text may hold a part of the password
            raise UsageError(refusal) from None
        # An @ after the host: a / ? or # in the password that is not escaped ended the host.
        cut_password = "@" in f"{parts.path}{parts.query}{parts.fragment}"
        spaces = any(char.isspace() for char in text)
        if parts.scheme not in ("http", "https") or not parts.hostname or cut_password or spaces:
            raise UsageError(refusal)
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        netloc = f"{host}:{given_port}" if given_port else host
        path, query = (parts.path, parts.query) if whole else (parts.path.rstrip("/"), "")
        url = urlunsplit((parts.scheme, netloc, path, query, ""))
        if not user:
            return cls(url)
        user = unquote(user)
        password = _from_netrc(parts.hostname, user) if password is None else unquote(password)
        return cls(url, _basic(user, password))

    @classmethod
    def of_exporter(cls, text: str) -> Self:
        """Read the address of an exporter, with or without `/metrics` at its end."""
        return cls.parse(text.rstrip("/").removesuffix("/metrics"), "--exporter", port=10130)

    def below(self, path: str) -> Self:
        return replace(self, url=f"{self.url}{path}")

    def with_token(self, token: str) -> Self:
        """The same with a token instead of a password, if there is one."""
        return replace(self, authorization=f"Bearer {token}") if token else self

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

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def look(self, path: str) -> tuple[int, bytes]:
        """GET: the status, whichever it is, and the body."""
        return await self._request("GET", path)

    async def offer(self, path: str, body: Mapping[str, Any]) -> tuple[int, bytes]:
        """POST of JSON: the status, whichever it is, and the body."""
        return await self._request("POST", path, json=body)

    async def get(self, path: str) -> bytes:
        """GET: the body; SourceDown for any status but 200."""
        status, body = await self.look(path)
        if status != 200:
            raise SourceDown(f"HTTP status {status}")
        return body

    async def post(self, path: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        """POST of a form: status and body; SourceDown where the server wants another user."""
        status, body = await self._request("POST", path, data=form)
        if status in (401, 403):
            raise SourceDown(f"HTTP status {status}: user and password go into the URL")
        return status, body

    async def _request(self, method: str, path: str, **sent: Any) -> tuple[int, bytes]:
        assert self._session is not None  # noqa: S101 - entered
        url = f"{self._address.url}{path}"
        try:
            async with self._session.request(method, url, ssl=self._tls, **sent) as reply:
                return reply.status, await body_of(reply)
        except TimeoutError:
            raise SourceDown(f"no answer within {self._within:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise SourceDown(in_one_line(error)) from error


async def body_of(reply: aiohttp.ClientResponse) -> bytes:
    """The body of an answer; SourceDown if it is too large, compressed or not."""
    try:
        return await body_within(reply, _MAX_BYTES)
    except AnswerTooLarge as error:
        raise SourceDown(str(error)) from None


async def first_words(reply: aiohttp.ClientResponse) -> str:
    """The first 200 bytes of a refusal's body, in one line."""
    return " ".join((await reply.content.read(200)).decode(errors="replace").split())


def _tls(ca_cert: Path | None) -> ssl.SSLContext | bool:
    if ca_cert is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(ca_cert))
    except (OSError, ssl.SSLError) as error:
        no_pem = isinstance(error, ssl.SSLError)
        reason = "no certificate is in it" if no_pem else reason_of(error)
        raise UsageError(f"--ca-cert {ca_cert}: expected a PEM file; {reason}") from error


def _from_netrc(host: str, user: str) -> str:
    """The password of a user in ~/.netrc, or the file that NETRC names; empty if it has none."""
    chosen = os.environ.get("NETRC")
    file = Path(chosen) if chosen else Path.home() / ".netrc"
    try:
        login = netrc.netrc(chosen).authenticators(host)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, netrc.NetrcParseError) as error:
        # The error's own text is left out: it may hold a password.
        raise UsageError(f"{file}: expected a netrc file that only you can read") from error
    if login is None or login[0] != user:
        return ""
    return login[2] or ""


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
