"""`cephqos rules build|check|series`: files in, files out."""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cephqos_alerts.output.alertmanager import DEFAULT_WEBHOOK, alertmanager_config, parse_receivers
from cephqos_alerts.output.build import LOGS, build_rules, log_rules
from cephqos_alerts.rules.changes import LABELS, parse_changes
from cephqos_alerts.rules.render import MARK
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.series_needed import keep, series
from cephqos_alerts.slo.spec import Slo, check_names, parse_slos
from cephqos_base import other_logs, textfile, yamlfile
from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.site import LABEL
from cephqos_base.terminal import say
from cephqos_base.urls import check_url

# In a checkout a link to alerts/slo, where they are edited; in a wheel their copy.
DEFAULT_SLOS: Final = Path(__file__).parent / "default_slos"
_PROJECT_NAME: Final = 'name = "cephqos"'  # a line of pyproject.toml
# What URLs of runbooks and dashboards may be. Without http:// a link would not open, and another
# scheme may run code in a browser.
_LINK: Final = re.compile(r"https?://[^/\s]\S*|[\w.-]*/[^:\s]*")


def _checkout(alerts: Path) -> Path | None:
    """The folder alerts/ with the committed rules, if the command runs from a checkout. In
    site-packages, a folder `rules` may belong to another package, so pyproject.toml decides."""
    project = alerts.parent / "pyproject.toml"
    try:
        ours = _PROJECT_NAME in project.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return alerts if ours and (alerts / "rules").is_dir() else None


_CHECKOUT: Final = _checkout(Path(__file__).parents[1])


class RulesOutOfDate(CephqosError):
    """The rules that are there are not what their sources give."""


