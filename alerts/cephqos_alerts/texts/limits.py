"""Texts of what holds OSDs back from outside: limits of containers, other programs on a host."""

from typing import Final

from cephqos_alerts.rules.template import only_if, show, when
from cephqos_alerts.texts.known import OF_OSD, if_found
from cephqos_base.recorded import PerHost, PerOsd
from cephqos_base.series import CgroupSeries, HostSeries


def _limited_by(by: str, *, what: str, series: str, size: str) -> str:
    """A sentence if `.by` names this limit; `series` has its size, which may be unknown.

    As rendered: osd.3 is limited by its container's CPU limit of 2 CPUs.
    """
    of_size = if_found(
        f"{series}SELECTOR", ("cluster", "ceph_daemon"), when(". | first", f" of {size}")
    )
    limited = f"{show('$labels.ceph_daemon')} is limited by its container's {what} limit"
    return only_if(f'eq .by "{by}"', f"{limited}{of_size}. ")


# The first sentence of an alert on an OSD, if a limit is its cause.
LIMITED_BY: Final = OF_OSD.found(
    _limited_by(
        "cpu_limit",
        what="CPU",
        series=CgroupSeries.CPU_LIMIT,
        size='{{ .Value | printf "%.3g" }} CPUs',
    )
    + _limited_by(
        "memory_limit",
        what="memory",
        series=CgroupSeries.MEMORY_LIMIT_BYTES,
        size="{{ .Value | humanize1024 }}B",
    )
    + _limited_by(
        "io_limit",
        what="I/O",
        series=PerOsd.IO_LIMIT_REACHED,
        size='{{ .Value | printf "%.0f" }} {{ .Labels.unit }}',
    )
)

# As rendered: Other programs take 3.5 of 8 CPUs. Without figures: Others take most of the CPUs.
_MOST_TAKEN: Final = f"topk(1, {PerHost.CPUS_TAKEN}SELECTOR)"
OTHERS_TAKE: Final = if_found(
    _MOST_TAKEN,
    ("instance",),
    when(
        ". | first",
        only_if('eq .Labels.by "other_vms"', "Other virtual machines", "Other programs")
        + " take "
        + show('.Value | printf "%.1f"'),
    ),
    "Others take most",
)
BY_TAKER: Final = if_found(_MOST_TAKEN, ("instance",), " by {{ (. | first).Labels.by }}")
OF_CPUS: Final = if_found(
    f"max({HostSeries.CPUS}SELECTOR)",
    ("instance",),
    " of {{ . | first | value }} CPUs",
    " of the CPUs",
)
