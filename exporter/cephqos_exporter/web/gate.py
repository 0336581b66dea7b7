"""Decides who is let in: TLS, users and rates, by the web configuration file, which may change."""

import logging
import time
from pathlib import Path
from typing import Final

from aiohttp import web

from cephqos_base.errors import MISSING, ConfigError, Described
from cephqos_exporter.web.auth import BasicAuth, RateLimiter
from cephqos_exporter.web.config import WebConfig, load
from cephqos_exporter.web.tls import Credentials

log = logging.getLogger(__name__)

# When a configuration that could not be read is tried again. Its file may be readable or whole by
# then, though its times and size have not changed.
RETRY_SECONDS: Final = 5.0


class Gate:
    """The web configuration in force. Without a file everybody is let in."""

    def __init__(self, path: Path | None) -> None:
        self.config = WebConfig()
        self.credentials: Credentials | None = None
        self._path = path
        self._marks: object = None  # of the file and of those that it names: see `_mark`
        self._retry_at: float | None = None  # of the monotonic clock, after a failure
        self._complaint = ""
        self._auth = BasicAuth({})
        self._limiter = RateLimiter(self.config.rate_limit)
        self._serving = False
        self.reload()

    def open(self) -> None:
        """Connections come from now on: what protects them ends only with a restart."""
        self._serving = True

    def reload(self) -> None:
        """Take the web configuration file as it is now, or raise and keep the one in force."""
        path = self._path
        if path is None:
            return
        mark = _mark(path)
        config = load(path)
        marks = (mark, *map(_mark, _tls_files(config)))  # before they are read, not after
        if self._serving and self.config.users and not config.users:  # it may be half written
            allowed = "at least one user, until a restart"
            raise ConfigError(where=path, key="basic_auth_users", found=MISSING, allowed=allowed)
        self._take_tls(config, path)
        if config.users != self.config.users:
            self._auth = BasicAuth(config.users)
        if config.rate_limit != self.config.rate_limit:
            self._limiter = RateLimiter(config.rate_limit)
        self.config = config
        self._marks = marks
        self._retry_at = None
        self._complaint = ""

    def _take_tls(self, config: WebConfig, path: Path) -> None:
        """Serve new connections with the certificates and the client CA as they are now.

        Whether and how clients are asked for certificates takes a restart to change.
        """
        fresh = Credentials(config.tls, path) if config.tls is not None else None
        if self._serving and _fixed_tls(config) != _fixed_tls(self.config):
            found = Described("TLS switched on or off, or another client_auth_type or version")
            allowed = "the same ones until a restart"
            raise ConfigError(where=path, key="tls_server_config", found=found, allowed=allowed)
        self.credentials = fresh

    def for_new_connection(self) -> Credentials:
        """The TLS credentials for a new connection: a renewed certificate counts at once."""
        self.follow()
        assert self.credentials is not None  # noqa: S101 - TLS is not switched off while it serves
        return self.credentials

    def follow(self) -> None:
        """Take changed files, certificates too, without a reload, as exporter-toolkit does."""
        if self._path is None:
            return
        marks = tuple(map(_mark, (self._path, *_tls_files(self.config))))
        retry = self._retry_at is not None and time.monotonic() >= self._retry_at
        if self._marks == marks and not retry:
            return
        try:
            self.reload()
        except ConfigError as exc:
            self._marks = marks
            self._retry_at = time.monotonic() + RETRY_SECONDS
            if str(exc) != self._complaint:
                self._complaint = str(exc)
                log.error("kept the web configuration in force: %s", exc)

    async def refusal(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to a request that is refused; None if it is let in."""
        if not self._limiter.allows():
            return web.Response(status=429, text="too many requests\n")
        if self.config.users and not await self._auth.allows(request.headers.get("Authorization")):
            headers = {"WWW-Authenticate": "Basic"}
            return web.Response(status=401, text="Unauthorized\n", headers=headers)
        return None


def _fixed_tls(config: WebConfig) -> object:
    """The part of a TLS configuration that takes a restart to change."""
    tls = config.tls
    return tls and (tls.client_auth_type, tls.min_version, tls.max_version)


def _tls_files(config: WebConfig) -> list[Path]:
    """The files that the configuration names: they may change when it does not."""
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
