"""Multi-window, multi-burn-rate rules from SLOs: a group of rules for each SLO.

The error budget is the share of operations that may be too slow: 1 % for an objective of 99 %. A
burn rate of 1 spends exactly the whole budget in the SLO's window (30 days by default).

An alert needs a high burn rate over a long window, so that it matters, and over a short one, so
that the alert ends soon after the problem. The windows are sums over two recorded rates per SLO, so
their cost does not depend on the number of OSDs.
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
from cephqos_alerts.rules.runbooks import WARNING_SUFFIX
from cephqos_alerts.rules.settings import LEAST_OPS, RuleSettings
from cephqos_alerts.rules.template import ITSELF, only_if, query, show, when
from cephqos_alerts.rules.text import host_of
from cephqos_alerts.slo.spec import Slo
from cephqos_base.recorded import PerClusterClass, PerOsd, PerSlo
from cephqos_base.series import ClientSeries, OpSeries, ProbeSeries
from cephqos_base.units import DAY, HOUR, MINUTE, duration

SLO_ALERT: Final = "CephQosLatencySloBurn"
SLO_ALERTS: Final = (SLO_ALERT, SLO_ALERT + WARNING_SUFFIX)
SLO_SUBJECTS: Final[Sequence[Subject]] = ("load",)


@dataclass(frozen=True)
class BurnAlert:
    """An alert when this share of an SLO's error budget is spent within the long window."""

    urgency: Urgency
    long: float  # seconds
    short: float  # seconds
    budget_share: float

    def burn_rate(self, slo: Slo) -> float:
        """The burn rate at which the share is spent: 14.4 for 2 % of 30 days in an hour."""
        return self.budget_share * slo.window / self.long


# The windows and shares of chapter 5 of Google's "The Site Reliability Workbook".
BURN_ALERTS: Final = (
    BurnAlert(NOW, long=1 * HOUR, short=5 * MINUTE, budget_share=0.02),
    BurnAlert(NOW, long=6 * HOUR, short=30 * MINUTE, budget_share=0.05),
    BurnAlert(MORNING, long=1 * DAY, short=2 * HOUR, budget_share=0.10),
    BurnAlert(MORNING, long=3 * DAY, short=6 * HOUR, budget_share=0.10),
)
_WINDOWS: Final = sorted({window for burn in BURN_ALERTS for window in (burn.long, burn.short)})

_METRICS: Final[Mapping[str, str]] = {
    "osd": OpSeries.LATENCY_SECONDS,
    "fio": ClientSeries.LATENCY_SECONDS,
    "probe": ProbeSeries.LATENCY_SECONDS,
}
# An SLO has an error budget for each cluster, each pool that is probed, each load of each run.
_GROUPING: Final[Mapping[str, str]] = {
    "osd": "cluster",
    "fio": "cluster, run, load",
    "probe": "cluster, pool",
}


def slo_groups(slos: Sequence[Slo], settings: RuleSettings) -> list[RuleGroup]:
    """One group of rules per SLO."""
    return [RuleGroup(name=f"cephqos-slo-{slo.name}", rules=_rules(slo, settings)) for slo in slos]


def _rules(slo: Slo, settings: RuleSettings) -> list[Rule]:
    labels = {"slo": slo.name, **slo.labels}
    rates = [
        RecordedSeries(record=PerSlo.GOOD, expr=_rate(slo, good=True), labels=labels),
        RecordedSeries(record=PerSlo.TOTAL, expr=_rate(slo, good=False), labels=labels),
    ]
    error_shares = [
        RecordedSeries(
            record=PerSlo.ERRORS,
            expr=_error_share(slo, settings.window(window)),
            labels={"slo": slo.name, "window": duration(window)},
        )
        for window in _WINDOWS
    ]
    budget_left = RecordedSeries(
        record=PerSlo.BUDGET_LEFT,
        expr=f"1 - ({_error_share(slo, settings.window(slo.window))}) / {slo.budget:g}",
        labels={"slo": slo.name},
    )
    # For dashboards: from the objective they compute burn rates, and draw the bounds of alerts.
    objective = RecordedSeries(
        record=PerSlo.OBJECTIVE, expr=f"vector({slo.objective:.10g})", labels=labels
    )
    bounds = [
        RecordedSeries(
            record=PerSlo.BURN_BOUND,
            expr=f"vector({burn.burn_rate(slo):g})",
            labels={"slo": slo.name, "window": duration(burn.long)},
        )
        for burn in BURN_ALERTS
    ]
    alerts = [_alert(slo, burn, settings) for burn in BURN_ALERTS if slo.alerts]
    return [*rates, *error_shares, budget_left, objective, *bounds, *alerts]


