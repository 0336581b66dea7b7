"""Options of commands that ask a Prometheus."""

import argparse
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

from cephqos_base.command import Group, Parser
from cephqos_base.errors import ConfigError, UsageError
from cephqos_base.prometheus import Prometheus
from cephqos_base.servers import Address, HttpServer, NoAnswer
from cephqos_base.site import parse_site
from cephqos_base.textfile import reason_of

PASSWORDS: Final = "passwords go into a file for --header"
_HEADER: Final = re.compile(r"([A-Za-z0-9-]+):\s*(\S.*)")


def add_prometheus(parser: Parser, *, since: str) -> None:
    """The options of commands that ask about the past."""
    parser.option("--prometheus URL", "such as http://localhost:9090")
    add_header(parser)
    add_site(parser)
    parser.option("--since TIME", "look back this far (default: %(default)s)", default=since)


def add_header(parser: Parser | Group) -> None:
    parser.option(
        "--header FILE",
        "file with HTTP headers to send, such as `Authorization: Bearer TOKEN`",
    )


def add_site(parser: Parser | Group) -> None:
    parser.option(
        "--site NAME=VALUE...",
        "read only series with this label, such as k8s_cluster=prod-eu; repeatable",
    )


def headers_of(file: Path | None) -> Mapping[str, str]:
    """Headers of a file: passwords never stand in a command line."""
    if file is None:
        return {}
    try:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"{file}: cannot be read: {reason_of(exc)}") from exc
    headers = {}
    for number, line in enumerate(lines, 1):
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            raise ConfigError(
                where=file, line=number, key="", found=None, allowed="lines such as `Name: value`"
            )
        headers[match[1]] = match[2]
    return headers


@contextlib.asynccontextmanager
async def prometheus_of(arguments: argparse.Namespace, within: float) -> AsyncIterator[Prometheus]:
    """The one that is named. NoAnswer names it where it gives no usable answer."""
    address, headers = Address(arguments.prometheus.rstrip("/")), headers_of(arguments.header)
    only = parse_site(arguments.site)
    async with HttpServer(address, within=within, headers=headers) as server:
        try:
            yield Prometheus(server, only)
        except NoAnswer as exc:
            raise NoAnswer(f"{arguments.prometheus}: {exc}") from exc
