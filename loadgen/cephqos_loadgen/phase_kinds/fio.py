"""fio: client load of one depth, over a sweep of depths, or searching for a latency target."""

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from cephqos_base.units import format_cpu_list, parse_seconds, time_span
from cephqos_base.yamlfile import Value
from cephqos_loadgen.engines.fio_engine import Devices, FioEngine, FioTarget
from cephqos_loadgen.engines.fio_engines import ENGINES
from cephqos_loadgen.engines.fio_keys import MIXED, read_rate, read_size, refuse_unused
from cephqos_loadgen.engines.fio_options import read_fio_options
from cephqos_loadgen.load import host_figures
from cephqos_loadgen.load.clients import ClientProcess, RunTools, run_clients
from cephqos_loadgen.load.context import Context
from cephqos_loadgen.load.curves import Search, Sweep, search, sweep
from cephqos_loadgen.load.followers import FioFollower, became_steady, check_results
from cephqos_loadgen.load.kind import End, PhaseKind
from cephqos_loadgen.load.step import step_of
from cephqos_loadgen.plan.action import TOLD, Ending
from cephqos_loadgen.plan.parts import PlannedPool
from cephqos_loadgen.plan.place import ProgramPaths, pinned, whole_seconds
from cephqos_loadgen.plan.planned import Phase
from cephqos_loadgen.plan.reading import read_cpus, read_integer, read_path, read_pool_name
from cephqos_loadgen.plan.words import count, size
from cephqos_loadgen.results.phase import LoadResult, PhaseResult, Step

_RW = ("read", "write", "randread", "randwrite", *MIXED)
# A guess of the time until fio finds a load steady, or has done its passes.
_STEADY_SECONDS = 60.0
_BETWEEN_STEPS_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class FioResult(LoadResult):
    """One step, or those of a curve in the order in which they ran."""

    kind: ClassVar[str] = "fio"

    engine: str
    mode: Literal["load", "sweep", "search"]
    steps: tuple[Step, ...]
    stopped_because: str = ""  # why a sweep ended before its last depth
    target_seconds: float | None = None  # of a search
    target_percentile: float | None = None  # None: the target is for the mean
    reached: bool | None = None  # of a search: whether any depth kept the target
    steady: bool | None = None  # of a load that was to become steady: whether it did

    @property
    def chosen(self) -> Step:
        if self.mode != "search":
            return self.steps[-1]
        within = [step for step in self.steps if step.within_target]
        return max(within, key=lambda step: step.total.iops, default=self.steps[0])

    @property
    def is_curve(self) -> bool:
        """Also a sweep that ended with its first step."""
        return self.mode != "load" or len(self.steps) > 1

    def findings(self) -> tuple[str, ...]:
        findings = LoadResult.findings(self)
        if self.stopped_because:
            last = self.steps[-1].depth
            findings += (
                f"the curve ended at depth {last}, before its last: {self.stopped_because}",
            )
        if self.reached is False:
            findings += ("no depth kept the target",)
        elif self.reached and self.steps[-1].within_target:
            greatest = self.steps[-1].depth
            findings += (
                f"depth {greatest}, the greatest of the search, kept the target: more may too",
            )
        return findings

    @property
    def cut_off(self) -> bool:
        return self.steady is False

    def headline(self) -> Mapping[str, float]:
        headline = LoadResult.headline(self)
        if self.mode == "search" and not self.reached:
            return {name: value for name, value in headline.items() if name != "depth"}
        return headline


