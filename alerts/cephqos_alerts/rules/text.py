"""The text of an alert: what happens, where, since when, why, whether it can wait, what to type.

As rendered: "client on osd.3 has unmet demand … Where: osd.3 on host ceph1, cluster c. Since: 03:12
UTC, 4 May. Likely cause: device. Can it wait: no. Look at this first: `ceph osd perf`."

Each part is a sentence of its own, so one that is not known can be left out. Host and time come
from queries of the template: if they were labels, each change of them would be a new alert.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from cephqos_alerts.rules.rule import LABELS_OF_PLACE, Alert, Place
from cephqos_alerts.rules.settings import WINDOWS, RuleSettings
from cephqos_alerts.rules.template import ITSELF, matchers, only_if, query, show, when
from cephqos_base.recorded import PerCluster, PerOsd
from cephqos_base.series import DisksSeries
from cephqos_base.units import duration


def host_of(osd: str = "$labels.ceph_daemon", otherwise: str = "") -> str:
    """As rendered: " on host ceph1". It is the address of the scrape target, without the port."""
    host = " on host " + show('. | reReplaceAll ":[0-9]+$" ""')
    return when(
        query(f"{PerOsd.INSTANCE}{{cluster=%q,ceph_daemon=%q}}", "$labels.cluster", osd),
        when("(. | first).Labels.instance", host),
        otherwise,
    )


COUNT: Final = show('$value | printf "%.0f"')  # never as 1.2e+06
PLURAL_S: Final = only_if("ne $value 1.0", "s")


def counted(noun: str) -> str:
    """The value as a number of things: 1 OSD, 2 OSDs."""
    return f"{COUNT} {noun}{PLURAL_S}"


_ALL_OSDS: Final = query(f"{PerCluster.OSDS}{{cluster=%q}}", "$labels.cluster")
# As rendered: on 214 of 3000 OSDs. Without the number of all: on 214 OSDs.
_OF_ALL: Final = f"of {show('. | first | value')} OSDs"
ON_SO_MANY: Final = f"on {COUNT} {when(_ALL_OSDS, _OF_ALL, f'OSD{PLURAL_S}')}"
ON_OSDS: Final = f"on {counted('OSD')}"
_MOST_OSDS_NAMED: Final = 5  # in one text


def worst_of(expr: str, labels: Sequence[str]) -> str:
    """A query of a template: the OSDs with the largest values. `SELECTOR` in the expression stands
    for those labels of the alert."""
    chosen = expr.replace("SELECTOR", matchers(labels))
    values = (f"$labels.{label}" for label in labels)
    return query(f"sort_desc(topk({_MOST_OSDS_NAMED}, {chosen}))", *values)


def worst_is(worst: str) -> str:
    """As rendered: ", worst osd.7"."""
    return when(worst, f", worst {show('(. | first).Labels.ceph_daemon')}")


def worst_first(worst: str, figure: str) -> str:
    """As rendered: osd.7 on host ceph3 (1.2s), osd.9 on host ceph4 (0.8s)."""
    shown = f" ({show(figure.replace('VALUE', '.Value'))})" if figure else ""
    one = f"{show('.Labels.ceph_daemon')}{host_of('.Labels.ceph_daemon')}{shown}"
    listed = only_if("$i", ", ") + when("$osd", one)
    return f"{show(f'range $i, $osd := {worst}')}{listed}{show('else')}not known{show('end')}"


_OF_INSTANCE: Final = 'the host {{ . | reReplaceAll ":[0-9]+$" "" }}'
# Series of all OSDs of the alert's cluster, by a label that OSDs may share, and how a text says it.
_DISKS: Final = DisksSeries.INFO + '{cluster=%[1]q,layer="disk"}'
_TRAITS: Final = (
    (_DISKS, "model", "model {{ . }}"),
    (_DISKS, "firmware", "firmware {{ . }}"),
    (_DISKS, "write_cache", "write cache {{ . }}"),
    (f"{PerOsd.INSTANCE}{{cluster=%[1]q}}", "instance", _OF_INSTANCE),
)
_CHANCE: Final = 0.05


def they_share(osds: str, labels: Sequence[str]) -> str:
    """As rendered: " All of them have model X (others that have it: 0)." Of two OSDs or more, if as
    many that are drawn by lot would hardly all have it. `osds`: the expression of `worst_of`."""
    found = f"max by (ceph_daemon) ({osds.replace('SELECTOR', matchers(labels))})"
    values = [f"$labels.{label}" for label in labels]
    text = ""
    for series, label, words in _TRAITS:
        own = f"max by (ceph_daemon, {label}) ({series})"
        of_all, of_found = (
            f"count by ({label}) ({one})" for one in (own, f"{own} and on (ceph_daemon) {found}")
        )
        every = f"count(max by (ceph_daemon) ({series}))"
        number = f"on () group_left () (count({found}) >= 2)"
        shared = (
            f"({of_all} - on ({label}) {of_found})"
            f" and on ({label}) ({of_found} == {number})"
            f" and on ({label}) (({of_all} / on () group_left () {every}) ^ {number} < {_CHANCE})"
        )
        sentence = f" All of them have {words} (others that have it: {show('$one.Value')})."
        text += (
            f"{show(f'range $one := {query(shared, *values)}')}"
            f"{when(f'$one.Labels.{label}', sentence)}{show('end')}"
        )
    return text


# In alerts on log lines the host is a label. Loki's ruler has no series to ask for it.
_HOST_OF_LOG: Final = when("$labels.host", f" on host {ITSELF}")
_CLUSTER: Final = when("$labels.cluster", f", cluster {ITSELF}")
_WHERE: Final[Mapping[Place, str]] = {
    "osd": f"{show('$labels.ceph_daemon')}HOST{_CLUSTER}",  # `described` fills in HOST
    "pool": f"pool {show('$labels.pool')}{_CLUSTER}",
    "osds": "cluster {{ $labels.cluster }}",
    "cluster": "cluster {{ $labels.cluster }}",
    "exporter": f"the exporter at {show('$labels.instance')}{_CLUSTER}",
    "prometheus": "this Prometheus",
}
_WHERE_CEPH_WORKS: Final = " (cephadm: in `cephadm shell`; Rook: in the toolbox)"


def described(alert: Alert, settings: RuleSettings, *, for_loki: bool) -> str:
    """The description as rendered, with the settings still to be filled in."""
    what = " ".join(textwrap.dedent(alert.description).split())
    host = _HOST_OF_LOG if for_loki else host_of()
    site = "".join(when(f"$labels.{it}", f", {it} {ITSELF}") for it in settings.site_labels)
    where = f" Where: {_WHERE[alert.where].replace('HOST', host)}{site}."
    if alert.severity == "none":
        return f"{what}{where}".strip()
    since = f" Since: {_since(alert, settings, for_loki=for_loki)}."
    # A template brings the sentence with it, as it may leave it out.
    likely = alert.likely if "Likely cause:" in alert.likely else f" Likely cause: {alert.likely}."
    return what + where + since + likely + _what_to_do(alert)


_COMMAND_HOSTS: Final[Mapping[str, str]] = {
    "ceph": "",
    "prometheus": " on Prometheus' host",
    "host": " on the exporter's host",
}


def _what_to_do(alert: Alert) -> str:
    wait = f" Can it wait: {alert.urgency.can_wait}."
    if not alert.first:
        return wait
    on = alert.first.on
    host = _COMMAND_HOSTS[on]
    if on == "host" and alert.where == "osd":
        find = f"`ceph osd find {show('$labels.ceph_daemon')}` names it"
        host = host_of(otherwise=f" on its host ({find})")
    elif on == "host" and alert.where == "osds":
        host = " on the host of the worst"
    hint = _WHERE_CEPH_WORKS if on == "ceph" else ""
    return f"{wait} Look at this first{host}: `{alert.first.line}`{hint}."


def _since(alert: Alert, settings: RuleSettings, *, for_loki: bool) -> str:
    """When it began: from ALERTS_FOR_STATE, Prometheus' own series of alerts, whose value is that
    time. At its first evaluation an alert has no such series yet, so the text gives a bound.
    """
    held = settings.window(WINDOWS[alert.held]) if alert.held else 0.0
    lasted = held
    if alert.hold and not held:
        lasted = settings.scaled(alert.hold)
    bound = f"at least {duration(lasted)} ago" if lasted else f"within the last {alert.within}"
    if for_loki:
        return bound
    fixed = {"alertname": alert.name, **alert.labels}
    from_alert = sorted((*LABELS_OF_PLACE[alert.where], *alert.by))
    matchers = [f'{label}="{value}"' for label, value in fixed.items() if value]
    matchers += [f"{label}=%q" for label in from_alert]
    if alert.where == "osds":  # an alert about a single OSD may have the same name
        matchers.append('ceph_daemon=""')
    began = f"min(ALERTS_FOR_STATE{{{','.join(matchers)}}})"
    if held:
        began += f" - {held:.0f}"
    return when(
        query(began, *(f"$labels.{label}" for label in from_alert)),
        show('(. | first | value | toTime).Format "15:04 UTC, 2 January"'),
        bound,
    )
