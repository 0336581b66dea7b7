"""Alerts that say that the other rules cannot see: nothing fires without the figures it needs."""

from typing import Final

from cephqos_alerts.rules.rule import MORNING, Alert, FirstCommand, RuleGroup
from cephqos_alerts.rules.text import counted
from cephqos_base.recorded import PerClass
from cephqos_base.series import OSD, DaemonSeries, QosSeries

# What must last for five minutes or more is looked at once a minute.
BLIND: Final = RuleGroup(
    name="cephqos-blind-alerts",
    slow=True,
    rules=(
        Alert(
            name="CephQosTooFewSamples",
            expr="""
            sum_over_time(up{job=~"@job@"}[@long_hold@]) < @long_hold_samples@
              and sum_over_time(up{job=~"@job@"}[@hold@]) <= @hold_samples@
              and sum_over_time(up{job=~"@job@"}[@hold@]) > 0
              and up{job=~"@job@"} offset @long_hold@
            """,
            urgency=MORNING,
            where="exporter",
            likely="scrapes time out, or are further apart than the rules expect",
            first=FirstCommand(
                line="cephqos doctor prometheus http://localhost:9090", on="prometheus"
            ),
            within="@long_hold@",
            summary=f"{{{{ $labels.instance }}}}: {counted('good scrape')} in @long_hold@, too few"
            " for the rules",
            description=f"""
            Only {counted("scrape")} of {{{{ $labels.instance }}}} (job {{{{ $labels.job }}}})
            succeeded in the last @long_hold@; the rules are made for one every
            @interval_seconds@ s and need @long_hold_samples@. Alerts about the OSDs of this
            exporter cannot fire. Scrape more often, or build the rules for your interval: cephqos
            rules build --scrape-interval.
            """,
        ),
        Alert(
            name="CephQosFiguresMissing",
            expr=f"""
            count by (cluster, instance) (
              (max by ({OSD}, instance) ({DaemonSeries.UP}{{ceph_daemon=~"osd.*"}}) == 1)
                and on ({OSD}) (
                  count_over_time(
                    (max by ({OSD}) ({DaemonSeries.UP}))[@hold@:@rate@]
                  ) > 1
                )
                unless on ({OSD}) {PerClass.ATTAINED_OPS}
            )
            """,
            urgency=MORNING,
            where="exporter",
            likely="the collector mclock is off or fails, or Prometheus drops its series",
            first=FirstCommand(
                line=f"curl -sS http://{{{{ $labels.instance }}}}/metrics | grep ^{QosSeries.OPS}",
                on="prometheus",
            ),
            hold=600,
            summary=f"{{{{ $labels.instance }}}}: the work of {counted('OSD')} is not known",
            description=f"""
            The exporter gets answers from {counted("OSD")}, but shows no work of their classes.
            Without it no reservation can be judged.
            """,
        ),
        Alert(
            name="CephQosExporterRestarts",
            expr=f"""
            max by (cluster, instance) (
              resets({QosSeries.DELIVERED_OPS}[@hour@])
            ) >= @many@
            """,
            urgency=MORNING,
            where="exporter",
            likely="the exporter lacks memory, or an OSD crashes",
            first=FirstCommand(line="journalctl -u '*cephqos-exporter*' -n 50", on="host"),
            within="@hour@",
            summary="{{ $labels.instance }}: counters restarted {{ $value }} times in @hour@",
            description="""
            The counters of an OSD at {{ $labels.instance }} began at zero {{ $value }} times in the
            last @hour@. Reservations are not judged for @rate@ after each restart.
            """,
        ),
        Alert(
            name="CephQosClusterLabelTaken",
            expr=f"""
            count by (cluster, instance) ({DaemonSeries.UP}{{exported_cluster!=""}})
            """,
            urgency=MORNING,
            where="exporter",
            likely="honor_labels is not true for this job",
            first=FirstCommand(
                line="cephqos doctor prometheus http://localhost:9090", on="prometheus"
            ),
            hold=300,
            summary="{{ $labels.instance }}: Prometheus' own cluster label hides the FSID",
            description="""
            Prometheus gives the series of {{ $labels.instance }} its own label cluster
            ({{ $labels.cluster }}), so the FSID is in exported_cluster. Two Ceph clusters with OSDs
            of the same number look like one. Set honor_labels: true for this job, or give your own
            label another name.
            """,
        ),
    ),
)
