"""What is true of an OSD now: one series, with a label for each. Absent where it is not true.

The causes are made of these. `osd:cephqos_condition:bool{ceph_daemon="osd.3"}` shows all of an OSD.
"""

from typing import Final

from cephqos_alerts.rules.rule import previously
from cephqos_base.recorded import PerOsd


def _of(condition: str, series: str = PerOsd.CONDITION) -> str:
    return f'{series}{{condition="{condition}"}}'


BUSIER: Final = _of("busier")
COLLAPSED: Final = _of("collapsed")
CPU_SHORT: Final = _of("cpu_short")
DELAYS_OTHERS: Final = _of("delays_others")
DELAYS_REPLICA_WRITES: Final = _of("delays_replica_writes")
DEVICE_FAILING: Final = _of("device_failing")
DISK_AT_WORK: Final = _of("disk_at_work")
LARGE_OPS: Final = _of("large_ops")
SLOW_FOR_RECOVERY: Final = _of("slow_for_recovery")
STORE_STALLED: Final = _of("store_stalled")
DELAYED_OTHERS: Final = _of("delays_others", previously(PerOsd.CONDITION))
