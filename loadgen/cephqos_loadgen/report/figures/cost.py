"""What a load cost: CPU, memory and device time, from the exporters' samples and the host."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cephqos_base.series import DaemonSeries, DisksSeries, ThreadsSeries
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.results.phase import Step

FAMILIES: Final = frozenset(
    (
        DaemonSeries.CPU_SECONDS,
        DaemonSeries.RESIDENT_BYTES,
        DaemonSeries.UP,
        DisksSeries.BYTES,
        DisksSeries.INFO,
        DisksSeries.OPS,
        DisksSeries.TIME_SECONDS,
        DisksSeries.WEIGHTED_SECONDS,
        ThreadsSeries.CPU_SECONDS,
    )
)


def of_osds(samples: Samples, family: str) -> list[Series]:
    """The series of a family that are of OSDs, not of monitors or managers."""
    return [
        series
        for series in samples.of(family)
        if series.labels.get("ceph_daemon", "").startswith("osd.")
    ]


def cost_of(
    step: Step, samples: Samples, clients: HostUse | None, hosts: Mapping[str, str]
) -> dict[str, float]:
    """Figures of one step, those that were recorded. `hosts` are the OSDs' host names."""
    start, end = step.counted
    ios = step.total.ios
    cost: dict[str, float] = {}
    cpu = [series.growth(start, end) for series in of_osds(samples, DaemonSeries.CPU_SECONDS)]
    if cpu and end > start:
        cost[metrics.OSD_CORES.key] = sum(cpu) / (end - start)
        if ios:
            cost[metrics.OSD_CPU_PER_IO.key] = sum(cpu) / ios
    sizes = (series.at(end, start) for series in of_osds(samples, DaemonSeries.RESIDENT_BYTES))
    memory = [size for size in sizes if size is not None]
    if memory:
        cost[metrics.OSD_MEMORY.key] = sum(memory)
    cost |= _devices(samples, start, end, hosts)
    if clients:
        cost |= _client_cost(clients, step)
    return cost


def _devices(
    samples: Samples, start: float, end: float, hosts: Mapping[str, str]
) -> dict[str, float]:
    figures: dict[str, float] = {}
    if end <= start:
        return figures

    def grown(family: str, **labels: str) -> float | None:
        parts = [s.growth(start, end) for s in one_per_device(samples.of(family, **labels), hosts)]
        return sum(parts) if parts else None

    requests, waited = grown(DisksSeries.OPS), grown(DisksSeries.TIME_SECONDS)
    if requests and waited is not None:
        figures[metrics.DEVICE_REQUEST.key] = waited / requests
    for metric, amount in (
        (metrics.DEVICE_DEPTH, grown(DisksSeries.WEIGHTED_SECONDS)),
        (metrics.DEVICE_READ, grown(DisksSeries.BYTES, op="read")),
        (metrics.DEVICE_WRITTEN, grown(DisksSeries.BYTES, op="write")),
    ):
        if amount is not None:
            figures[metric.key] = amount / (end - start)
    return figures


def one_per_device(series_of_osds: Sequence[Series], hosts: Mapping[str, str]) -> Iterable[Series]:
    """One series per disk and operation.

    OSDs that share a disk each show all of it, and an OSD shows a disk once per role. If disks are
    shown, the volumes on them are left out.
    """
    of_disks = [series for series in series_of_osds if series.labels.get("layer") == "disk"]
    by_device: dict[tuple[str, ...], Series] = {}
    for series in of_disks or series_of_osds:
        osd = series.labels.get("ceph_daemon", "")
        device, op = series.labels.get("device", ""), series.labels.get("op", "")
        by_device.setdefault((hosts.get(osd, ""), device, op), series)
    return by_device.values()


def _client_cost(clients: HostUse, step: Step) -> dict[str, float]:
    """CPU and memory of all client processes of a step together."""
    spent = sum(
        thread.user_seconds + thread.system_seconds
        for process in clients.processes.values()
        for thread in process.threads.values()
    )
    figures = {
        metrics.CLIENT_MEMORY.key: float(
            sum(process.resident_bytes for process in clients.processes.values())
        )
    }
    if step.seconds > 0:
        figures[metrics.CLIENT_CORES.key] = spent / step.seconds
    if step.total.ios:
        figures[metrics.CLIENT_CPU_PER_IO.key] = spent / step.total.ios
    return figures


def thread_groups(samples: Samples, start: float, end: float) -> Mapping[str, float]:
    """CPU seconds of all OSDs by group of threads."""
    groups: dict[str, float] = {}
    for series in samples.of(ThreadsSeries.CPU_SECONDS):
        group = series.labels.get("group", "")
        groups[group] = groups.get(group, 0.0) + series.growth(start, end)
    return groups
