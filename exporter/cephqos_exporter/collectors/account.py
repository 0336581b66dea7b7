"""The account of waiting of an OSD: where the time of its client operations goes.

This file reads the sums that the account needs from an OSD's replies, its threads and the clues of
other collectors. qos/account/ divides the time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY, AccountSeries
from cephqos_exporter.collectors.base import Clues, CollectorInputs, SamplingCollector
from cephqos_exporter.collectors.counters import Loggers, average, figure
from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.collectors.network import NetworkCollector
from cephqos_exporter.config import Settings
from cephqos_exporter.daemon import Command, Daemon, DaemonView, ReplyMissing
from cephqos_exporter.families import Family, Form, counter
from cephqos_exporter.labels import Labels, render_labels
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.procfs import CLOCK_TICKS
from cephqos_exporter.qos.account.account import Account
from cephqos_exporter.qos.account.samples import NAMED_PEERS
from cephqos_exporter.qos.account.sums import Evidence, Place, Sums
from cephqos_exporter.sampler import ThreadGroup, ThreadSamples

_NS: Final = 1e-9
_WORKERS: Final = "tp_osd_tp"
_COMMITTER: Final = "bstore_kv_sync"
_NO_THREADS: Final = ThreadGroup()
_CLIENT_THROTTLES: Final = ("throttle-osd_client_messages", "throttle-osd_client_bytes")


class _SumsFields(NamedTuple):
    """The fields of `Sums` that take the sum and the count of an average."""

    seconds: str
    number: str = ""  # empty: not needed


# By the averages of two loggers.
_OSD: Final[Mapping[str, _SumsFields]] = {
    "op_latency": _SumsFields("latency", "ops"),
    "op_process_latency": _SumsFields("process"),
    "op_prepare_latency": _SumsFields("prepare"),
    "op_r_process_latency": _SumsFields("read_process", "reads"),
    "op_r_prepare_latency": _SumsFields("read_prepare"),
    "op_before_queue_op_lat": _SumsFields("before_queue", "queued"),
    "op_before_dequeue_op_lat": _SumsFields("before_dequeue", "dequeued"),
    "subop_w_latency": _SumsFields("replica", "replicas"),
}
_BLUESTORE: Final[Mapping[str, _SumsFields]] = {
    "txc_commit_lat": _SumsFields("commit", "commits"),
    "txc_throttle_lat": _SumsFields("throttle"),
    "state_aio_wait_lat": _SumsFields("aio_wait"),
    "state_kv_queued_lat": _SumsFields("kv_queued"),
    "state_kv_commiting_lat": _SumsFields("kv_committing"),
    "kv_flush_lat": _SumsFields("kv_flush"),
    "kv_sync_lat": _SumsFields("kv_sync"),
    "read_wait_aio_lat": _SumsFields("read_wait", "read_waits"),
}
# Names of two of them before 17.x.
_BEFORE_17: Final = {"txc_commit_lat": "commit_lat", "txc_throttle_lat": "throttle_lat"}

_CLIENT_SECONDS: Final = (
    AccountSeries.SECONDS,
    "Time of completed client operations on the OSD as primary, by where it was spent: receive, "
    "queue (by: the class that was served instead, limit, or cpu: its threads waited for a CPU), "
    "blocked (by the state of the placement group or object), cpu, store_throttle, store_device, "
    "store_commit (key-value store), store_cpu, replica (by: the OSD waited for, if it is one of "
    f"the worst {NAMED_PEERS}, or other), network, reply, unknown. The sum is the clients' latency "
    "as the OSD counts it; the parts are estimates. Absent until counters were read twice.",
)
_REPLICA_SECONDS: Final = (
    AccountSeries.REPLICA_SECONDS,
    "Time of writes that the OSD carried out for other primaries, by where it was spent, as in "
    "cephqos_account_seconds_total. Sub-writes of erasure-coded pools are not in it.",
)
_EXCESS: Final = (
    "cephqos_account_excess_seconds_total",
    "Time that was cut off from the accounts of this host's OSDs, because parts added up to more "
    "than their whole: how much the OSDs' counters disagree. Absent until they were read twice.",
)


@dataclass(slots=True)
class _AccountOsd:
    labels: Labels
    account: Account = field(default_factory=Account)
    work: Mapping[str, float] = field(default_factory=dict)  # by class, as last known
    form: Form | None = None
    places: tuple[Place, ...] = ()  # that the form has series for


class AccountCollector(
    SamplingCollector[_AccountOsd],
    name="account",
    help="Where the time of client operations goes, each second once.",
    reads=(MclockCollector, NetworkCollector),
):
    """Divides the latency of an OSD's client operations. `clues`: what other collectors found."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        threads: ThreadSamples | None = None,
        clues: Clues | None = None,
        **given: Any,
    ) -> None:
        super().__init__(settings, **given)
        self._threads = threads or ThreadSamples.from_settings(self.settings)
        self._clues = clues or Clues()
        self._excess: dict[str, float] = {}  # seconds, by cluster

    @classmethod
    def build(cls, inputs: CollectorInputs) -> Self:
        return cls(
            inputs.settings, samples=inputs.operations, threads=inputs.samples, clues=inputs.clues
        )

    def needed(self, daemon: Daemon, state: _AccountOsd | None) -> Sequence[Command]:
        return [*self.counters.commands(daemon), *self.samples.commands(daemon)]

    def first_seen(self, view: DaemonView) -> _AccountOsd:
        return _AccountOsd(Labels(view.labels))

    def forget(self, daemon: Daemon) -> None:
        super().forget(daemon)
        self._clues.forget(daemon)

    def families(self, view: DaemonView, state: _AccountOsd) -> Iterable[Family]:
        account = state.account
        sample = self.samples.of(view)
        if sample is not None:
            account.sample(sample.operations)
        read = self._read(view, state)
        if read is not None:
            self._advance(account, view.daemon.cluster, read)
        if not account.begun:
            return ()
        places = (*account.client, *account.replica)
        if state.form is None or state.places != places:
            state.form, state.places = Form.of(_families(account, state.labels)), places
        return state.form.fill([*account.client.values(), *account.replica.values()])

    def finish(self) -> Iterable[Family]:
        excess = counter(*_EXCESS)
        for cluster, seconds in sorted(self._excess.items()):
            excess.add(render_labels({"cluster": cluster}), seconds)
        return [excess] if excess.samples else []

    def _advance(self, account: Account, cluster: str, read: tuple[Sums, float, Evidence]) -> None:
        """Divide what was gained, and add what was cut off to the sum of the host."""
        before = account.excess
        account.advance(*read)
        if account.begun:
            cut = account.excess - before
            self._excess[cluster] = self._excess.get(cluster, 0.0) + cut

    def _read(self, view: DaemonView, state: _AccountOsd) -> tuple[Sums, float, Evidence] | None:
        """The sums of this scrape; None if one that every release has is missing."""
        not_understood = view.not_understood
        loggers = self.counters.loggers(view)
        sums = _averages(loggers.required("osd"), _OSD, not_understood)
        if sums is None:
            return None
        sums["refused"] = _refused(loggers, not_understood)
        store = _averages(loggers.get("bluestore"), _BLUESTORE, not_understood)
        sums |= store or {}
        threads = self._thread_times(view)
        sums |= threads or {}
        clues = self._clues.of(view.daemon)
        state.work = work = clues.work or state.work
        sums |= {
            "client": work.get(CLIENT, 0.0),
            "recovery": work.get(RECOVERY, 0.0),
            "best_effort": work.get(BEST_EFFORT, 0.0),
            "immediate": work.get(IMMEDIATE, 0.0),
        }
        evidence = Evidence(
            store=store is not None,
            threads=threads is not None,
            limited=clues.limited,
            ping=clues.ping,
        )
        return Sums(**sums), view.time, evidence

    def _thread_times(self, view: DaemonView) -> dict[str, float] | None:
        """The times of two groups of threads, by fields of `Sums`.

        None where the OSD's threads cannot be read, or the kernel does not count waiting.
        """
        try:
            sample = self._threads.of(view)
        except ReplyMissing:
            return None
        if not sample.waits_known:
            return None
        workers = sample.groups.get(_WORKERS, _NO_THREADS)
        committer = sample.groups.get(_COMMITTER, _NO_THREADS)
        return {
            "worker_run": (workers.user + workers.system) / CLOCK_TICKS,
            "worker_wait": workers.wait_ns * _NS,
            "kv_wait": committer.wait_ns * _NS,
        }


