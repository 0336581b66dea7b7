"""Shares of tenants in what operations do, of one OSD or of a cluster, and how sure they are."""

from typing import Final

from cephqos_base.series import TENANT, WAITING, WORKING, TenantsSeries
from cephqos_dashboards.panels import PanelQuery
from cephqos_dashboards.queries.common import (
    DETAIL,
    ONE_OSD,
    SLOW_WINDOW,
    TENANT_NAME,
    tenants_named,
    top,
)


def _shares(selector: str, state: str) -> tuple[PanelQuery, ...]:
    """A share for each of the largest tenants, and how far off they are at most.

    Operations are sampled every ten seconds at most: the window does not follow the scrape
    interval. `max`: an OSD that two exporters read counts once.
    """
    matchers = f'{{{selector}, state="{state}"}}[{SLOW_WINDOW}]'
    seconds = (
        f"sum by ({TENANT}) (max by (ceph_daemon, {TENANT})"
        f" (rate({TenantsSeries.SECONDS}{matchers})))"
    )
    shares = top(f"{seconds} / on () group_left () (sum({seconds}) > 0)", TENANT)
    squares = f"sum(max by (ceph_daemon) (increase({TenantsSeries.SQUARES}{matchers})) > 0)"
    grown = f"sum(max by (ceph_daemon, {TENANT}) (increase({TenantsSeries.SECONDS}{matchers})))"
    return (
        PanelQuery(tenants_named(shares), TENANT_NAME),
        # Half the 95 % interval of a share of 1/2, the widest: 0.98 / sqrt(samples). The seconds
        # are as sure as seconds ^ 2 / squares samples.
        PanelQuery(f"{squares} ^ 0.5 / {grown} * 0.98", "95 % interval: ± this (dashed)"),
    )


OF_CLUSTER_WORK: Final = _shares(DETAIL, WORKING)
OF_CLUSTER_WAITING: Final = _shares(DETAIL, WAITING)
OF_OSD_WORK: Final = _shares(ONE_OSD, WORKING)
OF_OSD_WAITING: Final = _shares(ONE_OSD, WAITING)
