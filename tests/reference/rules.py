"""Every recorded series and every alert, from the rules that operators load."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from tests.reference.tables import code, page, table

from cephqos_alerts.output.build import FILES, LOGS
from cephqos_alerts.rules.rule import Alert
from cephqos_alerts.rules.runbooks import runbook_url
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.causes import CAUSES
from cephqos_base.thresholds import Thresholds

_FILES: Final = (*sorted(Path("alerts/rules").glob("*.yml")), Path("alerts/loki/fake/logs.yml"))

# The list of causes is a part of this page.
RULES_PAGE: Final = Path("docs/internals/rules.md")
_CAUSES: Final = re.compile(
    r"^- \*\*\w+\*\*(, `by`)? \(\d.*?(?=\n\n### )", re.MULTILINE | re.DOTALL
)


def _rules() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in _FILES:
        for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                yield file.name, rule


def _named(template: str) -> str:
    """A summary with the names of what Prometheus fills in."""
    template = template.replace("{{ if ne $value 1.0 }}s{{ end }}", "s")
    text = re.sub(r"{{ \$labels\.(\w+) }}", lambda it: it[1].upper(), template)
    text = re.sub(r"{{ (with|if) .*?{{ end }}.*?{{ end }}|{{ (with|if) .*?{{ end }}", "", text)
    return re.sub(r"{{.*?}}", "N", text)


def _runbook(alert: str) -> str:
    """The name, linked to what to do about it."""
    return f"[{code(alert)}]({runbook_url('../operate/runbooks/{page}.md', alert)})"


def alerts() -> str:
    parts = []
    for file in dict.fromkeys(name for name, _ in _rules()):
        rows = [
            (
                _runbook(rule["alert"]),
                rule["labels"].get("severity", ""),
                str(rule.get("for", "at once")),
                _named(rule["annotations"].get("summary", "")),
            )
            for name, rule in _rules()
            if name == file and "alert" in rule
        ]
        if rows:
            parts.append(f"## {file}\n" + table(("alert", "severity", "for", "summary"), rows))
    return page(
        "Alerts",
        "\nEach alert links to its [runbook](../operate/runbooks/index.md).\n\n"
        "*At once*: without a `for`. The expression may look back over minutes: the description "
        "says so.\n",
        *parts,
        _duplicates(),
        _thresholds(),
    )


def _duplicates() -> str:
    groups = [*(group for groups in FILES.values() for group in groups), LOGS]
    found = [rule for group in groups for rule in group.rules if isinstance(rule, Alert)]
    rows = [
        (code(alert.name), alert.severity, ", ".join(map(code, alert.duplicates)))
        for alert in found
        if alert.duplicates
    ]
    return (
        "## In Ceph's own rules, too\n\n`duplicates: no` of the"
        " [configuration](files.md#changes-of-the-rules) leaves these out.\n"
        + table(("alert", "severity", "Ceph's"), rows)
    )


def _thresholds() -> str:
    """As their source has them, with its comments."""
    lines = inspect.getsource(Thresholds).splitlines()
    found = [re.fullmatch(r"    (\w+): float = ([\d.]+)  # (.+)", line) for line in lines]
    rows = [(code(it[1]), it[2], it[3]) for it in found if it]
    if len(rows) != len(vars(Thresholds)["__annotations__"]):
        raise ValueError("a threshold has no line of its own, with a comment")
    return "## Thresholds\n" + table(("name", "default", "what it is"), rows)


def recorded() -> str:
    rows = [
        (code(rule["record"]), file)
        for file, rule in _rules()
        if "record" in rule and "cephqos_slo" not in rule["record"]
    ]
    return page("Recorded series", table(("series", "file"), dict.fromkeys(rows)))


def causes() -> str:
    """Each cause for people: rank, evidence, blind spots."""
    lines = []
    for cause in CAUSES:
        others = (f"{other.rank} {other.when}" for other in cause.other_ranks)
        rank = "; ".join(filter(None, [f"{cause.rank}", ", ".join(others)]))
        seen = cause.seen if cause.seen.startswith("`") else cause.seen[0].upper() + cause.seen[1:]
        blind = f" *Blind spots*: {cause.blind}." if cause.blind else ""
        said = RuleSettings().expand(f"{seen}.{blind}")
        if len(said.split()) > 80:
            said = re.sub(r"(?<=\.) (?=Or |Not: |\*Blind)", "\n    - ", said)
        lines.append(
            f"- **{cause}**{', `by`' if cause.by else ''} ({RuleSettings().expand(rank)}): {said}"
        )
    return "\n".join(lines)


def rules_page() -> str:
    """The page on rules as it is, with the list of causes as their files have it."""
    return _CAUSES.sub(lambda _: causes(), RULES_PAGE.read_text(encoding="utf-8"))
