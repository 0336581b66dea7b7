"""Builds the exporter from its settings, runs it, reloads its settings, ends it."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cephqos_base.errors import ConfigError
from cephqos_exporter import core_options
from cephqos_exporter.ceph.discovery import Socket, find_sockets
from cephqos_exporter.checks import address_error, addresses, check, web_config_path
from cephqos_exporter.cluster import cluster_options
from cephqos_exporter.collectors import build_enabled
from cephqos_exporter.collectors.base import CollectorInputs
from cephqos_exporter.config import Settings
from cephqos_exporter.flight_recorder import options as recorder_options
from cephqos_exporter.probe import probe_options
from cephqos_exporter.scrape.own_metrics import OwnMetrics
from cephqos_exporter.scrape.rounds import PageSource
from cephqos_exporter.scrape.scraper import Scraper
from cephqos_exporter.web.addresses import AddressMissing, listen_on, systemd_sockets
from cephqos_exporter.web.server import Server, Service

if TYPE_CHECKING:
    from cephqos_exporter.flight_recorder.recorder import Recorder

log = logging.getLogger(__name__)

# Seconds from SIGTERM until:
_FINISH_SECONDS = 7.0  # scrapes under way end with what they have
_DRAIN_SECONDS = 9.0  # their pages must be sent
_END_SECONDS = 10.0  # the process ends, whatever it waits for

_LEAST_PATIENCE = 0.5  # seconds that a daemon has to answer, even if the settings give it less


class Finder:
    """Looks for admin sockets, and logs when there are none, and when there are some again."""

    def __init__(self, patterns: Sequence[str], kinds: Sequence[str]) -> None:
        self._patterns = patterns
        self._kinds = kinds
        self._found = True

    def __call__(self) -> list[Socket]:
        sockets = find_sockets(self._patterns, self._kinds)
        if bool(sockets) != self._found:
            self._found = bool(sockets)
            where = ", ".join(self._patterns)
            if sockets:
                number = f"{len(sockets)} admin socket{'' if len(sockets) == 1 else 's'}"
                log.info("found %s in %s", number, where)
            else:
                log.warning(
                    "no admin socket of %s in %s: no such daemon here, another place"
                    " (--discovery.sockets), or a directory that this user may not read",
                    "/".join(self._kinds),
                    where,
                )
        return sockets


def _recorder(settings: Settings) -> "Recorder | None":
    """Its modules are loaded only where something is recorded."""
    if not settings[recorder_options.MINUTES]:
        return None
    from cephqos_exporter.flight_recorder.recorder import Recorder

    return Recorder(settings)


def build_scraper(settings: Settings, recorder: "Recorder | None" = None) -> Scraper:
    """A scraper for the roles that are set, its daemons not looked for yet."""
    inputs = CollectorInputs(settings)
    patterns, kinds = settings[core_options.SOCKETS], settings[core_options.DAEMONS]
    roles = settings[core_options.ROLE]
    return Scraper(
        host=inputs.host,
        find=Finder(patterns, kinds) if "osd" in roles else list,
        collectors=build_enabled(inputs) if "osd" in roles else (),
        sources=_sources(settings),
        reporter=OwnMetrics(
            process=not settings[core_options.DISABLE_OWN_METRICS],
            discovers="osd" in roles,
            more=recorder.families if recorder else tuple,
        ),
        patience=max(
            _LEAST_PATIENCE, settings[core_options.TIMEOUT] - settings[core_options.TIMEOUT_OFFSET]
        ),
        max_series=settings[core_options.MAX_SERIES],
        look=recorder.operations.look if recorder else None,
    )


def _sources(settings: Settings) -> Sequence[PageSource]:
    roles = settings[core_options.ROLE]
    sources: list[PageSource] = []
    if "cluster" in roles:
        sources.append(cluster_options.build_source(settings))
    if "probe" in roles:
        sources.append(probe_options.build_source(settings))
    return sources


class App:
    """One running exporter."""

    def __init__(self, settings: Settings, read: Callable[[], Settings]) -> None:
        self._settings = settings
        self._read = read
        self._recorder = _recorder(settings)
        self._scraper = self._build_scraper()
        self._server = Server(
            self._service(), web_config=web_config_path(settings), drain_seconds=_DRAIN_SECONDS
        )
        self._stop = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()  # scrapers of earlier settings
        self._ending = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def _build_scraper(self) -> Scraper:
        return build_scraper(self._settings, self._recorder)

    def _service(self) -> Service:
        settings, scraper = self._settings, self._scraper
        return Service(
            page=scraper.page,
            daemons=lambda: scraper.daemons,
            telemetry_path=settings[core_options.TELEMETRY_PATH],
            roles=settings[core_options.ROLE],
            timeout=settings[core_options.TIMEOUT],
            timeout_offset=settings[core_options.TIMEOUT_OFFSET],
            max_requests=settings[core_options.MAX_REQUESTS],
            recorder=self._recorder,
        )

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT; finish what is under way, then return."""
        self._loop = loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Not a handler of the loop, which may be held up.
            signal.signal(number, self._on_stop_signal)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        try:
            await self._server.start(self._sockets())
            self._scraper.start()
            if self._recorder:
                self._recorder.start()
            await self._stop.wait()
            log.info("ending: letting requests under way finish")
            loop.call_later(_FINISH_SECONDS, self._scraper.hurry)
            await self._server.drain()
        finally:
            self._scraper.hurry()
            await self._scraper.close()
            if self._recorder:
                await self._recorder.close()

    def _on_stop_signal(self, *_: object) -> None:
        """Stop the loop, and make sure that the process ends in _END_SECONDS: a system call or a
        thread may hang for good."""
        if not self._ending:
            self._ending = True
            # The kernel ends the process, without a message, if even the watchdog cannot: the log
            # is blocked, or there is no thread left for it.
            signal.alarm(round(_END_SECONDS) + 1)
            watchdog = threading.Timer(_END_SECONDS, _give_up)
            watchdog.daemon = True
            with contextlib.suppress(RuntimeError):
                watchdog.start()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)

    def _sockets(self) -> list[socket.socket]:
        if self._settings[core_options.SYSTEMD_SOCKET]:
            sockets = systemd_sockets()
            if not sockets:
                allowed = "false, when systemd hands over no socket"
                raise self._settings.error(core_options.SYSTEMD_SOCKET, allowed)
            return sockets
        try:
            return listen_on(addresses(self._settings))
        except AddressMissing as exc:
            raise address_error(self._settings, exc.address, exc.reason) from exc

    def _reload(self) -> None:
        """Read the configuration again; if it is bad, say so and go on with the old one."""
        try:
            settings = self._read()
            check(settings)
            self._server.gate.reload()  # the files that it reads may have changed
            if settings != self._settings:
                self._replace(settings)
        except ConfigError as exc:
            log.error("kept the configuration in force: %s", exc)
            return
        log.info("reloaded the configuration")

    def _replace(self, settings: Settings) -> None:
        for option in (
            core_options.LISTEN_ADDRESS,
            core_options.SYSTEMD_SOCKET,
            core_options.WEB_CONFIG,
            *recorder_options.OPTIONS,
        ):
            if settings[option] != self._settings[option]:
                log.warning("%s takes effect after a restart only", option.name)
        self._settings = settings
        replaced, self._scraper = self._scraper, self._build_scraper()
        self._scraper.start()
        self._server.service = self._service()
        # In the background: a child process or a scrape of it may take long to end.
        closing = asyncio.get_running_loop().create_task(replaced.close(), name="close")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def _give_up() -> None:
    log.error("ending without what did not end within %g s", _END_SECONDS)
    os._exit(1)
