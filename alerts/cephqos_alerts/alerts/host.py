"""What holds OSDs back from outside: limits of containers, and other programs on their host."""

from typing import Final

from cephqos_alerts.alerts.known import BY
from cephqos_alerts.recording.limited import CPU_LIMIT, IO_LIMIT, MEMORY_LIMIT, OF_HOST, OTHER_VMS
from cephqos_alerts.rules.rule import NOW, Alert, FirstCommand
from cephqos_alerts.rules.text import counted
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerHost, PerOsd
from cephqos_base.series import OSD, OSD_CLASS, CgroupSeries, HostSeries


def _limit(by: str, what: str, series: str, text: str) -> str:
    """A sentence if the label `by` names the limit; its size is left out where it is not known."""
    selector = 'cluster=\\"%s\\",ceph_daemon=\\"%s\\"'
    of_it = f'printf "{series}{{{selector}}}" $labels.cluster $labels.ceph_daemon | query'
    return (
        f'{{{{ if eq $labels.by "{by}" }}}}{{{{ $labels.ceph_daemon }}}} is limited by its'
        f" container's {what} limit"
        f"{{{{ with {of_it} }}}}{{{{ with . | first }}}} of {text}{{{{ end }}}}{{{{ end }}}}. "
        "{{ end }}"
    )


# The first sentence of an alert on an OSD.
LIMITED_BY: Final = "".join(
    (
        _limit(CPU_LIMIT, "CPU", CgroupSeries.CPU_LIMIT, '{{ .Value | printf "%.3g" }} CPUs'),
        _limit(
            MEMORY_LIMIT, "memory", CgroupSeries.MEMORY_LIMIT_BYTES, "{{ .Value | humanize1024 }}B"
        ),
        _limit(
            IO_LIMIT,
            "I/O",
            PerOsd.IO_LIMIT_REACHED,
            '{{ .Value | printf "%.0f" }} {{ .Labels.unit }}',
        ),
    )
)

_OTHERS: Final = (
    f'{{{{ if eq $labels.by "{OTHER_VMS}" }}}}Other virtual machines{{{{ else }}}}Other programs'
    "{{ end }}"
)
_TAKEN: Final = (
    f'{{{{ with printf "{PerHost.CPUS_TAKEN}{{instance=\\"%s\\",by=\\"%s\\"}}" $labels.instance'
    ' $labels.by | query }} take {{ . | first | value | printf "%.1f" }}{{ else }} take most'
    "{{ end }}"
)
_OF_CPUS: Final = (
    f'{{{{ with printf "max({HostSeries.CPUS}{{instance=\\"%s\\"}})" $labels.instance | query }}}}'
    " of {{ . | first | value }} CPUs{{ else }} of the CPUs{{ end }}"
)

HOST_CPU_TAKEN: Final = Alert(
    name="CephQosHostCpuTaken",
    about=("load",),
    expr=f"""
    count by (cluster, instance, by) (
      (
        {PerClass.MAIN_CAUSE}{{class="client", cause="{causes.CPU}", by=~"{OF_HOST}"}}
        and on ({OSD_CLASS}) {PerClass.VIOLATED_LASTING}
      )
      * on ({OSD}) group_left (instance) ({PerOsd.INSTANCE} == 1)
    )
    """,
    urgency=NOW,
    where="exporter",
    likely=f"cpu{BY}",
    first=FirstCommand(line="top -b -n 1 | head -20", on="host"),
    held="hold",
    dashboard="cpu",
    labels={"cause": causes.CPU.name},
    summary=f"{{{{ $labels.instance }}}}: clients of {counted('OSD')} wait, others take its CPUs"
    f" (cause: cpu{BY})",
    description=f"""
    {_OTHERS}{_TAKEN}{_OF_CPUS}. Clients of {counted("OSD")} of this host get less than
    their reservation, and the threads of these OSDs wait for a CPU.
    """,
)
