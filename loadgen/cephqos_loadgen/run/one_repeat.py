"""One repeat of one point: recorded from its first second to its last, whatever happens."""

import asyncio
import time
import traceback
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psutil

from cephqos_base.errors import CephqosError
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.cluster.settings import SettingsReader
from cephqos_loadgen.cluster.steps.osds import OsdAway
from cephqos_loadgen.live.state import Live
from cephqos_loadgen.load.cluster_watch import ClusterWatch
from cephqos_loadgen.load.context import Context, Hands, beside
from cephqos_loadgen.load.guard_rails import GuardRails
from cephqos_loadgen.load.kind import PhaseKind
from cephqos_loadgen.load.phase_runner import Recorded, run_phases
from cephqos_loadgen.phase_kinds.osd_out_in import OsdResult
from cephqos_loadgen.plan.planned import Point
from cephqos_loadgen.pools.pools import Pools
from cephqos_loadgen.results.findings import findings
from cephqos_loadgen.results.host_load import cpu_by_others
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.repeat import InForce, MetricsRecording, RecordingCost, RepeatRecord
from cephqos_loadgen.run.boots import BootWatch
from cephqos_loadgen.run.clock import ClockWatch
from cephqos_loadgen.run.session import Session
from cephqos_loadgen.run_recording.child import leaf
from cephqos_loadgen.run_recording.files import JsonLines, write_json
from cephqos_loadgen.run_recording.layout import CLUSTER_LOG_FILE, HOST_FILE, METRICS_FILE
from cephqos_loadgen.run_recording.metrics import MetricsRecorder, too_much_missing
from cephqos_loadgen.run_recording.own_exporter import OwnExporter, RunExporters
from cephqos_loadgen.run_recording.repeat_folder import RepeatRecorder

_LOG_LINES = 5000


def _failed(record: RepeatRecord, error: Exception) -> RepeatRecord:
    """The record of a repeat that raised this error. A defect of ours must not cost what was
    recorded, nor leave the cluster changed: so every exception comes here."""
    record = replace(record, status="failed")
    match error:
        case CephqosError() | CommandFailed():
            return replace(record, error=str(error))
        case OSError():
            return replace(record, error=f"recording failed: {error}")
    text = "".join(traceback.format_exception(error))
    return replace(record, error=repr(error), traceback=text)


