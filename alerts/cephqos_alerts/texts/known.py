"""Parts of alert texts about an OSD and class. Each is empty if its figure is not known.

Each is a template that Prometheus fills in when the alert is evaluated (rules/template.py). As
rendered, MOSTLY is " Most of its work is for image vm-17 of pool rbd." Waiting is in waiting.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_alerts.rules.template import ITSELF, each, matchers, only_if, query, show, when
from cephqos_alerts.rules.text import host_of
from cephqos_base.recorded import PerClass, PerClusterClass, PerHost, PerOsd, PerOsdPlace
from cephqos_base.series import (
    OSD_CLASS,
    TENANT,
    WORKING,
    AccountSeries,
    ClusterSeries,
    DaemonSeries,
    HostSeries,
    OpsSeries,
    QosSeries,
    TenantsSeries,
)
from cephqos_base.tenant_shares import COUNTED_STATES

_CPU_SHORT: Final = f'{PerOsd.CONDITION}{{condition="cpu_short"}}'
_DEVICE_FAILING: Final = f'{PerOsd.CONDITION}{{condition="device_failing"}}'
_STORE_FAILING: Final = f'{PerOsd.CONDITION}{{condition="store_failing"}}'
# Labels that an alert about an OSD has, and about a class of an OSD.
_OSD_LABELS: Final = ("cluster", "ceph_daemon")
_CLASS_LABELS: Final = (*_OSD_LABELS, "class")


def of_alert(*labels: str) -> list[str]:
    """The values that the alert has for these labels."""
    return [f"$labels.{label}" for label in labels]


def if_found(
    expr: str, labels: Sequence[str], text: str, otherwise: str = "", also: str = ""
) -> str:
    """One text or the other, by whether Prometheus finds anything. `SELECTOR` in the expression
    stands for those labels of the alert and the matchers of `also`. As Prometheus sees it:
    {cluster="CLUSTER",ceph_daemon="osd.3",at="store"}.
    """
    return when(look_up(expr, labels, also), text, otherwise)


def look_up(expr: str, labels: Sequence[str], also: str = "") -> str:
    """What Prometheus finds for the SELECTOR of `if_found`."""
    chosen = expr.replace("SELECTOR", f"{{{matchers(labels)}{also}}}")
    return query(chosen, *of_alert(*labels))


def known(series: str, text: str, *, of_class: bool = True, at: str = "") -> str:
    """A text in which FIGURE stands for the value of this series of the alert's OSD (and class).
    No text if the series is absent.
    """
    labels = _CLASS_LABELS if of_class else _OSD_LABELS
    text = text.replace("FIGURE", ". | first | value")
    return if_found(f"{series}SELECTOR", labels, text, also=f',at="{at}"' if at else "")


def if_seen(series: str, text: str, otherwise: str, within: str = "") -> str:
    """One text or the other, by whether a series of the alert's OSD is there now, or was within
    some time. The series has a selector: osd:cephqos_condition:bool{condition="cpu_short"}.
    """
    of_osd = series.replace("{", "{cluster=%q,ceph_daemon=%q,")
    expr = f"last_over_time({of_osd}[{within}])" if within else of_osd
    return when(query(expr, *of_alert(*_OSD_LABELS)), text, otherwise)


# A tenant that has more than half of an OSD's work for certain, although work is only sampled. Its
# share of N samples must be above 1/2 by 1.96 standard errors (95 %), where one is 0.5 / sqrt(N).
# S seconds are as sure as S * S / squares samples: (seconds - 0.98 * sqrt(squares)) / S > 0.5. If
# the OSD counted another time C, what samples did not see may be another tenant's, and what they
# saw too often may be this one's.
_WORK: Final = f'{{cluster=%[1]q,ceph_daemon=%[2]q,state="{WORKING}"}}[10m]'
_OF_TENANT: Final = f"max by ({TENANT}) (increase({TenantsSeries.SECONDS}{_WORK}))"
_SAMPLED: Final = f"sum({_OF_TENANT})"
_STATES: Final = "|".join(COUNTED_STATES[WORKING])


def _grown(series: str) -> str:
    selector = f'{{cluster=%[1]q,ceph_daemon=%[2]q,state=~"{_STATES}"}}[10m]'
    return f"sum(max by (state, by) (increase({series}{selector})))"


_COUNTED: Final = (
    f"({_grown(AccountSeries.SECONDS)} + ({_grown(AccountSeries.REPLICA_SECONDS)} or vector(0)))"
)
_MAJORITY: Final = (
    f"({_OF_TENANT}"
    f" - on () group_left () (0.98 * sqrt(max(increase({TenantsSeries.SQUARES}{_WORK})))"
    f" + (clamp_min({_SAMPLED} - {_COUNTED}, 0) or vector(0))))"
    f" / on () group_left () ({_COUNTED} or {_SAMPLED}) > 0.5"
)
_POOL: Final = when(
    query(
        f"{ClusterSeries.POOL_INFO}{{cluster=%q,pool_id=%q}}",
        *("$labels.cluster", ".Labels.pool_id"),
    ),
    show("(. | first).Labels.pool"),
    show(".Labels.pool_id"),
)
_FOR_TENANT: Final = only_if(
    ".Labels.tenant",
    f" Most of its work is for {show('.Labels.kind')} {show('.Labels.tenant')} of pool {_POOL}.",
)
# Replica writes count as work for a tenant, too.
MOSTLY_OF_OSD: Final = each(query(_MAJORITY, *of_alert(*_OSD_LABELS)), _FOR_TENANT)
MOSTLY: Final = only_if('eq $labels.class "client"', MOSTLY_OF_OSD)
BY: Final = when(".by", f" by {ITSELF}")


@dataclass(frozen=True)
class CauseNow:
    """The cause and the culprit (`by`), looked up when the text is made.

    Both may change while the alert fires. If the culprit were a label, each change of it would end
    the alert and begin a new one.
    """

    series: str  # PromQL with SELECTOR; the result has the labels cause and by
    labels: Sequence[str]  # of the alert, for SELECTOR

    def found(self, text: str) -> str:
        """A text with `.cause` and `.by`; no text if there is no cause."""
        return if_found(self.series, self.labels, when("(. | first).Labels", text))

    @property
    def brief(self) -> str:
        """For a summary: " (cause: other_osd by osd.3)"."""
        return self.found(only_if(_KNOWN, f" (cause: {show('.cause')}{BY})"))

    @property
    def likely(self) -> str:
        """For a description: " Likely cause: other_osd by osd.3 on host ceph4."."""
        return self.found(_LIKELY)


_KNOWN: Final = 'ne .cause "unknown"'
_LIKELY: Final = only_if(_KNOWN, f" Likely cause: {show('.cause')}{BY}{host_of('.by')}.")
OF_OSD: Final = CauseNow(f"{PerClass.MAIN_CAUSE}SELECTOR", _CLASS_LABELS)
# Other causes that have lasted, besides the one that the alert names.
_LASTING: Final = query(
    f'{PerClass.LASTING_EVIDENCE}{{{matchers(_CLASS_LABELS)},cause!="unknown",cause!=%[4]q}}',
    *of_alert(*_CLASS_LABELS),
    ".cause",
)
_ALSO: Final = each(
    _LASTING, f" Also: {show('.Labels.cause')}{when('.Labels.by', f' by {ITSELF}')}."
)
LIKELY_AND_ALSO: Final = OF_OSD.found(f"{_LIKELY}{_ALSO}")
OF_CLUSTER: Final = CauseNow(f"{PerClusterClass.MAIN_CAUSE}SELECTOR", ("cluster", "class"))
_OF_MANY_LABELS: Final = ("cluster", "class")


def _how_many(violated: str) -> str:
    """How many OSDs have each cause, most first. If the culprits are OSDs, none is named: they
    differ. `violated`: the OSDs and classes that the alert counts.
    """
    return (
        f"sort_desc(count by (cause, by) (label_replace({PerClass.MAIN_CAUSE}SELECTOR"
        f' and on ({OSD_CLASS}) ({violated}), "by", "", "by", "osd[.].+")))'
    )


def of_many(violated: str) -> CauseNow:
    """The cause that most of these OSDs have."""
    return CauseNow(_how_many(violated), _OF_MANY_LABELS)


def also_of_many(violated: str) -> str:
    """For a description: " Also: cpu on 1 OSD." for each cause but the first."""
    shown = look_up(_how_many(violated), _OF_MANY_LABELS)
    number = f"{show('.Value')} OSD{only_if('ne .Value 1.0', 's')}"
    one = f" Also: {show('.Labels.cause')}{when('.Labels.by', f' by {ITSELF}')} on {number}."
    return f"{show(f'range $i, $_ := {shown}')}{only_if('$i', one)}{show('end')}"


_NO_MEMORY: Final = f'{PerOsd.CPU_DENIED}{{by="host_memory"}}'
_IO_HELD_UP: Final = f'{PerOsd.IO_LIMIT_REACHED}{{unit!=""}}'
_PROCESS_STOPPED: Final = f'{PerOsd.CPU_DENIED}{{by="signal"}}'
_THREADS_STOPPED: Final = f'{PerOsd.CPU_DENIED}{{by=~"cpu_limit|memory_limit"}}'


def _if_lasting(series: str, text: str) -> str:
    """A text for what holds beside the cause that is named. It must last as long as a cause of a
    class must (sources/recording/causes.yml)."""
    of_osd = series.replace("{", "{cluster=%[1]q,ceph_daemon=%[2]q,")
    seen = f"count_over_time({of_osd}[@hold@]) >= @half@ * @hold_evaluations@"
    return when(query(seen, *of_alert(*_OSD_LABELS)), text)


_DENIED_BY: Final = _if_lasting(f"{PerOsd.CPU_DENIED}{{}}", f" by {show('(. | first).Labels.by')}")
_ALSO_CPU: Final = _if_lasting(_CPU_SHORT, f" Also: cpu{_DENIED_BY}.")
_ALSO_IO_LIMIT: Final = _if_lasting(_IO_HELD_UP, " Also: device by io_limit.")


# As rendered: " (3 of 12 hosts)". One host: its link loses packets. Several: what they share.
ON_HOSTS: Final = when(
    query(f"count({PerHost.RETRANSMITTED})"),
    " ({{ . | first | value }} of "
    + when(
        query(f'count(count by (instance) ({HostSeries.TCP_SEGMENTS}{{kind="sent"}}))'),
        "{{ . | first | value }}",
    )
    + " hosts)",
)
# What shows in a store that is slow: each text is empty if its figure is 0 or not known.
_OF_OSD: Final = "{cluster=%q,ceph_daemon=%q}"
STORE_SHOWS: Final = when(
    query(f"max({QosSeries.STORE_SPILLED_BYTES}{_OF_OSD}) > 0", *of_alert(*_OSD_LABELS)),
    " Its DB has spilled {{ . | first | value | humanize1024 }}B to the slow device.",
) + when(
    query(
        f"max(increase({QosSeries.STORE_FRAGMENTED}{_OF_OSD}[@hour@])) > 0.5",
        *of_alert(*_OSD_LABELS),
    ),
    ' Its DB found no free piece of its size {{ . | first | value | printf "%.0f" }} times in'
    " the last @hour@.",
)


def _likely_cause_on_osd(otherwise: str) -> str:
    """The likely cause of an OSD that is slow, or does not answer: the first that holds."""
    waits = if_seen(
        _CPU_SHORT,
        " Likely cause: the CPU. Its threads wait for a CPU.",
        f" Likely cause: {otherwise}",
    )
    held_or_waits = if_seen(
        _IO_HELD_UP,
        " Likely cause: device by io_limit. A limit of its container holds up its requests."
        + _ALSO_CPU,
        waits,
    )
    stopped_or_waits = if_seen(
        _THREADS_STOPPED,
        f" Likely cause: cpu by {show('(. | first).Labels.by')}."
        f" A limit of its container stops its threads.{_ALSO_IO_LIMIT}",
        if_seen(
            _NO_MEMORY,
            " Likely cause: cpu by host_memory. Its threads wait for memory: the host has too"
            " little.",
            held_or_waits,
            within="@sustained@",
        ),
        within="@sustained@",
    )
    store_or_stopped = if_seen(
        _STORE_FAILING,
        f" Likely cause: store by {show('(. | first).Labels.by')}."
        f" Only its commits are slow: its device is well.{STORE_SHOWS}{_ALSO_CPU}",
        stopped_or_waits,
    )
    device_or_store = if_seen(
        _DEVICE_FAILING,
        f" Likely cause: the device. Its device is slow or has stopped.{_ALSO_CPU}",
        store_or_stopped,
    )
    return if_seen(
        _PROCESS_STOPPED,
        " Likely cause: stopped. Its process is stopped, by a signal or a debugger.",
        device_or_store,
        within="@sustained@",
    )


LIKELY_OF_SLOW_OSD: Final = _likely_cause_on_osd(
    "the network. Neither its device nor its CPU shows why: look at its log and its network."
)
LIKELY_OF_SILENT_OSD: Final = _likely_cause_on_osd("the OSD hangs, or its device does.")

# On erasure-coded pools: what the OSD does for others, mean number of reads in progress.
_EC_READS: Final = (
    f"sum(max by (event) (rate({OpsSeries.SAMPLED_WAIT_SECONDS}"
    '{cluster=%q,ceph_daemon=%q,kind="ec_read"}[@hold@])))'
)
NOT_COUNTED: Final = OF_OSD.found(
    only_if(
        'eq .cause "unknown"',
        when(
            query(
                f"max({QosSeries.DELIVERED_IS_LOWER_BOUND}{_OF_OSD}) == 1", *of_alert(*_OSD_LABELS)
            ),
            " Cause not known: on its erasure-coded pools, reads of recovery go ahead of clients,"
            " in no class (up to 19.2, and 20.2 before 20.2.4). Fewer recovery slots help"
            " (osd_max_backfills)."
            + when(
                query(_EC_READS, *of_alert(*_OSD_LABELS)),
                ' Reads for other OSDs in progress: {{ . | first | value | printf "%.1f" }} on'
                " average.",
            ),
        ),
    )
)
OF_STORE: Final = OF_OSD.found(only_if('eq .cause "store"', STORE_SHOWS))
GETS: Final = if_found(
    f"{PerClass.ATTAINED_OPS}SELECTOR / on (class) ({PerClass.RESERVED_OPS}SELECTOR > 0)",
    _CLASS_LABELS,
    " It gets {{ . | first | value | humanizePercentage }} of its reservation.",
)
VIOLATED_FOR: Final = known(
    PerClass.VIOLATED_SECONDS, " Violated for {{ FIGURE | humanizeDuration }} of the last @hour@."
)
_SLOWNESS: Final = known(
    PerOsd.REPLICA_SLOWNESS,
    ', {{ FIGURE | printf "%.0f" }} times the median of its peers',
    of_class=False,
)
REPLICA_WRITE_TAKES: Final = known(
    PerOsdPlace.SECONDS,
    f" A replica write takes {{{{ FIGURE | humanizeDuration }}}} on it{_SLOWNESS}.",
    of_class=False,
    at="replica_write",
)
# Why a daemon does not answer. It can change while the alert fires, so it is no label of it.
REASONS: Final = when(
    query(
        f"{DaemonSeries.UP}{{cluster=%q,ceph_daemon=%q,instance=%q}}",
        *of_alert(*_OSD_LABELS, "instance"),
    ),
    when(". | first", when(".Labels.reason", f": {ITSELF}")),
)
