"""What `cephqos capacity` prints: a table with the worst first, the commands, and JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from cephqos_base.profiles import CAPACITY_OPTION
from cephqos_base.series import SCHEDULED
from cephqos_base.terminal import aligned, printable
from cephqos_base.units import time_span
from cephqos_base.version import __version__
from cephqos_insight.capacity.estimate import JudgedCapacity, OsdRecord
from cephqos_insight.capacity.from_prometheus import History

_NO_RULES: Final = (
    "The series of the rules are missing (cephqos rules build), so nothing shows when an OSD was"
    " saturated. Every figure below is only the least that an OSD can do."
)
_NO_OSDS: Final = "No OSD is shown: the exporter is not scraped, or not under this Prometheus."
_HEAD: Final = ("OSD", "host", "configured", "from", "most delivered", "can do", "bound", "equals")
_VERDICTS: Final = {
    "too_high": "too high",
    "too_low": "too low",
    "fits": "right",
    "unknown": "not known",
    "unused": "without mClock",
}
# Of the label `capacity_origin`; other origins are shown as they are.
_ORIGINS: Final = {"mon": "database", "local": "ceph.conf or command line"}


def document(history: History, judged: Sequence[JudgedCapacity]) -> dict[str, Any]:
    """The document that `--json` writes."""
    return {
        "version": __version__,
        "start": history.start,
        "end": history.end,
        "piece_seconds": history.step,
        "rules": history.rules,
        "osds": [_osd_document(osd) for osd in judged],
    }


def _osd_document(osd: JudgedCapacity) -> dict[str, Any]:
    record, estimate = osd.record, osd.estimate
    return {
        "cluster": record.cluster,
        "osd": record.osd,
        "host": record.host,
        "media": record.media,
        "model": record.model,
        "configured": record.capacity,
        "origin": record.origin,
        "estimate": asdict(estimate) | {"error": estimate.error},
        "verdict": osd.verdict,
        "equals": {"osds": osd.measured_equals, "ops": osd.equals_ops},
        "outlier": osd.outlier,
        "odd_setting": osd.unusual_setting,
        "command": command(osd),
        "classes": effects(osd),
    }


def command(osd: JudgedCapacity) -> str:
    """The command that sets a better capacity; empty if none is known."""
    if osd.suggested is None or osd.record.media not in ("hdd", "ssd"):
        return ""
    option = f"{CAPACITY_OPTION}{osd.record.media}"
    return f"ceph config set {osd.record.osd} {option} {osd.suggested:g}"


def effects(osd: JudgedCapacity) -> dict[str, dict[str, float | None]]:
    """By class: reservation and limit in ops/s, now and after the command."""
    capacity, suggested = osd.record.capacity, osd.suggested
    if capacity is None or suggested is None:
        return {}
    reservations, limits = osd.record.reservations, osd.record.limits
    classes = {}
    for cls in SCHEDULED:
        if cls in reservations or cls in limits:
            reservation, limit = reservations.get(cls), limits.get(cls)
            classes[cls] = {
                "reservation_now": _share_of(capacity, reservation),
                "reservation_then": _share_of(suggested, reservation),
                "limit_now": _share_of(capacity, limit),
                "limit_then": _share_of(suggested, limit),
            }
    return classes


def _share_of(ops: float, share: float | None) -> float | None:
    """The share in ops/s; None where there is no reservation or limit."""
    return share * ops if share else None


def text(history: History, judged: Sequence[JudgedCapacity], most: int | None) -> str:
    """The text for a terminal, with `most` OSDs at most; None: all of them."""
    lines = [] if history.rules else [_NO_RULES, ""]
    if not judged:
        return "\n".join([*lines, _NO_OSDS])
    shown = judged[:most]
    lines += aligned([_HEAD, *map(_row, shown)])
    if len(shown) < len(judged):
        lines.append(f"… and {len(judged) - len(shown)} more OSDs (--all)")
    lines += ["", *_outlier_lines(judged)]
    for osd in shown:
        lines += _command_lines(osd)
    lines.append(_summary(history, judged))
    return "\n".join(lines)


def _row(osd: JudgedCapacity) -> tuple[str, ...]:
    record, estimate = osd.record, osd.estimate
    unusual = " !" if osd.outlier or osd.unusual_setting else ""
    return (
        record.osd + unusual,
        record.host or "–",
        _ops(record.capacity),
        _ORIGINS.get(record.origin, record.origin) or "–",
        "–" if estimate.most is None else f"{_ops(estimate.most)} at {_time(estimate.most_at)}",
        _can_do(osd),
        estimate.bound,
        "–" if osd.equals_ops is None else f"{_ops(osd.equals_ops)} ({osd.measured_equals} OSDs)",
    )


def _can_do(osd: JudgedCapacity) -> str:
    estimate = osd.estimate
    if estimate.ops is None:
        return "not known"
    if estimate.kind == "at_least":
        return f"at least {_ops(estimate.ops)}, unknown above"
    return f"{_ops(estimate.ops)} ±{(estimate.error or 0) * 100:.0f} %, sure: {estimate.sure}"


def _command_lines(osd: JudgedCapacity) -> list[str]:
    """The command of an OSD, why it is better, and what it changes for each class."""
    command_line = command(osd)
    if not command_line:
        return []
    record, estimate = osd.record, osd.estimate
    direction = "high" if osd.verdict == "too_high" else "low"
    or_more = ", or more" if estimate.kind == "at_least" else ""
    why = f" ({estimate.why})" if estimate.why else ""
    lines = [
        printable(command_line),
        f"    # {_ops(record.capacity)} is {osd.wrong_by:.1f} times too {direction}{or_more}"
        + printable(why),
    ]
    for cls, ops in effects(osd).items():
        changes = [
            f"{setting} {_ops(ops[f'{setting}_now'])} → {_ops(ops[f'{setting}_then'])}"
            for setting in ("reservation", "limit")
            if ops[f"{setting}_now"] is not None
        ]
        lines.append(f"    # {cls}: {', '.join(changes) or 'no reservation and no limit'}")
    return lines


def _outlier_lines(judged: Iterable[JudgedCapacity]) -> list[str]:
    """A line for each OSD that delivers, or is configured for, far less or more than its equals."""
    lines = []
    for osd in judged:
        if osd.outlier and osd.equals_ops:
            estimate = osd.estimate
            ops = estimate.ops if estimate.kind == "measured" else estimate.saturated
            slow = (ops or 0) < osd.equals_ops
            lines.append(
                f"{osd.record.osd} delivers {_ops(ops)} when saturated; {osd.measured_equals} OSDs"
                f" like it deliver {_ops(osd.equals_ops)}.{' Look at its device.' if slow else ''}"
            )
        elif osd.unusual_setting:
            lines.append(
                f"{osd.record.osd} is configured for {_ops(osd.record.capacity)}, far from OSDs"
                " like it."
            )
    if lines:
        lines.append("")
    return [printable(line) for line in lines]


def _summary(history: History, judged: Sequence[JudgedCapacity]) -> str:
    counts = Counter[str](osd.verdict for osd in judged)
    parts = [f"{counts[name]} {words}" for name, words in _VERDICTS.items() if counts[name]]
    return (
        f"{len(judged)} OSDs in {time_span(history.end - history.start)}: {', '.join(parts)}."
        f" {_who_are_equals(osd.record for osd in judged)}"
    )


def _who_are_equals(records: Iterable[OsdRecord]) -> str:
    if any(record.model for record in records):
        return "OSDs with the same device and host are equals."
    return "OSDs on the same media are equals: --conf compares devices and hosts."


def _ops(ops: float | None) -> str:
    if ops is None:
        return "–"
    return f"{ops:,.0f}" if ops >= 10 else f"{ops:.1f}"


def _time(moment: float | None) -> str:
    return "–" if moment is None else f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M}"
