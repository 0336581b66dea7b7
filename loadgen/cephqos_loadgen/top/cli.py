"""`cephqos top`: options, and the three ways to show the picture."""

import argparse
import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any, Final

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.servers import Address, HttpServer, NoAnswer, trusting
from cephqos_base.site import parse_site
from cephqos_base.terminal import say, say_json
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.picture import Picture
from cephqos_loadgen.top.screen.layout import plain
from cephqos_loadgen.top.screen.page import whole
from cephqos_loadgen.top.screen.view import SORTS, View
from cephqos_loadgen.top.sources import Source
from cephqos_loadgen.top.watch import Watch

# The version of the JSON, which docs/operate/top.md documents. It changes if a field is removed or
# changes its meaning, not if one is added.
VERSION: Final = 1


def to_json(picture: Picture, source: str) -> dict[str, Any]:
    """Plain data; what is not known is null."""
    data = asdict(picture)
    del data["detail"], data["tenants"]  # only the live view has them; `cephqos who` has more
    for total, fields in zip(picture.classes, data["classes"], strict=True):
        fields["attainment"] = total.attainment
    for osd, written in zip(picture.osds, data["osds"], strict=True):
        for osd_class, fields in zip(osd.classes, written["classes"], strict=True):
            fields["attainment"] = osd_class.attainment
    return {"version": VERSION, "source": source, **data}


DEFAULT_URL: Final = "http://localhost:9090"


def add_options(parser: Parser) -> None:
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--url",
        metavar="URL",
        help=f"Prometheus, or another server with its query API (default: {DEFAULT_URL})",
    )
    source.add_argument(
        "--exporter",
        action="append",
        metavar="URL",
        help="read cephqos-exporter without Prometheus, repeatable: http://host:10130",
    )
    parser.option("--cluster FSID", "fsid of the cluster (default: the first one found)")
    parser.option(
        "--site NAME=VALUE...",
        "read only series with this label, such as k8s_cluster=prod-eu; repeatable; not with"
        " --exporter",
    )
    parser.option("--interval SECONDS", "seconds between refreshes (default: 2)", default=2.0)
    parser.option(
        "--window SECONDS",
        "seconds over which Prometheus computes rates if it lacks the rules of cephqos"
        " (default: 60)",
        default=60.0,
    )
    parser.option("--ca-cert FILE", "PEM file of the server's certificate authority")
    _add_view(parser)
    parser.set_defaults(run=_top)


def _add_view(parser: Parser) -> None:
    """What is shown, and how."""
    parser.option(
        "--sort", "order of the OSDs (default: worst)", choices=list(SORTS), default="worst"
    )
    parser.option("--filter WORDS", "show these OSDs only: osd.3, violated, device", default="")
    parser.option("--once", "print plain text once and exit")
    parser.option("--json", "print JSON once and exit")
    parser.option("--ascii", "use ASCII characters only")


async def _top(arguments: argparse.Namespace) -> int:
    _check(arguments)
    once = arguments.once or arguments.json
    if not once:
        _check_terminal()
    async with _source(arguments) as source:
        watch = Watch(source, arguments.interval, Selection(arguments.cluster))
        view = View(sort=arguments.sort, filter=arguments.filter, cluster=arguments.cluster)
        if once:
            return await _print_once(watch, view, arguments)
        from cephqos_loadgen.top.screen.app import Top  # needs curses, which --once does not

        await Top(watch, view, ascii_only=_in_ascii(arguments)).run()
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if not 0.2 <= arguments.interval <= 3600:
        raise UsageError(f"--interval {arguments.interval:g}: expected 0.2 to 3600 seconds")
    if arguments.site and arguments.exporter:
        raise UsageError("--site: exporters have no such label, expected it with --url only")
    if not 1 <= arguments.window <= 3600:
        raise UsageError(f"--window {arguments.window:g}: expected 1 to 3600 seconds")


def _check_terminal() -> None:
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout)):
        raise UsageError("no terminal: use --once for plain text or --json")
    if os.environ.get("TERM") == "dumb":
        raise UsageError("TERM=dumb: this terminal shows plain lines only: use --once or --json")


def _in_ascii(arguments: argparse.Namespace) -> bool:
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return bool(arguments.ascii) or not utf8


@contextlib.asynccontextmanager
async def _source(arguments: argparse.Namespace) -> AsyncIterator[Source]:
    """The source that the options name, with its connections open."""
    tls = trusting(arguments.ca_cert)
    async with contextlib.AsyncExitStack() as opened:

        async def connect(address: Address) -> HttpServer:
            return await opened.enter_async_context(HttpServer(address, tls=tls))

        if arguments.exporter:
            from cephqos_loadgen.top.sources.exporters import Exporters

            addresses = [Address.of_exporter(url) for url in arguments.exporter]
            yield Exporters([await connect(address) for address in addresses])
        else:
            from cephqos_loadgen.top.sources.prometheus import PrometheusSource

            address = Address.parse(arguments.url or DEFAULT_URL, "--url")
            only = parse_site(arguments.site)
            yield PrometheusSource(await connect(address), arguments.window, only)


async def _print_once(watch: Watch, view: View, arguments: argparse.Namespace) -> int:
    await watch.refresh()
    if watch.picture is not None and not watch.picture.with_rates:
        await asyncio.sleep(arguments.interval)  # exporters have no rates before a second scrape
        await watch.refresh()
    if watch.picture is None:
        hint = "; --url names another, --exporter reads exporters without one"
        if arguments.url or arguments.exporter:
            hint = ""
        raise NoAnswer(f"no answer from {watch.source.name}: {watch.trouble}{hint}")
    if arguments.json:
        say_json(to_json(watch.picture, watch.source.name))
        return 0
    columns = max(80, shutil.get_terminal_size((100, 24)).columns)
    shown = whole(watch.picture, watch.status(), view, columns, _in_ascii(arguments))
    say(*map(plain, shown))
    return 0
