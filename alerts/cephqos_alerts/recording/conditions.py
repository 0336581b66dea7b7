"""Conditions: what is true of an OSD now. A series with the label `condition`; absent if untrue.

The causes are made of these. In Prometheus, `osd:cephqos_condition:bool{ceph_daemon="osd.3"}` shows
all conditions of an OSD. They are recorded in demand.py (store_stalled), across.py (busier,
delays_replica_writes, slow_link) and failing.py (the others).
"""

from typing import Final

from cephqos_alerts.rules.rule import RecordedSeries, previously
from cephqos_base.recorded import PerOsd


def condition_rule(name: str, *, expr: str, comment: str = "") -> RecordedSeries:
    """The rule of a condition. The expression gives 1 where it is true, and nothing elsewhere."""
    return RecordedSeries(
        record=PerOsd.CONDITION, labels={"condition": name}, comment=comment, expr=expr
    )


def _series(name: str, metric: str = PerOsd.CONDITION) -> str:
    return f'{metric}{{condition="{name}"}}'


BUSIER: Final = _series("busier")
COLLAPSED: Final = _series("collapsed")
CPU_SHORT: Final = _series("cpu_short")
DELAYS_OTHERS: Final = _series("delays_others")
DELAYS_REPLICA_WRITES: Final = _series("delays_replica_writes")
DEVICE_FAILING: Final = _series("device_failing")
DISK_AT_WORK: Final = _series("disk_at_work")
LARGE_OPS: Final = _series("large_ops")
SLOW_FOR_RECOVERY: Final = _series("slow_for_recovery")
SLOW_LINK: Final = _series("slow_link")
STORE_STALLED: Final = _series("store_stalled")
# As of the evaluation before, for rules that are evaluated before `delays_others`.
DELAYED_OTHERS: Final = _series("delays_others", previously(PerOsd.CONDITION))
