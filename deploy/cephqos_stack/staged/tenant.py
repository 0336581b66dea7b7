"""Whether the noisy image would be named: by `cephqos who`, and in the text of an alert."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from cephqos_base.series import TENANT, WORKING, TenantsSeries
from cephqos_stack.staged.judge import Heard

Query = Callable[[str], Awaitable[list[dict[str, Any]]]]
# The name that a situation's file uses for the expected finding.
NAMED: Final = "CephQosNoisyTenant"
# Seconds to look back. Growth needs two scrapes, so five at least. A new tenant counts as `other`
# for a dozen seconds, until the exporter gives it a name, so fifteen at most.
_SHORTEST: Final = 5
_LONGEST: Final = 15
# Half of the 95 % interval of a share is this, divided by the root of the number of samples. One
# sample of a share near 0.5 deviates by 0.5.
_HALF_INTERVAL: Final = 1.96 * 0.5


async def noisy_tenant(query: Query, image: str, seconds: float, pace: float = 1.0) -> Heard | None:
    """The finding, if more than half of the recent work is surely for this image.

    `seconds`: how long the load has run. `pace`: how many times as long as in the demo everything
    takes on this host. Sure: the whole 95 % interval of the image's share is above one half.
    """
    if not image or seconds < _SHORTEST * pace:
        return None
    window = f'{{state="{WORKING}"}}[{min(seconds, _LONGEST * pace):.0f}s]'
    work = f"max by (ceph_daemon, {TENANT}) (increase({TenantsSeries.SECONDS}{window}))"
    squares = f"sum(max by (ceph_daemon) (increase({TenantsSeries.SQUARES}{window})))"
    error = f"on () group_left () {_HALF_INTERVAL} * sqrt({squares})"
    sure = f"(sum by ({TENANT}) ({work}) - {error}) / on () group_left () sum({work}) > 0.5"
    tenants = {series["metric"].get("tenant") for series in await query(sure)}
    if image not in tenants:
        return None
    return Heard(seconds / pace, {"alertname": NAMED, "by": image})