class OneRepeat:
    """Sets a repeat up, runs it, closes its folder. `run` returns the record, also of a failure,
    and raises only when it was cancelled or when the disk takes no more."""

    def __init__(
        self,
        session: Session,
        point: Point,
        recorder: RepeatRecorder,
        live: Live,
        exporters: RunExporters,
    ) -> None:
        self._session, self._point, self._recorder, self._live = session, point, recorder, live
        self._exporters = exporters
        self._hands = Hands(session.cluster, session.journal, session.settings)
        self._clock = ClockWatch(recorder.event)
        self._boots = BootWatch(session.cluster)
        self._changed_by_others: Sequence[str] = ()  # settings
        self._cluster_findings: Sequence[str] = ()
        self._still_deleted = ""  # a finding
        self._recovered: tuple[int | None, int | None] = None, None  # objects, bytes
        self.others_cpu = 0.0  # the largest share of this host's CPUs, of all loads

    async def run(self, header: RepeatRecord) -> RepeatRecord:
        """Run the repeat. `header` says which it is; returns the same record with its results."""
        recorder, session = self._recorder, self._session
        recorder.in_place(session.access.argv, session.access.place.environment)
        record = replace(header, start_unix_seconds=time.time())
        metrics = MetricsRecorder(
            self._exporters.sources,
            session.cluster.fsid,
            recorder.folder / METRICS_FILE,
            recorder.event,
        )
        context = self._context()
        self._live.new_repeat()
        entries_before = len(session.journal.entries)
        cost = CostMeter(session, self._exporters.own)
        recorded = Recorded()
        try:
            await self._prepare_and_run(context, metrics, recorded)
            await session.check_held()
            self._changed_by_others = await session.changed_by_others()
            missing = too_much_missing(metrics.summary())
            record = replace(record, status="failed" if missing else "finished", error=missing)
        except Exception as error:
            record = _failed(record, error)
        finally:
            self._look_at_others(recorded)
            record = replace(
                record,
                end_unix_seconds=time.time(),
                phases=recorded.records,
                cost=cost.spent(),
                metrics=metrics.summary(),
                findings=self._findings(recorded, metrics.summary()),
                recovered_objects=self._recovered[0],
                recovered_bytes=self._recovered[1],
            )
            self._live.new_repeat()
            try:
                await self._save_log(record.start_unix_seconds)
                if record.status != "aborted":
                    await session.roll_back(keep=entries_before)
            finally:
                record = self._close(metrics, record)
        return record

    def _look_at_others(self, recorded: Recorded) -> None:
        """What other programs used while clients ran: that of other phases changes no figure."""
        loads = [phase.name for phase in self._point.phases if phase.action.has_clients]
        uses = [cpu_by_others(recorded.hosts[name]) for name in loads if name in recorded.hosts]
        self.others_cpu = max((use.others for use in uses if use), default=0.0)

    def _findings(self, recorded: Recorded, metrics: MetricsRecording) -> tuple[str, ...]:
        self._clock.look()  # the last second counts too
        return (
            *self._clock.findings,
            *self._boots.findings,
            *(f"setting: {text}" for text in self._changed_by_others),
            *filter(None, [self._still_deleted]),
            *self._cluster_findings,
            *findings(recorded.records, recorded.hosts, metrics),
        )

    def _context(self) -> Context:
        session, recorder = self._session, self._recorder
        return Context(
            cluster=session.cluster.view,
            place=session.access.place,
            point=self._point,
            settings=SettingsReader(session.cluster.view),
            pin=self._hands.pin,
            will_map=self._hands.will_map,
            pools=Pools(session.cluster, session.journal, recorder.child, self._live),
            recorder=recorder,
            live=self._live,
            watcher=ClusterWatch(
                session.watch_cluster, recorder.cluster, recorder.event, self._rails()
            ),
        )

    def _rails(self) -> GuardRails:
        session = self._session

        def taken_down() -> set[int]:
            return {step.osd for step in session.journal.entries if isinstance(step, OsdAway)}

        return GuardRails(
            session.watch_cluster, session.room_before, taken_down, session.cluster.restarted
        )

    def _close(self, metrics: MetricsRecorder, record: RepeatRecord) -> RepeatRecord:
        """Close the files; on a full disk what was kept in reserve takes the record."""
        try:
            metrics.close()
            self._recorder.close(record)
        except OSError as error:
            record = replace(record, status="failed", error=f"recording failed: {error}")
            self._session.archive.give_reserve_back()
            self._recorder.close(record)
        return record

    async def _prepare_and_run(
        self, context: Context, metrics: MetricsRecorder, recorded: Recorded
    ) -> None:
        """Prepare the pools, then run the phases while cluster, metrics and clock are watched."""
        fresh = [pool for pool in self._point.pools if pool.fresh]
        await context.pools.prepare(fresh)
        await context.pools.empty([pool for pool in self._point.pools if pool.emptied])
        for phase in self._point.phases:
            if isinstance(phase.action, PhaseKind):
                await phase.action.before_repeat(self._hands, [it.name for it in self._point.pools])
        self._still_deleted = await context.pools.until_deleted()
        await self._boots.begin()
        context.started = time.time()
        try:
            async with AsyncExitStack() as stack:
                tasks = [
                    asyncio.create_task(context.watcher.run()),
                    asyncio.create_task(metrics.run()),
                    asyncio.create_task(_follow(context)),
                    asyncio.create_task(self._clock.run()),
                ]
                await stack.enter_async_context(beside(*tasks))
                await _phases(run_phases(context, self._hands, recorded), tasks)
            await metrics.finish()
            await context.watcher.latest()
            await self._boots.end(_osds_taken_down(recorded))
        finally:
            write_json(
                self._recorder.folder / HOST_FILE, to_json({**recorded.hosts, **context.steps})
            )
            self._recovered = context.watcher.follower.recovered
            self._cluster_findings = list(context.watcher.findings())

    async def _save_log(self, since: float) -> None:
        """Save what the cluster logged during the repeat."""
        with suppress(ClusterUnreachable, CommandFailed, OSError):
            # Not the channel `audit`: it has the arguments of commands, and passwords among them.
            entries = await self._session.cluster.once(
                "log last", num=_LOG_LINES, level="debug", channel="cluster"
            )
            file = JsonLines(self._recorder.folder / CLUSTER_LOG_FILE)
            for entry in logged_since(entries, since):
                file.write(entry)
            file.close()


