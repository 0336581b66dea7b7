"""Loads of a repeat by step, and their parts with and without background work.

`loads_of` yields for a step the whole of it, its reads and writes where it has both, and the parts
during scrub, during recovery and without either, where there was such work.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cephqos_loadgen.report.arrays.bins import Bins
from cephqos_loadgen.report.arrays.intervals import Intervals, Mask
from cephqos_loadgen.report.arrays.samples import Samples
from cephqos_loadgen.report.figures.attained import kept_by_clients
from cephqos_loadgen.report.figures.cost import cost_of
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.host import HostUse, step_name
from cephqos_loadgen.results.phase import LoadResult, Step
from cephqos_loadgen.results.repeat import RepeatRecord

Stretch = tuple[float, float]  # start and end, in seconds since the epoch

# The windows of a load: which part of its time a row is about.
WHOLE = "all of it"
DURING = {"scrub": "during scrub", "recovery": "during recovery"}
QUIET = "without either"
# Shorter parts say nothing about a load.
_LEAST_SECONDS = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class LoadPart:
    """A load at one depth, or the part of it in which background work ran."""

    phase: str
    depth: int
    op: str  # total, read, write
    window: str  # WHOLE, one of DURING, or QUIET
    several_depths: bool  # the load is a curve, and this is one step of it
    start: float
    end: float
    seconds: float
    ios: int
    iops: float
    bytes_per_second: float
    mean_seconds: float
    deviation_seconds: float | None
    bins: Bins
    cost: Mapping[str, float]

    @property
    def depth_of_curve(self) -> int | None:
        """None if the load has one depth."""
        return self.depth if self.several_depths else None

    @property
    def is_whole(self) -> bool:
        """Both directions together, the whole time."""
        return self.op == "total" and self.window == WHOLE


def loads_of(
    record: RepeatRecord,
    intervals: Intervals,
    stretches: Mapping[str, Sequence[Stretch]],
    samples: Samples,
    host: Mapping[str, HostUse],
    hosts: Mapping[str, str],
) -> Iterator[LoadPart]:
    """Every part of every load. `stretches` are when scrub and recovery were active, `hosts` are
    the OSDs' host names."""
    for name, phase in record.phases.items():
        result = phase.result
        if not isinstance(result, LoadResult):
            continue
        for number, step in enumerate(result.steps, start=1):
            clients = _clients(name, step, number, host)
            cost = cost_of(step, samples, clients, hosts)
            cost |= kept_by_clients(samples, *step.counted)
            whole = _whole(name, step, result.is_curve, cost)
            yield whole
            if step.read and step.write:
                for op, figures in (("read", step.read), ("write", step.write)):
                    yield replace(whole, op=op, cost={}, **_figures(figures))
            chosen = intervals.of(name, step.depth)
            chosen &= intervals.within([step.counted])
            yield from _parts_by_window(whole, chosen, intervals, stretches)


def _clients(phase: str, step: Step, number: int, host: Mapping[str, HostUse]) -> HostUse | None:
    """CPU of the clients of one step: their processes are PHASE.CLIENT, then PHASE.CLIENT.2 …

    If the step was recorded by itself, what they used in its ramp is not included.
    """
    use = host.get(step_name(phase, step.depth), host.get(phase))
    if use is None:
        return None
    clients = {
        name: process
        for name, process in use.processes.items()
        if name.startswith(f"{phase}.") and _step_of(name.removeprefix(f"{phase}.")) == number
    }
    return HostUse(use.seconds, use.cpu, use.disks, clients) if clients else None


def _step_of(client: str) -> int:
    """`client.0` is of the first step, `client.0.2` of the second."""
    parts = client.split(".")
    return int(parts[2]) if len(parts) == 3 and parts[2].isdigit() else 1


def _whole(phase: str, step: Step, several_depths: bool, cost: Mapping[str, float]) -> LoadPart:
    return LoadPart(
        phase=phase,
        depth=step.depth,
        op="total",
        window=WHOLE,
        several_depths=several_depths,
        start=step.counted[0],
        end=step.counted[1],
        seconds=step.seconds,
        cost=cost,
        **_figures(step.total),
    )


def _figures(figures: LoadFigures) -> dict[str, Any]:
    return {
        "ios": figures.ios,
        "iops": figures.iops,
        "bytes_per_second": figures.bytes_per_second,
        "mean_seconds": figures.latency_mean_seconds,
        "deviation_seconds": figures.latency_deviation_seconds,
        "bins": Bins.of(figures.latency_bins_ns),
    }


def _parts_by_window(
    whole: LoadPart, chosen: Mask, intervals: Intervals, stretches: Mapping[str, Sequence[Stretch]]
) -> Iterator[LoadPart]:
    """The parts of a load with and without background work; none if there was no such work."""
    busy = np.zeros(len(chosen), np.bool_)
    windows: dict[str, Mask] = {}
    for work, spans in stretches.items():
        active = chosen & intervals.within(spans)
        busy |= active
        windows[DURING[work]] = active
    if not busy.any():
        return
    windows[QUIET] = chosen & ~busy
    for window, mask in windows.items():
        part = _part(whole, window, mask, intervals)
        if part and part.seconds >= _LEAST_SECONDS:
            yield part


def _part(whole: LoadPart, window: str, mask: Mask, intervals: Intervals) -> LoadPart | None:
    """The load in the intervals of the mask; None where nothing completed in them."""
    ios = int(intervals.ios[mask].sum())
    if not ios:
        return None
    bins = intervals.bins(mask)
    jobs = len(np.unique(intervals.job[mask]))
    return replace(
        whole,
        window=window,
        seconds=float(intervals.seconds[mask].sum()) / jobs,
        ios=ios,
        iops=intervals.rate(mask),
        bytes_per_second=intervals.bytes_per_second(mask),
        mean_seconds=float(intervals.latency_sum[mask].sum()) / ios,
        deviation_seconds=bins.deviation_seconds,
        bins=bins,
        cost={},
    )
