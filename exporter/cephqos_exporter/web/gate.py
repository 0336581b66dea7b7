"""Who is let in: TLS, users and rates, by the web configuration file, which may change."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aiohttp import web

from cephqos_base.errors import MISSING, ConfigError, Described
from cephqos_exporter.web.auth import BasicAuth, RateLimiter, TooManyFailures
from cephqos_exporter.web.config import WebConfig, load
from cephqos_exporter.web.connections import Connection
from cephqos_exporter.web.tls import Credentials, has_ended, names_of

log = logging.getLogger(__name__)

# A configuration that could not be read is tried again so often: a file may be readable now, or
# whole, and look as before.
RETRY_SECONDS: Final = 5.0


class Gate:
    """The web configuration in force. Without a file everybody is let in."""

    def __init__(self, path: Path | None) -> None:
        self.config = WebConfig()
        self.credentials: Credentials | None = None
        self._path = path
        self._mark: object = None
        self._retry_at: float | None = None  # of the monotonic clock, after a failure
        self._complaint = ""
        self._auth = BasicAuth({})
        self._limiter = RateLimiter(self.config.rate_limit)
        self._open = False
        self.reload()

    def open(self) -> None:
        """Connections come from now on: what protects them only ends with a restart."""
        self._open = True

    def reload(self) -> None:
        """Take the web configuration file's present content, or raise and keep what there was."""
        path = self._path
        if path is None:
            return
        mark = _mark(path)
        config = load(path)
        marks = (mark, *map(_mark, _tls_files(config)))  # before they are read, not after
        if self._open:
            self._refuse_less(config, path)
        self._take_tls(config, path)
        if (config.users, config.rate_limit) != (self.config.users, self.config.rate_limit):
            self._auth = BasicAuth(config.users, config.rate_limit)
        if config.rate_limit != self.config.rate_limit:
            self._limiter = RateLimiter(config.rate_limit)
        self.config = config
        self._mark = marks
        self._retry_at = None
        self._complaint = ""

    def _refuse_less(self, config: WebConfig, path: Path) -> None:
        """What protects ends with a restart only: a file that is being written lacks its end."""
        for key, before, after, allowed in (
            ("basic_auth_users", self.config.users, config.users, "at least one user"),
            ("tls_server_config.client_allowed_sans", _sans(self.config), _sans(config), "names"),
        ):
            if before and not after:
                allowed = f"{allowed}, until a restart"
                raise ConfigError(where=path, key=key, found=MISSING, allowed=allowed)

    def _take_tls(self, config: WebConfig, path: Path) -> None:
        """Serve new connections with the certificates and the client CA as they are now.

        Whether and how clients are asked for certificates takes a restart to change.
        """
        fresh = Credentials(config.tls, path) if config.tls is not None else None
        if self._open and _manner(config) != _manner(self.config):
            found = Described("TLS switched on or off, or another client_auth_type or version")
            allowed = "the same ones until a restart"
            raise ConfigError(where=path, key="tls_server_config", found=found, allowed=allowed)
        self.credentials = fresh

    def for_new_connection(self) -> Credentials:
        """A renewed certificate is for a connection that begins already."""
        self.follow()
        assert self.credentials is not None  # noqa: S101 - TLS is not switched off while it serves
        return self.credentials

    def follow(self) -> None:
        """As exporter-toolkit does, notice a changed file without a reload: certificates too."""
        if self._path is None:
            return
        marks = tuple(map(_mark, (self._path, *_tls_files(self.config))))
        retry = self._retry_at is not None and time.monotonic() >= self._retry_at
        if self._mark == marks and not retry:
            return
        try:
            self.reload()
        except ConfigError as exc:
            self._mark = marks
            self._retry_at = time.monotonic() + RETRY_SECONDS
            if str(exc) != self._complaint:
                self._complaint = str(exc)
                log.error("kept the web configuration in force: %s", exc)

    async def refusal(
        self, request: web.BaseRequest, connection: Connection
    ) -> web.Response | None:
        """Why this request is not answered; None if it is."""
        refusal = self._refusal_of_certificate(connection)
        if refusal is not None:
            return refusal
        if self.config.users:
            try:
                header = request.headers.get("Authorization")
                if not await self._auth.allows(header, connection.address):
                    headers = {"WWW-Authenticate": "Basic"}
                    return web.Response(status=401, text="Unauthorized\n", headers=headers)
            except TooManyFailures:
                return web.Response(status=429, text="too many failures\n")
        if not self._limiter.allows():
            return web.Response(status=429, text="too many requests\n")
        return None

    def _refusal_of_certificate(self, connection: Connection) -> web.Response | None:
        tls = self.config.tls
        if tls is None or self.credentials is None or not self.credentials.authority:
            return None
        then = connection.credentials
        if then is None or then.authority != self.credentials.authority:
            return _no_more("the client CA was replaced: connect again\n")
        transport = connection.transport
        certificate = transport.get_extra_info("peercert") if transport else None
        if has_ended(certificate):
            return _no_more("the client certificate has expired\n")
        if tls.client_allowed_sans and not names_of(certificate) & set(tls.client_allowed_sans):
            return web.Response(status=403, text="no allowed name in the certificate\n")
        return None


def _no_more(text: str) -> web.Response:
    """The last answer of a connection that is not let in any more."""
    response = web.Response(status=403, text=text)
    response.force_close()
    return response


def _sans(config: WebConfig) -> Sequence[str]:
    return config.tls.client_allowed_sans if config.tls is not None else ()


def _manner(config: WebConfig) -> object:
    """What of a TLS configuration cannot change while it serves."""
    tls = config.tls
    return tls and (tls.client_auth_type, tls.min_version, tls.max_version)


def _tls_files(config: WebConfig) -> list[Path]:
    """The files that the configuration names; what they hold changes without it."""
    tls = config.tls
    names = (tls.cert_file, tls.key_file, tls.client_ca_file) if tls is not None else ()
    return [Path(name) for name in names if name]


def _mark(path: Path) -> object:
    """Changes when a file does; secrets mounted by Kubernetes change their link's target."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
