"""Pools that outlive a run: whether a pool still holds what its own metadata says."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cephqos_base.errors import UsageError
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.steps.pools import APPLICATION, RUN, removal_command
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.planned import Plan

# A run notes in the pool's application metadata what it filled the pool with. A value has 128
# characters at most, so the plan of the content is noted as a checksum.
SPEC, COUNT, SIZE = "spec", "objects", "size"


@dataclass(slots=True)
class KeptPools:
    """Pools of one session, by name."""

    found: dict[str, str] = field(default_factory=dict)  # by earlier runs: which run kept each
    left: set[str] = field(default_factory=set)  # that this session does not remove


def spec_of(pool: PlannedPool) -> str:
    """A checksum of what the plan says about a pool and its content."""
    content = {k: v for k, v in asdict(pool).items() if k not in ("fresh", "keep")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


async def look(cluster: ClusterConnection, plan: Plan) -> dict[str, str]:
    """The pools of the plan that are there already and can be used as they are.

    UsageError for any other pool of such a name, before anything is changed.
    """
    wanted = {pool for point in plan.points for pool in point.pools}
    listed = await cluster.command("osd pool ls", detail="detail")
    entries = {pool["pool_name"]: pool for pool in listed}
    present = sorted((p for p in wanted if p.name in entries), key=lambda pool: pool.name)
    if not present:
        return {}
    for pool in present:
        if APPLICATION not in entries[pool.name].get("application_metadata", {}):
            raise UsageError(
                f"pool {pool.name!r} is there already and was not made by cephqos: it is left"
                " alone; rename the scenario's pool"
            )
    await cluster.fresh_stats()
    counts = await object_counts(cluster)
    pools = {}
    for pool in present:
        entry = entries[pool.name]
        metadata = entry["application_metadata"][APPLICATION]
        wrong = differences(pool, entry, metadata, counts.get(pool.name))
        if wrong:
            raise UsageError(
                f"pool {pool.name!r} of run {metadata.get(RUN, '(unknown)')} is not what this run"
                f" needs: {'; '.join(wrong)}. Remove it ({removal_command(pool.name)}) or rename"
                " the scenario's pool"
            )
        pools[pool.name] = metadata.get(RUN, "")
    return pools


def differences(
    pool: PlannedPool, entry: dict[str, Any], metadata: dict[str, str], count: int | None
) -> Sequence[str]:
    """Why a pool cannot be used again. `entry`: of `osd pool ls`. `count`: its objects."""
    if pool.fresh:
        return ["the scenario creates it again for every repeat"]
    if SPEC not in metadata:
        return ["it was never filled to the end"]
    lines = []
    if entry["pg_num"] != pool.pg_num:
        lines.append(f"pg_num is {entry['pg_num']}, not {pool.pg_num}")
    size = str(pool.size) if pool.size is not None else metadata.get(SIZE, "")
    if str(entry["size"]) != size:
        lines.append(f"size is {entry['size']}, not {size}")
    if not pool.emptied and metadata.get(COUNT) != str(count):
        lines.append(f"it holds {count} objects, not {metadata.get(COUNT)}")
    if metadata[SPEC] != spec_of(pool) and not lines:
        lines.append("it was filled with something else")
    return lines


async def object_counts(cluster: ClusterConnection) -> dict[str, int]:
    """Objects by pool name, as of the last report of each OSD."""
    names = {int(p["poolnum"]): p["poolname"] for p in await cluster.command("osd lspools")}
    dump = await cluster.command("pg dump", target="mgr", dumpcontents=["pools"])
    return {
        names[int(pool["poolid"])]: int(pool["stat_sum"]["num_objects"])
        for pool in dump["pool_stats"]
        if int(pool["poolid"]) in names
    }


async def note_content(cluster: ClusterConnection, pools: Sequence[PlannedPool], run: str) -> None:
    """Note what pools hold, once they are full: a pool that was not filled is not used again."""
    await cluster.fresh_stats()
    counts = await object_counts(cluster)
    listed = await cluster.command("osd pool ls", detail="detail")
    sizes = {pool["pool_name"]: pool["size"] for pool in listed}
    for pool in pools:
        facts = {COUNT: counts[pool.name], SIZE: sizes[pool.name], RUN: run, SPEC: spec_of(pool)}
        for key, value in facts.items():
            await cluster.command(
                "osd pool application set",
                pool=pool.name,
                app=APPLICATION,
                key=key,
                value=str(value),
            )
