"""`cephqos record`: keep what exporters have just recorded, list it, fetch it as an archive.

An exporter records its last pages in memory. A piece is what it was asked to keep, on disk: the
minutes before, and what followed. It consists of segments, which are files of pages.
"""

import argparse
import asyncio
import json
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError
from cephqos_base.servers import Address, HttpServer, NoAnswer, trusting
from cephqos_base.terminal import say, say_json
from cephqos_base.units import parse_time
from cephqos_loadgen.progress import Progress
from cephqos_loadgen.recorded_pieces.into_archive import HostRecording, Recording
from cephqos_loadgen.recorded_pieces.redact import Redaction, key_of_user

_PATH: Final = "/-/record"
_WITHIN: Final = 60.0
_ID: Final = re.compile(r"[0-9TZ.]{1,40}")
_SEGMENT: Final = re.compile(r"[0-9]{1,20}\.pages\.gz")
_MOST_SEGMENTS: Final = 2000
_DEFAULT_BASE: Final = "cephqos-runs"


class NothingFetched(CephqosError):
    """No exporter gave a piece."""


def add_options(record: Parser) -> None:
    verbs = record.add_subparsers(dest="verb", required=True, metavar="VERB")
    keep = verbs.add_parser("keep", help="keep the last minutes that exporters have recorded")
    keep.option("--reason TEXT", "what happened (default: %(default)s)", default="by hand")
    keep.set_defaults(run=_keep)
    listing = verbs.add_parser("ls", help="list the pieces that exporters keep")
    listing.option("--json", "print JSON")
    listing.set_defaults(run=_ls)
    fetch = verbs.add_parser("fetch", help="make one archive of the pieces of all exporters")
    fetch.option(
        "--at TIME",
        "a time that the pieces hold, such as 2026-01-31T03:00:00Z (default: the newest)",
    )
    fetch.option(
        "--to DIR", "folder of archives (default: %(default)s)", default=Path(_DEFAULT_BASE)
    )
    fetch.option(
        "--redact", "replace all names except those of hosts by pseudonyms, and free texts too"
    )
    fetch.option("--redact-hosts", "replace names of hosts too")
    fetch.set_defaults(run=_fetch)
    for parser in (keep, listing, fetch):
        parser.option(
            "--exporter URL...",
            "an exporter that records, repeatable: http://host:10130",
            required=True,
        )
        parser.option("--ca-cert FILE", "CA certificate of https exporters")


def _servers(arguments: argparse.Namespace) -> list[HttpServer]:
    addresses = [Address.of_exporter(url) for url in dict.fromkeys(arguments.exporter)]
    return [
        HttpServer(address, within=_WITHIN, tls=trusting(arguments.ca_cert))
        for address in addresses
    ]


async def _keep(arguments: argparse.Namespace) -> int:
    """All hosts get the same fingerprint, as from one alert."""
    now = datetime.now(UTC)
    alert = {
        "status": "firing",
        "fingerprint": f"by-hand-{now:%Y%m%dT%H%M%S.%f}",
        "startsAt": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
        "labels": {"alertname": arguments.reason},
    }
    replies = await asyncio.gather(*(_keep_at(server, alert) for server in _servers(arguments)))
    for server, (_, text) in zip(_servers(arguments), replies, strict=True):
        say(f"{server.shown}: {text}")
    return 0 if all(is_keeping for is_keeping, _ in replies) else 1


