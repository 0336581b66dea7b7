"""Alerts on promises: reservations, policy targets, limits, capacities, settings."""

from typing import Final

from cephqos_alerts.rules import Alert, Group, Recording, Severity

_OSD: Final = "cluster, ceph_daemon"
_CLASS: Final = "cluster, ceph_daemon, class"

# What the class could be given by someone who gets up at night; the rest can wait for the morning.
_PAGING: Final = "interference|limit|skew|device|cpu"
_PAGED: Final = (f'class="client", cause=~"{_PAGING}"',)
_TICKETED: Final = (f'class="client", cause!~"{_PAGING}"', 'class=~"background_.*"')


def _lasting(series: str) -> str:
    """True in every sample of the hold, and seen in most of it.

    Inside the expression and not as `for`, so that a change of the cause does not start the hold
    anew.
    """
    return (
        f"min_over_time({series}[@hold@]) == 1"
        f" and count_over_time({series}[@hold@]) >= @hold_samples@"
    )


def _violated(*selectors: str) -> str:
    causes = " or ".join(f"osd_class:cephqos_main_cause{{{it}}}" for it in selectors)
    return f"""
    (
      (osd_class:cephqos_shortfall_ops:rate or osd_class:cephqos_violated:bool * 0)
        and on ({_CLASS}) ({_lasting("osd_class:cephqos_violated:bool")})
        unless on ({_CLASS}) (osd_class:cephqos_target_ops == osd_class:cephqos_reserved_ops)
    )
    * on ({_CLASS}) group_left (cause, by) ({causes})
    """


_OF_OSD: Final = (
    '{{ with printf "%s{cluster=\\"%s\\",ceph_daemon=\\"%s\\",class=\\"%s\\"}"'
    ' "SERIES" $labels.cluster $labels.ceph_daemon $labels.class | query }}'
    "{{ . | first | value | FORMAT }}{{ else }}an unknown share{{ end }}"
)


def _look_up(series: str, formatted: str) -> str:
    """A figure of the same OSD and class, put into a description."""
    return _OF_OSD.replace("SERIES", series).replace("FORMAT", formatted)


_BY: Final = "{{ with $labels.by }} by {{ . }}{{ end }}"
_SHORT_SUMMARY: Final = (
    "{{ $labels.ceph_daemon }}: {{ $labels.class }} does not get its reservation"
    f" (cause: {{{{ $labels.cause }}}}{_BY})"
)
_SHORT_DESCRIPTION: Final = f"""
{{{{ $labels.class }}}} on {{{{ $labels.ceph_daemon }}}} of cluster {{{{ $labels.cluster }}}} wants
more than it gets and lacks {{{{ $value | printf "%.0f" }}}} normalised ops/s of what it was
promised; it attains {_look_up("osd_class:cephqos_attainment:ratio", "humanizePercentage")} of its
reservation. Violated for
{_look_up("osd_class:cephqos_violated_seconds:sum1h", "humanizeDuration")} of the last @hour@.
Likely cause: {{{{ $labels.cause }}}}{_BY}.
"""


def _reservation(severity: Severity, *selectors: str) -> Alert:
    return Alert(
        name="CephQosReservationViolated",
        expr=_violated(*selectors),
        severity=severity,
        summary=_SHORT_SUMMARY,
        description=_SHORT_DESCRIPTION,
    )


