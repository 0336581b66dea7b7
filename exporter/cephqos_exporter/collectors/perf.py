"""Ceph's own perf counters, under the names and labels that Ceph's own exporter gives them.

A daemon's schema describes its counters. From it a plan is made once, so that a scrape only picks
numbers from the dump (`_Plan.fill`). When a dump has other loggers or labels than the plan, the
next scrape asks for the schema again.

    dump    {"osd": [{"labels": {}, "counters": {"op_w": 7}}]}
    series  ceph_osd_op_w{ceph_daemon="osd.3",cluster="..."} 7
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.counters import LABELLED, figure
from cephqos_exporter.config import Settings, integer, texts
from cephqos_exporter.daemon import Command, Daemon, DaemonView
from cephqos_exporter.families import Family, FamilyType, FilledForm, Form, Sample
from cephqos_exporter.labels import LabelText, extend_labels
from cephqos_exporter.not_understood import NotUnderstood

# Bits of a counter's `type` in the schema.
_LONG_RUNNING_AVERAGE: Final = 4
_COUNTER: Final = 8
_HISTOGRAM: Final = 16

# Declared as one thing and used as another in Ceph's sources (docs/internals/qos.md).
_GAUGES: Final = (
    *("mclock_immediate_queue_len", "mclock_client_queue_len", "mclock_recovery_queue_len"),
    *("mclock_best_effort_queue_len", "mclock_all_type_queue_len"),
    *("alloc_unit_main", "alloc_unit_db", "alloc_unit_wal", "alloc_unit_slow"),
    *("max_bytes_wal", "max_bytes_db", "max_bytes_slow"),
    *("omap_iterator_count", "compact_running", "discard_threads"),
    *("msgr_active_connections", "active_queue_pair", "inflight_tx_chunks"),
    *("pending_sent_conns", "polling", "rx_bufs_in_use", "rx_bufs_total"),
)
_COUNTERS: Final = (
    *("msgr_running_total_time", "msgr_running_send_time", "msgr_running_recv_time"),
    *("msgr_running_fast_dispatch_time", "read_zeros_candidate", "read_zeros_errors"),
    *("cached_crc", "cached_crc_adjusted", "missed_crc"),
)
TYPE_CORRECTIONS: Final[Mapping[str, FamilyType]] = {
    **dict.fromkeys(_GAUGES, "gauge"),
    **dict.fromkeys(_COUNTERS, "counter"),
}

# Below the default priority, yet the answer to "who took the OSD?": replica writes and pushes.
DEFAULT_INCLUDE: Final = (
    "osd.subop",
    "osd.subop_in_bytes",
    "osd.subop_latency",
    "osd.subop_w",
    "osd.subop_w_in_bytes",
    "osd.subop_w_latency",
    "osd.push",
    "osd.push_out_bytes",
)

# Inner state of the cache tuner, 56 counters of high priority that no operator acts on.
DEFAULT_EXCLUDE: Final = ("bluestore-pricache:*",)

_UNDERSCORES: Final = str.maketrans("./ -", "____")


def metric_name(logger: str, counter: str) -> str:
    """The name that Ceph's exporter and its mgr module give a counter."""
    name = f"{logger}_{counter}"
    if name.endswith("-"):
        name = name[:-1] + "_minus"
    return "ceph_" + name.translate(_UNDERSCORES).replace("::", "_").replace("+", "_plus")


@dataclass(frozen=True, slots=True)
class _PlannedCounter:
    """A counter of a logger, and the family that shows it."""

    key: str
    name: str
    type: FamilyType
    help: str


def _planned(logger: str, key: str, kind: FamilyType, text: Any) -> _PlannedCounter:
    """The same object for all OSDs of a release: 45 kB less for each of them. What no release has
    (a text that is none or is long) is not kept."""
    if isinstance(text, str) and len(logger) + len(key) + len(text) <= 1024:
        return _same(logger, key, kind, text)
    return _PlannedCounter(key, metric_name(logger, key), kind, text)


@lru_cache(4096)
def _same(logger: str, key: str, kind: FamilyType, text: str) -> _PlannedCounter:
    return _PlannedCounter(key, metric_name(logger, key), kind, text)


