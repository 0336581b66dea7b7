"""What each built-in profile of mClock would give, in the figures of `cephqos advise`."""

from typing import Final

from cephqos_base.profiles import PROFILES, shares_of
from cephqos_base.recorded import PerCluster, PerHostClass
from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY, QosSeries
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import CLUSTER, DETAIL

# Clients, recovery and the limit of best effort are the same in each release.
_SHARES: Final = {name: shares_of(18, name) or {} for name in PROFILES}
_INFO: Final = f"{QosSeries.SCHEDULER_INFO}{{{DETAIL}"
# The early model has other profiles, and an OSD that restarts has none for a moment.
_CAPACITY: Final = (
    f'(max({PerCluster.CAPACITY_OPS}{{{CLUSTER}}}) and on () {_INFO}, model="bandwidth"}})'
)
# Only a built-in profile in force shows what this release reserves for best effort: in each profile
# the same share.
_BEST_EFFORT: Final = (
    f'sum({PerHostClass.OPS}{{{CLUSTER}, figure="reserved", class="{BEST_EFFORT}"}})'
    f" and on () {_CAPACITY}"
    f' unless on () {_INFO}, profile!~"|{"|".join(PROFILES)}"}}'
)


def _by_profile(name: str, **figures: str) -> PanelQuery:
    rows = (f'label_replace({it}, "profile", "{of}", "", "")' for of, it in figures.items())
    return PanelQuery("\n    or ".join(rows), name=name)


def _shares(cls: str) -> dict[str, str]:
    return {name: f"{its[cls].reservation:g} * {_CAPACITY}" for name, its in _SHARES.items()}


PROFILES_GIVE: Final = (
    PanelQuery(
        f'count by (profile) (max by (ceph_daemon, profile) ({_INFO}, profile!=""}}))', name="osds"
    ),
    _by_profile("client", **_shares(CLIENT)),
    _by_profile("recovery", **_shares(RECOVERY)),
    _by_profile("best_effort", **dict.fromkeys(PROFILES, _BEST_EFFORT)),
    _by_profile(
        "limit",
        **{
            name: f"{its[BEST_EFFORT].limit:g} * ({_CAPACITY} and on () ({_BEST_EFFORT}))"
            for name, its in _SHARES.items()
        },
    ),
)
