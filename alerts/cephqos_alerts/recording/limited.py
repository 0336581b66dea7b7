"""What holds an OSD back from outside: limits of its container or unit, other programs on its host.

CPUS_TAKEN of a host: CPUs that others use while none is idle. CPU_DENIED of an OSD: its threads
cannot run, and the label `by` says why. IO_LIMIT_REACHED of an OSD: its I/O limit. These series
exist only for such OSDs and hosts.
"""

from typing import Final

from cephqos_alerts.recording.reservations import CPU_USED, CPU_WAITING
from cephqos_alerts.rules.rule import RecordedSeries, RuleGroup
from cephqos_base.recorded import PerHost, PerOsd
from cephqos_base.series import OSD, CgroupSeries, DaemonSeries, HostSeries

# Values of the label `by` of CPUS_TAKEN, CPU_DENIED and the causes cpu and device.
CPU_LIMIT: Final = "cpu_limit"
MEMORY_LIMIT: Final = "memory_limit"
IO_LIMIT: Final = "io_limit"
OTHER_PROGRAMS: Final = "other_programs"
OTHER_VMS: Final = "other_vms"
# Values of `by` that concern all OSDs of a host: the alert is about the host.
OF_HOST: Final = f"{OTHER_PROGRAMS}|{OTHER_VMS}"
# Values of `by` that stop the threads that commit and read.
OF_THREADS: Final = f"{CPU_LIMIT}|{MEMORY_LIMIT}"

_CPUS: Final = f"max by (instance) ({HostSeries.CPUS})"


def of_host(series: str) -> str:
    """With the label `host`: `instance` without the port. A host may have several exporters."""
    return f'label_replace({series}, "host", "$1", "instance", "(.+?)(:[0-9]+)?")'


# CPUs that OSDs use: one OSD, and all OSDs of a host.
_OSD_USES: Final = (
    f'sum by ({OSD}, instance) (rate({DaemonSeries.CPU_SECONDS}{{ceph_daemon=~"osd.*"}}[@rate@]))'
)
_OSDS_USE: Final = f"sum by (host) (max by ({OSD}, host) ({of_host(_OSD_USES)}))"


def _cpus_in(mode: str) -> str:
    """CPUs of the host that are in this mode, "used" or "steal"."""
    return f'max by (instance) (rate({HostSeries.CPU_SECONDS}{{mode="{mode}"}}[@rate@]))'


# Hosts without an idle CPU: 90 % of their CPUs are used.
_HOST_IS_FULL: Final = f"""
(sum by (instance) (max by (instance, mode) (rate({HostSeries.CPU_SECONDS}[@rate@]))))
> on (instance) (@reached@ * {_CPUS})
"""


def _cpu_denied(by: str, condition: str) -> str:
    """1 for the OSDs of which the condition is true, with the reason in the label `by`."""
    return f'label_replace(0 * max by ({OSD}) ({condition}) + 1, "by", "{by}", "", "")'


# The CPU limit was used up in a quarter of its periods.
_THROTTLED: Final = f"""
max by ({OSD}) (rate({CgroupSeries.CPU_THROTTLED_PERIODS}[@rate@]) > 0)
> on ({OSD}) (@part@ * max by ({OSD}) (rate({CgroupSeries.CPU_PERIODS}[@rate@])))
"""
# Threads wait for memory for a quarter of the time.
_SHORT_OF_MEMORY: Final = f"""
max by ({OSD}) (rate({CgroupSeries.PRESSURE_SECONDS}{{resource="memory"}}[@rate@]))
> @part@ and on ({OSD}) {CgroupSeries.MEMORY_LIMIT_BYTES}
"""


def _waiting_on_full_host(by: str) -> str:
    """OSDs whose threads wait for a CPU, on a host whose CPUs others take. On a busy host scrapes
    are late, and some rates too low: one sample of CPUS_TAKEN within a minute is enough."""
    return f"""
({PerOsd.INSTANCE} == 1)
  and on (instance) max_over_time({PerHost.CPUS_TAKEN}{{by="{by}"}}[@sustained@])
  and on ({OSD}) ({CPU_WAITING} > @waiting@)
"""


# On any busy host threads wait now and then. These wait four times as long as they run.
_WAITING_MOSTLY: Final = f"and on ({OSD}) ({CPU_WAITING} > on ({OSD}) (@slower@ * {CPU_USED}))"
_STARVED_BY_PROGRAMS: Final = f"{_waiting_on_full_host(OTHER_PROGRAMS).strip()} {_WAITING_MOSTLY}"


_BY_OP: Final = f"{OSD}, device, op"


def _io_limit_reached(*, limit: str, counter: str, unit: str) -> RecordedSeries:
    """The lowest limit of the OSD that is reached by the rate of this counter."""
    return RecordedSeries(
        record=PerOsd.IO_LIMIT_REACHED,
        labels={"unit": unit},
        comment="I/O limits of a container that are reached.",
        expr=f"""
        min by ({OSD}) (
          {limit}
          and on ({_BY_OP}) (
            max by ({_BY_OP}) (rate({counter}[@rate@]))
            > on ({_BY_OP}) (@reached@ * max by ({_BY_OP}) ({limit}))
          )
        )
        """,
    )


LIMITED: Final = RuleGroup(
    name="cephqos-limited",
    rules=(
        RecordedSeries(
            record=PerHost.CPUS_TAKEN,
            labels={"by": OTHER_PROGRAMS},
            comment="CPUs that programs other than OSDs use, if no CPU is left idle.",
            expr=f"""
            max by (instance) ({of_host(_cpus_in("used"))} - on (host) group_left () {_OSDS_USE})
              > on (instance) (@half@ * {_CPUS})
              and on (instance) ({_HOST_IS_FULL.strip()})
            """,
        ),
        RecordedSeries(
            record=PerHost.CPUS_TAKEN,
            labels={"by": OTHER_VMS},
            comment="CPUs that other virtual machines use (steal), if no CPU is left idle.",
            expr=f"""
            {_cpus_in("steal")} > on (instance) (@part@ * {_CPUS})
              and on (instance) ({_HOST_IS_FULL.strip()})
            """,
        ),
        RecordedSeries(
            record=PerOsd.CPU_DENIED,
            comment="""
            Threads that cannot run: a limit stops them, or other programs take the CPU. Other
            programs slow all OSDs of a host alike, so a comparison with peers shows nothing: the
            time for which threads wait shows it. The first reason that holds is named.
            """,
            expr=f"""
            {_cpu_denied(CPU_LIMIT, _THROTTLED.strip())}
            or on ({OSD}) {_cpu_denied(MEMORY_LIMIT, _SHORT_OF_MEMORY.strip())}
            or on ({OSD})
            {_cpu_denied(OTHER_PROGRAMS, _STARVED_BY_PROGRAMS)}
            or on ({OSD}) {_cpu_denied(OTHER_VMS, _waiting_on_full_host(OTHER_VMS).strip())}
            """,
        ),
        _io_limit_reached(
            limit=CgroupSeries.IO_LIMIT_OPS, counter=CgroupSeries.IO_OPS, unit="requests/s"
        ),
        _io_limit_reached(
            limit=CgroupSeries.IO_LIMIT_BYTES, counter=CgroupSeries.IO_BYTES, unit="bytes/s"
        ),
    ),
)
