"""`cephqos capacity --measure osd.N`: Ceph's own benchmark, in short slices, on one OSD.

Nothing is set, so nothing has to be given back. An OSD ends a slice by itself and removes the
objects that it wrote. A slice is 3,000 writes, the most that Ceph allows for writes this small, so
an interrupted command leaves at most one slice to run out.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cephqos_base.errors import CephqosError
from cephqos_exporter.ceph.monclient import CommandFailed, MonClient

SLICES: Final = 5
_BLOCK_BYTES: Final = 4096
_SLICE_BYTES: Final = 3000 * _BLOCK_BYTES
# As the benchmark at boot does it.
_OBJECT_BYTES: Final = 4 << 20
_OBJECTS: Final = 100
_SLICE_SECONDS: Final = 150.0  # 3,000 writes at 20 a second, slower than any disk
_ANSWER_SECONDS: Final = 20.0  # for any other command
WARNING: Final = (
    "clients of {osd} wait while it is measured: {slices} times 3,000 writes that mClock does not"
    " order, about a second each on an SSD, half a minute on a disk; add --yes to go on"
)


class MeasureFailed(CephqosError):
    """The OSD cannot be measured now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredIops:
    """Operations per second of each slice."""

    osd: str
    iops: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.iops)

    def text(self) -> str:
        return (
            f"{self.osd}: {self.median:,.0f} writes of 4 KiB per second ({min(self.iops):,.0f} to"
            f" {max(self.iops):,.0f} in {len(self.iops)} slices).\n"
            "An upper bound: these writes go straight to BlueStore, without network, replication"
            " and\nmClock, and 12 MB fit into caches. No command is printed for this reason."
        )


async def measure(
    client: MonClient, osd: str, progress: Callable[[str], None], slices: int = SLICES
) -> MeasuredIops:
    """Slices one after the other. Raises MeasureFailed if the OSD is down or refuses."""
    if not await _is_up(client, osd):
        raise MeasureFailed(f"{osd} is not an OSD of this cluster that is up")
    results = []
    for number in range(1, slices + 1):
        try:
            await client.command("cache drop", target=osd, within=_ANSWER_SECONDS)
            reply = await client.command(
                "bench",
                target=osd,
                within=_SLICE_SECONDS,
                count=_SLICE_BYTES,
                size=_BLOCK_BYTES,
                object_size=_OBJECT_BYTES,
                object_num=_OBJECTS,
            )
        except CommandFailed as exc:
            raise MeasureFailed(f"{osd} refused: {exc}") from exc
        if not (isinstance(reply, dict) and isinstance(reply.get("iops"), int | float)):
            raise MeasureFailed(f"{osd}: expected a reply with iops, got {str(reply)[:80]}")
        results.append(float(reply["iops"]))
        progress(f"slice {number} of {slices}: {results[-1]:,.0f} writes per second")
    return MeasuredIops(osd=osd, iops=tuple(results))


async def _is_up(client: MonClient, osd: str) -> bool:
    dump = await client.command("osd dump", within=_ANSWER_SECONDS)
    osds = dump.get("osds", ()) if isinstance(dump, dict) else ()
    return any(f"osd.{entry.get('osd')}" == osd and entry.get("up") for entry in osds)
