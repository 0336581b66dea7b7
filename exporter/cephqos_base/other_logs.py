"""Logs in a Loki that another collector feeds, such as Grafana Alloy: its labels are not ours.

Rules and dashboards then read the streams of `--log-selector`. Which daemon a line is of stands in
the label of `--log-daemon-label`: as `osd.3`, or in the name of a systemd unit or of a pod of Rook.
What our collector says by labels (severity, kind of daemon), the text of a line has to say.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.site import LABEL, STRING

_MATCHER: Final = rf"\s*{LABEL.pattern}\s*(?:=~|!~|!=|=)\s*(?:{STRING})\s*"
_SELECTOR: Final = re.compile(rf"\{{{_MATCHER}(?:,{_MATCHER})*,?\s*\}}")
_DASHBOARDS_ONLY: Final = re.compile(r"\$\{?\w")  # a variable of Grafana
# What our rules begin with: streams of our collector, and perhaps a filter of lines.
_OURS: Final = re.compile(r'\{log=~?"([a-z|]+)", severity="(\w+)"\}((?: \|[=~] `[^`]*`)?)')
# In rules for our collector the severity says it.
_CRASH: Final = "FAILED ceph_assert|[*]{3} Caught signal|ceph_abort"
# A crash repeats recent lines, which begin with their number.
_REPEATED: Final = r"^(debug )?\s*-?[0-9]+> "

# For Go's templates in LogQL, which know backslashes and so are better without.
_FSID: Final = "[0-9a-f-]{36}"
_DAEMON: Final = (
    f"^(?:ceph-{_FSID}@|rook-ceph-|ceph-)?(osd|mon|mgr|mds)[.@-](.+?)"
    "(?:[.]service|-[a-z0-9]+-[a-z0-9]{5})?$"
)
_CLUSTER: Final = f"^(?:ceph-({_FSID})@.*|.*)$"


@dataclass(frozen=True)
class OtherLogs:
    """Where lines of daemons are."""

    selector: str
    daemon_label: str

    def in_rule(self, expr: str) -> str:
        """A rule for our collector, for these streams."""
        return _OURS.sub(lambda ours: self._lines(*ours.groups()), expr)

    def _lines(self, kinds: str, severity: str, line_filter: str) -> str:
        if severity == "fatal":
            line_filter = f" |~ `{_CRASH}`"
        label = f".{self.daemon_label}"
        daemon = f'{{{{ regexReplaceAll "{_DAEMON}" {label} "${{1}}.${{2}}" }}}}'
        cluster = f'{{{{ or (regexReplaceAll "{_CLUSTER}" {label} "${{1}}") .cluster }}}}'
        return (
            f"{self.selector}{line_filter} !~ `{_REPEATED}`"
            f" | label_format ceph_daemon=`{daemon}`, cluster=`{cluster}`"
            f' | ceph_daemon=~"({kinds})[.].+"'
        )

    def of_osd_in_dashboard(self) -> str:
        """The lines of the OSD that is chosen in a dashboard. Its name, such as osd.3, stands for
        osd-3 and osd@3, too, since it is a regular expression."""
        named = "(ceph-$cluster@|rook-ceph-|ceph-)?${osd:raw}([^0-9].*)?"
        return f'{self.selector} | {self.daemon_label}=~"{named}"'


def add_options(option: Callable[..., Any]) -> None:
    option(
        "--log-selector SELECTOR",
        "streams of daemons in a Loki that another collector feeds, such as"
        """ '{namespace="rook-ceph"}' (default: those of cephqos-collector)""",
        default="",
    )
    option(
        "--log-daemon-label NAME",
        "with --log-selector: label with osd.3, the daemon's systemd unit or its pod of Rook"
        " (default: ceph_daemon)",
        default="",
    )


def parse(selector: str, daemon_label: str, *, dashboards: bool = False) -> OtherLogs | None:
    """The two options; None: the logs of our collector. `dashboards`: it may hold `$cluster`."""
    if not selector:
        if daemon_label:
            raise UsageError(
                f"--log-daemon-label {daemon_label}: expected --log-selector beside it"
            )
        return None
    if not _SELECTOR.fullmatch(selector):
        expected = """expected a selector of LogQL, such as '{namespace="rook-ceph"}'"""
        raise UsageError(f"--log-selector {selector}: {expected}")
    if not dashboards and _DASHBOARDS_ONLY.search(selector):
        raise UsageError(f"--log-selector {selector}: rules have no variables, such as $cluster")
    if daemon_label and not LABEL.fullmatch(daemon_label):
        raise UsageError(f"--log-daemon-label {daemon_label}: expected a label, such as pod")
    return OtherLogs(selector, daemon_label or "ceph_daemon")