def add_options(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text, run in (
        ("build", "write the rule files", _build),
        (
            "check",
            "compare the rule files with what build would write (status 1: they differ)",
            _check,
        ),
    ):
        action = actions.add_parser(name, help=text)
        _add_files(action, writes=run is _build)
        _add_settings(action)
        action.set_defaults(run=run)
    listed = actions.add_parser(
        "series", help="list the metrics that rules, dashboards and commands read"
    )
    _add_slo(listed)
    listed.option(
        "--keep", "print metric_relabel_configs for a scrape job that keeps only these metrics"
    )
    listed.set_defaults(run=_series)


def _add_slo(parser: Parser) -> None:
    parser.option(
        "--slo FILE|DIR",
        "SLOs: a file, or a directory of *.yaml (default: the ones that come with cephqos)",
        default=DEFAULT_SLOS,
    )


def _add_files(parser: Parser, *, writes: bool) -> None:
    """Options for the files that the command reads, and those that it writes."""
    _add_slo(parser)
    parser.option("--no-slo", "write no SLOs")
    _add_places(parser, writes=writes)
    parser.option("--webhook URL", f"URL to send alerts to (default: {DEFAULT_WEBHOOK})")
    parser.option(
        "--receivers FILE", "file with your Alertmanager receivers, used instead of webhooks"
    )


def _add_places(parser: Parser, *, writes: bool) -> None:
    """Only `check` has defaults: `build` without options must not change a checkout."""

    def default(name: str) -> str:
        return "" if writes else f" (default: none with --out, otherwise {name} of the checkout)"

    parser.option(
        "--out DIR",
        "directory to write the rules to; in a checkout, `make generate` names its own"
        if writes
        else "directory of the rules (default: alerts/rules of the checkout)",
        required=writes,
    )
    parser.option(
        "--alertmanager FILE",
        "file to write Alertmanager's configuration to"
        + default("alerts/alertmanager/alertmanager.yml"),
    )
    parser.option(
        "--loki FILE",
        "file to write the rules for Loki's ruler to" + default("alerts/loki/fake/logs.yml"),
    )
    other_logs.add_options(parser.option)


def _add_settings(parser: Parser) -> None:
    """Options for what the rules depend on: RuleSettings."""
    default = RuleSettings()
    parser.option(
        "--config FILE",
        "file with your names of severities, thresholds, labels, and alerts to leave out",
    )
    _add_pace(parser, default)
    parser.option(
        "--job REGEX",
        "regular expression that matches the exporter's scrape jobs (default: %(default)s)",
        default=default.job,
    )
    parser.option(
        "--site-label NAME...",
        "keep this label of scraped series, such as k8s_cluster: it tells clusters of the same name"
        " apart; repeatable",
    )
    parser.option(
        "--runbook-url URL",
        "URL of the site's folder operate/runbooks, or of any page with {page} in place of its"
        " name (default: alerts have no link to a runbook)",
        default=default.runbook_url,
    )
    parser.option(
        "--dashboard-url URL",
        "Grafana URL before the dashboard uids (default: alerts have no link to a dashboard)",
        default=default.dashboard_url,
    )
    parser.option(
        "--dashboard-prefix TEXT",
        "what the uids of the dashboards begin with in your Grafana (default: nothing)",
        default=default.dashboard_prefix,
    )


def _add_pace(parser: Parser, default: RuleSettings) -> None:
    """How often rules are evaluated, and how far they look back."""
    parser.option(
        "--scrape-interval SECONDS",
        "scrape interval in seconds; rules are evaluated as often (default: %(default)s)",
        default=default.scrape_interval,
    )
    parser.option(
        "--evaluations-per-scrape N",
        "how often rules are evaluated, 1 to 10; more than once only where the engine keeps"
        " one result of them (VictoriaMetrics, docs/install/scale.md) (default: %(default)s)",
        default=default.evaluations_per_scrape,
    )
    parser.option(
        "--time-scale FACTOR",
        "multiply every window and `for` by this, above 0 to 1, for tests and demos"
        " (default: %(default)s)",
        default=default.time_scale,
    )


def load_slos(path: Path) -> list[Slo]:
    """The SLOs of a file or of all `*.yaml` and `*.yml` of a directory."""
    files = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{path}: no *.yaml or *.yml in this directory")
    slos = [slo for file in files for slo in parse_slos(yamlfile.read(file))]
    check_names(slos, str(path))
    return slos


def _check_settings(arguments: argparse.Namespace) -> None:
    """Raises UsageError for the first option with a wrong value."""
    if not 0 < arguments.time_scale <= 1:
        raise UsageError(f"--time-scale {arguments.time_scale}: expected more than 0, at most 1")
    if not 0.1 <= arguments.scrape_interval <= 300:
        raise UsageError(f"--scrape-interval {arguments.scrape_interval}: expected 0.1 to 300")
    if not 1 <= arguments.evaluations_per_scrape <= 10:
        raise UsageError(
            f"--evaluations-per-scrape {arguments.evaluations_per_scrape}: expected 1 to 10"
        )
    for label in arguments.site_label:
        if not LABEL.fullmatch(label) or label in LABELS:
            raise UsageError(
                f"--site-label {label}: expected a name of letters, digits and _ that the rules do"
                " not use"
            )
    for name in ("runbook", "dashboard"):
        url = getattr(arguments, f"{name}_url")
        if url and not _LINK.fullmatch(url):
            expected = "expected http://… or https://…, or a path with a /"
            raise UsageError(f"--{name}-url {url}: {expected}")
    try:
        re.compile(arguments.job)
    except re.error as exc:
        raise UsageError(f"--job {arguments.job}: not a regular expression: {exc}") from exc
    if set(arguments.job) & set('"\\\n'):
        raise UsageError(f"--job {arguments.job}: expected no quotes and no backslashes")


def _settings(arguments: argparse.Namespace) -> RuleSettings:
    _check_settings(arguments)
    settings = RuleSettings(
        scrape_interval=arguments.scrape_interval,
        evaluations_per_scrape=arguments.evaluations_per_scrape,
        time_scale=arguments.time_scale,
        job=arguments.job,
        site_labels=tuple(dict.fromkeys(arguments.site_label)),
        runbook_url=arguments.runbook_url,
        dashboard_url=arguments.dashboard_url,
        dashboard_prefix=arguments.dashboard_prefix,
        logs=other_logs.parse(arguments.log_selector, arguments.log_daemon_label),
    )
    if not arguments.config:
        return settings
    return parse_changes(yamlfile.read(arguments.config), settings)


def _places(arguments: argparse.Namespace) -> tuple[Path, Path | None]:
    """The directory of the rules, and the file of Alertmanager's configuration if it is wanted."""
    out, alertmanager = arguments.out, arguments.alertmanager
    if out is None:
        if _CHECKOUT is None:
            raise UsageError("--out DIR: needed, since this cephqos does not run from a checkout")
        out = _CHECKOUT / "rules"
        alertmanager = alertmanager or _CHECKOUT / "alertmanager" / "alertmanager.yml"
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out}: expected a directory")
    return out, alertmanager


