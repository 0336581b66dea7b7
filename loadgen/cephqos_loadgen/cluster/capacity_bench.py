"""What each OSD can do: measured with Ceph's own bench, and set as the capacity that mClock uses.

A lab skips the measurement that an OSD makes at its start, and a shared cluster may have made it
under load. With a capacity that is only a default, mClock's shares mean little.
"""

import json
from collections.abc import Callable

from cephqos_base.profiles import CAPACITY_OPTION
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster.connection import ClusterConnection, ClusterView
from cephqos_loadgen.cluster.settings import ClusterSettings
from cephqos_loadgen.plan.parts import Capacity
from cephqos_loadgen.results.repeat import BenchFigures

_BENCH_SECONDS = 120.0
# The same objects as in Ceph's own measurement at the start of an OSD.
OBJECT_SIZE = 4 << 20  # bytes
OBJECTS = 100


async def bench(cluster: ClusterView, osd: int, total: int, block_size: int) -> BenchFigures:
    """`ceph tell osd.N bench`: it writes objects of its own and removes them."""
    reply = await cluster.command(
        "bench",
        target=f"osd.{osd}",
        within=_BENCH_SECONDS,
        count=total,
        size=block_size,
        object_size=OBJECT_SIZE,
        object_num=OBJECTS,
    )
    data = json.loads(reply) if isinstance(reply, str) else reply
    return BenchFigures(data["iops"], data["bytes_per_sec"])


async def measure(
    cluster: ClusterConnection,
    settings: ClusterSettings,
    spec: Capacity,
    progress: Callable[[str], None],
) -> dict[str, float]:
    """Measure one OSD after the other, unless the number is given, and set its capacity. Returns
    IOPS by OSD."""
    rotational = {
        int(osd["id"]): str(osd.get("rotational", "")) == "1"
        for osd in await cluster.command("osd metadata")
    }
    measured: dict[str, float] = {}
    options = []
    for osd in await cluster.up_osds():
        if spec.iops is None:
            progress(f"measuring the capacity of osd.{osd}")
            iops = (await bench(cluster, osd, spec.total, spec.block_size)).iops
        else:
            iops = float(spec.iops)
        measured[f"osd.{osd}"] = iops
        options.append(capacity_option(osd, rotational.get(osd, False), iops))
    await settings.apply(options)
    return measured


def capacity_option(osd: int, rotational: bool, iops: float) -> CephOption:
    """The option of an OSD's capacity; releases before 16.2.7 do not know it."""
    medium = "hdd" if rotational else "ssd"
    name = f"{CAPACITY_OPTION}{medium}"
    return CephOption(f"osd.{osd}", name, f"{iops:.2f}", optional=True)
