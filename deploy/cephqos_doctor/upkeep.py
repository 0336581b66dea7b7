"""Checks of a cluster's upkeep: is it balanced, and is there time enough to scrub it?"""

from collections.abc import Iterator
from typing import Final

from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.dump import DumpFacts
from cephqos_doctor.finding import Check, Finding, quoted

_WEEK_HOURS: Final = 7 * 24.0
# Share of the placement groups. Some are always late: an OSD was down, or a group is large.
_LATE_SHARE: Final = 0.05
# Commands that an OSD answers.
_OSD_COMMANDS: Final = ("config diff", "config show", "dump_op_pq_state")


# Facts about scrubs and the balancer: of a cluster that was asked, or from saved replies.
Upkeep = ClusterFacts | DumpFacts


def _balancer_off(facts: Upkeep) -> Iterator[Finding]:
    if facts.balancing is False:
        yield Finding(
            "the cluster",
            "the balancer is off: the OSDs with the most placement groups are slow and full first",
            "ceph balancer mode upmap && ceph balancer on",
        )


def _files_not_understood(facts: DumpFacts) -> Iterator[Finding]:
    for command, path in facts.unread.items():
        ceph_command = (
            f"ceph daemon osd.N {command}" if command in _OSD_COMMANDS else f"ceph {command}"
        )
        yield Finding(
            str(path),
            f"it has no reply to `{ceph_command}` that is understood",
            f"{ceph_command} --format json > {quoted(command.replace(' ', '_'))}"
            + (".osd.N" if command in _OSD_COMMANDS else ""),
        )


def _scrubs_late(facts: Upkeep) -> Iterator[Finding]:
    if facts.overdue <= _LATE_SHARE * facts.pgs:
        return
    late = f"{facts.overdue} of {facts.pgs} placement groups are very late for a deep scrub"
    if facts.window_hours is not None and facts.window_hours < _WEEK_HOURS:
        yield Finding(
            "the cluster",
            f"{late}, and scrubs may start in {facts.window_hours:g} of 168 hours of a week",
            "ceph config rm osd osd_scrub_begin_hour; ceph config rm osd osd_scrub_end_hour\n"
            "ceph config rm osd osd_scrub_begin_week_day; ceph config rm osd"
            " osd_scrub_end_week_day",
        )
    else:
        known = facts.window_hours is not None
        yield Finding(
            "the cluster",
            late + (", although no hour is closed to scrubs" if known else ""),
            "ceph config set osd osd_scrub_load_threshold 10   # if the hosts' load per CPU is"
            " above it (0.5 before 20.2): then no scrub begins\n"
            "ceph config set osd osd_max_scrubs 3   # else; or a longer osd_deep_scrub_interval",
        )


def _balancer_unknown(facts: Upkeep) -> str:
    return "" if facts.balancing is not None else "whether the balancer is on is not known"


def _no_placement(facts: Upkeep) -> str:
    return "" if facts.pgs else "no `ceph pg dump --format json` whose times are understood"


def _no_pgs(facts: Upkeep) -> str:
    return "" if facts.pgs else "the cluster's status has no placement groups"


CHECKS: Final[tuple[Check[DumpFacts], ...]] = (
    Check("files-understood", _files_not_understood),
    Check("balancer-on", _balancer_off, _balancer_unknown),
    Check("scrub-time-sufficient", _scrubs_late, _no_placement),
)
CLUSTER_CHECKS: Final[tuple[Check[ClusterFacts], ...]] = (
    Check("balancer-on", _balancer_off, _balancer_unknown),
    Check("scrub-time-sufficient", _scrubs_late, _no_pgs),
)
