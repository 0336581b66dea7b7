"""Devices of OSDs: time per request, depth, size, busy; and how their I/O schedulers compare."""

from functools import partial
from typing import Final

from cephqos_base.series import DisksSeries
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import DETAIL, ROWS, highest, or_say, rate_once

_OSD: Final = f'{DETAIL}, layer="osd"'  # devices that OSDs open, not the disks beneath LVM
_KEY: Final = "ceph_daemon, role, device"
_rate: Final = partial(rate_once, _OSD)
_OP: Final = _KEY + ", op"
_TIME: Final = _rate(DisksSeries.TIME_SECONDS, _OP)
_OPS: Final = _rate(DisksSeries.OPS, _OP)
_BYTES: Final = _rate(DisksSeries.BYTES, _OP)
_INFO: Final = f"max by ({_KEY}, scheduler, nr_requests, rotational) ({DisksSeries.INFO}{{{_OSD}}})"


def _by_setting(total: str) -> str:
    """The mean per operation, over all devices with the same settings."""
    settings = "scheduler, nr_requests, rotational"
    join = f"* on ({_KEY}) group_left ({settings}) {_INFO}"
    return (
        f"sum by ({settings}) (sum by ({_KEY}) ({total}) {join})"
        f" / (sum by ({settings}) (sum by ({_KEY}) ({_OPS}) {join}) > 0)"
    )


TIME: Final = highest(f"{_TIME} / ({_OPS} > 0) > 0", _OP, "{{ceph_daemon}} {{device}} {{op}}")
DEPTH: Final = highest(
    _rate(DisksSeries.WEIGHTED_SECONDS, _KEY), _KEY, "{{ceph_daemon}} {{device}}"
)
SIZE: Final = highest(f"{_BYTES} / ({_OPS} > 0)", _OP, "{{ceph_daemon}} {{device}} {{op}}")
_BUSY: Final = _rate(DisksSeries.BUSY_SECONDS, _KEY)
BUSY: Final = highest(_BUSY, _KEY, "{{ceph_daemon}} {{device}}")
OPS: Final = PanelQuery(f"sum by (op) ({_OPS})", "{{op}}")
BYTES: Final = PanelQuery(f"sum by (op) ({_BYTES})", "{{op}}")
_MERGED: Final = _rate(DisksSeries.MERGED, _OP)
MERGED: Final = PanelQuery(
    f"sum by (op) ({_MERGED}) / (sum by (op) ({_OPS} + {_MERGED}) > 0)", "{{op}}"
)
TIME_BY_SETTING: Final = PanelQuery(
    _by_setting(_TIME), "{{scheduler}}, nr_requests {{nr_requests}}, rotational {{rotational}}"
)
SIZE_BY_SETTING: Final = PanelQuery(
    _by_setting(_BYTES), "{{scheduler}}, nr_requests {{nr_requests}}, rotational {{rotational}}"
)
COUNT_BY_SETTING: Final = PanelQuery(
    f"count by (scheduler, nr_requests, rotational, write_cache, read_ahead_kb)"
    f" (max by ({_KEY}, scheduler, nr_requests, rotational, write_cache, read_ahead_kb)"
    f" ({DisksSeries.INFO}{{{_OSD}}}))",
    name="devices",
)
# Seconds of requests per second: the mean number of requests in progress.
_DEEPEST: Final = f"topk({ROWS}, sum by ({_KEY}) ({_TIME}))"
WORST_DEVICES: Final = (
    PanelQuery(or_say(_DEEPEST, "device", "no requests"), name="depth"),
    PanelQuery(f"sum by ({_KEY}) ({_OPS}) and {_DEEPEST}", name="ops"),
    PanelQuery(
        f"sum by ({_KEY}) ({_TIME}) / (sum by ({_KEY}) ({_OPS}) > 0) and {_DEEPEST}", name="time"
    ),
    PanelQuery(f"{_BUSY} and {_DEEPEST}", name="busy"),
    PanelQuery(f"{_INFO} and on ({_KEY}) {_DEEPEST}", name="info"),
)