def _osds_taken_down(recorded: Recorded) -> set[int]:
    """OSDs that phases took down or brought back."""
    results = (record.result for record in recorded.records.values())
    return {result.osd for result in results if isinstance(result, OsdResult)}


def logged_since(entries: Iterable[dict[str, Any]], since: float) -> Iterator[dict[str, Any]]:
    """Entries of the cluster's log from this second on. Monitors write in their own time zones."""
    for entry in entries:
        try:
            at = datetime.fromisoformat(str(entry.get("stamp", "")))
        except ValueError:
            continue
        if (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() >= int(since):
            yield entry


async def _phases(work: Coroutine[Any, Any, None], recording: list[asyncio.Task[None]]) -> None:
    """The phases. Recording that fails (a full disk) ends them too, and so does a guard rail."""
    phases = asyncio.create_task(work)
    try:
        await asyncio.wait([phases, *recording], return_when=asyncio.FIRST_COMPLETED)
        for task in recording:
            if task.done():
                task.result()
        await phases
    finally:
        phases.cancel()
        await asyncio.gather(phases, return_exceptions=True)


async def _follow(context: Context) -> None:
    """Keep the live figures of recovery current."""
    while True:
        await asyncio.sleep(1.0)
        follower = context.watcher.follower
        if follower.last_under_way:
            now, (objects, _) = follower.now, follower.recovered
            context.live.recovering(now.time, objects, now.misplaced + now.degraded)


def new_record(folder: str, point: Point, number: int, in_force: InForce) -> RepeatRecord:
    """The record of a repeat of which nothing is known yet."""
    return RepeatRecord(
        folder=folder,
        point=point.name,
        repeat=number,
        axes=dict(point.axes),
        status="aborted",
        start_unix_seconds=0.0,
        end_unix_seconds=0.0,
        in_force=in_force,
        phases={},
        cost=RecordingCost(0.0, 0.0, 0.0, 0.0, 0.0),
        metrics=MetricsRecording(0, 0, {}, ""),
    )


class CostMeter:
    """CPU that recording took beyond the exporter's own: this process and its cluster clients."""

    def __init__(self, session: Session, exporter: OwnExporter) -> None:
        self._session, self._exporter = session, exporter
        self._began = time.monotonic()
        self._own = time.process_time()  # CPU seconds until now, of this process
        self._clients = self._client_seconds()  # the same of its clients of the cluster, by pid
        self._exporter_pid = exporter.pid
        self._exporter_seconds = self._exporter_cpu()

    def _client_seconds(self) -> dict[int, float]:
        pids = [c.pid for c in (self._session.cluster, self._session.watch_cluster)]
        return {pid: cpu_seconds(pid) for pid in (leaf(pid) for pid in pids if pid)}

    def _exporter_cpu(self) -> float:
        pid = self._exporter.pid
        return cpu_seconds(pid) if pid else 0.0

    def _spent_by_exporter(self) -> float:
        """A lower bound: if it was started again, only its present process counts."""
        pid = self._exporter.pid
        before = self._exporter_seconds if pid == self._exporter_pid else 0.0
        return max(0.0, self._exporter_cpu() - before)

    def spent(self) -> RecordingCost:
        wall = max(0.001, time.monotonic() - self._began)
        clients = self._client_seconds()
        own = time.process_time() - self._own
        by_clients = sum(seconds - self._clients.get(pid, 0.0) for pid, seconds in clients.items())
        return RecordingCost(
            wall_seconds=wall,
            own_cpu_seconds=own,
            client_cpu_seconds=by_clients,
            exporter_cpu_seconds=self._spent_by_exporter(),
            core_share=(own + by_clients) / wall,
        )


def cpu_seconds(pid: int) -> float:
    """User and system seconds of a process so far; 0 when it is gone."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system
