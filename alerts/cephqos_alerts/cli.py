"""`cephqos rules build|check`: files in, files out."""

import argparse
from pathlib import Path
from typing import Any

from cephqos_alerts.alertmanager import DEFAULT_WEBHOOK, alertmanager_config
from cephqos_alerts.build import build_rules
from cephqos_alerts.errors import SpecError
from cephqos_alerts.settings import Settings
from cephqos_alerts.slo_spec import Slo, check_names, parse_slos
from cephqos_loadgen.errors import CephqosError, UsageError

SLO_DIR = Path("alerts/slo")
OUTPUT_DIR = Path("alerts/rules")
ALERTMANAGER_FILE = Path("alerts/alertmanager/alertmanager.yml")


class OutOfDate(CephqosError):
    """Committed rules are not what their sources give."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("rules", help="recording rules, alerts and SLOs for Prometheus")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text, run in (
        ("build", "write the rule files", _build),
        ("check", "say whether the rule files are what would be written", _check),
    ):
        action = actions.add_parser(name, help=text)
        _add_options(action)
        action.set_defaults(run=run)


def _add_options(parser: Any) -> None:
    default = Settings()
    parser.add_argument("--slo", type=Path, default=SLO_DIR, help="file or directory of SLOs")
    parser.add_argument("--output", type=Path, default=OUTPUT_DIR, help="directory of the rules")
    parser.add_argument(
        "--alertmanager",
        type=Path,
        default=ALERTMANAGER_FILE,
        help="file of Alertmanager's configuration (default %(default)s)",
    )
    parser.add_argument("--webhook", default=DEFAULT_WEBHOOK, help="where alerts are sent")
    parser.add_argument(
        "--scrape-interval",
        type=float,
        default=default.scrape_interval,
        help="seconds between scrapes, and between evaluations (default %(default)s)",
    )
    parser.add_argument(
        "--time-scale",
        type=float,
        default=default.time_scale,
        help="factor on every window and hold, below 1 for tests and demos (default %(default)s)",
    )
    parser.add_argument("--job", default=default.job, help="scrape jobs of the exporter (regex)")
    parser.add_argument("--runbook-url", default=default.runbook_url)
    parser.add_argument("--dashboard-url", default=default.dashboard_url)


def load_slos(path: Path) -> list[Slo]:
    """The SLOs of a file or of all `*.yaml` and `*.yml` of a directory."""
    files = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
    found: list[Slo] = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise SpecError(f"{file}: cannot be read: {exc}") from exc
        found += parse_slos(text, str(file))
    check_names(found, str(path))
    return found


def _built(arguments: argparse.Namespace) -> dict[Path, str]:
    """Every file and its content."""
    if not 0 < arguments.time_scale <= 1:
        raise UsageError(f"--time-scale {arguments.time_scale}: expected more than 0, at most 1")
    if not 0.1 <= arguments.scrape_interval <= 300:
        raise UsageError(f"--scrape-interval {arguments.scrape_interval}: expected 0.1 to 300")
    settings = Settings(
        scrape_interval=arguments.scrape_interval,
        time_scale=arguments.time_scale,
        job=arguments.job,
        runbook_url=arguments.runbook_url,
        dashboard_url=arguments.dashboard_url,
    )
    rules = build_rules(settings, load_slos(arguments.slo))
    files = {arguments.output / name: text for name, text in rules.items()}
    files[arguments.alertmanager] = alertmanager_config(settings, arguments.webhook)
    return files


async def _build(arguments: argparse.Namespace) -> int:
    built = _built(arguments)
    for file, text in built.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    print("wrote", *built, sep="\n  ")
    return 0


async def _check(arguments: argparse.Namespace) -> int:
    for file, text in _built(arguments).items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            raise OutOfDate(f"{file} is not what its sources give: run `cephqos rules build`")
    print("up to date")
    return 0
