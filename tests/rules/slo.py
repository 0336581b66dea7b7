"""Cases of the alerts on SLOs."""

from dataclasses import replace

from .cases import CaseMoment, firing, silent
from .series import BUSY, CLUSTER, IDLE, SimulatedOsd, State, merged
from .state import case

_BAD = replace(BUSY, client=1500, good=0.5, thread=0.98)
_FINE = State(client=500, in_progress=(1, 0, 2), waiting=0.2, store=1)


def _burn(severity: str, window: str, op: str = "write") -> dict[str, str]:
    name = f"ssd-{op}"
    return {
        "cluster": CLUSTER,
        "op": op,
        "slo": name,
        "severity": severity,
        "window": window,
    }


_WARNINGS = (("warning", "1d"), ("warning", "3d"))


def _both(*burns: tuple[str, str]) -> list[dict[str, str]]:
    """Reads and writes alike: the made-up OSDs do the same with both."""
    return [_burn(*burn, op=op) for burn in burns for op in ("read", "write")]


CASES = [
    case(
        "CephQosLatencySloBurn",
        "half of the operations too slow is critical after eight minutes and ends soon after",
        merged(SimulatedOsd(((60, _FINE), (20, _BAD), (20, _FINE)))),
        silent(60.5),
        firing(61, *_both(("warning", "3d"))),
        firing(
            67,
            *_both(("critical", "6h"), ("warning", "1d"), ("warning", "3d")),
        ),
        firing(
            68,
            *_both(
                ("critical", "1h"),
                ("critical", "6h"),
                ("warning", "1d"),
                ("warning", "3d"),
            ),
        ),
        CaseMoment(
            95,
            _both(("critical", "6h"), ("warning", "1d"), ("warning", "3d")),
        ),
        group="slo",
    ),
    replace(
        case(
            "CephQosLatencySloBurn",
            "two exporters that see one OSD count its operations once",
            merged(
                *(
                    SimulatedOsd(((20, replace(_BAD, good=0.9)),), instance=host)
                    for host in ("h1", "h2")
                )
            ),
            firing(19, *_both(("critical", "6h"), *_WARNINGS)),
            group="slo",
        ),
        values=(
            (19, 'round(sum(cephqos_slo:total:rate{cluster="c1",slo="ssd-write"}))', 1500),
            (19, 'round(sum(cephqos_slo:good:rate{cluster="c1",slo="ssd-write"}))', 1350),
        ),
    ),
    case(
        "CephQosLatencySloBurn",
        "the last warning of a bad quarter of an hour ends when six hours have been good",
        merged(SimulatedOsd(((60, _FINE), (15, _BAD), (480, _FINE)))),
        silent(60),
        firing(120, *_both(("warning", "1d"), ("warning", "3d"))),
        firing(430, *_both(("warning", "3d"))),
        silent(450),
        group="budget",
    ),
    case(
        "CephQosLatencySloBurn",
        "a moment of slow operations that the budget can bear",
        merged(SimulatedOsd(((60, _FINE), (0.25, _BAD), (15, _FINE)))),
        silent(61),
        silent(65),
        silent(74),
        group="slo",
    ),
    case(
        "CephQosLatencySloBurn",
        "a few slow operations where there are hardly any",
        merged(SimulatedOsd(((10, IDLE), (10, State(client=0.02, good=0)), (5, IDLE)))),
        silent(15),
        silent(24),
        group="slo",
    ),
]
