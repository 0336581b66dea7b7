"""Whether the noisy image would be named: by `cephqos who`, and in the text of an alert."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from cephqos_base.series import TENANT, WORKING, TenantsSeries
from cephqos_stack.staged.judge import Heard

Query = Callable[[str], Awaitable[list[dict[str, Any]]]]
# The name that a situation's file uses for the expected finding.
NAMED: Final = "CephQosNoisyTenant"
_SHORTEST: Final = 5  # seconds: a rate needs two scrapes
# A new tenant is among the others for a dozen seconds, until the exporter gives it a name.
_LONGEST: Final = 15
# Divided by the root of the number of samples: half the 95% confidence interval of a share. One
# sample of a share near a half deviates by 0.5.
_HALF_INTERVAL: Final = 1.96 * 0.5


async def noisy_tenant(query: Query, image: str, seconds: float, pace: float = 1.0) -> Heard | None:
    """The finding, if more than half of the work lately is surely for this image.

    `seconds`: how long the load has run. `pace`: how many times as long as in the demo everything
    takes on this host. Sure: half lies below the 95% confidence interval of the image's share.
    """
    if not image or seconds < _SHORTEST * pace:
        return None
    lately = f'{{state="{WORKING}"}}[{min(seconds, _LONGEST * pace):.0f}s]'
    work = f"max by (ceph_daemon, {TENANT}) (increase({TenantsSeries.SECONDS}{lately}))"
    samples = f"sum(max by (ceph_daemon) (increase({TenantsSeries.SAMPLED}{lately})))"
    share = f"sum by ({TENANT}) ({work}) / on () group_left () sum({work})"
    sure = f"{share} - on () group_left () {_HALF_INTERVAL} / sqrt({samples}) > 0.5"
    tenants = {each["metric"].get("tenant") for each in await query(sure)}
    return Heard(seconds / pace, {"alertname": NAMED, "by": image}) if image in tenants else None