def _averages(
    counters: Mapping[str, Any] | None,
    wanted: Mapping[str, _SumsFields],
    not_understood: NotUnderstood,
) -> dict[str, float] | None:
    """Sums and counts by fields of `Sums`; None if one is missing."""
    if counters is None:
        return None
    sums: dict[str, float] = {}
    for key, (seconds, count) in wanted.items():
        older = _BEFORE_17.get(key, key)
        counter = older if older in counters and key not in counters else key
        read = average(counters, counter, not_understood)
        if read is None:
            return None
        sums[seconds], number = read
        if count:
            sums[count] = number
    return sums


def _refused(loggers: Loggers, not_understood: NotUnderstood) -> float:
    """How often a client's message was not read, because a throttle was full."""
    refused = 0.0
    for name in _CLIENT_THROTTLES:
        counters = loggers.get(name)
        if counters is not None:
            refused += figure(counters, "get_or_fail_fail", not_understood) or 0.0
    return refused


def _families(account: Account, labels: Labels) -> Iterable[Family]:
    for (name, text), places in (
        (_CLIENT_SECONDS, account.client),
        (_REPLICA_SECONDS, account.replica),
    ):
        family = Family(name, "counter", text)
        for state, by in places:
            pairs = ("by", by) if by else ()
            family.add(labels.of("state", state, *pairs), 0.0)
        yield family