_TARGETS: Final = (
    Recording(
        record="osd_class:cephqos_target_missed:bool",
        expr=f"""
        osd_class:cephqos_demand:bool
        * on ({_CLASS}) (
          osd_class:cephqos_attained_ops:rate
          < bool on ({_CLASS}) (@shortfall@ * (osd_class:cephqos_target_ops > 0))
        )
        """,
    ),
    Recording(
        record="cluster_class:cephqos_target_ops",
        expr="max by (cluster, class) ("
        "cephqos_qos_cluster_target_reservation_normalised_ops_per_second)",
    ),
    Recording(
        record="cluster_class:cephqos_target_missed:bool",
        expr="""
        (
          cluster_class:cephqos_demand_osds:sum
          >= bool on (cluster) group_left () (@cluster_share@ * cluster:cephqos_osds:count)
        )
        * (
          cluster_class:cephqos_attained_ops:sum
          < bool (@shortfall@ * (cluster_class:cephqos_target_ops > 0))
        )
        """,
    ),
    Alert(
        name="CephQosPolicyTargetMissed",
        expr=f"""
        (
          (osd_class:cephqos_attained_ops:rate / osd_class:cephqos_target_ops)
            and on ({_CLASS}) ({_lasting("osd_class:cephqos_target_missed:bool")})
        )
        * on ({_CLASS}) group_left (cause, by) osd_class:cephqos_main_cause
        """,
        severity="ticket",
        labels={"scope": "osd"},
        summary="{{ $labels.ceph_daemon }}: {{ $labels.class }} misses its target"
        f" (cause: {{{{ $labels.cause }}}}{_BY})",
        description=f"""
        {{{{ $labels.class }}}} on {{{{ $labels.ceph_daemon }}}} of cluster
        {{{{ $labels.cluster }}}}
        wants more than it gets and attains {{{{ $value | humanizePercentage }}}} of the target
        that the policy sets, for @hold@ now. Likely cause: {{{{ $labels.cause }}}}{_BY}.
        """,
    ),
    Alert(
        name="CephQosPolicyTargetMissed",
        expr=f"""
        (
          (cluster_class:cephqos_attained_ops:sum / cluster_class:cephqos_target_ops)
            and on (cluster, class) ({_lasting("cluster_class:cephqos_target_missed:bool")})
        )
        * on (cluster, class) group_left (cause, by) cluster_class:cephqos_main_cause
        """,
        severity="ticket",
        labels={"scope": "cluster"},
        dashboard="cluster",
        summary="cluster {{ $labels.cluster }}: {{ $labels.class }} misses its target"
        f" (cause: {{{{ $labels.cause }}}}{_BY})",
        description=f"""
        {{{{ $labels.class }}}} wants more than it gets on most OSDs of cluster
        {{{{ $labels.cluster }}}} and attains {{{{ $value | humanizePercentage }}}} of the target
        that the policy sets for the whole cluster, for @hold@ now. Likely cause:
        {{{{ $labels.cause }}}}{_BY}.
        """,
    ),
)


def _wide(*selectors: str) -> str:
    causes = " or ".join(f"osd_class:cephqos_main_cause{{{it}}}" for it in selectors)
    return f"""
    count by (cluster, class, cause, by) (
      ({causes}) and on ({_CLASS}) ({_lasting("osd_class:cephqos_violated:bool")})
    )
    >= on (cluster) group_left () (
      clamp_min(@cluster_share@ * cluster:cephqos_osds:count, @cluster_osds@)
    )
    """


def _cluster_wide(severity: Severity, *selectors: str) -> Alert:
    return Alert(
        name="CephQosReservationViolatedClusterWide",
        expr=_wide(*selectors),
        severity=severity,
        dashboard="cluster",
        summary="cluster {{ $labels.cluster }}: {{ $labels.class }} does not get its reservation"
        f" on {{{{ $value }}}} OSDs (cause: {{{{ $labels.cause }}}}{_BY})",
        description=f"""
        On {{{{ $value }}}} OSDs of cluster {{{{ $labels.cluster }}}}, half of them or more,
        {{{{ $labels.class }}}} has got less than its reservation for @hold@, for the same likely
        cause: {{{{ $labels.cause }}}}{_BY}. The alerts of the single OSDs are silenced by this one.
        """,
    )


_LIMIT: Final = (
    Recording(
        record="osd_class:cephqos_held_while_idle:bool",
        expr=f"""
        osd_class:cephqos_cause{{cause="limit"}}
        * on ({_OSD}) group_left () (
          (osd:cephqos_delivered_ops:rate < bool on ({_OSD}) (@idle@ * osd:cephqos_capacity_ops))
          * on ({_OSD}) (
            (osd:cephqos_device_depth:rate < bool 1) or osd:cephqos_delivered_ops:rate * 0 + 1
          )
        )
        """,
    ),
    Alert(
        name="CephQosHeldAtLimit",
        expr=f"""
        osd_class:cephqos_attained_ops:rate
          and on ({_CLASS}) ({_lasting("osd_class:cephqos_held_while_idle:bool")})
        """,
        severity="ticket",
        labels={"cause": "limit"},
        summary="{{ $labels.ceph_daemon }}: {{ $labels.class }} is held at its limit while the OSD"
        " idles",
        description=f"""
        {{{{ $labels.class }}}} on {{{{ $labels.ceph_daemon }}}} of cluster
        {{{{ $labels.cluster }}}}
        has waited behind its limit of {_look_up("osd_class:cephqos_limit_ops", 'printf "%.0f"')}
        normalised ops/s for @hold@ (it gets {{{{ $value | printf "%.0f" }}}}), while the OSD
        delivers less than half of its capacity and its device has nothing to do.
        """,
    ),
)

