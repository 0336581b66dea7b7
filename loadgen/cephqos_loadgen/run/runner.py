"""Carries a plan out: every point, every repeat, one archive."""

import asyncio
import contextlib
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from cephqos_base.errors import UsageError
from cephqos_base.version import __version__
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.check import preflight
from cephqos_loadgen.check.ask_cluster import access_to
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster import work_folder
from cephqos_loadgen.cluster.connection import Access, LabAccess
from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.live import terminal
from cephqos_loadgen.live.endpoint import DEFAULT_LISTEN, serve
from cephqos_loadgen.live.forecast import Forecast
from cephqos_loadgen.live.metrics import LiveMetrics
from cephqos_loadgen.live.notify import Notifier
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.plan.errors import ClusterUnfit, NotRestored, RunError
from cephqos_loadgen.plan.planned import Plan, Point, blocks
from cephqos_loadgen.pools.pools import Pools
from cephqos_loadgen.progress import Frame, Progress
from cephqos_loadgen.results.environment import facts_of
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.repeat import InForce, Manifest, RepeatLine, RepeatRecord, RunStatus
from cephqos_loadgen.run import environment
from cephqos_loadgen.run.one_repeat import OneRepeat, new_record
from cephqos_loadgen.run.resume import check_cluster, check_environment, environments_of, take_along
from cephqos_loadgen.run.session import Session, finish
from cephqos_loadgen.run.summary import summarise
from cephqos_loadgen.run_recording import layout
from cephqos_loadgen.run_recording.own_exporter import RunExporters, exporters
from cephqos_loadgen.run_recording.repeat_folder import RepeatRecorder
from cephqos_loadgen.run_recording.run_folder import ArchiveWriter

# How often a repeat is made that other programs disturb. The last one counts, with its finding.
_TRIES = 3


