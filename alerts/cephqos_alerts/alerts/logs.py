"""Alerts from what daemons log, for Loki's ruler.

Each expression first takes the streams that its lines are in (docs/install/logs.md has the
labels), so that little is read: warnings, errors and fatal lines of OSDs. The dump of recent
events that a crash writes repeats such lines; it is of severity `debug` and never counted.
"""

from cephqos_alerts.rules.render import to_text
from cephqos_alerts.rules.rule import MORNING, SOME_DAY, Alert, FirstCommand, RuleGroup, Urgency
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.rules.text import counted

# What OSDs of 16.2, 18.2 and 20.2 write; before 18.2.5 they said `exceeded`. Each is RE2.
BENCHMARK_REJECTED = (
    r"OSD bench result of (?P<measured>[0-9.]+) IOPS (?:is not within|exceeded) the threshold limit"
)
SETTING_REVERTED = r"Change to (?P<option>[a-z_]+) on osd\.[0-9]+ did not take effect"
SLOW_REQUESTS = r"log \[WRN\] : (?P<slow>[0-9]+) slow requests "
HEARTBEAT_MISSED = r"heartbeat_check: no reply from .* (?P<peer>osd\.[0-9]+) (?:since|ever)"
SCRUB_ERRORS = r"log \[ERR\] : (?P<pg>[0-9]+\.[0-9a-f]+) (?:deep-)?scrub (?P<errors>[0-9]+) errors"

# Slow requests of one OSD at once that are a burst and no straggler.
_BURST = 10

LOGS = RuleGroup(
    name="cephqos-logs",
    slow=True,
    rules=(
        Alert(
            name="CephQosBenchmarkRejected",
            expr=f"""
                max by (cluster, ceph_daemon, host) (
                  max_over_time(
                    {{log="osd", severity="warning"}} |= `OSD bench result of`
                      | regexp `{BENCHMARK_REJECTED}` | measured != `` | unwrap measured [1h]
                  )
                )
            """,
            urgency=MORNING,
            likely="a cache in front of the device, or a wrong type of device",
            first=FirstCommand(line="ceph osd metadata {{ $labels.ceph_daemon }}"),
            within="1h",
            summary=(
                "{{ $labels.ceph_daemon }} rejected its benchmark:"
                " {{ $value | printf `%.0f` }} IOPS is out of range"
            ),
            description="""
                The result of its benchmark is outside of the range that the OSD accepts, so it
                keeps the capacity that it had, Ceph's default if none was set. All reservations
                and limits are shares of that capacity. Measure the device with fio and set
                osd_mclock_max_capacity_iops_hdd or _ssd of this OSD.
            """,
        ),
        Alert(
            name="CephQosSettingReverted",
            about=("load",),
            expr=f"""
                count by (cluster, option) (
                  sum by (cluster, ceph_daemon, option) (
                    count_over_time(
                      {{log="osd", severity="warning"}} |= `did not take effect`
                        | regexp `{SETTING_REVERTED}` | option != `` [1h]
                    )
                  )
                )
            """,
            urgency=SOME_DAY,
            where="cluster",
            likely="mClock sets this option itself",
            first=FirstCommand(line="ceph config dump"),
            within="1h",
            summary=f"{counted('OSD')} took back a change to {{{{ $labels.option }}}}",
            description="""
                mClock sets this option itself. A change of it was undone, and the value in the
                monitors' database was removed. The change is not in force. It takes
                osd_mclock_override_recovery_settings to change it.
            """,
        ),
        Alert(
            name="CephQosSlowRequestBurst",
            about=("load", "osd"),
            duplicates=("CephSlowOps", "CephDaemonSlowOps"),
            expr=f"""
                max by (cluster, ceph_daemon, host) (
                  max_over_time(
                    {{log="osd", severity="warning"}} |= ` slow requests `
                      | regexp `{SLOW_REQUESTS}` | slow != `` | unwrap slow [5m]
                  )
                ) >= {_BURST}
            """,
            urgency=Urgency(but="if `ceph health detail` no longer shows SLOW_OPS"),
            likely="this OSD, or another one that its requests wait for",
            first=FirstCommand(line="ceph health detail"),
            within="5m",
            summary=(
                f"{{{{ $labels.ceph_daemon }}}} had {counted('request')} at once that took longer"
                " than osd_op_complaint_time"
            ),
            description="""
                The line in its log says at which step the requests wait and which pool they are
                for. Steps such as `waiting for sub ops` point at another OSD.
            """,
        ),
        Alert(
            name="CephQosHeartbeatMissed",
            about=("load", "absence"),
            expr=f"""
                label_replace(
                  count by (cluster, peer) (
                    sum by (cluster, ceph_daemon, peer) (
                      count_over_time(
                        {{log="osd", severity="error"}} |= `heartbeat_check: no reply from`
                          | regexp `{HEARTBEAT_MISSED}` | peer != `` [5m]
                      )
                    )
                  ),
                  "ceph_daemon", "$1", "peer", "(.+)"
                )
            """,
            urgency=Urgency(but="if the OSD is up and answers again"),
            likely="the OSD is stuck, or its host or network is overloaded",
            first=FirstCommand(line="ceph osd tree"),
            within="5m",
            summary=f"{{{{ $labels.ceph_daemon }}}} did not answer heartbeats of {counted('OSD')}",
            description="""
                It may be down now, or up again. If one peer misses it, look at the network between
                the two. If many do, the OSD is stuck, or its host or network is overloaded.
            """,
        ),
        Alert(
            name="CephQosScrubErrors",
            duplicates=("CephPGsDamaged",),
            expr=f"""
                max by (cluster, ceph_daemon, pg, host) (
                  max_over_time(
                    {{log="osd", severity="error"}} |~ `scrub [0-9]+ errors`
                      | regexp `{SCRUB_ERRORS}` | pg != `` | unwrap errors [1h]
                  )
                ) > 0
            """,
            urgency=MORNING,
            likely="a device that returns bad data",
            first=FirstCommand(line="ceph health detail"),
            within="1h",
            summary=f"A scrub of PG {{{{ $labels.pg }}}} found {counted('error')}",
            description="""
                Copies of an object differ or one cannot be read. The lines above it in the log of
                {{ $labels.ceph_daemon }} name objects and OSDs. Look at the devices before
                repairing: a repair trusts the copy that can be read.
            """,
        ),
        Alert(
            name="CephQosDaemonCrashed",
            duplicates=("CephDaemonCrash",),
            expr="""
                sum by (cluster, ceph_daemon, log, host) (
                  count_over_time({log=~"osd|mon|mgr|mds", severity="fatal"} [15m])
                )
            """,
            urgency=Urgency(but="if the daemon runs again"),
            likely="a bug of Ceph, bad data, or a device that fails",
            first=FirstCommand(line="ceph crash ls"),
            within="15m",
            summary="{{ $labels.ceph_daemon }} crashed: a failed assertion or a fatal signal",
            description="""
                Its log has the assertion and the backtrace in one entry, and what happened before
                in the dump that follows. Each crash causes recovery.
            """,
        ),
    ),
)


def log_rules(settings: RuleSettings) -> str:
    """The file of rules as Loki's ruler reads it. Windows do not scale: Loki sees lines at once."""
    return to_text((LOGS,), settings, for_loki=True)
