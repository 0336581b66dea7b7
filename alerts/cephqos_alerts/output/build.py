"""All files of rules from settings and SLOs: the pure core of `cephqos rules`."""

from collections.abc import Sequence

from cephqos_alerts.alerts.blind import BLIND
from cephqos_alerts.alerts.configuration import SETTINGS
from cephqos_alerts.alerts.coverage import COVERAGE, HELPERS, SLOW_COVERAGE
from cephqos_alerts.alerts.logs import LOGS
from cephqos_alerts.alerts.of_osds import OF_OSDS
from cephqos_alerts.alerts.qos import QOS
from cephqos_alerts.alerts.state import RECOVERY, SCRUB
from cephqos_alerts.causes.leading import CAUSE
from cephqos_alerts.recording.across import ACROSS, LINKS
from cephqos_alerts.recording.capacity import UNDERSTATED
from cephqos_alerts.recording.demand import DEMAND
from cephqos_alerts.recording.failing import FINDINGS
from cephqos_alerts.recording.limited import LIMITED
from cephqos_alerts.recording.reservations import HISTORY, RESERVATIONS, VIOLATION, WORK
from cephqos_alerts.recording.rollups import ROLLUPS
from cephqos_alerts.rules.changes import changed
from cephqos_alerts.rules.render import to_text
from cephqos_alerts.rules.rule import Alert, RuleGroup, Subject
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.groups import SLO_ALERT, SLO_SUBJECTS, slo_groups
from cephqos_alerts.slo.spec import Slo

# Settings change rarely: they are looked at once a minute.
_SETTINGS = RuleGroup(name="cephqos-settings-alerts", slow=True, rules=SETTINGS)

FILES: dict[str, tuple[RuleGroup, ...]] = {
    "recording.yml": (
        RESERVATIONS,
        WORK,
        DEMAND,
        VIOLATION,
        ACROSS,
        LINKS,
        LIMITED,
        FINDINGS,
        UNDERSTATED,
        CAUSE,
        ROLLUPS,
        HISTORY,
    ),
    "qos.yml": (QOS, _SETTINGS),
    "osds.yml": OF_OSDS,
    "state.yml": (SCRUB, RECOVERY),
    "coverage.yml": (COVERAGE, SLOW_COVERAGE),
    "blind.yml": (BLIND,),
    "helpers.yml": (HELPERS,),
}


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


def alerts_about(subject: Subject) -> list[str]:
    """Names of the alerts about a subject, each once, in the order of the files."""
    groups = [group for groups in FILES.values() for group in groups]
    rules = [rule for group in (*groups, LOGS) for rule in group.rules]
    names = [rule.name for rule in rules if isinstance(rule, Alert) and subject in rule.about]
    if subject in SLO_SUBJECTS:
        names.append(SLO_ALERT)
    return list(dict.fromkeys(names))