def _rate(slo: Slo, *, good: bool) -> str:
    """Operations per second: those within the threshold, or all."""
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


def _error_share(slo: Slo, seconds: float) -> str:
    """The share of operations in this time that took longer than the threshold."""
    window = duration(seconds)
    good, total = (
        f'sum_over_time(cephqos_slo:{part}:rate{{slo="{slo.name}"}}[{window}])'
        for part in ("good", "total")
    )
    return f"1 - {good} / ({total} > 0)"


# The cause is looked up when the text is made. As a label, each change of it would be a new alert.
_LIKELY: Final = (
    f" Likely cause: {show('.cause')}{when('.by', f' by {ITSELF}')},"
    " on most OSDs whose clients wait."
)
# Without demand there is no main cause: operations that wait alone wait for an OSD that is slow.
_ITS_CAUSE: Final = only_if('ne .cause "unknown"', f" ({show('.cause')})")
_SLOW_OSD: Final = when(
    query(f'topk(1, {PerOsd.FINDING}{{finding="OsdSlow",cluster=%q}})', "$labels.cluster"),
    when(
        "(. | first).Labels",
        f" Likely cause: {show('.ceph_daemon')}{host_of('.ceph_daemon')} is slow{_ITS_CAUSE}.",
    ),
)
_LIKELY_CAUSE: Final = when(
    query(f'{PerClusterClass.MAIN_CAUSE}{{class="client",cluster=%q}}', "$labels.cluster"),
    when("(. | first).Labels", only_if('ne .cause "unknown"', _LIKELY)),
    _SLOW_OSD,
)


def _alert(slo: Slo, burn: BurnAlert, settings: RuleSettings) -> Alert:
    long_window = duration(settings.window(burn.long))
    burn_rate = burn.burn_rate(slo)
    bound = f"{burn_rate * slo.budget:.6g}"
    errors_long, errors_short = (
        f'{PerSlo.ERRORS}{{slo="{slo.name}", window="{duration(window)}"}} > {bound}'
        for window in (burn.long, burn.short)
    )
    # TOTAL is a rate with one sample per interval, so this is a number of operations.
    enough_ops = (
        f'sum_over_time({PerSlo.TOTAL}{{slo="{slo.name}"}}[{long_window}])'
        f" * @interval_seconds@ > {LEAST_OPS}"
    )
    same_slo = f"on ({_GROUPING[slo.source]}, slo)"
    objective = f"{100 * slo.objective:g} % of {slo.op} operations within {slo.threshold:g} s"
    return Alert(
        name=SLO_ALERT if burn.urgency is NOW else SLO_ALERT + WARNING_SUFFIX,
        about=SLO_SUBJECTS,
        expr=f"""
        ({errors_long} and {same_slo} {errors_short} and {same_slo} {enough_ops})
        """,
        urgency=burn.urgency,
        where="cluster",
        likely=_LIKELY_CAUSE,
        first=FirstCommand(line="ceph health detail"),
        within=long_window,
        labels={"slo": slo.name, "op": slo.op, "window": duration(burn.long)},
        summary=f"SLO {slo.name}: {{{{ $value | humanizePercentage }}}} of {slo.op} operations are"
        " too slow",
        description=f"""
        Objective: {objective}, over {duration(slo.window)}. In the last
        {long_window}, {{{{ $value | humanizePercentage }}}} took longer.
        The error budget burns at least {burn_rate:g} times too fast.
        """,
    )
