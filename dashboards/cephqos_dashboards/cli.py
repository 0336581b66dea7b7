"""`cephqos dashboards build|check|install`: files in, files out."""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cephqos_base import textfile
from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.extras import how_to_install
from cephqos_base.terminal import say
from cephqos_base.urls import refuse_login
from cephqos_dashboards.provisioning import GrafanaPaths, provisioning

_PACKAGE: Final = Path(__file__).parent
GENERATED: Final = _PACKAGE / "generated"
_LOGIN: Final = (
    "give the URL without, and add basicAuthUser and secureJsonData to the data source in"
    " provisioning/datasources/cephqos.yml"
)


class DashboardsOutOfDate(CephqosError):
    """The committed files are not what their sources give."""


def add_options(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build", help="write the committed files from their sources")
    build.set_defaults(run=_build)
    check = actions.add_parser("check", help="say whether the committed files are up to date")
    check.set_defaults(run=_check)
    install = actions.add_parser(
        "install", help="write dashboards and provisioning files for a Grafana"
    )
    _add_install(install)


def _add_install(parser: argparse.ArgumentParser) -> None:
    default = GrafanaPaths()
    parser.add_argument(
        "directory",
        type=Path,
        help="where the directories dashboards and provisioning are written",
    )
    parser.add_argument(
        "--prometheus",
        metavar="URL",
        default=default.prometheus,
        help="URL of Prometheus, as Grafana reaches it (default: %(default)s)",
    )
    parser.add_argument("--loki", metavar="URL", default="", help="URL of Loki (default: none)")
    parser.add_argument(
        "--scrape-interval",
        metavar="SECONDS",
        type=float,
        default=default.scrape_interval,
        help="seconds between scrapes of the exporters (default: %(default)s)",
    )
    parser.set_defaults(run=_install)


def committed() -> dict[Path, str]:
    """Every committed file and what it should hold. Needs the SDK."""
    try:
        from cephqos_dashboards.build import build_dashboards
    except ModuleNotFoundError as exc:
        raise UsageError(
            f"building dashboards needs {exc.name} (installing them does not);"
            f" {how_to_install('dashboards')}"
        ) from exc
    files = {GENERATED / name: text for name, text in build_dashboards().items()}
    place = GrafanaPaths(loki="http://localhost:3100")
    return files | {
        _PACKAGE / "provisioning_files" / name: text for name, text in provisioning(place).items()
    }


async def _build(_: argparse.Namespace) -> int:
    return _write(committed())


async def _check(_: argparse.Namespace) -> int:
    files = committed()
    stale = textfile.differing(files)
    stale += sorted(str(file) for file in GENERATED.glob("*.json") if file not in files)
    if stale:
        raise DashboardsOutOfDate(
            f"not what their sources give: {', '.join(stale)} (`cephqos dashboards build`"
            " writes them; remove what has no source)"
        )
    say("up to date", *(f"  {file}" for file in files))
    return 0


async def _install(arguments: argparse.Namespace) -> int:
    for option in ("prometheus", "loki"):
        url = getattr(arguments, option)
        refuse_login(f"--{option}", url, _LOGIN)
        if option == "loki" and not url:  # none
            continue
        if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url):
            raise UsageError(f"--{option} {url}: expected a URL such as http://host:9090")
    if not 0.1 <= arguments.scrape_interval <= 300:
        raise UsageError(f"--scrape-interval {arguments.scrape_interval}: expected 0.1 to 300")
    if ":/" in str(arguments.directory):  # Path has made one / of two
        raise UsageError(f"{arguments.directory}: expected a directory of Grafana's host, no URL")
    if arguments.directory.exists() and not arguments.directory.is_dir():
        raise UsageError(f"{arguments.directory}: expected a directory")
    files = installed(
        arguments.directory,
        prometheus=arguments.prometheus,
        loki=arguments.loki,
        scrape_interval=arguments.scrape_interval,
    )
    return _write(files)


def _write(files: Mapping[Path, str]) -> int:
    for file, text in files.items():
        textfile.write(file, text)
    say("wrote", *(f"  {file}" for file in files))
    return 0


def installed(
    directory: Path, *, prometheus: str, loki: str, scrape_interval: float
) -> dict[Path, str]:
    """The files of an installation: what is committed, with provisioning for this place."""
    directory = directory.absolute()
    dashboards = directory / "dashboards"
    place = GrafanaPaths(
        dashboards=str(dashboards),
        prometheus=prometheus,
        loki=loki,
        scrape_interval=scrape_interval,
    )
    files = {dashboards / file.name: file.read_text("utf-8") for file in GENERATED.glob("*.json")}
    return files | {
        directory / "provisioning" / name: text for name, text in provisioning(place).items()
    }