_CAPACITY: Final = (
    Alert(
        name="CephQosCapacityOverstated",
        expr=f"""
        osd:cephqos_capacity_ops / osd:cephqos_proven_ops:max1d > @overstated@
          and on ({_OSD}) (
            count_over_time(osd:cephqos_saturated_ops:rate[@hold@]) >= @hold_samples@
          )
        """,
        severity="ticket",
        labels={"cause": "capacity"},
        summary='{{ $labels.ceph_daemon }} is configured for {{ $value | printf "%.1f" }} times'
        " what it has ever delivered",
        description="""
        {{ $labels.ceph_daemon }} of cluster {{ $labels.cluster }} is saturated, and its configured
        capacity (osd_mclock_max_capacity_iops_*) is {{ $value | printf "%.1f" }} times the most
        that it delivered under saturation in the last @day@. Every reservation and limit derived
        from it is too large by that factor.
        """,
    ),
    Alert(
        name="CephQosCapacityNeverMeasured",
        expr=f"""
        max by ({_OSD}, media) (
          cephqos_qos_scheduler_info{{in_force="mclock_scheduler", capacity_origin="default"}}
        )
        unless on ({_OSD}) (
          max by ({_OSD}) (cephqos_disks_info{{layer="osd", device=~"(loop|ram|zram|nbd).*"}})
        )
        """,
        severity="ticket",
        hold=900,
        summary="{{ $labels.ceph_daemon }} runs with a capacity that nobody measured",
        description="""
        {{ $labels.ceph_daemon }} of cluster {{ $labels.cluster }} promises shares of the default
        capacity for {{ $labels.media }}: the benchmark at boot was skipped, or its result was
        rejected, which only the cluster log tells.
        """,
    ),
)

_NO_RESTARTS: Final = "unless on (cluster) (cluster:cephqos_osd_restarts:sum1h > 0)"

_SETTINGS: Final = (
    Alert(
        name="CephQosSettingsDiffer",
        expr=f"""
        count by (cluster, media) (
          count by (cluster, media, in_force, profile) (cephqos_qos_scheduler_info{{media!=""}})
        ) > 1
        {_NO_RESTARTS}
        """,
        severity="ticket",
        hold=900,
        dashboard="cluster",
        summary="cluster {{ $labels.cluster }}: {{ $labels.media }} OSDs run {{ $value }} different"
        " schedulers or profiles",
        description="""
        The {{ $labels.media }} OSDs of cluster {{ $labels.cluster }} do not agree on scheduler and
        profile: {{ $value }} combinations. Clients get what the least generous of them gives.
        Silent while OSDs were restarted within the last @hour@, as in a rolling upgrade.
        """,
    ),
    Alert(
        name="CephQosSchedulersMixed",
        expr=f"""
        count by (cluster) (
          count by (cluster, in_force) (cephqos_qos_scheduler_info{{in_force!="unknown"}})
        ) > 1
        {_NO_RESTARTS}
        """,
        severity="ticket",
        hold=900,
        dashboard="cluster",
        summary="cluster {{ $labels.cluster }} mixes WPQ and mClock",
        description="""
        Some OSDs of cluster {{ $labels.cluster }} run WPQ and others mClock: the first promise
        nothing, so no reservation holds for a client whose data spans both.
        """,
    ),
    Alert(
        name="CephQosReservationsExceedWhole",
        expr=f"""
        sum by ({_OSD}) (max by ({_CLASS}) (cephqos_qos_reservation_ratio)) > @oversubscribed@
          and on ({_OSD}) cephqos_qos_scheduler_info{{profile="custom"}}
        """,
        severity="ticket",
        hold=300,
        summary="{{ $labels.ceph_daemon }}: the custom profile reserves"
        " {{ $value | humanizePercentage }} of the OSD",
        description="""
        The reservations of {{ $labels.ceph_daemon }} in cluster {{ $labels.cluster }} add up to
        {{ $value | humanizePercentage }} of its capacity: under load at least one class cannot get
        what it was promised. (The built-in profiles of 20.2 exceed the whole by design.)
        """,
    ),
)

RESTARTS: Final = Recording(
    record="cluster:cephqos_osd_restarts:sum1h",
    expr=f"""
    sum by (cluster) (
      max by ({_OSD}) (
        resets(cephqos_daemon_cpu_seconds_total{{mode="user", ceph_daemon=~"osd.*"}}[@hour@])
      )
    )
    """,
)

QOS: Final = Group(
    name="cephqos-qos-alerts",
    rules=(
        _reservation("page", *_PAGED),
        _reservation("ticket", *_TICKETED),
        _cluster_wide("page", *_PAGED),
        _cluster_wide("ticket", *_TICKETED),
        *_TARGETS,
        *_LIMIT,
        *_CAPACITY,
        *_SETTINGS,
    ),
)
