"""Templates that add what is known of an OSD and class. They are empty where nothing is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_alerts.rules.text import host_of
from cephqos_base.recorded import PerClass, PerClusterClass
from cephqos_base.series import TENANT, WORKING, AccountSeries, ClusterSeries, TenantsSeries


def if_found(
    expr: str, labels: Sequence[str], text: str, otherwise: str = "", also: str = ""
) -> str:
    """One text or the other, by whether Prometheus finds anything. `SELECTOR` in the expression
    stands for those labels of the alert, such as {cluster="CLUSTER",ceph_daemon="osd.3"}.
    """
    # By number: it may stand there more than once.
    selector = ",".join(f'{label}=\\"%[{n}]s\\"' for n, label in enumerate(labels, 1)) + also
    query = expr.replace("SELECTOR", f"{{{selector}}}")
    values = " ".join(f"$labels.{label}" for label in labels)
    instead = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f'{{{{ with printf "{query}" {values} | query }}}}{text}{instead}{{{{ end }}}}'


def known(series: str, text: str, *, of_class: bool = True, at: str = "") -> str:
    """Text with FIGURE, a figure of the same OSD and class; nothing where it is not known."""
    labels = ("cluster", "ceph_daemon", *(["class"] if of_class else []))
    also = f',at=\\"{at}\\"' if at else ""
    text = text.replace("FIGURE", ". | first | value")
    return if_found(f"{series}SELECTOR", labels, text, also=also)


# From the account: what clients wait in each second. An OSD may have two exporters.
_WAITED: Final = f"max by (state, by) (rate({AccountSeries.SECONDS}SELECTOR[@rate@]))"
_LONGEST: Final = if_found(
    f"topk(1, sum by (state) ({_WAITED}))",
    ("cluster", "ceph_daemon"),
    ", longest in state {{ (. | first).Labels.state }}",
)
CLIENTS_WAIT: Final = if_found(
    f"sum({_WAITED}) > 0",
    ("cluster", "ceph_daemon"),
    " In each second its client operations wait {{ . | first | value | humanizeDuration }}"
    f"{_LONGEST}.",
)
_FOR_IT: Final = '{cluster=\\"%s\\",state=\\"replica\\",by=\\"%s\\"}[@rate@]'
_WAITED_FOR: Final = f"sum(max by (ceph_daemon) (rate({AccountSeries.SECONDS}{_FOR_IT}))) > 0"
OTHERS_WAIT: Final = (
    f'{{{{ with printf "{_WAITED_FOR}" $labels.cluster $labels.ceph_daemon | query }}}}'
    " In each second client operations wait {{ . | first | value | humanizeDuration }} for it."
    "{{ end }}"
)
# Other causes that have lasted as well.
ALSO: Final = (
    f'{{{{ range printf "{PerClass.LASTING_EVIDENCE}{{cluster=\\"%s\\",'
    'ceph_daemon=\\"%s\\",class=\\"%s\\",cause!~\\"unknown|%s\\"}"'
    " $labels.cluster $labels.ceph_daemon $labels.class $labels.cause | query }}"
    " Also: {{ .Labels.cause }}{{ with .Labels.by }} by {{ . }}{{ end }}.{{ end }}"
)
# A tenant with more than half of an OSD's work: Wilson's lower bound of its share is above 1/2. For
# that share the bound has a simple form: it is further above 1/2 than 1.96 standard errors.
_OF_IT: Final = f'{{cluster=\\"%[1]s\\",ceph_daemon=\\"%[2]s\\",state=\\"{WORKING}\\"}}[10m]'
_MAJORITY: Final = (
    f"max by ({TENANT}) (increase({TenantsSeries.SECONDS}{_OF_IT}))"
    f" / on () group_left () sum(max by ({TENANT}) (increase({TenantsSeries.SECONDS}{_OF_IT})))"
    f" - on () group_left () 0.98 / sqrt(max(increase({TenantsSeries.SAMPLED}{_OF_IT}))) > 0.5"
)
_POOL_NAME: Final = (
    f'{{{{ with printf "{ClusterSeries.POOL_INFO}{{cluster=\\"%s\\",pool_id=\\"%s\\"}}"'
    " $labels.cluster .Labels.pool_id | query }}{{ (. | first).Labels.pool }}"
    "{{ else }}{{ .Labels.pool_id }}{{ end }}"
)
MOSTLY: Final = (
    f'{{{{ if eq $labels.class "client" }}}}{{{{ range printf "{_MAJORITY}"'
    " $labels.cluster $labels.ceph_daemon | query }}{{ if .Labels.tenant }}"
    " Most of its work is for {{ .Labels.kind }} {{ .Labels.tenant }} of pool"
    f" {_POOL_NAME}.{{{{ end }}}}{{{{ end }}}}{{{{ end }}}}"
)
BY: Final = "{{ with .by }} by {{ . }}{{ end }}"


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
        inner = f"{{{{ with (. | first).Labels }}}}{text}{{{{ end }}}}"
        return if_found(self.series, self.labels, inner)

    @property
    def brief(self) -> str:
        return self.found(
            f'{{{{ if ne .cause "unknown" }}}} (cause: {{{{ .cause }}}}{BY}){{{{ end }}}}'
        )

    @property
    def likely(self) -> str:
        words = f"{{{{ .cause }}}}{BY}{host_of('.by')}"
        return self.found(f'{{{{ if ne .cause "unknown" }}}} Likely cause: {words}.{{{{ end }}}}')


OF_OSD: Final = CauseNow(f"{PerClass.MAIN_CAUSE}SELECTOR", ("cluster", "ceph_daemon", "class"))
OF_CLUSTER: Final = CauseNow(f"{PerClusterClass.MAIN_CAUSE}SELECTOR", ("cluster", "class"))
# Where the culprit is an OSD, it is another one for each.
OF_MANY: Final = CauseNow(
    f"topk(1, count by (cause, by) (label_replace({PerClass.MAIN_CAUSE}SELECTOR,"
    ' \\"by\\", \\"\\", \\"by\\", \\"osd[.].+\\")))',
    ("cluster", "class", "cause"),
)


def if_seen(series: str, text: str, otherwise: str, within: str = "") -> str:
    """One text or the other, by whether a series of the OSD, with a selector, is there, or was
    there within some time."""
    quoted = series.replace('"', '\\"')
    of_osd = quoted.replace("{", '{cluster=\\"%s\\",ceph_daemon=\\"%s\\",')
    at = f"last_over_time({of_osd}[{within}])" if within else of_osd
    of_it = f'printf "{at}" $labels.cluster $labels.ceph_daemon | query'
    return f"{{{{ with {of_it} }}}}{text}{{{{ else }}}}{otherwise}{{{{ end }}}}"
