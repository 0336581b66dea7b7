"""The rule of each cause: its evidence, and in the comment what it means and where it is seen."""

from cephqos_alerts.rules.rule import RecordedSeries
from cephqos_alerts.rules.source import expression, named_expressions
from cephqos_base.causes import CAUSES, Cause
from cephqos_base.recorded import PerClass


def cause_rules() -> list[RecordedSeries]:
    return [_rule(cause) for cause in CAUSES]


def _rule(cause: Cause) -> RecordedSeries:
    keys = cause.source.entries()
    blind = f" Blind spots: {cause.blind}." if cause.blind else ""
    return RecordedSeries(
        record=PerClass.EVIDENCE,
        labels={"cause": cause.name},
        comment=f"{cause.means} Seen where: {cause.seen}.{blind}",
        expr=expression(keys["expr"], named_expressions(keys)),
    )
