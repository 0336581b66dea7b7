"""Templates that add what is known of an OSD and class. They are empty where nothing is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_alerts.recording.conditions import CPU_SHORT, DEVICE_FAILING
from cephqos_alerts.recording.limited import OF_THREADS
from cephqos_alerts.rules.template import ITSELF, each, only_if, query, show, when
from cephqos_alerts.rules.text import host_of
from cephqos_base.recorded import PerClass, PerClusterClass, PerOsd
from cephqos_base.series import TENANT, WORKING, AccountSeries, ClusterSeries, TenantsSeries

_OF_OSD: Final = ("cluster", "ceph_daemon")
_OF_CLASS: Final = (*_OF_OSD, "class")


def of_alert(*labels: str) -> list[str]:
    """The values that the alert has for these labels."""
    return [f"$labels.{label}" for label in labels]


def if_found(
    expr: str, labels: Sequence[str], text: str, otherwise: str = "", also: str = ""
) -> str:
    """One text or the other, by whether Prometheus finds anything. `SELECTOR` in the expression
    stands for those labels of the alert, such as {cluster="CLUSTER",ceph_daemon="osd.3"}.
    """
    # By number: it may stand there more than once.
    selector = ",".join(f'{label}="%[{n}]s"' for n, label in enumerate(labels, 1)) + also
    chosen = expr.replace("SELECTOR", f"{{{selector}}}")
    return when(query(chosen, *of_alert(*labels)), text, otherwise)


def known(series: str, text: str, *, of_class: bool = True, at: str = "") -> str:
    """Text with FIGURE, a figure of the same OSD and class; nothing where it is not known."""
    labels = _OF_CLASS if of_class else _OF_OSD
    text = text.replace("FIGURE", ". | first | value")
    return if_found(f"{series}SELECTOR", labels, text, also=f',at="{at}"' if at else "")


def if_seen(series: str, text: str, otherwise: str, within: str = "") -> str:
    """One text or the other, by whether a series of the OSD, with a selector, is there, or was
    there within some time."""
    of_osd = series.replace("{", '{cluster="%s",ceph_daemon="%s",')
    at = f"last_over_time({of_osd}[{within}])" if within else of_osd
    return when(query(at, *of_alert(*_OF_OSD)), text, otherwise)


_SECONDS: Final = show(". | first | value | humanizeDuration")
# From the account: what clients wait in each second. An OSD may have two exporters.
_WAITED: Final = f"max by (state, by) (rate({AccountSeries.SECONDS}SELECTOR[@rate@]))"
_LONGEST: Final = if_found(
    f"topk(1, sum by (state) ({_WAITED}))",
    _OF_OSD,
    f", longest in state {show('(. | first).Labels.state')}",
)
CLIENTS_WAIT: Final = if_found(
    f"sum({_WAITED}) > 0",
    _OF_OSD,
    f" In each second its client operations wait {_SECONDS}{_LONGEST}.",
)
_FOR_IT: Final = f'{AccountSeries.SECONDS}{{cluster="%s",state="replica",by="%s"}}'
OTHERS_WAIT: Final = when(
    query(f"sum(max by (ceph_daemon) (rate({_FOR_IT}[@rate@]))) > 0", *of_alert(*_OF_OSD)),
    f" In each second client operations wait {_SECONDS} for it.",
)
# Other causes that have lasted as well.
_LASTING: Final = query(
    f'{PerClass.LASTING_EVIDENCE}{{cluster="%s",ceph_daemon="%s",class="%s",cause!~"unknown|%s"}}',
    *of_alert(*_OF_CLASS, "cause"),
)
ALSO: Final = each(
    _LASTING, f" Also: {show('.Labels.cause')}{when('.Labels.by', f' by {ITSELF}')}."
)

# A tenant with more than half of an OSD's work: Wilson's lower bound of its share is above 1/2. For
# that share the bound has a simple form: it is further above 1/2 than 1.96 standard errors.
_WORK: Final = f'{{cluster="%[1]s",ceph_daemon="%[2]s",state="{WORKING}"}}[10m]'
_OF_TENANT: Final = f"max by ({TENANT}) (increase({TenantsSeries.SECONDS}{_WORK}))"
_MAJORITY: Final = (
    f"{_OF_TENANT} / on () group_left () sum({_OF_TENANT})"
    f" - on () group_left () 0.98 / sqrt(max(increase({TenantsSeries.SAMPLED}{_WORK}))) > 0.5"
)
_POOL: Final = when(
    query(
        f'{ClusterSeries.POOL_INFO}{{cluster="%s",pool_id="%s"}}',
        *("$labels.cluster", ".Labels.pool_id"),
    ),
    show("(. | first).Labels.pool"),
    show(".Labels.pool_id"),
)
_FOR_TENANT: Final = only_if(
    ".Labels.tenant",
    f" Most of its work is for {show('.Labels.kind')} {show('.Labels.tenant')} of pool {_POOL}.",
)
MOSTLY: Final = only_if(
    'eq $labels.class "client"', each(query(_MAJORITY, *of_alert(*_OF_OSD)), _FOR_TENANT)
)
BY: Final = when(".by", f" by {ITSELF}")


@dataclass(frozen=True)
class CauseNow:
    """The cause and the culprit, looked up when the text is made.

    Both may change while the alert fires. Were the culprit a label, each change would be a new
    alert, and the end of the one before.
    """

    series: str
    labels: Sequence[str]

    def found(self, text: str) -> str:
        """A text with `.cause` and `.by`; nothing where neither is known."""
        return if_found(self.series, self.labels, when("(. | first).Labels", text))

    @property
    def brief(self) -> str:
        return self.found(only_if(_KNOWN, f" (cause: {show('.cause')}{BY})"))

    @property
    def likely(self) -> str:
        words = f"{show('.cause')}{BY}{host_of('.by')}"
        return self.found(only_if(_KNOWN, f" Likely cause: {words}."))


_KNOWN: Final = 'ne .cause "unknown"'
OF_OSD: Final = CauseNow(f"{PerClass.MAIN_CAUSE}SELECTOR", _OF_CLASS)
OF_CLUSTER: Final = CauseNow(f"{PerClusterClass.MAIN_CAUSE}SELECTOR", ("cluster", "class"))
# Where the culprit is an OSD, it is another one for each.
OF_MANY: Final = CauseNow(
    f"topk(1, count by (cause, by) (label_replace({PerClass.MAIN_CAUSE}SELECTOR,"
    ' "by", "", "by", "osd[.].+")))',
    ("cluster", "class", "cause"),
)
# What the host shows of an OSD, the first that holds; and within which time.
_SEEN_OF_IT: Final = (
    (DEVICE_FAILING, "the device. Its device is slow or has stopped.", ""),
    (
        f'{PerOsd.CPU_DENIED}{{by=~"{OF_THREADS}"}}',
        "the CPU. A limit of its container stops its threads.",
        "@sustained@",
    ),
    (CPU_SHORT, "the CPU. Its threads wait for a CPU.", ""),
)


def seen_of_it(otherwise: str) -> str:
    """The likely cause of an OSD that is slow, or does not answer."""
    text = f" Likely cause: {otherwise}"
    for condition, words, within in reversed(_SEEN_OF_IT):
        text = if_seen(condition, f" Likely cause: {words}", text, within=within)
    return text
