"""Background work that a run has switched off."""

from dataclasses import dataclass
from typing import ClassVar, Final

from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.steps.options import stored_options
from cephqos_loadgen.cluster.steps.step import StepBack, boolean, part, pool_id, text

BALANCER_OPTION: Final = "mgr/balancer/active"


@dataclass(frozen=True, slots=True)
class BalancerOff(StepBack):
    """The balancer. `balancer off` writes an option: if it was not set before, it is removed."""

    kind: ClassVar[str] = "balancer"

    was_set: bool = part(boolean)

    @property
    def shown(self) -> str:
        remove = "" if self.was_set else f" && ceph config rm mgr {BALANCER_OPTION}"
        return f"ceph balancer on{remove}"

    async def carry_out(self, cluster: ClusterConnection) -> str:
        now = (await stored_options(cluster)).get(("mgr", BALANCER_OPTION))
        if now is None:
            return ""  # it was never switched off, or is as it was
        await cluster.command("balancer on", target="mgr")
        if not self.was_set:
            await cluster.command("config rm", who="mgr", name=BALANCER_OPTION)
        return ""


@dataclass(frozen=True, slots=True)
class AutoscalerOff(StepBack):
    """The autoscaler of a pool, which was on."""

    kind: ClassVar[str] = "autoscaler"

    pool: str = part(text)
    id: int = part(pool_id)

    @property
    def shown(self) -> str:
        return f"ceph osd pool set {self.pool} pg_autoscale_mode on"

    async def carry_out(self, cluster: ClusterConnection) -> str:
        pools = (await cluster.command("osd dump"))["pools"]
        found = next((pool for pool in pools if pool["pool"] == self.id), None)
        if found is None:
            return f"pool {self.pool} (id {self.id}) was removed by someone else"
        mode = found["pg_autoscale_mode"]
        if mode == "warn":
            return f"the autoscaler of pool {self.pool} was set to warn by someone else"
        if mode == "off":
            key = {"pool": found["pool_name"], "var": "pg_autoscale_mode"}
            await cluster.command("osd pool set", **key, val="on")
        return ""
