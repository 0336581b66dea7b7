"""Carries a plan out: every point, every repeat, one archive."""

import asyncio
import contextlib
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.archive.layout import repeat_folder
from cephqos_loadgen.archive.writer import ArchiveWriter
from cephqos_loadgen.errors import CephqosError, UsageError
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.spec import LabSpec, Setting
from cephqos_loadgen.progress import Progress
from cephqos_loadgen.record.child import Child
from cephqos_loadgen.record.repeat import RepeatRecorder
from cephqos_loadgen.run import environment
from cephqos_loadgen.run.clients import check_engine
from cephqos_loadgen.run.cluster import Access, ConfAccess, LabAccess
from cephqos_loadgen.run.endpoint import serve
from cephqos_loadgen.run.errors import RunError
from cephqos_loadgen.run.exporter import exporters
from cephqos_loadgen.run.live import Live, Where
from cephqos_loadgen.run.notify import Notifier
from cephqos_loadgen.run.options import RunOptions
from cephqos_loadgen.run.pools import Pools
from cephqos_loadgen.run.repeat import Repeat
from cephqos_loadgen.run.resume import Finished, take_along
from cephqos_loadgen.run.session import Session, unstoppable
from cephqos_loadgen.run.show import duration
from cephqos_loadgen.run.summary import summarise
from cephqos_loadgen.scenario.estimate import run_seconds
from cephqos_loadgen.scenario.model import Fio, LabWish, Plan, Point


def run_id(plan: Plan) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{stamp}-{plan.scenario}-{secrets.token_hex(2)}"


