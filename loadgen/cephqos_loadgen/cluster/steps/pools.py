"""Pools that a run has made, and how it knows them again: by their id and by its mark in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.steps.step import StepBack, maybe, part, pool_id, run_id, word
from cephqos_loadgen.plan.reading import NAME

# Of a pool's application metadata, where a run notes what it filled the pool with, and its name.
APPLICATION: Final = "cephqos"
RUN: Final = "run"


@dataclass(frozen=True, slots=True)
class PoolMade(StepBack):
    """A pool that the run has made.

    It is made under a name that only this step knows, gets the run's mark, and then its own name.
    So a pool whose id is not written down yet is also known from one that someone else made.
    """

    kind: ClassVar[str] = "pool"

    name: str = part(word(NAME, "a pool's name"))
    run: str = part(run_id)
    token: str = part(word(r"[0-9a-f]{16}", "16 hexadecimal digits"))
    above: int = part(pool_id)  # the highest id that a pool had before
    id: int | None = part(maybe(pool_id))  # None: not known yet

    @property
    def temporary(self) -> str:
        return f"cephqos.{self.token}.{self.name}"

    @property
    def shown(self) -> str:
        return removal_command(self.name)

    async def carry_out(self, cluster: ClusterConnection) -> str:
        pools = (await cluster.command("osd dump"))["pools"]
        pool = next((pool for pool in pools if self._means(pool)), None)
        if pool is None:
            return ""  # it was never made, or is removed
        name, number = pool["pool_name"], pool["pool"]
        if name not in (self.name, self.temporary):
            return f"pool {self.name} (id {number}) was renamed to {name} by someone else"
        marked = run_of(pool)
        if marked != self.run and not (name == self.temporary and marked is None):
            whose = "has no mark of a run" if marked is None else f"has the mark of run {marked}"
            return f"pool {name} (id {number}) {whose}, not of run {self.run}"
        await remove_pool(cluster, name)
        return ""

    def _means(self, pool: Mapping[str, Any]) -> bool:
        if self.id is not None:
            return bool(pool["pool"] == self.id)
        return bool(pool["pool_name"] == self.temporary and pool["pool"] > self.above)


def run_of(pool: Mapping[str, Any]) -> str | None:
    """The run that has marked a pool of `osd dump`; None without a mark."""
    metadata = pool.get("application_metadata", {})
    return metadata.get(APPLICATION, {}).get(RUN) if isinstance(metadata, dict) else None


def removal_command(name: str) -> str:
    return f"ceph osd pool rm {name} {name} --yes-i-really-really-mean-it"


async def remove_pool(cluster: ClusterConnection, name: str) -> None:
    await cluster.command("osd pool rm", pool=name, pool2=name, yes_i_really_really_mean_it=True)
