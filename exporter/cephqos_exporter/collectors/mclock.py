"""What each class of an OSD was promised, what it got, and how far behind its promise it is.

QOS.md has the formula of every figure by class, model and release, and what cannot be known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_exporter.collectors import _mclock_families as families
from cephqos_exporter.collectors._counters import CounterCommands, Loggers
from cephqos_exporter.collectors._mclock_families import THROTTLES, Labels
from cephqos_exporter.collectors.histograms import COMMAND as HISTOGRAMS
from cephqos_exporter.model import (
    Command,
    Daemon,
    DaemonView,
    Family,
    ReplyMissing,
)
from cephqos_exporter.qos.classes import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY, SCHEDULED
from cephqos_exporter.qos.config import ConfigTracker, EffectiveConfig
from cephqos_exporter.qos.model import BandwidthModel, Media, Promise, Qos, guess_media, read_qos
from cephqos_exporter.qos.policy import Policy, Target
from cephqos_exporter.qos.reservations import degraded_share
from cephqos_exporter.qos.tags import MCLOCK, QueueDump, read_queue_dump
from cephqos_exporter.qos.work import (
    Counted,
    RecoveryItems,
    Scrubbed,
    SizeAxis,
    Totals,
    WorkMeter,
    read_size_axis,
)
from cephqos_exporter.sysfs import DATA_DIRECTORIES, is_rotational

_QUEUES: Final = "dump_op_pq_state"
_DIFF: Final = "config diff"
_SHOW: Final = "config show"
_RESERVATIONS: Final = "dump_recovery_reservations"

_QUEUE_LOGGER: Final = "mclock-shard-queue-"
_QUEUE_COUNTERS: Final[Mapping[str, str]] = {
    CLIENT: "mclock_client_queue_len",
    RECOVERY: "mclock_recovery_queue_len",
    BEST_EFFORT: "mclock_best_effort_queue_len",
    IMMEDIATE: "mclock_immediate_queue_len",
}


@dataclass(slots=True)
class _Waited:
    """A sum of waiting times that never goes back.

    Its parts are read one after the other while ops complete: their difference can shrink by some
    microseconds, which Prometheus would take for a restart and count all of it once more.
    """

    seconds: float = 0.0

    def at(self, seconds: float) -> float:
        seconds = max(seconds, 0.0)
        # After `perf reset` the sums start anew, and so does this.
        if seconds > self.seconds or seconds < self.seconds / 2:
            self.seconds = seconds
        return self.seconds


@dataclass(slots=True)
class _Osd:
    """What is kept of an OSD between scrapes."""

    labels: Labels
    config: ConfigTracker = field(default_factory=ConfigTracker)
    meter: WorkMeter = field(default_factory=WorkMeter)
    waited: _Waited = field(default_factory=_Waited)
    axis: SizeAxis | None = None
    # What its device is, where it had to be looked at: once, as the OSD itself does.
    device: list[Media | None] = field(default_factory=list)
    # What was derived from this configuration and number of shards.
    derived_from: tuple[EffectiveConfig, int] | None = None
    qos: Qos | None = None


class MclockCollector:
    """Promises, queues, tags and work of an OSD's scheduler.

    Options:
    `policy`: targets from a policy file (`qos.policy.load_policy`), for OSDs whose scheduler
    promises nothing, or to hold any OSD or the whole cluster to something else.
    `data_dirs`: where an OSD's device is found if the daemon's own view is not readable.
    """

    name = "mclock"

    def __init__(
        self, *, policy: Policy | None = None, data_dirs: Sequence[str] = DATA_DIRECTORIES
    ) -> None:
        self._policy = policy or Policy()
        self._data_dirs = tuple(data_dirs)
        self._counters = CounterCommands()
        self._osds: dict[Daemon, _Osd] = {}

    def commands(self, daemon: Daemon) -> Sequence[Command]:
        if daemon.kind != "osd":
            return ()
        wanted = [Command(_QUEUES), Command(_DIFF), Command(HISTOGRAMS), Command(_RESERVATIONS)]
        osd = self._osds.get(daemon)
        if osd is None or osd.config.needs_full:
            wanted.append(Command(_SHOW))
        return [*wanted, *self._counters.commands(daemon)]

    def collect(self, view: DaemonView) -> Iterable[Family]:
        if view.daemon.kind != "osd":
            return ()
        osd = self._osds.get(view.daemon)
        if osd is None:
            osd = self._osds[view.daemon] = _Osd(Labels(view.labels))
        queues = read_queue_dump(view.reply(_QUEUES))
        config = _effective_config(view, osd.config)
        loggers = self._counters.loggers(view)
        qos = self._derive(view, osd, config, len(queues.shards))
        found = [*self._promised(view, osd, queues, config)]
        found += _waiting(queues, loggers, osd)
        if qos is not None:
            found += _attained(view, osd, qos, loggers)
        return found

    def _derive(
        self, view: DaemonView, osd: _Osd, config: EffectiveConfig, shards: int
    ) -> Qos | None:
        """The QoS settings in force, worked out anew only when something changed."""
        if (
            osd.derived_from is None
            or osd.derived_from[0] is not config
            or (osd.derived_from[1] != shards)
        ):
            media = guess_media(config, shards) or self._media_of_device(view, osd, config)
            osd.qos = read_qos(config, media=media, shards=shards) if media else None
            osd.derived_from = (config, shards)
        return osd.qos

    def _media_of_device(
        self, view: DaemonView, osd: _Osd, config: EffectiveConfig
    ) -> Media | None:
        if not osd.device:
            told = is_rotational(view.host, view.daemon, config.text("osd_data"), self._data_dirs)
            osd.device.append(None if told is None else "hdd" if told else "ssd")
        return osd.device[0]

    def finish(self) -> Iterable[Family]:
        clusters = sorted({daemon.cluster for daemon in self._osds})
        held = [(c, target) for c in clusters for target in self._policy.for_cluster(c)]
        return families.cluster_targets(held)

    def forget(self, daemon: Daemon) -> None:
        self._osds.pop(daemon, None)
        self._counters.forget(daemon)

    def _promised(
        self, view: DaemonView, osd: _Osd, queues: QueueDump, config: EffectiveConfig
    ) -> Iterable[Family]:
        qos = osd.qos
        held = self._targets(view.daemon)
        in_force = queues.scheduler == MCLOCK
        promised: Mapping[str, Promise] = {}
        if qos is not None:
            promised = qos.promises if in_force else _policy_promises(held, qos)
        about = {
            "in_force": queues.scheduler,
            "configured": config.text("osd_op_queue") or "",
            "profile": config.text("osd_mclock_profile") or "" if in_force else "",
            "model": qos.cost.name if qos else "",
            "media": qos.media if qos else "",
            "capacity_origin": qos.capacity_origin if qos and in_force else "",
            "promise": "config" if in_force and qos else "policy" if promised else "none",
        }
        yield families.scheduler_info(osd.labels, about)
        if qos is None:
            return
        yield from families.settings(qos, osd.labels, in_force=in_force)
        per_op = qos.cost.cost_per_io if isinstance(qos.cost, BandwidthModel) else None
        yield from families.promises(promised, osd.labels, shards=qos.shards, bytes_per_op=per_op)
        if in_force:
            yield from families.tags(queues, promised, view.time, osd.labels)
        yield from families.targets(held, qos.cost.capacity, osd.labels)

    def _targets(self, daemon: Daemon) -> Mapping[str, Target]:
        found = {c: self._policy.for_osd(c, daemon.id, daemon.cluster) for c in SCHEDULED}
        return {cls: target for cls, target in found.items() if target is not None}


def _effective_config(view: DaemonView, tracker: ConfigTracker) -> EffectiveConfig:
    diff = view.reply(_DIFF)
    show = view.reply(_SHOW) if tracker.needs_full else None
    return tracker.update(diff, show)


def _policy_promises(held: Mapping[str, Target], qos: Qos) -> Mapping[str, Promise]:
    """Where the scheduler promises nothing, the targets of the policy are the promise."""
    promised = {}
    for cls, target in held.items():
        baseline = target.baseline or qos.cost.capacity
        limit = target.limit_ratio
        promised[cls] = Promise(
            reservation_ratio=target.reservation_ratio or 0.0,
            reservation=(target.reservation_ratio or 0.0) * baseline,
            limit_ratio=limit,
            limit=None if limit is None else limit * baseline,
            weight=0.0,
        )
    return promised


def _waiting(queues: QueueDump, loggers: Loggers, osd: _Osd) -> Iterable[Family]:
    """Client demand, in all the places where it shows."""
    if queues.scheduler == MCLOCK:
        yield families.queue_lengths(queues, _counted_lengths(queues, loggers), osd.labels)
    counters = loggers.get("osd")
    if counters is None:
        raise ReplyMissing("counter dump", "malformed")
    waited = counters["op_latency"]["sum"] - counters["op_process_latency"]["sum"]
    base = osd.labels.base
    text = (
        "Time that completed client operations waited in queues, summed over operations: its rate "
        "is how many were waiting on average (Little's law). Requeued operations wait again."
    )
    seconds = osd.waited.at(waited)
    yield families.one("client_wait_seconds_total", "counter", text, base, seconds)
    text = "Client operations that the OSD has taken up as primary and not completed."
    yield families.one("client_ops_in_progress", "gauge", text, base, counters["op_wip"])
    found = {short: loggers.get(logger) for logger, short in THROTTLES.items()}
    throttles = {short: values for short, values in found.items() if values is not None}
    yield families.throttle_use(throttles, osd.labels)
    yield _throttle_waits(throttles, osd.labels)
    yield from families.store(loggers.get("bluestore") or {}, osd.labels)


def _throttle_waits(throttles: Mapping[str, Mapping[str, Any]], labels: Labels) -> Family:
    family = Family(
        "cephqos_qos_throttle_wait_seconds_total",
        "counter",
        "Time that operations waited at a throttle, summed over operations.",
    )
    for throttle, counters in throttles.items():
        family.add(labels.of(throttle=throttle), counters["wait"]["sum"])
    return family


def _counted_lengths(queues: QueueDump, loggers: Loggers) -> Mapping[str, Mapping[str, float]]:
    """Queue lengths from counters, which 18.x and later have."""
    lengths = {}
    for shard in queues.shards:
        counters = loggers.get(f"{_QUEUE_LOGGER}{shard.index}")
        if counters is not None:
            lengths[shard.index] = {c: counters[key] for c, key in _QUEUE_COUNTERS.items()}
    return lengths


def _attained(view: DaemonView, osd: _Osd, qos: Qos, loggers: Loggers) -> Iterable[Family]:
    histograms = view.reply(HISTOGRAMS).get("osd")
    counters = loggers.get("osd")
    if histograms is None or counters is None:
        raise ReplyMissing(HISTOGRAMS, "malformed")
    if osd.axis is None:
        osd.axis = read_size_axis(histograms["op_w_latency_in_bytes_histogram"]["axes"][1])
    totals = _totals(counters, histograms, loggers)
    # What belongs to which class is a finer point: without the reply the last answer stays good.
    reservations = view.replies.get(_RESERVATIONS)
    degraded = None if reservations is None else degraded_share(reservations)
    osd.meter.advance(totals, osd.axis, qos, degraded)
    # Where scrubs are not counted, what best effort got cannot be known.
    shown = [CLIENT, RECOVERY, IMMEDIATE]
    if totals.scrub is not None:
        shown.append(BEST_EFFORT)
    return families.work(osd.meter.done, shown, osd.labels)


def _totals(counters: Mapping[str, Any], histograms: Mapping[str, Any], loggers: Loggers) -> Totals:
    return Totals(
        reads=counters["op_r"],
        writes=_counted("op_w", counters, histograms),
        read_writes=_counted("op_rw", counters, histograms),
        subops=counters["subop_w"],
        subop_bytes=counters["subop_w_in_bytes"],
        recovery_ops=counters["recovery_ops"],
        recovery_bytes=counters["recovery_bytes"],
        pushes_sent=counters["push"],
        push_bytes=counters["push_out_bytes"],
        recovery=_recovery_items(counters),
        scrub=_scrubbed(counters, loggers),
    )


def _recovery_items(counters: Mapping[str, Any]) -> RecoveryItems | None:
    """How many recovery items of each kind were dequeued, from counters of their queueing time.

    The times are unsound. The counts of messages are nested: for want of a `break` each kind is
    counted for itself and for all that follow it in the source.
    """
    kinds = ("push", "push_reply", "pull", "scan", "context")
    found = [counters.get(f"l_osd_recovery_{kind}_queue_latency") for kind in kinds]
    starts = counters.get("l_osd_recovery_queue_latency")
    counts = [average["avgcount"] for average in found if average is not None]
    if starts is None or len(counts) < len(kinds):
        return None
    push, reply, pull, scan, context = counts
    nested = push <= reply <= pull <= scan
    return RecoveryItems(
        starts=starts["avgcount"],
        continuations=context,
        pushes=push,
        pulls=pull - reply if nested else pull,
        others=(reply - push) + (scan - pull) if nested else reply + scan,
    )


def _scrubbed(counters: Mapping[str, Any], loggers: Loggers) -> Scrubbed | None:
    kinds = ("replicated", "ec")
    if any(f"scrub_{kind}_stats_cnt" not in counters for kind in kinds):
        return None
    return Scrubbed(
        objects=sum(counters[f"scrub_{kind}_stats_cnt"] for kind in kinds),
        bytes=sum(counters[f"scrub_{kind}_read_bytes"] for kind in kinds),
        chunks=loggers.total("osd_scrub_", "chunk_selected") or 0,
    )


def _counted(kind: str, counters: Mapping[str, Any], histograms: Mapping[str, Any]) -> Counted:
    latency_by_size = histograms[f"{kind}_latency_in_bytes_histogram"]["values"]
    return Counted(
        rows=[sum(column) for column in zip(*latency_by_size, strict=True)],
        ops=counters[kind],
        bytes=counters[f"{kind}_in_bytes"],
    )
