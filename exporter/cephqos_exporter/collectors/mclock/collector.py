"""The collector of reservation, attained work and reservation lag."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from cephqos_base.profiles import release_of
from cephqos_exporter.collectors.base import Clues, CollectorInputs, DaemonCollector
from cephqos_exporter.collectors.disks import DATA_DIRECTORIES_OPTION
from cephqos_exporter.collectors.histograms import COMMAND as HISTOGRAMS
from cephqos_exporter.collectors.histograms import INTERVAL
from cephqos_exporter.collectors.interval import SLOWLY, ReadInterval
from cephqos_exporter.collectors.mclock import in_force as settings
from cephqos_exporter.collectors.mclock.attained import AttainedWork
from cephqos_exporter.collectors.mclock.demand import WaitedSum, client_demand
from cephqos_exporter.collectors.mclock.queues import late_heads, limited_share, queue_lengths
from cephqos_exporter.collectors.mclock.replication import (
    ErasureCodedPools,
    lower_bound,
    replica_writes,
)
from cephqos_exporter.collectors.mclock.store import store_families
from cephqos_exporter.collectors.recovery import RESERVATIONS
from cephqos_exporter.collectors.scrub import QUEUE
from cephqos_exporter.config import Settings, text
from cephqos_exporter.daemon import Command, Daemon, DaemonView, Host, ReplyMissing
from cephqos_exporter.families import Family
from cephqos_exporter.labels import Labels
from cephqos_exporter.lookup import Lookup
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.config import ConfigTracker, EffectiveConfig
from cephqos_exporter.qos.cost_models import (
    ClassSettings,
    Media,
    QosState,
    guess_media,
    needs_release,
    read_qos,
)
from cephqos_exporter.qos.policy import Policy, load_policy
from cephqos_exporter.qos.tags import MCLOCK, QueueDump, read_queue_dump
from cephqos_exporter.sysfs import DataDirectoryMissing, OsdDevice, is_rotational, osd_devices

_QUEUES: Final = "dump_op_pq_state"
_DIFF: Final = "config diff"
_SHOW: Final = "config show"
_VERSION: Final = "version"

# Between two dumps of the queues while requests wait in them: such a dump costs an OSD 0.6 ms.
_BUSY_SECONDS: Final = 2.0

_UNKNOWN: Final = EffectiveConfig({})  # where the reply was not understood

POLICY: Final = text(
    "qos.policy",
    "",
    "Policy file: targets for OSDs under WPQ, or other targets than the scheduler's.",
    allowed="a path",
)


class _InForce(NamedTuple):
    """The settings of an OSD's classes in force, and the families that say so."""

    made_from: tuple[EffectiveConfig, QosState | None, str]
    classes: Mapping[str, ClassSettings]
    families: Sequence[Family]


@dataclass(slots=True)
class _MclockOsd:
    """What is kept of an OSD between scrapes."""

    labels: Labels
    histograms: ReadInterval
    dumps: ReadInterval = field(default_factory=lambda: ReadInterval(0.0))
    queues: QueueDump | None = None  # as of the last dump
    queues_at: float = 0.0
    config: ConfigTracker = field(default_factory=ConfigTracker)
    attained: AttainedWork = field(default_factory=AttainedWork)
    waited: WaitedSum = field(default_factory=WaitedSum)
    # Whether its device turns, where that had to be looked at: once, as the OSD itself does.
    device: Lookup[bool | None] | None = None
    release: int | None = None
    # The configuration, number of shards, scheduler and release that `qos` was derived from.
    derived_from: tuple[EffectiveConfig, int, bool, int | None] | None = None
    qos: QosState | None = None
    in_force: _InForce | None = None


