"""What `cephqos capacity` prints: a table with the worst first, the commands, and JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from cephqos_base.series import SCHEDULED
from cephqos_base.terminal import printable
from cephqos_base.units import time_span
from cephqos_base.version import __version__
from cephqos_doctor.capacity.estimate import JudgedCapacity, OsdRecord
from cephqos_doctor.capacity.series import History

_NO_RULES: Final = (
    "The series of the rules are missing (cephqos rules build), so nothing shows when an OSD was"
    " saturated. Every figure below is only the least that an OSD can do."
)
_NO_OSD: Final = "No OSD is shown: the exporter is not scraped, or not under this Prometheus."
_HEAD: Final = ("OSD", "host", "configured", "from", "most delivered", "can do", "bound", "equals")
_VERDICTS: Final = {
    "too_high": "too high",
    "too_low": "too low",
    "fits": "right",
    "unknown": "not known",
    "unused": "without mClock",
}
_ORIGINS: Final = {"mon": "database", "local": "ceph.conf or command line"}


def document(history: History, judged: Sequence[JudgedCapacity]) -> dict[str, Any]:
    """As `--json` writes it."""
    return {
        "version": __version__,
        "start": history.start,
        "end": history.end,
        "piece_seconds": history.step,
        "rules": history.rules,
        "osds": [_osd_document(one) for one in judged],
    }


def _osd_document(one: JudgedCapacity) -> dict[str, Any]:
    record, its = one.record, one.estimate
    return {
        "cluster": record.cluster,
        "osd": record.osd,
        "host": record.host,
        "media": record.media,
        "model": record.model,
        "configured": record.capacity,
        "origin": record.origin,
        "estimate": asdict(its) | {"error": its.error},
        "verdict": one.verdict,
        "equals": {"osds": one.equals, "ops": one.equals_ops},
        "outlier": one.outlier,
        "odd_setting": one.odd_setting,
        "command": command(one),
        "classes": effects(one),
    }


def command(one: JudgedCapacity) -> str:
    """What sets the capacity; empty if none is known to be better."""
    if one.suggested is None or one.record.media not in ("hdd", "ssd"):
        return ""
    option = f"osd_mclock_max_capacity_iops_{one.record.media}"
    return f"ceph config set {one.record.osd} {option} {one.suggested:g}"


def effects(one: JudgedCapacity) -> dict[str, dict[str, float | None]]:
    """What the command makes of each class's reservation and limit."""
    capacity, suggested = one.record.capacity, one.suggested
    if capacity is None or suggested is None:
        return {}
    reservations, limits = one.record.reservations, one.record.limits
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
    """None: without a reservation or a limit."""
    return share * ops if share else None


def text(history: History, judged: Sequence[JudgedCapacity], most: int | None) -> str:
    """As a terminal shows it. `most`: rows and commands; None: all."""
    lines = [] if history.rules else [_NO_RULES, ""]
    if not judged:
        return "\n".join([*lines, _NO_OSD])
    shown = judged[:most]
    lines += _table([_HEAD, *map(_row, shown)])
    if len(shown) < len(judged):
        lines.append(f"… and {len(judged) - len(shown)} more OSDs (--all)")
    lines += ["", *_odd(judged)]
    for one in shown:
        lines += _command_lines(one)
    lines.append(_sum(history, judged))
    return "\n".join(lines)


def _row(one: JudgedCapacity) -> tuple[str, ...]:
    record, its = one.record, one.estimate
    mark = " !" if one.outlier or one.odd_setting else ""
    return (
        record.osd + mark,
        record.host or "–",
        _ops(record.capacity),
        _ORIGINS.get(record.origin, record.origin) or "–",
        "–" if its.most is None else f"{_ops(its.most)} at {_time(its.most_at)}",
        _can_do(one),
        its.bound,
        "–" if one.equals_ops is None else f"{_ops(one.equals_ops)} ({one.equals} OSDs)",
    )


def _can_do(one: JudgedCapacity) -> str:
    its = one.estimate
    if its.ops is None:
        return "not known"
    if its.kind == "at_least":
        return f"at least {_ops(its.ops)}, unknown above"
    return f"{_ops(its.ops)} ±{(its.error or 0) * 100:.0f} %, sure: {its.sure}"


def _command_lines(one: JudgedCapacity) -> list[str]:
    said = command(one)
    if not said:
        return []
    record, its = one.record, one.estimate
    times = f"{one.wrong_by:.1f} times too {'high' if one.verdict == 'too_high' else 'low'}"
    least = ", or more" if its.kind == "at_least" else ""
    why = f" ({its.why})" if its.why else ""
    lines = [printable(said), f"    # {_ops(record.capacity)} is {times}{least}{printable(why)}"]
    for cls, of_class in effects(one).items():
        changes = [
            f"{name} {_ops(of_class[f'{name}_now'])} → {_ops(of_class[f'{name}_then'])}"
            for name in ("reservation", "limit")
            if of_class[f"{name}_now"] is not None
        ]
        lines.append(f"    # {cls}: {', '.join(changes) or 'no reservation and no limit'}")
    return lines


def _odd(judged: Iterable[JudgedCapacity]) -> list[str]:
    lines = []
    for one in judged:
        if one.outlier and one.equals_ops:
            its = one.estimate
            ops = its.ops if its.kind == "measured" else its.saturated
            slow = (ops or 0) < one.equals_ops
            lines.append(
                f"{one.record.osd} delivers {_ops(ops)} when saturated; {one.equals} OSDs like it"
                f" deliver {_ops(one.equals_ops)}.{' Look at its device.' if slow else ''}"
            )
        elif one.odd_setting:
            lines.append(
                f"{one.record.osd} is configured for {_ops(one.record.capacity)}, far from OSDs"
                " like it."
            )
    return [*map(printable, lines), *([""] if lines else [])]


def _sum(history: History, judged: Sequence[JudgedCapacity]) -> str:
    counts = Counter[str](one.verdict for one in judged)
    parts = [f"{counts[name]} {said}" for name, said in _VERDICTS.items() if counts[name]]
    return (
        f"{len(judged)} OSDs in {time_span(history.end - history.start)}: {', '.join(parts)}."
        f" {_like(one.record for one in judged)}"
    )


def _like(records: Iterable[OsdRecord]) -> str:
    if any(record.model for record in records):
        return "OSDs with the same device and host are equals."
    return "OSDs on the same media are equals: --conf compares devices and hosts."


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)) for r in cells]


def _ops(ops: float | None) -> str:
    if ops is None:
        return "–"
    return f"{ops:,.0f}" if ops >= 10 else f"{ops:.1f}"


def _time(moment: float | None) -> str:
    return "–" if moment is None else f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M}"
