"""What each class of an OSD got: counters read, valued in normalised ops, written."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cephqos_base.series import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY
from cephqos_exporter.collectors.counters import Loggers
from cephqos_exporter.collectors.histograms import COMMAND as HISTOGRAMS
from cephqos_exporter.daemon import DaemonView, ReplyMissing
from cephqos_exporter.families import Family, single
from cephqos_exporter.labels import Labels
from cephqos_exporter.qos.cost_models import QosState
from cephqos_exporter.qos.reservations import degraded_share
from cephqos_exporter.qos.sizes import Counted, SizeAxis, read_size_axis
from cephqos_exporter.qos.work import RecoveryItems, Scrubbed, Totals, WorkMeter

RESERVATIONS = "dump_recovery_reservations"


class AttainedWork:
    """Follows the work that one OSD does."""

    def __init__(self) -> None:
        self._meter = WorkMeter()
        self._axis: SizeAxis | None = None
        self._shown: Sequence[str] = ()  # classes

    def advance(self, view: DaemonView, loggers: Loggers, qos: QosState) -> None:
        """Count what was done since the last histograms."""
        histograms = view.reply(HISTOGRAMS).get("osd")
        if histograms is None:
            raise ReplyMissing(HISTOGRAMS, "no histograms of the osd")
        if self._axis is None:
            self._axis = read_size_axis(histograms["op_w_latency_in_bytes_histogram"]["axes"][1])
        totals = read_totals(loggers, histograms)
        # What belongs to which class is a finer point: without the reply the last answer holds.
        reservations = view.replies.get(RESERVATIONS)
        degraded = None if reservations is None else degraded_share(reservations)
        self._meter.advance(totals, self._axis, qos, degraded)
        # Where scrubs are not counted, what best effort got cannot be known.
        counted = () if totals.scrub is None else (BEST_EFFORT,)
        self._shown = (CLIENT, RECOVERY, IMMEDIATE, *counted)

    def families(self, labels: Labels) -> Iterable[Family]:
        """Work by class, and all of it, as last counted."""
        return _work(self._meter.done, self._shown, labels) if self._shown else ()


def _work(done: Mapping[str, float], shown: Sequence[str], labels: Labels) -> Iterable[Family]:
    """Work by class, and all of it."""
    attained = Family(
        "cephqos_qos_normalised_ops_total",
        "counter",
        "Work done for a class since the exporter first saw the daemon, in normalised "
        "ops, at the cost in force when it was done. Exact for client reads, otherwise "
        "estimated. Absent for a class whose work the release does not count.",
    )
    for cls in shown:
        attained.add(labels.of("class", cls), done[cls])
    text = (
        "All work that the OSD's counters show, in normalised ops. It is a lower bound:"
        " snapshot trimming and PG deletion are not counted, scrubs only from 20.x on, "
        "and sub-operations of erasure-coded pools never "
        "(cephqos_qos_delivered_is_lower_bound)."
    )
    name = "cephqos_qos_delivered_normalised_ops_total"
    return attained, single(name, "counter", text, labels.base, sum(done.values()))


def read_totals(loggers: Loggers, histograms: Mapping[str, Any]) -> Totals:
    """What the OSD has counted since it started."""
    counters = loggers.required("osd")
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
    return RecoveryItems(
        starts=starts["avgcount"],
        continuations=context,
        pushes=push,
        replies=reply,
        pulls=pull,
        messages=scan,
        nested=push <= reply <= pull <= scan,
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
        rows=list(map(sum, zip(*latency_by_size, strict=True))),
        ops=counters[kind],
        bytes=counters[f"{kind}_in_bytes"],
    )
