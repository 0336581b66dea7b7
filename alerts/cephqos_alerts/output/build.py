"""All files of rules from settings and SLOs: the pure core of `cephqos rules`."""

from collections.abc import Sequence
from typing import Final

from cephqos_alerts.rules.causes import cause_rules
from cephqos_alerts.rules.changes import changed
from cephqos_alerts.rules.names import SOURCES
from cephqos_alerts.rules.render import to_text
from cephqos_alerts.rules.rule import Alert, RuleGroup, Subject
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.rules.source import Shared, read_groups
from cephqos_alerts.slo.groups import SLO_ALERTS, SLO_SUBJECTS, slo_groups
from cephqos_alerts.slo.spec import Slo
from cephqos_alerts.texts.every import TEXTS, texts_of_count

# The files of sources/recording, in the order in which Prometheus needs them.
_RECORDING: Final = (
    *("reservations", "demand", "violation", "across", "limited", "failing", "understated"),
    *("causes", "rollups", "history"),
)
_ALERTS: Final = ("qos", "osds", "state", "hosts", "coverage", "blind", "helpers")


SHARED: Final = Shared(TEXTS, texts_of_count, cause_rules())


def _groups(*names: str) -> tuple[RuleGroup, ...]:
    return tuple(group for name in names for group in read_groups(SOURCES / f"{name}.yml", SHARED))


FILES: Final[dict[str, tuple[RuleGroup, ...]]] = {
    "recording.yml": _groups(*(f"recording/{name}" for name in _RECORDING)),
    **{f"{name}.yml": _groups(name) for name in _ALERTS},
}
# For Loki's ruler.
LOGS: Final[RuleGroup] = _groups("logs")[0]


def build_rules(settings: RuleSettings, slos: Sequence[Slo]) -> dict[str, str]:
    """File name to content. The same settings and SLOs give the same bytes."""
    built = {
        name: to_text(groups, settings)
        for name, groups in FILES.items()
        if changed(groups, settings.changes)
    }
    if slos:
        built["slo.yml"] = to_text(slo_groups(slos, settings), settings)
    return built


def log_rules(settings: RuleSettings) -> str:
    """The file of rules as Loki's ruler reads it. Windows do not scale: Loki sees lines at once."""
    return to_text((LOGS,), settings, for_loki=True)


def alerts_about(subject: Subject) -> list[str]:
    """Names of the alerts about a subject, each once, in the order of the files."""
    groups = [group for groups in FILES.values() for group in groups]
    rules = [rule for group in (*groups, LOGS) for rule in group.rules]
    names = [rule.name for rule in rules if isinstance(rule, Alert) and subject in rule.about]
    if subject in SLO_SUBJECTS:
        names.extend(SLO_ALERTS)
    return list(dict.fromkeys(names))
