"""Several steps of one load: a sweep over depths, a search for a latency target."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from cephqos_base.yamlfile import Value
from cephqos_loadgen.plan.reading import read_client_seconds, read_integer
from cephqos_loadgen.results.figures import PERCENTILES, LoadFigures
from cephqos_loadgen.results.phase import Step


@dataclass(frozen=True, slots=True)
class Sweep:
    """Depths one after the other; a step that spreads or lags too much is the last."""

    depths: tuple[int, ...]
    dwell: float
    dispersion: float | None = None
    latency: float | None = None

    @classmethod
    def read(cls, value: Value) -> Self:
        table = value.table(("depths", "dwell", "stop"), ("depths", "dwell"))
        stop = table["stop"].table(("dispersion", "latency")) if "stop" in table else {}
        return cls(
            depths=_read_depths(table["depths"]),
            dwell=read_client_seconds(table["dwell"]),
            dispersion=stop["dispersion"].number(0.01, 100) if _is_on(stop, "dispersion") else None,
            latency=stop["latency"].seconds(above_zero=True) if _is_on(stop, "latency") else None,
        )

    @property
    def rules(self) -> list[str]:
        """What ends it before its last depth."""
        rules = []
        if self.dispersion is not None:
            rules.append(f"ends early when latency sd / mean reaches {self.dispersion:g}")
        if self.latency is not None:
            rules.append(f"ends early above a mean of {self.latency * 1e3:g} ms")
        return rules


@dataclass(frozen=True, slots=True)
class Search:
    """The greatest depth, and so throughput, whose latency stays within `target` seconds."""

    target: float
    percentile: float | None  # None: the mean
    least: int
    most: int
    dwell: float

    @classmethod
    def read(cls, value: Value) -> Self:
        table = value.table(
            ("target", "percentile", "least", "most", "dwell"), ("target", "most", "dwell")
        )
        least, most = read_integer(table, "least", 1, 4096), table["most"].integer(1, 4096)
        if least > most:
            table["most"].fail(f"at least {least}, the value of `least`")
        percentile = table["percentile"].choice(PERCENTILES) if "percentile" in table else None
        return cls(
            target=table["target"].seconds(above_zero=True),
            percentile=float(percentile) if percentile else None,
            least=least,
            most=most,
            dwell=read_client_seconds(table["dwell"]),
        )

    @property
    def words(self) -> str:
        """What the target is about."""
        return "mean latency" if self.percentile is None else f"p{self.percentile:g}"


# Runs one step: a depth, and seconds.
Run = Callable[[int, float], Awaitable[Step]]


async def sweep(spec: Sweep, run: Run, note: Callable[..., None]) -> tuple[tuple[Step, ...], str]:
    """Run depth after depth; a step past the limits is the last. Returns the steps, and why the
    sweep ended before its last depth, or nothing."""
    steps: list[Step] = []
    stopped = ""
    for depth in spec.depths:
        step = await run(depth, spec.dwell)
        steps.append(step)
        stopped = too_much(spec, step.total) if depth != spec.depths[-1] else ""
        note("sweep_step", depth=depth, iops=step.total.iops, stopped=stopped)
        if stopped:
            break
    return tuple(steps), stopped


def too_much(spec: Sweep, total: LoadFigures) -> str:
    """Why a curve need not be followed further, or nothing."""
    mean, deviation = total.latency_mean_seconds, total.latency_deviation_seconds or 0.0
    if spec.dispersion is not None and mean and deviation / mean >= spec.dispersion:
        return f"dispersion {deviation / mean:.2f} of latency at or above {spec.dispersion:g}"
    if spec.latency is not None and mean > spec.latency:
        return f"mean latency {mean * 1e3:.3g} ms above {spec.latency * 1e3:g} ms"
    return ""


async def search(spec: Search, run: Run, note: Callable[..., None]) -> tuple[Step, ...]:
    """Look for the greatest depth within the target, by halving. Returns the steps by depth, each
    with whether it was within the target.

    Halving works because latency grows with depth. A step that was lucky or unlucky may lead to
    another depth. Each figure was still measured at its depth.
    """
    steps: dict[int, Step] = {}
    low, high = spec.least, spec.most

    async def measure(depth: int) -> bool:
        step = await run(depth, spec.dwell)
        latency = latency_of(spec, step.total)
        # Where nothing completed, the latency of 0 is no latency.
        within = bool(step.total.ios) and latency <= spec.target
        steps[depth] = replace(step, within_target=within)
        note("search_step", depth=depth, latency=latency, within=within)
        return within

    if await measure(low):
        while high > low:
            middle = (low + high + 1) // 2
            if await measure(middle):
                low = middle
            else:
                high = middle - 1
    return tuple(steps[depth] for depth in sorted(steps))


def latency_of(spec: Search, total: LoadFigures) -> float:
    """The latency that the target is about."""
    if spec.percentile is None:
        return total.latency_mean_seconds
    return total.latency_percentile_seconds(spec.percentile) or 0.0


def _is_on(stop: Mapping[str, Value], rule: str) -> bool:
    """A rule that is there, and not `off`."""
    return rule in stop and stop[rule].text() != "off"


def _read_depths(value: Value) -> tuple[int, ...]:
    depths = tuple(item.integer(1, 4096) for item in value.items())
    if not depths or len(set(depths)) < len(depths):
        value.fail("depths that are different, at least one")
    return depths