class _Set(NamedTuple):
    """One set of a logger's counters."""

    at: int  # its place in the logger's list
    labels: Mapping[str, str]  # as the dump has them
    text: LabelText  # rendered, behind the daemon's labels

    def is_in(self, sets: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a dump's list has the set in its place."""
        return self.at < len(sets) and bool(sets[self.at]["labels"] == self.labels)


@dataclass(frozen=True, slots=True)
class _LoggerPlan:
    """What to pick from one logger: the same counters from each of its sets."""

    logger: str
    sets: Sequence[_Set]
    plain: Sequence[_PlannedCounter]
    averages: Sequence[_PlannedCounter]

    def within(self, dump: Mapping[str, Any], not_understood: NotUnderstood) -> Self:
        """The plan for what a dump has. A counter that one of the sets lacks is left out."""
        dumped = dump.get(self.logger, ())
        sets = [one for one in self.sets if one.is_in(dumped)]
        dumped_counters = [dumped[one.at]["counters"] for one in sets]

        def in_all_sets(counter: _PlannedCounter, *parts: str) -> bool:
            values = [
                figure(counters, counter.key, not_understood, part)
                for counters in dumped_counters
                for part in parts
            ]
            return None not in values

        return replace(
            self,
            sets=sets,
            plain=[one for one in self.plain if in_all_sets(one, "")],
            averages=[one for one in self.averages if in_all_sets(one, "sum", "avgcount")],
        )

    def families(self) -> Iterable[Family]:
        """The series in the order in which `pick` gives their numbers."""
        for counter in self.plain:
            samples: list[Sample] = [("", one.text, 0) for one in self.sets]
            yield Family(counter.name, counter.type, counter.help, samples)
        for counter in self.averages:
            samples = [(key, one.text, 0) for one in self.sets for key in ("_sum", "_count")]
            yield Family(counter.name, counter.type, counter.help, samples)

    def fits(self, dump: Mapping[str, Any]) -> bool:
        """Whether the dump has all sets of the plan, in their places."""
        sets = dump.get(self.logger, ())
        return all(one.is_in(sets) for one in self.sets)

    def pick(self, dump: Mapping[str, Any]) -> list[float]:
        """The numbers of its series."""
        dumped = dump[self.logger]
        sets = [dumped[one.at]["counters"] for one in self.sets]
        values: list[float] = [counters[one.key] for one in self.plain for counters in sets]
        for counter in self.averages:
            for counters in sets:
                average = counters[counter.key]
                values += (average["sum"], average["avgcount"])
        return values


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where in a dump the numbers of a form are. Nothing of a dump itself is kept."""

    shape: tuple[int, int]  # of the dump: see `_shape`
    loggers: Sequence[_LoggerPlan]
    form: Form
    whole: bool  # the dump had all sets that the schema describes
    not_understood: NotUnderstood  # counters that were not as the schema describes them

    @classmethod
    def of(cls, loggers: Sequence[_LoggerPlan], dump: Mapping[str, Any]) -> Self:
        """The plan for those of the loggers and sets that the dump has."""
        not_understood = NotUnderstood()
        present = [logger.within(dump, not_understood) for logger in loggers]
        whole = [len(plan.sets) for plan in present] == [len(plan.sets) for plan in loggers]
        present = [logger for logger in present if logger.sets]
        form = Form.of(family for logger in present for family in logger.families())
        return cls(_shape(dump), present, form, whole, not_understood)

    def fits(self, dump: Mapping[str, Any]) -> bool:
        """Whether a dump has the loggers and sets that it had when this was made."""
        return self.shape == _shape(dump) and all(logger.fits(dump) for logger in self.loggers)

    def fill(self, dump: Mapping[str, Any]) -> FilledForm:
        return self.form.fill([n for logger in self.loggers for n in logger.pick(dump)])


@dataclass(slots=True)
class _PerfDaemon:
    plan: _Plan | None = None  # None: the next scrape asks for the schema


class PerfCollector(
    DaemonCollector[_PerfDaemon],
    name="perf",
    help="The daemons' own counters, with the names that Ceph's exporter uses.",
):
    """All perf counters of a daemon."""

    # Ceph's own default.
    min_priority = integer(
        "collector.perf.min-priority",
        5,
        "Report counters of this priority and above. 0: all counters.",
        least=0,
        most=10,
    )
    include = texts(
        "collector.perf.include",
        DEFAULT_INCLUDE,
        "Counters to report whatever their priority.",
        allowed="patterns of logger.counter such as osd.op_*",
    )
    # Excluded counters are left out even if `include` names them.
    exclude = texts(
        "collector.perf.exclude",
        DEFAULT_EXCLUDE,
        "Counters to leave out, even if another option includes them.",
        allowed="patterns of logger.counter such as rocksdb.*",
    )
    kinds = None

    def __init__(self, settings: Settings | None = None, **given: Any) -> None:
        super().__init__(settings, **given)
        self._include = _matcher(self.include)
        self._exclude = _matcher(self.exclude)

    def needed(self, daemon: Daemon, state: _PerfDaemon | None) -> Sequence[Command]:
        wanted = [*self.counters.commands(daemon)]
        if state is None or state.plan is None:
            wanted += self.counters.commands(daemon, "schema")
        return wanted

    def first_seen(self, view: DaemonView) -> _PerfDaemon:
        return _PerfDaemon()

    def families(self, view: DaemonView, state: _PerfDaemon) -> Iterable[Family]:
        kind = self.counters.kind(view)
        dump = view.reply(f"{kind} dump")
        if kind != LABELLED:
            dump = _as_sets(dump)
        plan = state.plan
        if plan is None:
            schema = view.reply(f"{kind} schema")
            if kind != LABELLED:
                schema = _as_sets(schema)
            plan = _Plan.of([*self._loggers(schema, view.labels)], dump)
            state.plan = plan if plan.whole else None
        elif not plan.fits(dump):
            # The next scrape brings the schema. Until then: what of the plan the dump still has.
            state.plan = None
            plan = _Plan.of(plan.loggers, dump)
        view.not_understood.include(plan.not_understood)
        return plan.fill(dump)

    def _loggers(self, schema: Mapping[str, Any], labels: LabelText) -> Iterable[_LoggerPlan]:
        for logger, described in schema.items():
            counters = self._counters_of(logger, described[0]["counters"]) if described else []
            if counters:
                yield _LoggerPlan(
                    logger=logger,
                    sets=[
                        _Set(i, one["labels"], extend_labels(labels, one["labels"]))
                        for i, one in enumerate(described)
                    ],
                    plain=[counter for counter in counters if counter.type != "summary"],
                    averages=[counter for counter in counters if counter.type == "summary"],
                )

    def _counters_of(self, logger: str, schema: Mapping[str, Any]) -> list[_PlannedCounter]:
        return [
            _planned(logger, key, _type_of(key, description), _help(description))
            for key, description in schema.items()
            if not description["type"] & _HISTOGRAM and self._wanted(f"{logger}.{key}", description)
        ]

    def _wanted(self, path: str, description: Mapping[str, Any]) -> bool:
        if self._exclude and self._exclude.match(path):
            return False
        if description["priority"] >= self.min_priority:
            return True
        return bool(self._include and self._include.match(path))


def _matcher(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(translate, patterns))) if patterns else None


def _as_sets(loggers: Mapping[str, Any]) -> Mapping[str, Any]:
    """`perf dump` or `perf schema` in the form of the newer command."""
    return {name: [{"labels": {}, "counters": counters}] for name, counters in loggers.items()}


def _shape(dump: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of loggers and of sets: they change when a logger or a set comes or goes."""
    return len(dump), sum(map(len, dump.values()))


def _type_of(key: str, description: Mapping[str, Any]) -> FamilyType:
    bits: int = description["type"]
    if bits & _LONG_RUNNING_AVERAGE:
        return "summary"
    if key in TYPE_CORRECTIONS:
        return TYPE_CORRECTIONS[key]
    return "counter" if bits & _COUNTER else "gauge"


def _help(description: Mapping[str, Any]) -> Any:
    # Ceph's exporters write the description as it is; a few counters have none.
    return description["description"] or "A perf counter without a description."