async def _keep_at(server: HttpServer, alert: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether the exporter keeps a piece now, and a line for the user."""
    try:
        async with server:
            status, body = await server.ask("POST", _PATH, json={"alerts": [alert]})
    except NoAnswer as error:
        return False, str(error)
    if status != 200:
        return False, f"HTTP status {status}: {' '.join(body.decode(errors='replace').split())}"
    answer = _object(body)
    until = time.gmtime(float(answer.get("until_unix_seconds", 0.0)))
    clock = time.strftime("%H:%M:%S", until)
    return True, f"keeping {answer.get('kept')}, which grows until {clock} UTC"


async def _ls(arguments: argparse.Namespace) -> int:
    servers = _servers(arguments)
    listings = await asyncio.gather(*(_listing(server) for server in servers))
    if arguments.json:
        names = (server.shown for server in servers)
        say_json(dict(zip(names, listings, strict=True)))
    else:
        for server, listing in zip(servers, listings, strict=True):
            say(*(f"{server.shown}: {line}" for line in _lines(listing)))
    return 1 if any("error" in listing for listing in listings) else 0


def _lines(listing: Mapping[str, Any]) -> list[str]:
    if "error" in listing:
        return [str(listing["error"])]
    lines = [
        f"{piece['id']}  {sum(piece['segments'].values()) / 1e6:.1f} MB  "
        + "; ".join(str(reason["name"]) for reason in piece["reasons"][:3])
        for piece in listing["pieces"]
    ]
    return lines or [f"nothing is kept; the last {listing['minutes']:g} minutes are recorded"]


async def _listing(server: HttpServer) -> dict[str, Any]:
    """What an exporter keeps, or the key `error`."""
    try:
        async with server:
            status, body = await server.ask("GET", _PATH)
        if status != 200:
            text = " ".join(body.decode(errors="replace").split())
            return {"error": f"HTTP status {status}: {text[:200]}"}
        listing = _object(body)
        for piece in listing["pieces"]:
            _check(piece)
        float(listing["minutes"])
        return listing
    except NoAnswer as error:
        return {"error": str(error)}
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        return {"error": f"expected a list of pieces ({type(error).__name__}: {error})"}


def _object(body: bytes) -> dict[str, Any]:
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"found {type(value).__name__}, expected an object")
    return value


def _check(piece: Mapping[str, Any]) -> None:
    """Raises where this is no piece: an exporter is not trusted, and its names become paths."""
    if not _ID.fullmatch(piece["id"]) or len(piece["segments"]) > _MOST_SEGMENTS:
        raise ValueError(f"not a piece: {str(piece['id'])[:80]!r}")
    for name, size in piece["segments"].items():
        if not _SEGMENT.fullmatch(name) or not isinstance(size, int):
            raise ValueError(f"not a segment: {name[:80]!r}")
    for reason in piece["reasons"]:
        str(reason["name"]), str(reason["started"])
    float(piece["began_unix_seconds"]), float(piece["until_unix_seconds"])


async def _fetch(arguments: argparse.Namespace) -> int:
    servers = _servers(arguments)
    at = parse_time(arguments.at, "--at") if arguments.at else None
    listings = await asyncio.gather(*(_listing(server) for server in servers))
    begin, end = (at, at) if at is not None else _newest(listings)
    chosen = [_overlapping(listing, begin, end) for listing in listings]
    missing = [
        f"{server.shown}: {listing.get('error', 'keeps no piece of that time')}"
        for server, listing, pieces in zip(servers, listings, chosen, strict=True)
        if not pieces
    ]
    say(*missing)
    if not any(chosen):
        raise NothingFetched("no exporter keeps a piece of that time: cephqos record ls lists them")
    redaction = None
    if arguments.redact or arguments.redact_hosts:
        redaction = Redaction(key_of_user(), hosts=arguments.redact_hosts)
    recording = Recording(arguments.to, redaction)
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="cephqos-record-") as work:
        hosts: list[HostRecording] = []
        for server, listing, pieces in zip(servers, listings, chosen, strict=True):
            if not pieces:
                continue
            with progress.step(f"fetching from {server.shown}"):
                folder = Path(tempfile.mkdtemp(dir=work))
                try:
                    hosts.append(await _fetched(server, str(listing["host"]), pieces, folder))
                except NoAnswer as error:
                    missing.append(f"{server.shown}: {error}")
                    say(missing[-1])
        if not hosts:
            raise NothingFetched("no exporter gave what it keeps; nothing was written")
        with progress.step("writing the archive"):
            archive = await asyncio.to_thread(recording.write, hosts, missing)
    say(str(archive))
    return 0


def _span(piece: Mapping[str, Any], minutes: float) -> tuple[float, float]:
    """Begin and end of what a piece holds: it begins `minutes` before it was asked for."""
    return piece["began_unix_seconds"] - minutes * 60, piece["until_unix_seconds"]


def _newest(listings: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Begin and end of the newest piece of all exporters."""
    spans = [
        _span(piece, listing["minutes"])
        for listing in listings
        for piece in listing.get("pieces", ())
    ]
    return max(spans, key=lambda span: span[1], default=(0.0, 0.0))


def _overlapping(
    listing: Mapping[str, Any], begin: float, end: float
) -> Sequence[Mapping[str, Any]]:
    """The pieces of one exporter that hold a part of this time."""
    pieces = []
    for piece in listing.get("pieces", ()):
        first, last = _span(piece, listing["minutes"])
        if first <= end and begin <= last:
            pieces.append(piece)
    return pieces


async def _fetched(
    server: HttpServer, host: str, pieces: Sequence[Mapping[str, Any]], folder: Path
) -> HostRecording:
    """Fetch all segments of some pieces into the folder, each once."""
    names = {name: piece["id"] for piece in pieces for name in sorted(piece["segments"])}
    async with server:
        for name, piece in names.items():
            body = await server.get(f"{_PATH}/{piece}/{name}")
            await asyncio.to_thread((folder / name).write_bytes, body)
    reasons = tuple(reason for piece in pieces for reason in piece["reasons"])
    segments = tuple(folder / name for name in sorted(names))
    url = urlsplit(server.shown)
    # `localhost` is a port that is forwarded to a pod: the name of the pod's node says more.
    instance = f"{host}:{url.port}" if url.hostname == "localhost" else url.netloc
    return HostRecording(instance, host, segments, reasons)
