"""`cephqos dashboards build|check|install`: files in, files out."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cephqos_base import other_logs, textfile
from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.extras import how_to_install
from cephqos_base.site import LABEL
from cephqos_base.terminal import say
from cephqos_base.urls import check_url
from cephqos_dashboards.logs import of_logs
from cephqos_dashboards.provisioning import Sources, provisioning
from cephqos_dashboards.site import of_sites

PACKAGE: Final = Path(__file__).parent
GENERATED: Final = PACKAGE / "generated"
_LOGIN: Final = (
    "give the URL without, and add basicAuthUser and secureJsonData to the data source in"
    " provisioning/datasources/cephqos.yml"
)


class DashboardsOutOfDate(CephqosError):
    """The committed files are not what their sources give."""


def add_options(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build", help="write dashboards from their sources")
    build.option(
        "--out DIR",
        "directory to write generated and provisioning_files to; in a checkout,"
        " `make generate` names its own",
        required=True,
    )
    build.set_defaults(run=_build)
    check = actions.add_parser("check", help="say whether the committed files are up to date")
    check.set_defaults(run=_check)
    install = actions.add_parser(
        "install", help="write dashboards and provisioning files for a Grafana"
    )
    _add_install(install)


def _add_install(parser: Parser) -> None:
    default = Sources()
    parser.add_argument(
        "directory", type=Path, help="where the directories dashboards and provisioning are written"
    )
    parser.option(
        "--prometheus URL",
        "URL of Prometheus, as Grafana reaches it (default: %(default)s)",
        default=default.prometheus,
    )
    parser.option(
        "--site-label NAME...",
        "add a variable for this label, such as k8s_cluster, for rules with the same option;"
        " repeatable",
    )
    parser.option("--loki URL", "URL of Loki (default: none)", default="")
    other_logs.add_options(parser.option)
    parser.option(
        "--scrape-interval SECONDS",
        "seconds between scrapes of the exporters (default: %(default)s)",
        default=default.scrape_interval,
    )
    parser.set_defaults(run=_install)


def built(directory: Path = PACKAGE) -> dict[Path, str]:
    """Every generated file, below this directory, and its content. Needs Grafana's SDK."""
    try:
        from cephqos_dashboards.build import build_dashboards
    except ModuleNotFoundError as exc:
        raise UsageError(
            f"building dashboards needs {exc.name} (installing them does not);"
            f" {how_to_install('dashboards')}"
        ) from exc
    files = {directory / GENERATED.name / name: text for name, text in build_dashboards().items()}
    sources = Sources(loki="http://localhost:3100")
    return files | {
        directory / "provisioning_files" / name: text
        for name, text in provisioning(sources).items()
    }


async def _build(arguments: argparse.Namespace) -> int:
    if arguments.out.exists() and not arguments.out.is_dir():
        raise UsageError(f"--out {arguments.out}: expected a directory")
    return _write(built(arguments.out))


async def _check(_: argparse.Namespace) -> int:
    files = built()
    stale = textfile.differing(files)
    stale += sorted(str(file) for file in GENERATED.glob("*.json") if file not in files)
    if stale:
        raise DashboardsOutOfDate(
            f"not what their sources give: {', '.join(stale)} (`make generate`"
            " writes them; remove what has no source)"
        )
    say("up to date", *(f"  {file}" for file in files))
    return 0


async def _install(arguments: argparse.Namespace) -> int:
    for option in ("prometheus", "loki"):
        url = getattr(arguments, option)
        if url or option != "loki":  # Loki is optional
            check_url(f"--{option}", url, _LOGIN)
    if not 0.1 <= arguments.scrape_interval <= 300:
        raise UsageError(f"--scrape-interval {arguments.scrape_interval}: expected 0.1 to 300")
    if ":/" in str(arguments.directory):  # of http://…, Path has made http:/…
        raise UsageError(f"{arguments.directory}: expected a directory of Grafana's host, no URL")
    if arguments.directory.exists() and not arguments.directory.is_dir():
        raise UsageError(f"{arguments.directory}: expected a directory")
    if wrong := [it for it in arguments.site_label if not LABEL.fullmatch(it)]:
        raise UsageError(f"--site-label {wrong[0]}: expected a label, such as k8s_cluster")
    sources = Sources(
        prometheus=arguments.prometheus,
        loki=arguments.loki,
        scrape_interval=arguments.scrape_interval,
        site_labels=tuple(dict.fromkeys(arguments.site_label)),
        logs=other_logs.parse(arguments.log_selector, arguments.log_daemon_label, dashboards=True),
    )
    return _write(installed(arguments.directory, sources))


def _write(files: Mapping[Path, str]) -> int:
    for file, text in files.items():
        textfile.write(file, text)
    say("wrote", *(f"  {file}" for file in files))
    return 0


def installed(directory: Path, sources: Sources) -> dict[Path, str]:
    """Dashboards and provisioning files for a Grafana that reads them in this directory."""
    directory = directory.absolute()
    dashboards = directory / "dashboards"
    files = {
        dashboards / file.name: of_sites(
            of_logs(file.read_text("utf-8"), sources.logs), sources.site_labels
        )
        for file in GENERATED.glob("*.json")
    }
    return files | {
        directory / "provisioning" / name: text
        for name, text in provisioning(sources, str(dashboards)).items()
    }