class Runner:
    """One run. `run` returns the archive's folder; a run that failed has one too, and raises."""

    def __init__(self, plan: Plan, options: RunOptions, progress: Progress) -> None:
        self.plan = plan
        self.options = options
        self.progress = progress
        self.id = run_id(plan)
        self._said = ""
        self.url = ""  # of the live metrics, once they are served
        self.live = Live(Where(self.id, plan.scenario))
        self._outcomes: list[dict[str, Any]] = []
        self._restore: list[str] = []
        self._lengths: list[float] = []
        self._finished: list[Finished] = []

    async def run(self) -> Path:
        for point in self.plan.points:
            for phase in point.phases:
                if isinstance(phase.action, Fio):
                    check_engine(phase.action.engine)
        archive = ArchiveWriter(self.options.out, self.id)
        archive.text("scenario.yaml", self.plan.text)
        archive.json("plan.json", asdict(self.plan))
        status, error = "aborted", ""
        try:
            await self._run(archive)
            status = "complete"
        except CommandFailed as problem:
            status, error = "failed", str(problem)
            raise RunError(error) from problem
        except Exception as problem:
            status, error = "failed", str(problem) or repr(problem)
            raise
        finally:
            path = self._seal(archive, status, error)
        return path

    def _seal(self, archive: ArchiveWriter, status: str, error: str) -> Path:
        details = {
            "scenario": self.plan.scenario,
            "scale": self.plan.scale,
            "error": error,
            "repeats_planned": len(self.plan.runs),
            "repeats": [
                {key: outcome.get(key) for key in ("folder", "point", "repeat", "status", "error")}
                for outcome in self._outcomes
            ],
            "summary": summarise(self.plan, self._outcomes),
            "restore_commands": self._restore,
        }
        try:
            path = archive.seal(status, details)
        except OSError as problem:
            self.progress.note(f"the archive stays unfinished in {archive.folder}: {problem}")
            return archive.folder
        if self._restore:
            self.progress.note("the cluster was not restored; these commands do it:")
            for line in self._restore:
                self.progress.note(f"  {line}")
        self.progress.note(f"archive ({status}): {path}")
        return path

    async def _run(self, archive: ArchiveWriter) -> None:
        if self.options.resume:
            self._finished = take_along(self.options.resume, self.plan, archive)
            self._outcomes += [finished.outcome for finished in self._finished]
        fall_back = not self.options.listen_given
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(
                serve(self.options.listen, self.live.families, fall_back=fall_back)
            )
            self.url = url
            self.progress.note(f"metrics of this run: {url}")
            notify = Notifier(self.options.grafana, self.options.loki, self.id)
            self.notify = await stack.enter_async_context(notify)
            for wish, points in groupby(self.plan.points, key=lambda point: point.lab):
                await self._on_cluster(archive, wish, list(points))
            archive.event("notified", sent=notify.sent, failed=notify.failed)

    # -- clusters -------------------------------------------------------------------------------

    async def _on_cluster(
        self, archive: ArchiveWriter, wish: LabWish, points: Sequence[Point]
    ) -> None:
        """All points that the same cluster serves."""
        left = [point for point in points if self._left(point)]
        if not left:
            return
        async with self._access(wish) as access:
            take_over = self.options.take_over
            session = Session(access, archive, take_over=take_over, check=self._check_known)
            await session.__aenter__()
            try:
                self.live.where.cluster = session.cluster.fsid
                await self._points(archive, session, left)
            finally:
                closing = session.__aexit__(None, None, None)
                with contextlib.suppress(CephqosError):
                    await unstoppable(closing, self.progress.note)
                self._restore = session.journal.commands()
                for failure in session.failures:
                    self.progress.note(f"not restored: {failure}")
            if session.failures:
                raise RunError(f"the cluster was not restored: {'; '.join(session.failures)}")

    @asynccontextmanager
    async def _access(self, wish: LabWish) -> AsyncIterator[Access]:
        options = self.options
        async with AsyncExitStack() as stack:
            access: Access
            if options.conf:
                work = options.work / self.id
                access = ConfAccess(
                    options.conf, options.keyring, options.user, work, options.python
                )
            elif options.lab:
                access = LabAccess(RunningLab.find(options.lab), self.id)
            else:
                lab = Lab(lab_spec(wish, options.release), self.progress)
                access = LabAccess(await stack.enter_async_context(lab), self.id)
            stack.callback(shutil.rmtree, access.place.work, ignore_errors=True)
            yield access

    def _check_known(self, fsid: str) -> None:
        if self.options.conf and self.options.known_fsid != fsid:
            raise UsageError(
                f"this run changes and loads the cluster {fsid}; if that is what you want, add"
                f" --i-know-this-cluster {fsid}"
            )

    # -- points and repeats ---------------------------------------------------------------------

    def _left(self, point: Point) -> list[int]:
        done = {(finished.point, finished.repeat) for finished in self._finished}
        return [n for n in range(1, self.plan.repeats + 1) if (point.name, n) not in done]

    async def _points(
        self, archive: ArchiveWriter, session: Session, points: Sequence[Point]
    ) -> None:
        archive.json("environment.json", await environment.collect(session.cluster))
        sockets = self.options.sockets or session.access.sockets
        preparing = archive.repeat(f"prepare-{secrets.token_hex(2)}")
        preparing.in_place(session.access.argv, session.access.place.environment)
        try:
            async with exporters(sockets, self.options.exporters, preparing.output) as found:
                if not found[0]:
                    self.progress.note("no exporter: give --exporter URL to record OSD metrics")
                for point in points:
                    await self._point(archive, session, point, preparing, found)
        finally:
            with contextlib.suppress(OSError):
                preparing.close({"status": "ended"})

    async def _point(
        self,
        archive: ArchiveWriter,
        session: Session,
        point: Point,
        preparing: RepeatRecorder,
        recorded: tuple[Mapping[str, str], Child | None],
    ) -> None:
        """One point of the matrix: its pools and its configuration, then its repeats."""
        with self.progress.step(f"preparing {point.name}") as say:
            lasting = [pool for pool in point.pools if not pool.fresh]
            pools = Pools(session.cluster, session.journal, preparing.child)
            reused = await pools.prepare(lasting, say)
            mark = len(session.journal.entries)
            in_force = await session.apply(point)
        for warning in in_force["warnings"]:
            self.progress.note(f"warning: {warning}")
        archive.event("point_ready", point=point.name, reused=reused, **in_force)
        for number in self._left(point):
            await self._repeat(archive, session, _Repeat(point, number, in_force), recorded)
        await session.roll_back(mark)

    async def _repeat(
        self,
        archive: ArchiveWriter,
        session: Session,
        which: "_Repeat",
        recorded: tuple[Mapping[str, str], Child | None],
    ) -> None:
        point, number = which.point, which.number
        index = self.plan.runs.index((point, number)) + 1
        folder = repeat_folder(index, point.name, number)
        self.live.where.point, self.live.where.repeat = point.name, number
        self.live.repeats = (len(self._outcomes), len(self.plan.runs))
        title = f"run {index} of {len(self.plan.runs)}: {point.name}, repeat {number}"
        self.notify("repeat_started", point=point.name, repeat=number)
        with self.progress.step(title) as say:
            line = asyncio.create_task(self._show(say))
            try:
                recorder = archive.repeat(folder)
                recorder.listeners.append(self.notify)
                repeat = Repeat(
                    session,
                    point,
                    recorder,
                    self.live,
                    sources=recorded[0],
                    exporter=recorded[1],
                    say=self._hear,
                    make_room=archive.give_reserve_back,
                )
                header = {"folder": folder, "point": point.name, "repeat": number}
                header |= {"axes": dict(point.axes), "in_force": which.in_force}
                outcome = await repeat.run(header)
            finally:
                line.cancel()
        self._take(title, outcome)
        if session.lost:
            raise RunError("another run took this cluster over")

    def _take(self, title: str, outcome: dict[str, Any]) -> None:
        self._outcomes.append(outcome)
        self._lengths.append(outcome["ended"] - outcome["started"])
        if outcome["status"] != "finished":
            raise RunError(f"{title}: {outcome.get('error', outcome['status'])}")

    # -- what is shown --------------------------------------------------------------------------

    def _hear(self, text: str) -> None:
        """What a phase says of itself, for the live line."""
        self._said = text

    async def _show(self, say: Any) -> None:
        """The live line: phases, figures, what is left."""
        started = time.monotonic()
        while True:
            self.live.eta = self._eta(time.monotonic() - started)
            parts = []
            for phase in self.live.where.phases:
                iops = self.live.iops(phase)
                parts.append(f"{phase} {iops:,.0f} IOPS" if iops else phase)
            if self.live.scrub and self._said.startswith("scrubbed"):
                parts.append(self._said)
            if self.live.recovery:
                _, left, rate = self.live.recovery
                parts.append(f"recovery {left} left, {rate:.0f}/s")
            say(f"{', '.join(parts) or 'between phases'}; {duration(self.live.eta)} left")
            await asyncio.sleep(1.0)

    def _eta(self, elapsed: float) -> float:
        """From the repeats so far; before the first has ended, from the plan."""
        left = len(self.plan.runs) - len(self._outcomes)
        if not self._lengths:
            total = run_seconds(self.plan)
            return max(0.0, total * left / max(1, len(self.plan.runs)) - elapsed)
        return max(0.0, left * sum(self._lengths) / len(self._lengths) - elapsed)


@dataclass(frozen=True, slots=True)
class _Repeat:
    """A repeat that is to be made."""

    point: Point
    number: int
    in_force: dict[str, Any]


def lab_spec(wish: LabWish, release: str) -> LabSpec:
    """The lab that a scenario wants, of the release that the command line names."""
    spec = LabSpec(
        name=f"run-{secrets.token_hex(3)}",
        release=find_release(release).name,
        osds=wish.osds,
        osd_size=wish.osd_size,
        backing=wish.backing,
        rotational=wish.rotational,
        io_scheduler=wish.io_scheduler,
        db_size=wish.db_size,
        objectstore=wish.objectstore,
        fs=wish.fs,
        settings=tuple(Setting(o.section, o.name, o.value) for o in wish.settings),
    )
    spec.validate()
    return spec
