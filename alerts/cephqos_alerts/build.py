"""All files of rules from settings and SLOs: the pure core of `cephqos rules`."""

from collections.abc import Sequence

from cephqos_alerts.alerts_qos import QOS, RESTARTS
from cephqos_alerts.alerts_state import COVERAGE, RECOVERY, SATURATION, SCRUB
from cephqos_alerts.cause import CAUSE
from cephqos_alerts.recording import DEMAND, HISTORY, PROMISES, ROLLUPS, VIOLATION, WORK
from cephqos_alerts.rules import Group, render, to_yaml
from cephqos_alerts.settings import Settings
from cephqos_alerts.slo import slo_groups
from cephqos_alerts.slo_spec import Slo

_RESTARTS = Group(name="cephqos-restarts", slow=True, rules=(RESTARTS,))

FILES: dict[str, tuple[Group, ...]] = {
    "recording.yml": (PROMISES, WORK, DEMAND, VIOLATION, CAUSE, ROLLUPS, HISTORY, _RESTARTS),
    "qos.yml": (QOS,),
    "state.yml": (SCRUB, RECOVERY, SATURATION),
    "coverage.yml": (COVERAGE,),
}


def build_rules(settings: Settings, slos: Sequence[Slo]) -> dict[str, str]:
    """File name to content. The same settings and SLOs give the same bytes."""
    built = {name: to_yaml(render(groups, settings)) for name, groups in FILES.items()}
    if slos:
        built["slo.yml"] = to_yaml(render(slo_groups(slos, settings), settings))
    return built
