"""What a flag or setting that was set and forgotten costs, by its name in the label `setting`."""

from collections.abc import Mapping
from typing import Final

from cephqos_alerts.rules.template import only_if, query, show, when
from cephqos_base.series import ClusterSeries, RecoverySeries, ScrubSeries

_OF_CLUSTER: Final = "{cluster=%q}"


def _now(expr: str, text: str) -> str:
    """A text with FIGURE, the value of a query about the cluster; none if that is unknown or 0."""
    shown = text.replace("FIGURE", show('. | first | value | printf "%.0f"'))
    return when(query(f"{expr} > 0", "$labels.cluster"), shown)


_DOWN: Final = _now(
    f"count(max by (ceph_daemon) ({ClusterSeries.OSD_UP}{_OF_CLUSTER}) == 0)",
    " OSDs that are down now: FIGURE.",
)
_TO_RECOVER: Final = _now(
    f'sum(max by (pool, __name__) ({{__name__=~"{RecoverySeries.POOL_DEGRADED_OBJECTS}'
    f'|{RecoverySeries.POOL_MISPLACED_OBJECTS}",cluster=%q}}))',
    " Copies that wait for it now: FIGURE.",
)
_OVERDUE: Final = _now(
    f'sum(max by (pool, level) ({ScrubSeries.POOL_SCHEDULE_PGS}{{state="overdue",cluster=%q}}))',
    " Placement groups that are overdue now: FIGURE.",
)
_HELD_BACK: Final = f"Degraded or misplaced copies stay as they are.{_TO_RECOVER}"
_SCRUB: Final = f"Bad copies are not found.{_OVERDUE}"
_OFTEN: Final = " Recovery and scrub may take from clients whenever they run."
_COSTS: Final[Mapping[str, str]] = {
    "noout": f"The next OSD that fails is not replaced: its data has fewer copies.{_DOWN}",
    "norecover": _HELD_BACK,
    "nobackfill": _HELD_BACK,
    "norebalance": _HELD_BACK,
    "noin": f"An OSD that comes back takes no data.{_DOWN}",
    "noup": f"An OSD that starts stays down.{_DOWN}",
    "nodown": "An OSD that dies stays in the map, and its clients wait for it.",
    "noscrub": _SCRUB,
    "nodeep-scrub": _SCRUB,
    "nosnaptrim": "Deleted snapshots keep their space.",
    "pauserd": "Clients cannot read.",
    "pausewr": "Clients cannot write.",
    "OSD_FLAGS": "Some OSDs have a flag, such as noout: if one fails, it is not replaced.",
    "osd_mclock_profile": f"Recovery has more reserved than clients.{_OFTEN}",
    "osd_mclock_scheduler_client_res": (
        f"Clients have less reserved than with any built-in profile.{_OFTEN}"
    ),
    "osd_max_backfills": f"OSDs recover more placement groups at once than usual.{_OFTEN}",
}
WHAT_IT_COSTS: Final = "".join(
    only_if(f'eq $labels.setting "{setting}"', cost) for setting, cost in _COSTS.items()
)