@dataclass(frozen=True, slots=True)
class FioClient:
    """One fio process of a phase: its name, and the volumes that it loads."""

    name: str
    volumes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fio(PhaseKind):
    """Client load: `clients` fio processes, which share out `volumes` images."""

    result: ClassVar[type[PhaseResult]] = FioResult
    has_clients: ClassVar[bool] = True
    endings: ClassVar[tuple[Ending, ...]] = (*TOLD, "steady_state")

    engine: str
    rw: str
    block_size: int
    depth: int
    pool: str = ""
    volumes: int = 1
    clients: int = 1
    jobs: int = 1
    path: str = ""
    size: str = ""  # of each volume, in bytes or as a share such as 70%
    passes: int = 0  # how often fio goes through that size; 0: it runs for a time
    cache: str = "none"
    cpus: tuple[int, ...] = ()
    rate_iops: int | None = None
    read_percent: int | None = None
    options: tuple[tuple[str, str], ...] = ()
    sweep: Sweep | None = None
    search: Search | None = None

    # -- what a scenario says -------------------------------------------------------------------

    @classmethod
    def read(cls, value: Value) -> Self:
        table = value.table(_KEYS, ("engine", "rw", "bs"))
        engine = ENGINES[table["engine"].choice(tuple(ENGINES))]
        for key, meaning in engine.needs.items():
            if key not in table:
                value.fail(f"the key {key!r} ({meaning}), which engine {engine.name} needs", "none")
        clients = read_integer(table, "clients", 1, 64)
        volumes = read_integer(table, "volumes", 1, 256)
        if engine.on_images and volumes % clients:
            value.fail("as many volumes for each client", f"{volumes} volumes, {clients} clients")
        jobs = read_integer(table, "jobs", 1, 64)
        steps = Sweep.read(table["sweep"]) if "sweep" in table else None
        target = Search.read(table["search"]) if "search" in table else None
        if steps and target:
            table["search"].fail("sweep or search, not both", "both")
        refuse_unused(table, engine, curve=bool(steps or target))
        passes = read_integer(table, "passes", 0, 16)
        if passes and (steps or target):
            table["passes"].fail("passes, or a sweep or search that have times", "both")
        return cls(
            engine=engine.name,
            rw=table["rw"].choice(_RW),
            block_size=table["bs"].size(512),
            depth=read_integer(table, "depth", 1, 4096),
            pool=read_pool_name(table["pool"]) if "pool" in table else "",
            volumes=volumes,
            clients=clients,
            jobs=jobs,
            path=read_path(table["path"]) if "path" in table else "",
            size=read_size(table["size"]) if "size" in table else "",
            passes=passes,
            cache=table["cache"].choice(engine.caches) if "cache" in table else "none",
            cpus=read_cpus(table["cpus"]) if "cpus" in table else (),
            rate_iops=read_rate(table, jobs * (volumes if engine.on_images else clients)),
            read_percent=table["read_percent"].integer(0, 100) if "read_percent" in table else None,
            options=read_fio_options(table["options"]) if "options" in table else (),
            sweep=steps,
            search=target,
        )

    def misfit(self, pools: Mapping[str, PlannedPool]) -> tuple[str, str] | None:
        misfit = PhaseKind.misfit(self, pools)
        if misfit or not self.fio.on_images:
            return misfit
        images = pools[self.pool].images
        present = images.count if images else 0
        if self.volumes > present:
            return f"at most the {present} images of pool {self.pool}", str(self.volumes)
        return None

    # -- what it needs, and how a plan shows it ---------------------------------------------------

    @property
    def fio(self) -> FioEngine:
        return ENGINES[self.engine]

    def pools(self) -> tuple[str, ...]:
        return (self.pool,) if self.pool else ()

    def paths(self) -> tuple[str, ...]:
        return (self.path,) if self.path else ()

    def programs(self) -> tuple[str, ...]:
        return ("fio", *self.fio.programs, *(("taskset",) if self.cpus else ()))

    def fio_engines(self) -> tuple[str, ...]:
        return (self.engine,)

    @property
    def keeps_its_own_time(self) -> bool:
        return bool(self.sweep or self.search or self.passes or self.ends_by_itself)

    def expected_seconds(self) -> float | None:
        between = _BETWEEN_STEPS_SECONDS + self._ramp
        if self.sweep:
            return len(self.sweep.depths) * (self.sweep.dwell + between)
        if self.search:
            steps = max(1, (self.search.most - self.search.least).bit_length()) + 1
            return steps * (self.search.dwell + between)
        return _STEADY_SECONDS if self.ends_by_itself or self.passes else None

    def ramp_seconds(self) -> float:
        steps = len(self.sweep.depths) if self.sweep else 1
        return self._ramp * steps

    @property
    def _ramp(self) -> float:
        """fio's `ramp_time`: it loads, and counts nothing yet."""
        return parse_seconds(dict(self.options).get("ramp_time", "0"))

    @property
    def ends_by_itself(self) -> bool:
        """Whether fio ends by its own steady state: when its figures no longer change."""
        return any(name == "steadystate" for name, _ in self.options)

    def describe(self) -> str:
        where = f"pool {self.pool}" if self.pool else self.path
        several = any(name in ("bssplit", "bsrange") for name, _ in self.options)
        words = [f"{self.rw} of {'several sizes' if several else size(self.block_size)}"]
        if self.sweep:
            depths = " ".join(map(str, self.sweep.depths))
            words.append(f"depths {depths}, each for {time_span(self.sweep.dwell)}")
        elif self.search:
            target = f"{self.search.words} is {self.search.target * 1e3:g} ms"
            words.append(f"the depth whose {target}")
        else:
            words.append(f"depth {self.depth}")
        if self.passes:
            words.append(f"{self.size or 'all'} of it, {count(self.passes, 'time')}")
        if self.fio.on_images:
            words.append(count(self.volumes, "volume"))
        if self.clients > 1:
            words.append(count(self.clients, "client"))
        if self.jobs > 1:
            words.append(f"{self.jobs} jobs each")
        if self.cpus:
            words.append(f"on CPUs {format_cpu_list(self.cpus)}")
        if self.engine in ("nbd", "guest"):
            words.append(f"cache {self.cache}")
        words += [f"{name} {value}" for name, value in self.options]
        words += self.sweep.rules if self.sweep else []
        return f"fio, {self.fio.words} on {where}: {', '.join(words)}"

    def commands(self, phase: str, seconds: float, place: ProgramPaths) -> Iterator[list[str]]:
        yield from self.fio.preparing(self.target(phase, place), range(self.volumes))
        environment = [f"{key}={value}" for key, value in place.environment.items()]
        depths: tuple[int, ...] = (self.depth,)
        if self.sweep:
            seconds, depths = self.sweep.dwell, self.sweep.depths
        elif self.search:
            seconds, depths = self.search.dwell, (self.search.least, self.search.most)
        for depth in depths:
            for client in self.processes():
                argv = self.argv(client, place, phase=phase, seconds=seconds, depth=depth)
                yield ["env", *environment, *argv]

    # -- command lines --------------------------------------------------------------------------

    def target(self, phase: str, place: ProgramPaths) -> FioTarget:
        return FioTarget(phase, place, self.pool, self.path, self.cache)

    def processes(self) -> list[FioClient]:
        """The processes that share out the volumes; engines without images have one job each."""
        if self.fio.on_images:
            share = self.volumes // self.clients
            return [
                FioClient(f"client.{n}", tuple(range(n * share, (n + 1) * share)))
                for n in range(self.clients)
            ]
        return [FioClient(f"client.{n}", (n,)) for n in range(self.clients)]

    def argv(
        self,
        client: FioClient,
        place: ProgramPaths,
        *,
        phase: str,
        seconds: float,
        depth: int | None = None,
        devices: Devices | None = None,
    ) -> list[str]:
        """The command line of one client."""
        target = self.target(phase, place)
        command = [*pinned(self.cpus), "fio"]
        command += ["--output-format=json+", "--status-interval=1", "--eta=never"]
        for volume, job in itertools.product(client.volumes, range(self.jobs)):
            name = f"volume.{volume}.job.{job}" if self.jobs > 1 else f"volume.{volume}"
            command.append(f"--name={name}")
            command += self.fio.options(target, client.name, volume, devices or {})
            command += [f"--rw={self.rw}", f"--bs={self.block_size}"]
            command += [f"--iodepth={depth or self.depth}"]
            if self.passes:  # to their end: a phase that takes too long fails
                command.append(f"--loops={self.passes}")
            else:
                command += ["--time_based=1", f"--runtime={whole_seconds(seconds)}"]
            if self.size:
                command.append(f"--size={self.size}")
            if self.rate_iops:
                all_jobs = self.jobs * (self.volumes if self.fio.on_images else self.clients)
                share, remainder = divmod(self.rate_iops, all_jobs)
                # The first jobs get one more each, where the rate does not divide evenly.
                share += volume * self.jobs + job < remainder
                command.append(f"--rate_iops={share}")
            if self.read_percent is not None:
                command.append(f"--rwmixread={self.read_percent}")
            command += [f"--{name}={value}" for name, value in self.options]
        return command

    def steps_back(self) -> int:
        return self.volumes if self.fio.maps_images else 0

    # -- carrying it out ------------------------------------------------------------------------

    async def carry_out(self, context: Context, phase: Phase, end: End | None) -> FioResult:
        async def run(depth: int, seconds: float) -> Step:
            step, _ = await self._step(context, phase.name, depth, seconds, end=None)
            return step

        if self.sweep:
            steps, stopped = await sweep(self.sweep, run, context.recorder.event)
            return FioResult(self.engine, "sweep", steps, stopped_because=stopped)
        if self.search:
            steps = await search(self.search, run, context.recorder.event)
            return FioResult(
                self.engine,
                "search",
                steps,
                target_seconds=self.search.target,
                target_percentile=self.search.percentile,
                reached=any(step.within_target for step in steps),
            )
        # fio keeps the time of a phase of a given length itself.
        until = None if phase.until.kind == "duration" else end
        seconds = phase.until.at_most
        step, steady = await self._step(context, phase.name, self.depth, seconds, until)
        return FioResult(self.engine, "load", (step,), steady=steady)

    async def _step(
        self, context: Context, phase: str, depth: int, seconds: float, end: End | None
    ) -> tuple[Step, bool | None]:
        """Run all clients at one depth. Returns the figures, and whether the load became steady;
        None if it was not to become steady."""
        started = time.time()
        target, tools = self.target(phase, context.place), RunTools(context)
        async with self.fio.prepared(target, range(self.volumes), tools) as devices:
            followers = []
            processes = []
            for client in self.processes():
                follower = FioFollower(context, phase, client.name, self.engine, depth)
                argv = self.argv(
                    client,
                    context.place,
                    phase=phase,
                    seconds=seconds,
                    depth=depth,
                    devices=devices,
                )
                followers.append(follower)
                processes.append(ClientProcess(argv, follower))
            # The host is recorded for the phase as a whole. A step, or a load after its ramp, is
            # recorded by itself too.
            is_part = self.sweep or self.search or self._ramp
            recording = host_figures.of_step(context, phase, depth, self._ramp)
            async with recording if is_part else nullcontext():
                ended = await run_clients(context, phase, processes, seconds + self._ramp, end)
        check_results(followers)
        timed = ended != "interrupted" and not (self.passes or self.ends_by_itself)
        asked_seconds = float(whole_seconds(seconds)) if timed else None
        step = step_of(followers, depth, started, asked_seconds)
        steady = became_steady(followers) if self.ends_by_itself else None
        if steady is False:
            context.recorder.event("not_steady", phase=phase, after=step.seconds)
        return step, steady


_KEYS = (
    *("engine", "pool", "rw", "bs", "depth", "volumes", "clients", "jobs", "path", "size", "cache"),
    "passes",
    *("cpus", "rate_iops", "read_percent", "options", "sweep", "search"),
)
