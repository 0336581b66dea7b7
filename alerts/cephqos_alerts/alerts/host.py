"""What holds OSDs back from outside: limits of containers, and other programs on their host."""

from typing import Final

from cephqos_alerts.alerts.known import OF_OSD, if_found
from cephqos_alerts.recording.limited import (
    CPU_LIMIT,
    IO_LIMIT,
    MEMORY_LIMIT,
    OF_HOST,
    OTHER_VMS,
    of_host,
)
from cephqos_alerts.rules.rule import NOW, Alert, FirstCommand
from cephqos_alerts.rules.template import only_if, show, when
from cephqos_alerts.rules.text import counted
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerHost, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, CgroupSeries, DaemonSeries, HostSeries


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
        CPU_LIMIT,
        what="CPU",
        series=CgroupSeries.CPU_LIMIT,
        size='{{ .Value | printf "%.3g" }} CPUs',
    )
    + _limited_by(
        MEMORY_LIMIT,
        what="memory",
        series=CgroupSeries.MEMORY_LIMIT_BYTES,
        size="{{ .Value | humanize1024 }}B",
    )
    + _limited_by(
        IO_LIMIT,
        what="I/O",
        series=PerOsd.IO_LIMIT_REACHED,
        size='{{ .Value | printf "%.0f" }} {{ .Labels.unit }}',
    )
)

# As rendered: Other programs take 3.5 of 8 CPUs. Without figures: Others take most of the CPUs.
_MOST_TAKEN: Final = f"topk(1, {PerHost.CPUS_TAKEN}SELECTOR)"
_OTHERS_TAKE: Final = if_found(
    _MOST_TAKEN,
    ("instance",),
    when(
        ". | first",
        only_if(f'eq .Labels.by "{OTHER_VMS}"', "Other virtual machines", "Other programs")
        + " take "
        + show('.Value | printf "%.1f"'),
    ),
    "Others take most",
)
_BY: Final = if_found(_MOST_TAKEN, ("instance",), " by {{ (. | first).Labels.by }}")
_OF_CPUS: Final = if_found(
    f"max({HostSeries.CPUS}SELECTOR)",
    ("instance",),
    " of {{ . | first | value }} CPUs",
    " of the CPUs",
)

_CPU_TAKEN: Final = f'{{cause="{causes.CPU}", by=~"{OF_HOST}"}}'
# Clients whose main cause is that the host takes the CPU. MAIN_CAUSE lasts for a hold after the
# cause was last seen, and then another one explains the violation: so it must also have been seen
# in half of the hold.
_SUFFERING: Final = f"""(
        {PerClass.MAIN_CAUSE}{_CPU_TAKEN}
        and on ({OSD_CLASS}) {PerClass.VIOLATED_LASTING}{{class="client"}}
        and on ({OSD_CLASS}, by) (
          count_over_time({PerClass.EVIDENCE}{_CPU_TAKEN}[@hold@]) >= @half@ * @hold_evaluations@
        )
      )"""
_HOST_OF_OSD: Final = f"max by ({OSD}, host) ({of_host(PerOsd.INSTANCE)})"
# If a host has several exporters, only the one with the most OSDs raises the alert.
_UP: Final = f'({DaemonSeries.UP}{{ceph_daemon=~"osd.*"}} == 1)'
_ONE_EXPORTER: Final = (
    f"(topk by (cluster, host) (1, count by (cluster, host, instance) ({of_host(_UP)})) * 0 + 1)"
)

HOST_CPU_TAKEN: Final = Alert(
    name="CephQosHostCpuTaken",
    about=("load",),
    expr=f"""
    sum by (cluster, instance) (
      count by (cluster, host) ({_SUFFERING} * on ({OSD}) group_left (host) {_HOST_OF_OSD})
      * on (cluster, host) group_left (instance) {_ONE_EXPORTER}
    )
    """,
    urgency=NOW,
    where="exporter",
    likely=f"cpu{_BY}",
    first=FirstCommand(line="top -b -n 1 | head -20", on="host"),
    held="hold",
    dashboard="cpu",
    labels={"cause": causes.CPU.name},
    summary=f"{{{{ $labels.instance }}}}: clients of {counted('OSD')} wait, others take its CPUs"
    f" (cause: cpu{_BY})",
    description=f"""
    {_OTHERS_TAKE}{_OF_CPUS}. Clients of {counted("OSD")} of this host get less than
    their reservation, and the threads of these OSDs wait for a CPU.
    """,
)