class MclockCollector(
    DaemonCollector[_MclockOsd],
    name="mclock",
    help="What the scheduler reserves for each class, what waits in it and what was done.",
):
    """Reservations, queues, tags and work of an OSD's scheduler.

    `policy`: what the file of `qos.policy` says, for OSDs whose scheduler reserves nothing, or to
    hold any OSD or the whole cluster to something else.
    """

    policy_file = POLICY
    # Between two counts of work as well.
    interval = INTERVAL
    # Where an OSD's device is found if the daemon's own view is not readable.
    data_dirs = DATA_DIRECTORIES_OPTION

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        policy: Policy | None = None,
        clues: Clues | None = None,
        **given: Any,
    ) -> None:
        super().__init__(settings, **given)
        self._policy = policy or Policy()
        self._clues = clues or Clues()
        self._pools = ErasureCodedPools()

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        path = inputs.settings[POLICY]
        policy = load_policy(Path(path)) if path else None
        return cls(inputs.settings, policy=policy, clues=inputs.clues)

    def needed(self, daemon: Daemon, state: _MclockOsd | None) -> Sequence[Command]:
        wanted = [Command(_DIFF, SLOWLY)]
        if state is None or state.dumps.due:
            wanted.append(Command(_QUEUES))
        if state is None or state.histograms.due:
            wanted += [Command(HISTOGRAMS), Command(RESERVATIONS, SLOWLY)]
        if state is None or state.config.needs_full:
            wanted.append(Command(_SHOW))
        if state is None or state.release is None:
            wanted.append(Command(_VERSION, SLOWLY))
        wanted += self._pools.commands(daemon)
        return [*wanted, *self.counters.commands(daemon)]

    def first_seen(self, view: DaemonView) -> _MclockOsd:
        return _MclockOsd(Labels(view.labels), ReadInterval(self.interval))

    def families(self, view: DaemonView, state: _MclockOsd) -> Iterable[Family]:
        not_understood = view.not_understood
        queues = _queues(view, state)
        told = not_understood.all_of(_DIFF, lambda: [_effective_config(view, state.config)])
        config = told[0] if told else _UNKNOWN
        loggers = self.counters.loggers(view)
        if state.release is None:
            state.release = release_of(view.replies.get(_VERSION))
        qos = self._derive(view, state, config, queues)
        _count_not_understood(qos, queues, not_understood)
        labels = state.labels
        in_force = self._in_force(view, state, queues, config)
        families = [*in_force.families]
        if queues.scheduler == MCLOCK:
            if qos is not None:
                families += late_heads(queues, in_force.classes, state.queues_at, labels)
            families.append(queue_lengths(queues, loggers, labels, not_understood))
        clue = self._clues.of(view.daemon)
        clue.work = state.attained.done
        clue.limited = limited_share(queues, in_force.classes, state.queues_at)
        families += client_demand(loggers, state.waited, labels, not_understood)
        families += replica_writes(loggers, labels, not_understood)
        families += not_understood.all_of(
            QUEUE, lambda: lower_bound(self._pools.on_osd(view), labels)
        )
        families += store_families(loggers, labels, not_understood)
        asked = state.histograms.due
        came = HISTOGRAMS in view.replies
        state.histograms.scraped(view.time, read=came)
        if qos is not None:
            if asked or came:
                try:
                    state.attained.advance(view, loggers, qos)
                except ReplyMissing as exc:
                    raise ReplyMissing(exc.command, exc.reason, families) from exc
                except (LookupError, TypeError, ValueError) as exc:
                    not_understood.add("reply", f"{HISTOGRAMS}: {exc!r}")
                    raise ReplyMissing(HISTOGRAMS, "another shape", families) from exc
            families += state.attained.families(labels)
        return families

    def forget(self, daemon: Daemon) -> None:
        super().forget(daemon)
        self._clues.forget(daemon)
        self._pools.forget(daemon)

    def finish(self) -> Iterable[Family]:
        clusters = sorted({daemon.cluster for daemon in self.states})
        held = [(c, target) for c in clusters for target in self._policy.for_cluster(c)]
        return settings.cluster_targets(held)

    def _in_force(
        self, view: DaemonView, osd: _MclockOsd, queues: QueueDump, config: EffectiveConfig
    ) -> _InForce:
        """The settings in force: made again only when something changed."""
        made_from = (config, osd.qos, queues.scheduler)
        before = osd.in_force
        if before is None or before.made_from != made_from:
            osd.in_force = before = self._read_in_force(view, osd.labels, *made_from)
        return before

    def _read_in_force(
        self,
        view: DaemonView,
        labels: Labels,
        config: EffectiveConfig,
        qos: QosState | None,
        scheduler: str,
    ) -> _InForce:
        mclock = scheduler == MCLOCK
        held = settings.policy_targets(self._policy, view.daemon)
        in_force = settings.classes_in_force(qos, held, mclock=mclock)
        families = [
            settings.scheduler_info(config, qos, in_force, scheduler, labels, mclock=mclock)
        ]
        if qos is not None:
            families += settings.capacity_and_costs(qos, labels, mclock=mclock)
            families += settings.bounds(in_force, qos, labels)
            families += settings.targets(held, qos.cost.iops, labels)
        return _InForce((config, qos, scheduler), in_force, families)

    def _derive(
        self, view: DaemonView, osd: _MclockOsd, config: EffectiveConfig, queues: QueueDump
    ) -> QosState | None:
        """The QoS settings in force, derived again only when something changed."""
        shards, mclock = len(queues.shards), queues.scheduler == MCLOCK
        if not shards or not config.values:
            return None
        release = osd.release if needs_release(config) else None
        derived_from = config, shards, mclock, release
        if osd.derived_from != derived_from:
            try:
                media = guess_media(config, shards) or self._media_of_device(view, osd, config)
                osd.qos = media and read_qos(
                    config, media=media, shards=shards, mclock=mclock, release=release
                )
            except TimeoutError:
                osd.qos = None
                return None  # a disk that does not answer: looked for again in the next scrape
            except ValueError as exc:  # what does not need this option is shown
                osd.qos = None
                view.not_understood.add("option", str(exc))
                return None
            osd.derived_from = derived_from
        return osd.qos

    def _media_of_device(
        self, view: DaemonView, osd: _MclockOsd, config: EffectiveConfig
    ) -> Media | None:
        if osd.device is None:
            data = config.text("osd_data")
            look = partial(osd_devices, view.host, view.daemon, data, self.data_dirs)
            osd.device = Lookup(partial(_is_rotational, view.host, look))
        told = osd.device.answer()
        return None if told is None else "hdd" if told else "ssd"


