"""Multi-window, multi-burn-rate rules from SLOs.

An alert requires that the error budget burns too fast over a long window, so that it matters, and
over a short one, so that the alert ends soon after the problem. Windows are sums over
two recorded rates per SLO, so their cost does not depend on the number of OSDs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_alerts.rules.rule import (
    MORNING,
    NOW,
    Alert,
    FirstCommand,
    RecordedSeries,
    Rule,
    RuleGroup,
    Subject,
    Urgency,
)
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.rules.template import ITSELF, only_if, query, show, when
from cephqos_alerts.slo.spec import Slo
from cephqos_base.recorded import PerClusterClass, PerOsd, PerSlo
from cephqos_base.series import ClientSeries, OpSeries, ProbeSeries
from cephqos_base.units import DAY, HOUR, MINUTE, duration

SLO_ALERT: Final = "CephQosLatencySloBurn"
SLO_SUBJECTS: Final[Sequence[Subject]] = ("load",)


@dataclass(frozen=True)
class Burn:
    """An alert when `budget` of a whole window's budget is gone within `long`."""

    urgency: Urgency
    long: float
    short: float
    budget: float

    def factor(self, slo: Slo) -> float:
        """How many times faster than the budget allows."""
        return self.budget * slo.window / self.long


# The windows and shares of chapter 5 of Google's "The Site Reliability Workbook".
BURNS: Final = (
    Burn(NOW, 1 * HOUR, 5 * MINUTE, 0.02),
    Burn(NOW, 6 * HOUR, 30 * MINUTE, 0.05),
    Burn(MORNING, 1 * DAY, 2 * HOUR, 0.10),
    Burn(MORNING, 3 * DAY, 6 * HOUR, 0.10),
)
_WINDOWS: Final = sorted({w for burn in BURNS for w in (burn.long, burn.short)})

_METRICS: Final[Mapping[str, str]] = {
    "osd": OpSeries.LATENCY_SECONDS,
    "fio": ClientSeries.LATENCY_SECONDS,
    "probe": ProbeSeries.LATENCY_SECONDS,
}
# What an SLO is kept for: each cluster, each pool probed, each load of each run.
_GROUPING: Final[Mapping[str, str]] = {
    "osd": "cluster",
    "fio": "cluster, run, load",
    "probe": "cluster, pool",
}
# With fewer operations in the long window, an SLO is not judged.
_LEAST_OPS: Final = 100


def slo_groups(slos: Sequence[Slo], settings: RuleSettings) -> list[RuleGroup]:
    """One group of rules per SLO."""
    return [RuleGroup(name=f"cephqos-slo-{slo.name}", rules=_rules(slo, settings)) for slo in slos]


def _rules(slo: Slo, settings: RuleSettings) -> list[Rule]:
    own = {"slo": slo.name, **slo.labels}
    rules: list[Rule] = [
        RecordedSeries(record=PerSlo.GOOD, expr=_rate(slo, good=True), labels=own),
        RecordedSeries(record=PerSlo.TOTAL, expr=_rate(slo, good=False), labels=own),
    ]
    for window in _WINDOWS:
        rules.append(
            RecordedSeries(
                record=PerSlo.ERRORS,
                expr=_errors(slo, settings.window(window)),
                labels={"slo": slo.name, "window": duration(window)},
            )
        )
    rules.append(
        RecordedSeries(
            record=PerSlo.BUDGET_LEFT,
            expr=f"1 - ({_errors(slo, settings.window(slo.window))}) / {slo.budget:g}",
            labels={"slo": slo.name},
        )
    )
    # What dashboards draw a burn rate with: what it is a multiple of, and where alerts begin.
    objective = RecordedSeries(
        record=PerSlo.OBJECTIVE, expr=f"vector({slo.objective:.10g})", labels=own
    )
    bounds = [
        RecordedSeries(
            record=PerSlo.BURN_BOUND,
            expr=f"vector({burn.factor(slo):g})",
            labels={"slo": slo.name, "window": duration(burn.long)},
        )
        for burn in BURNS
    ]
    alerts = [_alert(slo, burn, settings) for burn in BURNS if slo.alerts]
    return [*rules, objective, *bounds, *alerts]


def _rate(slo: Slo, *, good: bool) -> str:
    matchers = [f'op="{slo.op}"']
    if good:
        matchers.append(f'le="{slo.threshold:.10g}"')
    metric = _METRICS[slo.source] + ("_bucket" if good else "_count")
    rate = f"rate({metric}{{{', '.join(matchers)}}}[@rate@])"
    if slo.source != "osd":
        return f"sum by ({_GROUPING[slo.source]}) ({rate})"
    # Two exporters that see one OSD are one source of figures.
    rate = f"max by (cluster, ceph_daemon) ({rate})"
    if slo.media:
        rate += f' and on (cluster, ceph_daemon) {PerOsd.MEDIA}{{media="{slo.media}"}}'
    return f"sum by (cluster) ({rate})"


def _errors(slo: Slo, seconds: float) -> str:
    window = duration(seconds)
    good, total = (
        f'sum_over_time(cephqos_slo:{part}:rate{{slo="{slo.name}"}}[{window}])'
        for part in ("good", "total")
    )
    return f"1 - {good} / ({total} > 0)"


# Not a label: an alert whose cause changes is still the same alert.
_LIKELY: Final = (
    f" Likely cause: {show('.cause')}{when('.by', f' by {ITSELF}')},"
    " on most OSDs whose clients wait."
)
_CAUSE: Final = when(
    query(f'{PerClusterClass.MAIN_CAUSE}{{class="client",cluster="%s"}}', "$labels.cluster"),
    when("(. | first).Labels", only_if('ne .cause "unknown"', _LIKELY)),
)


def _alert(slo: Slo, burn: Burn, settings: RuleSettings) -> Alert:
    limit = burn.factor(slo) * slo.budget
    long, short = (
        f'{PerSlo.ERRORS}{{slo="{slo.name}", window="{duration(window)}"}}'
        for window in (burn.long, burn.short)
    )
    keys = f"{_GROUPING[slo.source]}, slo"
    total = (
        f'sum_over_time({PerSlo.TOTAL}{{slo="{slo.name}"}}'
        f"[{duration(settings.window(burn.long))}]) * @interval_seconds@ > {_LEAST_OPS}"
    )
    burning = (
        f"({long} > {limit:.6g} and on ({keys}) {short} > {limit:.6g} and on ({keys}) {total})"
    )
    objective = f"{100 * slo.objective:g} % of {slo.op} operations within {slo.threshold:g} s"
    return Alert(
        name=SLO_ALERT,
        about=SLO_SUBJECTS,
        expr=f"""
        {burning}
        """,
        urgency=burn.urgency,
        where="cluster",
        likely=_CAUSE,
        first=FirstCommand(line="ceph health detail"),
        within=duration(settings.window(burn.long)),
        dashboard="cluster",
        labels={"slo": slo.name, "op": slo.op, "window": duration(burn.long)},
        summary=f"SLO {slo.name}: {{{{ $value | humanizePercentage }}}} of {slo.op} operations are"
        " too slow",
        description=f"""
        Objective: {objective}, over {duration(slo.window)}. In the last
        {duration(settings.window(burn.long))}, {{{{ $value | humanizePercentage }}}} took longer.
        The error budget burns at least {burn.factor(slo):g} times too fast.
        """,
    )