def _built(arguments: argparse.Namespace) -> dict[Path, str]:
    """Every file and its content."""
    settings = _settings(arguments)
    out, alertmanager = _places(arguments)
    rules = build_rules(settings, [] if arguments.no_slo else load_slos(arguments.slo))
    files = {out / name: text for name, text in rules.items()}
    if arguments.loki or arguments.out is None:
        files[arguments.loki or out.parent / "loki" / "fake" / "logs.yml"] = log_rules(settings)
    elif settings.logs:
        raise UsageError("--log-selector goes into the file that --loki names")
    if alertmanager is not None:
        files[alertmanager] = _alertmanager(settings, arguments)
    elif arguments.webhook or arguments.receivers:
        raise UsageError("--webhook and --receivers go into the file that --alertmanager names")
    return files


def _alertmanager(settings: RuleSettings, arguments: argparse.Namespace) -> str:
    webhook = arguments.webhook or DEFAULT_WEBHOOK
    check_url("--webhook", webhook, "put the receiver into the file of --receivers", 8080)
    receivers = None
    if arguments.receivers:
        receivers = parse_receivers(yamlfile.read(arguments.receivers))
    return alertmanager_config(settings, webhook, receivers)


def _left_over(built: Mapping[Path, str], out: Path) -> list[Path]:
    """Rule files of an earlier build that this one does not write: Prometheus would load them, too.

    Files without the mark are not ours. Rules for Loki stay where an earlier build wrote them.
    """
    loki = f"- name: {LOGS.name}\n"
    return [
        file
        for file in sorted(out.glob("*.yml"))
        if file not in built
        and file.is_file()
        and textfile.begins_with(file, MARK)
        and loki not in file.read_text(encoding="utf-8")
    ]


async def _build(arguments: argparse.Namespace) -> int:
    built = _built(arguments)
    out, alertmanager = _places(arguments)
    for file, text in built.items():
        secrets = arguments.receivers if file == alertmanager else None
        textfile.write(file, text, rights_of=secrets)
    say("wrote", *(f"  {file}" for file in built))
    if left := _left_over(built, out):
        for file in left:
            textfile.remove(file)
        say("removed, as nothing gives them any more", *(f"  {file}" for file in left))
    return 0


async def _check(arguments: argparse.Namespace) -> int:
    built = _built(arguments)
    out, _ = _places(arguments)
    stale = textfile.differing(built) + [str(file) for file in _left_over(built, out)]
    if stale:
        build = "cephqos rules build` with the same options" if arguments.out else "make generate`"
        raise RulesOutOfDate(
            f"not what cephqos and the SLOs give: {', '.join(stale)}"
            f" (`{build} writes or removes them)"
        )
    say("up to date", *(f"  {file}" for file in built))
    return 0


async def _series(arguments: argparse.Namespace) -> int:
    names = series(load_slos(arguments.slo))
    say(*(keep(names) if arguments.keep else names))
    return 0
