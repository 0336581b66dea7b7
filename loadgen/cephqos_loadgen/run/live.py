"""What a run shows of itself while it goes on: families for Prometheus, a line for the terminal."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from cephqos_exporter.model import Family, LabelText, render_labels
from cephqos_loadgen.engines.fio import BOUNDS, DIRECTIONS, Figures, Status, add, buckets, since

_ENGINE_HELP = "as of the last one-second status interval"


@dataclass(slots=True)
class ClientFigures:
    """One client: what its processes of earlier phases did, and what the present one has done."""

    engine: str
    before: dict[str, Figures] = field(default_factory=dict)
    last: Status | None = None
    interval: dict[str, Figures] = field(default_factory=dict)
    seconds: float = 0.0
    updated: float = 0.0

    def iops(self) -> float:
        ios = sum(part.ios for part in self.interval.values())
        return ios / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class Where:
    """Where the run is: the labels of its info series."""

    run: str = ""
    scenario: str = ""
    cluster: str = ""  # fsid
    point: str = ""
    repeat: int = 0
    phases: tuple[str, ...] = ()


class Live:
    """The state that the endpoint and the terminal read."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self.clients: dict[tuple[str, str], ClientFigures] = {}
        self.scrub: tuple[int, int, float] | None = None  # objects done, to do, started
        self.recovery: tuple[int, int, float] | None = None  # recovered, left, objects/s
        self.eta: float | None = None
        self.repeats = (0, 0)

    def start_client(self, phase: str, client: str, engine: str) -> None:
        """A process of this client starts anew, from zero; what it did before stays counted."""
        figures = self.clients.setdefault((phase, client), ClientFigures(engine))
        if figures.last is not None:
            for direction in DIRECTIONS:
                parts = figures.before.get(direction), figures.last.of(direction)
                figures.before[direction] = _sum(*parts)
        figures.last, figures.interval, figures.seconds = None, {}, 0.0

    def status(self, phase: str, client: str, status: Status) -> Figures:
        """A status document came; what happened since the one before it."""
        figures = self.clients[phase, client]
        previous = figures.last
        for direction in DIRECTIONS:
            earlier = previous.of(direction) if previous else Figures()
            figures.interval[direction] = since(status.of(direction), earlier)
        figures.seconds = status.runtime - (previous.runtime if previous else 0.0)
        figures.last, figures.updated = status, time.time()
        return _sum(*(figures.interval[direction] for direction in DIRECTIONS))

    def iops(self, phase: str) -> float:
        return sum(f.iops() for (name, _), f in self.clients.items() if name == phase)

    # -- the endpoint ---------------------------------------------------------------------------

    def _base(self) -> dict[str, str]:
        """The labels of every series; no cluster before one is reached."""
        where = self.where
        return {"run": where.run, **({"cluster": where.cluster} if where.cluster else {})}

    def families(self) -> Iterable[Family]:
        where = self.where
        info = Family("cephqos_run_info", "gauge", "Where the run is.")
        for phase in where.phases or ("",):
            labels = self._base() | {"scenario": where.scenario, "point": where.point}
            labels |= {"repeat": str(where.repeat), "phase": phase}
            info.add(render_labels(labels), 1)
        yield info
        yield from self._progress()
        yield from self._clients()

    def _progress(self) -> Iterable[Family]:
        run = render_labels(self._base())
        done, total = self.repeats
        finished = Family("cephqos_run_repeats_done", "gauge", "Repeats that are finished.")
        finished.add(run, done)
        planned = Family("cephqos_run_repeats", "gauge", "Repeats of all points of the matrix.")
        planned.add(run, total)
        yield from (finished, planned)
        if self.eta is not None:
            yield _gauge(
                "cephqos_run_remaining_seconds", "Estimated time to the end.", run, self.eta
            )
        if self.scrub is not None:
            objects, left, started = self.scrub
            yield _gauge("cephqos_run_scrubbed_objects", "Objects scrubbed.", run, objects)
            yield _gauge("cephqos_run_scrub_left_objects", "Objects to scrub.", run, left)
            rate = objects / max(0.001, time.time() - started)
            if rate > 0:
                text = "Estimated time until the scrub is done."
                yield _gauge("cephqos_run_scrub_remaining_seconds", text, run, left / rate)
        if self.recovery is not None:
            recovered, left, rate = self.recovery
            text = "Objects recovered since the repeat started."
            yield _gauge("cephqos_run_recovered_objects", text, run, recovered)
            text = "Object copies misplaced or degraded."
            yield _gauge("cephqos_run_recovery_left_objects", text, run, left)
            if rate > 0:
                text = "Estimated time until recovery is done."
                yield _gauge("cephqos_run_recovery_remaining_seconds", text, run, left / rate)

    def _clients(self) -> Iterable[Family]:
        ops = Family("cephqos_client_ops_total", "counter", "I/Os that load clients completed.")
        size = Family("cephqos_client_bytes_total", "counter", "Bytes that load clients moved.")
        rate = Family("cephqos_client_iops", "gauge", f"I/Os per second {_ENGINE_HELP}.")
        latency = Family(
            "cephqos_client_latency_seconds",
            "histogram",
            "Completion latency at the client, from bins of at most 1.6 % width.",
        )
        for (phase, client), figures in self.clients.items():
            for direction in DIRECTIONS:
                last = figures.last.of(direction) if figures.last else Figures()
                total = _sum(figures.before.get(direction), last)
                if not total.ios:
                    continue
                base = self._base() | {"engine": figures.engine, "load": phase}
                base |= {"client": client, "op": direction}
                labels = render_labels(base)
                ops.add(labels, total.ios)
                size.add(labels, total.bytes)
                part = figures.interval.get(direction)
                rate.add(labels, part.ios / figures.seconds if part and figures.seconds else 0.0)
                for bound, count in zip((*BOUNDS, None), buckets(total.bins), strict=True):
                    le = "+Inf" if bound is None else f"{bound:.10g}"
                    latency.add(render_labels({**base, "le": le}), count, "_bucket")
                latency.add(labels, total.latency_sum, "_sum")
                latency.add(labels, total.latency_count, "_count")
        yield from (ops, size, rate, latency)


def _gauge(name: str, text: str, labels: LabelText, value: float) -> Family:
    family = Family(name, "gauge", text)
    family.add(labels, value)
    return family


def _sum(*parts: Figures | None) -> Figures:
    return add(part for part in parts if part is not None)
