"""What each built-in profile of mClock would reserve on the whole cluster, as in `cephqos advise`.

One table: a row for each profile, and a query for each column. What a profile gives a class is a
share of the capacity: 0.6 * cluster:cephqos_capacity_ops:sum, with the label profile.
"""

from collections.abc import Mapping
from typing import Final

from cephqos_base.profiles import PROFILES, shares_of
from cephqos_base.recorded import PerCluster, PerHostClass
from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY, QosSeries
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import CLUSTER, DETAIL, or_say

# By profile and class. The shares of clients and recovery, and the limit of best effort, are the
# same in each release, so those of 18 stand for all.
_SHARES: Final = {profile: shares_of(18, profile) or {} for profile in PROFILES}
_INFO: Final = QosSeries.SCHEDULER_INFO
_WITH_PROFILE: Final = f'{_INFO}{{{DETAIL}, profile!=""}}'
_CAPACITY: Final = f"(max({PerCluster.CAPACITY_OPS}{{{CLUSTER}}}) and on () {_INFO}{{{DETAIL}}})"
# The reservation of best effort depends on the release. Each profile of a release has the same
# share, so it is what the profile in force reserves, if that is a built-in one. The first
# alternative of the pattern is no profile: an OSD that restarts has none for a moment.
_NO_BUILT_IN_PROFILE: Final = f'{_INFO}{{{DETAIL}, profile!~"|{"|".join(PROFILES)}"}}'
_BEST_EFFORT: Final = (
    f'sum({PerHostClass.OPS}{{{CLUSTER}, figure="reserved", class="{BEST_EFFORT}"}})'
    f" and on () {_CAPACITY}"
    f" unless on () {_NO_BUILT_IN_PROFILE}"
)


def _column(name: str, figures: Mapping[str, str]) -> PanelQuery:
    """A column of the table: an expression for each profile."""
    rows = (
        f'label_replace({expr}, "profile", "{profile}", "", "")'
        for profile, expr in figures.items()
    )
    return PanelQuery("\n    or ".join(rows), name=name)


def _reserved(cls: str) -> dict[str, str]:
    """What each profile reserves for the class, as PromQL."""
    return {
        profile: f"{shares[cls].reservation:g} * {_CAPACITY}" for profile, shares in _SHARES.items()
    }


def _limit_of_best_effort() -> dict[str, str]:
    return {
        profile: f"{shares[BEST_EFFORT].limit:g} * ({_CAPACITY} and on () ({_BEST_EFFORT}))"
        for profile, shares in _SHARES.items()
    }


PROFILES_GIVE: Final = (
    PanelQuery(
        or_say(
            f"count by (profile) (max by (ceph_daemon, profile) ({_WITH_PROFILE}))",
            "profile",
            "none, as under WPQ",
        ),
        name="osds",
    ),
    _column("client", _reserved(CLIENT)),
    _column("recovery", _reserved(RECOVERY)),
    _column("best_effort", dict.fromkeys(PROFILES, _BEST_EFFORT)),
    _column("limit", _limit_of_best_effort()),
)