class Runner:
    """One run. `run` returns the archive's folder; a run that failed has one too, and raises."""

    def __init__(self, plan: Plan, options: RunOptions, progress: Progress) -> None:
        self.plan = plan
        self.options = options
        self.progress = progress
        self.id = layout.new_run(plan.scenario)
        self._forecast = Forecast(plan)
        self.url = ""  # of the live metrics, once they are served
        self.live = Live(RunPlace(self.id, plan.scenario))
        self._records: list[RepeatRecord] = []
        self._restore: list[str] = []  # commands that undo what could not be undone
        self._finished: list[RepeatRecord] = []  # by the run that is resumed
        self._environments: list[dict[str, Any]] = []  # of clusters of different kinds
        self.stage = "checking"
        self._touched = False  # something in a cluster was changed
        self._not_restored = ""

    async def run(self) -> Path:
        """Carry the plan out. A UsageError before anything was changed in the cluster leaves no
        archive. NotRestored is raised instead of any other error that ended the run."""
        await preflight.check(self.plan, self.options)
        archive = ArchiveWriter(self.options.out, self.id)
        status: RunStatus | None = "aborted"
        error = ""
        try:
            archive.text(layout.SCENARIO_FILE, self.plan.text)
            archive.json(layout.PLAN_FILE, to_json(self.plan))
            await self._run(archive)
            status = "complete"
        except CommandFailed as problem:
            status, error = "failed", str(problem)
            raise RunError(error) from problem
        except UsageError as problem:
            status, error = "failed" if self._touched else None, str(problem)
            raise
        except Exception as problem:
            status, error = "failed", str(problem) or repr(problem)
            raise
        finally:
            path = self._finish(archive, status, error)
        return path

    def _finish(self, archive: ArchiveWriter, status: RunStatus | None, error: str) -> Path:
        """Seal the archive, and say what was not restored. Nothing is awaited, so no interruption
        can come in between. Status None: the run was refused, and leaves no archive."""
        self.stage = "sealing"
        if status is None:
            archive.discard()
            return archive.final
        try:
            return self._seal(archive, status, error)
        finally:
            if self._restore:
                self.progress.note("the cluster was not restored; these commands do it:")
                for line in self._restore:
                    self.progress.note(f"  {line}")
            if self._not_restored:
                raise NotRestored(f"the cluster was not restored: {self._not_restored}")

    def _seal(self, archive: ArchiveWriter, status: RunStatus, error: str) -> Path:
        manifest = Manifest(
            format=layout.FORMAT,
            cephqos=__version__,
            run=self.id,
            scenario=self.plan.scenario,
            scale=self.plan.scale,
            status=status,
            error=error,
            start_unix_seconds=archive.started,
            end_unix_seconds=time.time(),
            repeats_planned=len(self.plan.runs),
            repeats=tuple(
                RepeatLine(each.folder, each.point, each.repeat, each.status, each.error)
                for each in self._records
            ),
            summary=summarise(self.plan, self._records),
            restore_commands=tuple(self._restore),
            files={},  # known when it is sealed
        )
        try:
            path = archive.seal(manifest)
        except OSError as problem:
            unfinished = f"the archive stays unfinished in {archive.folder}: {problem}"
            if status == "complete":  # else something else is raised already
                raise RunError(unfinished) from problem
            self.progress.note(unfinished)
            return archive.folder
        self.progress.note(f"archive ({status}): {path}")
        if status != "complete":
            self.progress.note("to go on, give the same command again, with")
            self.progress.note(f"  --resume {path}")
        return path

    async def _run(self, archive: ArchiveWriter) -> None:
        if self.options.resume:
            note = self.progress.note
            self._finished = take_along(self.options.resume, self.plan, archive, note)
            self._environments = environments_of(self.options.resume)
            self._records += self._finished
            remaining = self._remaining()
            for run in self.plan.runs:
                if run not in remaining:
                    self._forecast.finished(*run, None)
        listen, fall_back = self.options.listen or DEFAULT_LISTEN, self.options.listen is None
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(
                serve(listen, LiveMetrics(self.live), fall_back=fall_back)
            )
            self.url = url
            self.progress.note(f"metrics of this run: {url}")
            notify = Notifier(self.options.grafana, self.options.loki, self.id)
            stack.callback(_record_notified, archive, notify)
            self.notify = await stack.enter_async_context(notify)
            cluster_of = partial(_cluster_of, existing_cluster=self.options.given)
            for (lab, _), runs in groupby(self._remaining(), key=cluster_of):
                await self._on_cluster(archive, lab, list(runs))

    # -- clusters -------------------------------------------------------------------------------

    async def _on_cluster(
        self, archive: ArchiveWriter, lab: LabSpec, runs: Sequence[tuple[Point, int]]
    ) -> None:
        """All repeats that the same cluster serves."""
        async with self._access(lab) as access:
            session = Session(
                access,
                archive,
                self.plan,
                take_over=self.options.take_over,
                existing_cluster=self.options.given,
                restart_osds=self.options.restart_osds,
                check=self._check_known,
                note=self.progress.note,
            )
            try:
                self.stage = "preparing"
                await session.begin()
                self._forecast.restarting(session.restarts.seconds_of)
                self.live.where.cluster = self.notify.cluster = session.cluster.fsid
                await session.measure_capacity()
                await _while_held(session, self._points(session, runs))
            finally:
                self._touched |= session.journal.used
                await self._give_back(session)
            if self._not_restored:
                raise NotRestored(self._not_restored)

    async def _give_back(self, session: Session) -> None:
        """Restore the cluster, whatever ended the run. The first interruption while that goes on is
        only noted; if the run itself was interrupted, it stops the restoring."""
        self.stage = "restoring"
        task = asyncio.current_task()
        interrupted = task is not None and task.cancelling() > 0
        if interrupted:
            self.progress.note("interrupted: restoring the cluster; once more stops that")
        try:
            await finish(session.end(), self.progress.note, spare=0 if interrupted else 1)
        finally:
            if self.options.given:  # a lab of the run's own is gone with it
                self._restore = session.journal.commands()
                stopped = "it was stopped before it was done" if self._restore else ""
                self._not_restored = "; ".join(session.failures) or stopped
            kept = sorted(session.kept.left)
            if kept:
                self.progress.note(f"kept, to be used again: {', '.join(kept)}")

    @asynccontextmanager
    async def _access(self, spec: LabSpec) -> AsyncIterator[Access]:
        options = self.options
        async with AsyncExitStack() as stack:
            access: Access
            if options.given:
                access = access_to(options, self.id, options.work / self.id)
            else:
                name = f"{spec.name}-{secrets.token_hex(3)}"
                lab = Lab(replace(spec, name=name), self.progress)
                access = LabAccess(await stack.enter_async_context(lab), self.id)
            stack.callback(work_folder.remove, Path(access.place.work))
            yield access

    def _check_known(self, fsid: str) -> None:
        if self.options.conf and self.options.known_fsid != fsid:
            raise ClusterUnfit(
                f"this run changes and loads the cluster {fsid}; if that is what you want, add"
                f" --i-know-this-cluster {fsid}"
            )
        if self.options.resume and self.options.given:
            check_cluster(self.options.resume, fsid)

    # -- points and repeats ---------------------------------------------------------------------

    def _remaining(self) -> list[tuple[Point, int]]:
        """The repeats that no earlier run has finished, in their order."""
        finished = {(record.point, record.repeat) for record in self._finished}
        return [(point, n) for point, n in self.plan.runs if (point.name, n) not in finished]

    async def _write_environment(self, session: Session) -> None:
        """Record the present cluster; where a run has clusters of several kinds, each kind too."""
        facts = await environment.collect(session.cluster)
        if self.options.resume:
            check_environment(self.options.resume, facts, existing_cluster=self.options.given)
        session.archive.json(layout.ENVIRONMENT_FILE, facts)
        if facts_of(facts) not in map(facts_of, self._environments):
            self._environments.append(facts)
        if len(self._environments) > 1:
            session.archive.json(layout.ENVIRONMENTS_FILE, self._environments)

    async def _points(self, session: Session, runs: Sequence[tuple[Point, int]]) -> None:
        await self._write_environment(session)
        sockets = self.options.sockets or session.access.sockets
        preparing = session.archive.repeat(f"prepare-{secrets.token_hex(2)}")
        preparing.in_place(session.access.argv, session.access.place.environment)
        try:
            async with exporters(
                session.access,
                python=self.options.python if self.options.conf else "python3",
                sockets=sockets,
                given=self.options.exporters,
                output=preparing.output,
                note=session.archive.event,
            ) as exporters_of_run:
                if sockets is None and not self.options.exporters:
                    self.progress.note("no exporter: give --exporter URL to record OSD metrics")
                for point, numbers in blocks(runs):
                    await self._point(session, point, numbers, preparing, exporters_of_run)
        finally:
            with contextlib.suppress(OSError):
                preparing.close_preparation()

    async def _point(
        self,
        session: Session,
        point: Point,
        numbers: Sequence[int],
        preparing: RepeatRecorder,
        exporters: RunExporters,
    ) -> None:
        """One point of the matrix: its pools and its configuration, then these repeats."""
        self.live.where.point, self.live.where.repeat = point.name, 0
        async with self._followed(f"preparing {point.name}"):
            pools_of_point = [pool for pool in point.pools if not pool.fresh]
            kept = session.kept
            pools = Pools(session.cluster, session.journal, preparing.child, self.live, kept)
            reused = await pools.prepare(pools_of_point)
            self._forecast.filled(point)
            entries_before = len(session.journal.entries)
            self.live.doing = "putting the configuration in force"
            in_force = await session.apply(point)
        for name in reused:
            if name in kept.found:
                self.progress.note(f"pool {name}: used again, run {kept.found[name]} kept it")
        for warning in in_force.warnings:
            self.progress.note(f"warning: {warning}")
        ready = to_json(in_force)
        session.archive.event("point_ready", point=point.name, reused=reused, **ready)
        for number in numbers:
            await self._repeat(session, point, number, in_force, exporters)
        await session.roll_back(keep=entries_before)
        session.check_given_back()

    async def _repeat(
        self,
        session: Session,
        point: Point,
        number: int,
        in_force: InForce,
        exporters: RunExporters,
    ) -> None:
        index = self.plan.runs.index((point, number)) + 1
        folder = layout.repeat_folder(index, point.name, number)
        self.live.where.point, self.live.where.repeat = point.name, number
        self.live.repeat_started = time.time()
        self.live.repeat_expected = self._forecast.repeat_seconds(point)
        title = f"run {index} of {len(self.plan.runs)}: {point.name}, repeat {number}"
        self.notify("repeat_started", point=point.name, repeat=number)
        async with self._followed(title):
            for left in reversed(range(_TRIES)):
                recorder = session.archive.repeat(folder)
                recorder.listeners.append(self.notify)
                repeat = OneRepeat(session, point, recorder, self.live, exporters)
                record = await repeat.run(new_record(folder, point, number, in_force))
                if not left or not self._is_disturbed(repeat, record):
                    break
                share = f"other programs used {repeat.others_cpu:.0%} of this host's CPUs"
                self.progress.note(f"{title} is made again: {share}")
                session.archive.event("repeat_made_again", folder=folder, reason=share)
                shutil.rmtree(recorder.folder)
        self._take(title, point, record)
        session.check_given_back()

    def _is_disturbed(self, repeat: OneRepeat, record: RepeatRecord) -> bool:
        """Whether the user wants this repeat once more."""
        most = self.options.others_cpu
        return most is not None and record.status == "finished" and repeat.others_cpu > most

    def _take(self, title: str, point: Point, record: RepeatRecord) -> None:
        self._records.append(record)
        for finding in record.findings:
            self.progress.note(f"finding: {finding}")
        if record.status != "finished":
            raise RunError(f"{title}: {record.error or record.status}")
        seconds = record.end_unix_seconds - record.start_unix_seconds
        self._forecast.finished(point, record.repeat, seconds)

    # -- what is shown --------------------------------------------------------------------------

    @asynccontextmanager
    async def _followed(self, title: str) -> AsyncIterator[None]:
        """Show the live state while the block runs."""
        with self.progress.follow(title, self._look()) as show:
            looking = asyncio.create_task(self._keep_looking(show))
            try:
                yield
            finally:
                looking.cancel()
                self.live.doing = ""
                self.live.repeat_started = 0.0

    async def _keep_looking(self, show: Callable[[Frame], None]) -> None:
        while True:
            await asyncio.sleep(1.0)
            show(self._look())

    def _look(self) -> Frame:
        """The live state now, with the time that is left."""
        now, live = time.time(), self.live
        elapsed = now - live.repeat_started if live.repeat_started else 0.0
        remaining = [fill.left(now) for fill in live.fills.values()]
        known = [seconds for seconds in remaining if seconds is not None]
        all_known = not live.repeat_started and known and len(known) == len(remaining)
        live.eta = self._forecast.left(elapsed=elapsed, filling=max(known) if all_known else None)
        live.repeats = (len(self._records), len(self.plan.runs))
        return terminal.frame(live, now)


def _cluster_of(run: tuple[Point, int], *, existing_cluster: bool) -> tuple[LabSpec, str]:
    """Repeats that follow each other share a cluster where this is the same: the lab that they
    need, and which repeat it is made for if it is made again for each."""
    point, number = run
    if existing_cluster:
        return LabSpec(), ""
    return point.lab, f"{point.name} {number}" if point.fresh_lab else ""


async def _while_held(session: Session, work: Coroutine[Any, Any, None]) -> None:
    """The work, as long as the cluster is held: RunError, and the work is ended, if it is not."""
    doing = asyncio.ensure_future(work)
    ended = asyncio.ensure_future(session.until_not_held())
    try:
        await asyncio.wait([doing, ended], return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            doing.cancel()
            await asyncio.wait([doing])
            raise RunError(ended.result())
    finally:
        for task in (doing, ended):
            task.cancel()
        await asyncio.wait([doing, ended])
    doing.result()


def _record_notified(archive: ArchiveWriter, notify: Notifier) -> None:
    sent, failed, error = notify.sent, notify.failed, notify.last_error
    if sent or failed:
        archive.event("notified", sent=sent, failed=failed, last_error=error)
