"""HTTP servers: their addresses, and requests with a deadline, a largest answer and one error for
all that can go wrong."""

import base64
import netrc
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp

from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.textfile import reason_of
from cephqos_base.urls import without_password

MAX_BYTES: Final = 256 << 20  # of an answer, unpacked: a few bytes may unpack to gigabytes
# OpenSSL's reasons for an answer in plain text; which one depends on its version.
_REASONS_WITHOUT_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "PACKET_LENGTH_TOO_LONG",
    "HTTP_REQUEST",
)


class NoAnswer(CephqosError):
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
        encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
        return cls(url, f"Basic {encoded}")

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


class HttpReply(NamedTuple):
    """What a server answered, whatever the status."""

    status: int
    body: bytes

    @property
    def first_words(self) -> str:
        """The first 200 bytes in one line, for messages about a refusal."""
        return " ".join(self.body[:200].decode(errors="replace").split())


class HttpServer:
    """One server. `async with` opens a session; every failure is a NoAnswer in one line.

    No redirect is followed: headers may hold a password, and the other server would get it.
    """

    def __init__(
        self,
        address: Address,
        *,
        within: float = 10.0,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address = address
        self._within = within
        self._headers = {**address.headers, **(headers or {})}
        # Not aiohttp's own: what it knows of authorities is as old as its import.
        secure = address.url.startswith("https:")
        self._tls = tls or (ssl.create_default_context() if secure else True)
        self._session: aiohttp.ClientSession | None = None

    @property
    def shown(self) -> str:
        return self._address.url

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=self._within)
        self._session = aiohttp.ClientSession(headers=self._headers, timeout=timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str = "", **sent: Any) -> bytes:
        """The body of a page; NoAnswer for any status but 200."""
        answer = await self.ask("GET", path, **sent)
        if answer.status != 200:
            raise NoAnswer(f"HTTP status {answer.status}")
        return answer.body

    async def ask(self, method: str, path: str = "", **sent: Any) -> HttpReply:
        """The answer to a request; `sent` is what aiohttp takes: headers, data, json, params."""
        assert self._session is not None  # noqa: S101 - entered
        url = f"{self._address.url}{path}"
        sent |= {"ssl": self._tls, "allow_redirects": False}
        try:
            async with self._session.request(method, url, **sent) as reply:
                if "Location" in reply.headers and 300 <= reply.status < 400:
                    place = without_password(reply.headers["Location"])
                    raise NoAnswer(
                        f"HTTP status {reply.status}: it sends to {place}; name that URL"
                    )
                return HttpReply(reply.status, await _body(reply))
        except TimeoutError:
            raise NoAnswer(f"no answer within {self._within:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise NoAnswer(in_one_line(error)) from error


async def fetch(url: str, within: float = 5.0) -> bytes:
    """One page of a server that we have started."""
    async with HttpServer(Address(url), within=within) as server:
        return await server.get()


async def _body(reply: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in reply.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise NoAnswer(f"the answer is larger than {MAX_BYTES >> 20} MiB")
    return b"".join(parts)


def trusting(ca_cert: Path | None) -> ssl.SSLContext | None:
    """How to reach https servers of this CA; None for those of the system."""
    if ca_cert is None:
        return None
    try:
        return ssl.create_default_context(cafile=str(ca_cert))
    except (OSError, ssl.SSLError) as error:
        no_pem = isinstance(error, ssl.SSLError)
        reason = "no certificate is in it" if no_pem else reason_of(error)
        raise UsageError(f"--ca-cert {ca_cert}: expected a PEM file; {reason}") from error


def in_one_line(error: Exception) -> str:
    """Why a request failed, in words that end an error message."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed without an answer; if this port speaks TLS, try https://"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {_why_not_trusted(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        # Its errno is OpenSSL's, not the system's.
        return _tls_failure(error.os_error)
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        number, text = error.os_error.errno, error.os_error.strerror
        # For an unknown host name the number is getaddrinfo's, below zero: strerror has no text.
        return (os.strerror(number) if number > 0 else str(text)).lower()
    return " ".join(str(error).split()) or type(error).__name__


def _why_not_trusted(error: Exception) -> str:
    """As OpenSSL says it, such as `unable to get local issuer certificate`."""
    return getattr(error, "verify_message", "") or str(error)


def _tls_failure(error: OSError) -> str:
    reason = getattr(error, "reason", None) or str(error)
    if reason in _REASONS_WITHOUT_TLS or isinstance(error, ssl.SSLEOFError):
        return "this port does not speak TLS; try http://"
    return f"TLS failed: {reason.replace('_', ' ').lower()}"


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
