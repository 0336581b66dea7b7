"""Whether the noisy image would be named: by `cephqos who`, and in the text of an alert."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from cephqos_base.series import TENANT, WORKING, TenantsSeries
from cephqos_stack.staged.judge import Heard

Query = Callable[[str], Awaitable[list[dict[str, Any]]]]
# As the expected finding of a situation's file has it.
NAMED: Final = "CephQosNoisyTenant"
_SHORTEST: Final = 5  # seconds: a rate needs two scrapes
# A new tenant is among the others for a dozen seconds, until the exporter gives it a name.
_LONGEST: Final = 15


async def named(query: Query, image: str, seconds: float, pace: float = 1.0) -> Heard | None:
    """The finding, if more than half of the work lately is for this image, even at
    the lower end of the interval: half of 1.96 standard deviations of a half."""
    if not image or seconds < _SHORTEST * pace:
        return None
    of = f'{{state="{WORKING}"}}[{min(seconds, _LONGEST * pace):.0f}s]'
    work = f"max by (ceph_daemon, {TENANT}) (increase({TenantsSeries.SECONDS}{of}))"
    samples = f"sum(max by (ceph_daemon) (increase({TenantsSeries.SAMPLED}{of})))"
    share = f"sum by (tenant) ({work}) / on () group_left () sum({work})"
    sure = f"{share} - on () group_left () 0.98 / sqrt({samples}) > 0.5"
    tenants = {each["metric"].get("tenant") for each in await query(sure)}
    return Heard(seconds / pace, {"alertname": NAMED, "by": image}) if image in tenants else None
