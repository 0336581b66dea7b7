"""Makes one archive, as of a run, of what the exporters of several hosts have kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.version import __version__
from cephqos_exporter.labels import escape_label_value
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.phase_kinds.wait import Wait, WaitResult
from cephqos_loadgen.plan.parts import Device
from cephqos_loadgen.plan.planned import Phase, Plan, Point, Start, Until
from cephqos_loadgen.recorded_pieces.pages import CLOCK_SET_SECONDS, RecordedHost
from cephqos_loadgen.recorded_pieces.redact import Redaction
from cephqos_loadgen.recorded_pieces.slow_operations import SlowOperations
from cephqos_loadgen.results.findings import findings
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.phase import PhaseRecord
from cephqos_loadgen.results.repeat import (
    Gap,
    InForce,
    Manifest,
    MetricsRecording,
    RecordingCost,
    RepeatLine,
    RepeatRecord,
    Summary,
)
from cephqos_loadgen.run_recording import layout
from cephqos_loadgen.run_recording.columns import ColumnWriter
from cephqos_loadgen.run_recording.daemon_watch import DaemonWatch
from cephqos_loadgen.run_recording.files import write_json
from cephqos_loadgen.run_recording.metrics import PageReader, cluster_of
from cephqos_loadgen.run_recording.run_folder import ArchiveWriter

NAME: Final = layout.RECORDED  # of the scenario, its only point and its only phase
ABOUT: Final = "What exporters recorded by themselves before and after something happened."
# By type of a family in OpenMetrics: the end of its name in the text format, and its type there.
_AS_TEXT: Final = {"counter": ("_total", "counter"), "info": ("_info", "gauge")}


@dataclass(frozen=True, slots=True)
class HostRecording:
    """What came from one exporter: segments as files, and the reasons of its pieces."""

    instance: str  # as Prometheus would call it
    host: str
    segments: tuple[Path, ...]
    reasons: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True)
class _Written:
    """What was written of all hosts so far."""

    begin: float = float("inf")
    end: float = 0.0
    scrapes: int = 0
    interval: float = 1.0
    fsid: str = ""
    gaps: dict[str, tuple[Gap, ...]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    operations: SlowOperations = field(default_factory=SlowOperations)


class Recording:
    """Writes the archive: of one repeat of one point, with one phase that waits."""

    def __init__(self, base: Path, redaction: Redaction | None) -> None:
        self._base = base
        self._redaction = redaction

    def write(self, hosts: Sequence[HostRecording], missing: Sequence[str] = ()) -> Path:
        """The archive's folder; UsageError where there is no page to write. `missing`: hosts that
        gave nothing, and why."""
        archive = ArchiveWriter(self._base, layout.new_run(NAME))
        name = layout.repeat_folder(1, NAME, 1)
        repeat = archive.repeat(name)
        try:
            writer = ColumnWriter(repeat.folder / layout.METRICS_FILE)
            watch = DaemonWatch(repeat.event)
            written = _Written()
            if self._redaction and missing:
                written.findings.append(f"recording: {len(missing)} hosts gave nothing")
            else:
                written.findings += (f"recording: {host}" for host in missing)
            try:
                for host in hosts:
                    self._host(host, writer, watch, written)
                    self._reasons(host, repeat.event)
            finally:
                writer.close()
            if not written.scrapes:
                raise UsageError("none of the pieces has a whole page")
            watch.finish(written.end, _least_gap(written.interval))
            record = _record(name, written, writer.samples, watch)
            written.operations.write(repeat.folder / layout.OPERATIONS_FILE)
            write_json(repeat.folder / layout.HOST_FILE, {})  # of no phase
            repeat.close(record)
            archive.json(layout.PLAN_FILE, to_json(_plan(written)))
            archive.json(layout.ENVIRONMENT_FILE, {"cluster": {"fsid": written.fsid, "osds": []}})
            return archive.seal(_manifest(archive.run, record))
        except BaseException:
            repeat.close_files()
            archive.discard()
            raise

    def _host(
        self, host: HostRecording, writer: ColumnWriter, watch: DaemonWatch, written: _Written
    ) -> None:
        """Write all pages of a host. The flush ends the block: the next host has other times."""
        instance = self._redaction.host(host.instance) if self._redaction else host.instance
        try:
            recorded = RecordedHost(host.segments)
        except ValueError as error:
            written.findings.append(
                f"recording: what {instance} gave was not read{self._why(error)}"
            )
            return
        stamps, interval = recorded.times, recorded.interval
        if not stamps:
            written.findings.append(f"recording: no whole page of {instance}")
            return
        if recorded.clock_set_seconds > CLOCK_SET_SECONDS:
            written.findings.append(
                f"recording: the clock of {instance} was set by"
                f" {recorded.clock_set_seconds:.0f} s: times are by its last page"
            )
        written.interval = max(written.interval, interval)
        if gaps := tuple(_gaps(stamps, _least_gap(interval))):
            written.gaps[instance] = gaps
        rename = _Names(instance, self._redaction)
        readers = {
            form: PageReader(_describe(writer, form, self._redaction)) for form in (True, False)
        }
        for at, page in recorded.pages():
            try:
                shown = readers[page.openmetrics].read(page.text)
                values = {rename(series): value for series, value in shown.items()}
            except ValueError as error:
                written.findings.append(
                    f"recording: a page of {instance} was not read{self._why(error)}"
                )
                continue
            written.fsid = written.fsid or next(filter(None, map(cluster_of, values)), "")
            watch.look(values, at, _least_gap(interval))
            writer.add(at, values)
        writer.flush()
        for behind, op in recorded.operations():
            written.operations.add(op, behind, self._redaction)
        written.scrapes = max(written.scrapes, len(stamps))
        written.begin, written.end = min(written.begin, stamps[0]), max(written.end, stamps[-1])

    def _why(self, error: Exception) -> str:
        """The end of a sentence. An error shows a part of what was wrong, which may hold names."""
        return "" if self._redaction else f": {error}"

    def _reasons(self, host: HostRecording, note: Callable[..., None]) -> None:
        name, redaction = host.host, self._redaction
        for reason in host.reasons:
            why, started = str(reason["name"]), str(reason["started"])
            if redaction:
                name = redaction.host(host.host)
                why, started = redaction.reason(why), redaction.time(started)
            note("kept", host=name, reason=why, started=started)


class _Names:
    """Renames series as a Prometheus would: with a label `instance`; and redacts them, if asked."""

    def __init__(self, instance: str, redaction: Redaction | None) -> None:
        self._instance = instance
        self._redaction = redaction
        self._known: dict[str, str] = {}

    def __call__(self, series: str) -> str:
        if series not in self._known:
            redacted = self._redaction.series(series) if self._redaction else series
            name, _, labels = redacted.removesuffix("}").partition("{")
            instance = f'instance="{escape_label_value(self._instance)}"'
            labels = ",".join(filter(None, (labels, instance)))
            self._known[series] = f"{name}{{{labels}}}"
        return self._known[series]


def _describe(
    writer: ColumnWriter, openmetrics: bool, redaction: Redaction | None
) -> Callable[[str, str, str], None]:
    def describe(family: str, kind: str, text: str) -> None:
        end, kind = _AS_TEXT.get(kind, ("", kind)) if openmetrics else ("", kind)
        name = family + end
        if redaction:
            name, kind, text = redaction.metric(name), redaction.type(kind), ""
        writer.describe(name, kind, text)

    return describe


def _least_gap(interval: float) -> float:
    """Seconds between two pages of which one is missing between them."""
    return 2.5 * interval


def _gaps(stamps: Sequence[float], least_gap: float) -> Iterable[Gap]:
    for before, after in pairwise(stamps):
        if after - before > least_gap:
            yield Gap(before, after - before, "nothing was recorded")


def _record(name: str, written: _Written, samples: int, watch: DaemonWatch) -> RepeatRecord:
    seconds = written.end - written.begin
    daemons = {daemon: tuple(gaps) for daemon, gaps in watch.gaps.items()}
    metrics = MetricsRecording(
        written.scrapes, samples, {}, "", written.gaps, daemons, seconds,
        interval_seconds=round(written.interval, 3),
    )  # fmt: skip
    phase = PhaseRecord("wait", written.begin, written.end, "duration", "", WaitResult(seconds))
    phases = {NAME: phase}
    return RepeatRecord(
        folder=name,
        point=NAME,
        repeat=1,
        axes={},
        status="finished",
        start_unix_seconds=written.begin,
        end_unix_seconds=written.end,
        in_force=InForce({}, {}, {}, {}, ()),
        phases=phases,
        cost=RecordingCost(0.0, 0.0, 0.0, 0.0, 0.0),
        metrics=metrics,
        findings=(*written.findings, *findings(phases, {}, metrics)),
    )


def _plan(written: _Written) -> Plan:
    seconds = written.end - written.begin
    phase = Phase(NAME, Wait(), Start("at"), Until("duration", seconds, seconds))
    point = Point(NAME, (), (), (), (), Device(), (), (phase,), LabSpec())
    return Plan(NAME, ABOUT, "", "", points=(point,))


def _manifest(run: str, record: RepeatRecord) -> Manifest:
    return Manifest(
        format=layout.FORMAT,
        cephqos=__version__,
        run=run,
        scenario=NAME,
        scale="",
        status="complete",
        error="",
        start_unix_seconds=record.start_unix_seconds,
        end_unix_seconds=record.end_unix_seconds,
        repeats_planned=1,
        repeats=(RepeatLine(record.folder, NAME, 1, "finished", ""),),
        summary=Summary({}),
        restore_commands=(),
        files={},
    )
