"""The `cephqos-exporter` command."""

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cephqos_base.command import Parser
from cephqos_base.completion import PrintCompletion
from cephqos_base.errors import ConfigError
from cephqos_base.terminal import say
from cephqos_base.version import __version__
from cephqos_exporter import core_options, log
from cephqos_exporter.cluster import cluster_options
from cephqos_exporter.collectors import all_options
from cephqos_exporter.config import ENVIRONMENT_PREFIX, Option, Settings, environment, resolve
from cephqos_exporter.flight_recorder import options as recorder_options
from cephqos_exporter.probe import probe_options
from cephqos_exporter.procfs import raise_descriptor_limit

PROGRAM = "cephqos-exporter"
_FILE_VARIABLE = f"{ENVIRONMENT_PREFIX}CONFIG_FILE"


def every_option() -> tuple[Option[Any], ...]:
    """The options of the exporter, its collectors and its roles."""
    return (
        *core_options.CORE,
        *all_options(),
        *cluster_options.OPTIONS,
        *probe_options.OPTIONS,
        *recorder_options.OPTIONS,
    )


def build_parser(known: Sequence[Option[Any]]) -> Parser:
    """A flag for every option; values stay raw until they are resolved with the other sources."""
    parser = Parser(
        prog=PROGRAM,
        usage="%(prog)s [--FLAG VALUE] [--SWITCH | --no-SWITCH] ...",
        description="Prometheus exporter for the QoS of Ceph OSDs.",
        epilog=(
            "A flag beats its environment variable (CEPHQOS_EXPORTER_ and the flag's name in "
            "capitals, other characters as _), which beats the file, which beats the default."
        ),
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.add_argument("--print-completion", action=PrintCompletion)
    parser.add_argument(
        "--config.file",
        dest="config.file",
        metavar="PATH",
        help=f"Configuration file (YAML; also {_FILE_VARIABLE}).",
    )
    parser.add_argument(
        "--config.check",
        dest="config.check",
        action="store_true",
        help="Check flags, environment and files, say what is wrong, and exit.",
    )
    for option in known:
        add_flag(parser, option)
    return parser


def add_flag(parser: argparse.ArgumentParser, option: Option[Any]) -> None:
    """The flag of an option; its value stays raw."""
    # Percent signs are argparse's own; %(default)s would show the tuple of a list.
    shown = option.default_text.replace(" ", ",")
    default = f" [default: {shown}]" if shown else ""
    text = f"{option.help}{default}".replace("%", "%%")
    common: dict[str, Any] = {"dest": option.name, "default": None}
    if option.boolean:
        switch = argparse.BooleanOptionalAction  # shows --x and --no-x
        parser.add_argument(f"--{option.name}", action=switch, help=text, **common)
        return
    action = "append" if option.repeatable else "store"
    parser.add_argument(f"--{option.name}", action=action, metavar="VALUE", help=text, **common)


def read_settings(arguments: Mapping[str, Any], variables: Mapping[str, str]) -> Settings:
    """Resolve every source; called again on SIGHUP."""
    flags = {
        name: ",".join(value) if isinstance(value, list) else value
        for name, value in arguments.items()
        if value is not None and not name.startswith("config.")
    }
    path = arguments.get("config.file") or variables.get(_FILE_VARIABLE)
    values = {name: value for name, value in variables.items() if name != _FILE_VARIABLE}
    return resolve(
        every_option(), flags=flags, environment=values, file=Path(path) if path else None
    )


def _calm_garbage_collection() -> None:
    """Collect cycles rarely: scrapes make none, and looking for them took a quarter of their CPU.

    The threshold is above what one daemon's replies are made of, which reference counts free.
    """
    gc.set_threshold(50_000, 20, 20)


@contextlib.contextmanager
def small_web_library() -> Iterator[None]:
    """While aiohttp is imported, it finds no lists of types of files, of which this server sends
    none, and no certificate authorities of the host: requests of ours say whom they trust. Else
    they take 2.3 MB of memory, and a fifth of the start."""
    import mimetypes

    mimetypes.knownfiles.clear()
    places = ("SSL_CERT_FILE", "SSL_CERT_DIR")
    before = {name: os.environ[name] for name in places if name in os.environ}
    os.environ.update(dict.fromkeys(places, os.devnull))
    try:
        yield
    finally:
        for name in places:
            del os.environ[name]
        os.environ.update(before)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the exporter until a signal ends it; 2 if an option has a value that is not allowed."""
    arguments = vars(build_parser(every_option()).parse_args(argv))

    def read() -> Settings:
        return read_settings(arguments, environment())

    raise_descriptor_limit()
    _calm_garbage_collection()
    try:
        settings = read()
        # The server and its library take most of the time to load: not for --help and --version.
        import asyncio

        with small_web_library():
            from cephqos_exporter.app import App
            from cephqos_exporter.checks import check, try_out

        check(settings)
        if arguments["config.check"]:
            try_out(settings)
            say("the configuration is valid")
            return 0
        log.set_up(settings[core_options.LOG_LEVEL], settings[core_options.LOG_FORMAT])
        asyncio.run(App(settings, read).run())
    except ConfigError as exc:
        say(f"{PROGRAM}: {exc}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