def _queues(view: DaemonView, osd: _MclockOsd) -> QueueDump:
    """The queues: of this scrape, or of one just before it while requests wait."""
    came = _QUEUES in view.replies
    queues = osd.queues
    if queues is None or came or osd.dumps.due:
        queues = osd.queues = read_queue_dump(view.reply(_QUEUES), view.not_understood)
        osd.queues_at = view.time
        waiting = sum([sum(shard.lengths.values()) for shard in queues.shards])
        osd.dumps.seconds = _BUSY_SECONDS if waiting else 0.0
    osd.dumps.scraped(view.time, read=came)
    return queues


def _is_rotational(host: Host, look: Callable[[], list[OsdDevice]]) -> bool | None:
    try:
        return is_rotational(host, look())
    except DataDirectoryMissing:
        return None


def _count_not_understood(
    qos: QosState | None, queues: QueueDump, not_understood: NotUnderstood
) -> None:
    """What was not understood when these were derived, or in both together."""
    if qos is None:
        return
    not_understood.include(qos.not_understood)
    silent = queues.scheduler == MCLOCK and not any(shard.told for shard in queues.shards)
    if silent:
        not_understood.add("reply", f"{_QUEUES}: no shard says anything")


def _effective_config(view: DaemonView, tracker: ConfigTracker) -> EffectiveConfig:
    diff = view.reply(_DIFF)
    show = view.reply(_SHOW) if tracker.needs_full else None
    return tracker.update(diff, show)
