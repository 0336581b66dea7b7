"""A cluster for the tests of `cephqos top`: twelve OSDs, in trouble of every kind."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cephqos_base.servers import NoAnswer
from cephqos_base.version import __version__
from cephqos_loadgen.top.figures import Selection, Values
from cephqos_loadgen.top.picture import TopSamples

FSID = "0f1e2d3c-0000-4000-8000-000000000001"
NOW = 1_750_000_000.0
CLIENT, RECOVERY, SCRUB, IMMEDIATE = (
    "client",
    "background_recovery",
    "background_best_effort",
    "immediate",
)
# Clears a screen, names a window, turns text around.
HOSTILE = "p\x1b[2J\x1b]0;x\x07[bold]\u202eq"


def example(**changes: Values) -> TopSamples:
    """All figures of the example; `changes` replaces some."""
    return replace(_example(), values={**_example().values, **changes})


def without(*figures: str, **others: Any) -> TopSamples:
    """The example without some figures."""
    samples = _example()
    values = {name: found for name, found in samples.values.items() if name not in figures}
    return replace(samples, values=values, **others)


def _per_class(values: Mapping[str, float | None]) -> Values:
    return {
        (FSID, f"osd.{osd}", name): value * (1 + osd / 100)
        for osd in range(11)
        for name, value in values.items()
        if value is not None
    }


def _example() -> TopSamples:
    osd = {f"osd.{number}": (FSID, f"osd.{number}") for number in range(12)}
    attained = _per_class({CLIENT: 900.0, RECOVERY: 120.0, SCRUB: 30.0, IMMEDIATE: 800.0})
    attained |= {(FSID, "osd.3", CLIENT): 140.0, (FSID, "osd.7", CLIENT): 610.0}
    attained |= {(FSID, "osd.7", RECOVERY): 1500.0}
    mclock = ("mclock_scheduler", "balanced", "ssd", "config")
    return TopSamples(
        time=NOW,
        rules=True,
        values={
            "up": {
                **{(*key, ""): 1.0 for name, key in osd.items() if name != "osd.11"},
                (*osd["osd.11"], "timeout"): 0.0,
            },
            "version": {(__version__,): 3.0},
            "scheduler": {(*key, *mclock): 1.0 for key in osd.values()},
            "attained": attained,
            "reserved": _per_class({CLIENT: 1000.0, RECOVERY: 500.0, SCRUB: 0.0}),
            "limit": _per_class({SCRUB: 900.0}),
            "queued": {**_per_class({CLIENT: 0.0, RECOVERY: 0.0}), (*osd["osd.3"], CLIENT): 31.0},
            "lag": {**_per_class({CLIENT: 0.0, RECOVERY: 0.0}), (*osd["osd.3"], CLIENT): 1.84},
            "client_present": {osd["osd.3"]: 20.0},
            "client_waiting": {osd["osd.3"]: 31.0},
            "demand": {(*osd["osd.3"], CLIENT): 1.0, (*osd["osd.7"], CLIENT): 1.0},
            "violated": {
                **_per_class({CLIENT: 0.0, RECOVERY: 0.0}),
                (*osd["osd.3"], CLIENT): 1.0,
                (*osd["osd.7"], CLIENT): 1.0,
            },
            "shortfall": {(*osd["osd.3"], CLIENT): 890.0, (*osd["osd.7"], CLIENT): 460.0},
            "cause": {
                (*osd["osd.3"], CLIENT, "device", ""): 1.0,
                (*osd["osd.7"], CLIENT, "other_class", RECOVERY): 1.0,
            },
            "capacity": {key: 2000.0 for key in osd.values()},
            "delivered": {key: 1900.0 for key in osd.values()},
            "blocked": {osd["osd.3"]: 4.0},
            "latency": _buckets((FSID,)),
            "threads": {
                (*osd["osd.3"], "bstore_kv_sync"): 0.97,
                (*osd["osd.7"], "tp_osd_tp"): 0.42,
            },
            "device_busy": {(*osd["osd.3"], "sdd"): 0.999, (*osd["osd.7"], "sdh"): 0.31},
            "device_time": {(*osd["osd.3"], "sdd"): 12.0, (*osd["osd.7"], "sdh"): 1.0},
            "device_ops": {(*osd["osd.3"], "sdd"): 100.0, (*osd["osd.7"], "sdh"): 0.0},
            "device_depth": {(*osd["osd.3"], "sdd"): 11.6},
            "cluster_up": {(FSID, ""): 1.0},
            "flags": {(FSID, "noout"): 1.0, (FSID, "noscrub"): 0.0},
            "degraded": {(FSID, "rbd"): 12345.0, (FSID, "idle"): 0.0},
            "misplaced": {(FSID, "rbd"): 17.0},
            "recovery_rate": {(FSID, "rbd"): 61.0},
            "recovery_bytes": {(FSID, "rbd"): 255_852_544.0},
            "recovery_eta": {(FSID, "rbd"): 202.0},
            "scrub_pgs": {(FSID, HOSTILE, "deep"): 2.0, (FSID, "rbd", "shallow"): 0.0},
            "scrub_left": {(FSID, HOSTILE, "deep"): 220.0},
            "scrub_rate": {(FSID, HOSTILE, "deep"): 0.0},
            "scrub_eta": {
                (FSID, HOSTILE, "deep", bound): seconds
                for bound, seconds in (("low", 60.0), ("likely", 180.0), ("high", 600.0))
            },
            "scrub_overdue": {(FSID, "rbd", "deep"): 7.0},
            "run": {("20260101-1", FSID, "recovery", "profile=balanced", "2", "backfill"): 1.0},
            "run_repeats": {("20260101-1", FSID): 12.0},
            "run_repeats_done": {("20260101-1", FSID): 4.0},
            "run_remaining": {("20260101-1", FSID): 1800.0},
            "osd_latency": _buckets((FSID, "osd.3")),
            "in_progress": {osd["osd.3"]: 57.0},
            "oldest": {osd["osd.3"]: 33.0},
            "throttle": {(*osd["osd.3"], "bluestore"): 1.0},
            "tenants": _tenants(),
            "tenant_squares": {(*osd["osd.3"], it): _squares(it) for it in ("waiting", "working")},
            "recovery_left": {(FSID, bound): seconds for bound, seconds in _RECOVERY_END.items()},
            "pools": {(FSID, "3", "rbd"): 1.0},
            "violated_seconds": {(*osd["osd.3"], CLIENT): 615.0},
        },
        alerts=(
            {"alertname": "CephQosWatchdog", "severity": "none"},
            _alert("CephQosMaintenance", "info", flag="noout"),
            _alert("CephQosReservationViolated", "critical", "osd.3"),
            _alert("CephQosReservationViolated", "critical", "osd.7"),
        ),
    )


def _alert(name: str, severity: str, osd: str = "", **labels: str) -> Mapping[str, str]:
    of_osd = {"ceph_daemon": osd, "class": CLIENT} if osd else {}
    common = {"alertname": name, "severity": severity, "cluster": FSID, "since": str(NOW - 95)}
    return {**common, **of_osd, **labels}


_RECOVERY_END = {"low": 120.0, "likely": 240.0, "high": 600.0}


def _squares(state: str) -> float:
    """As for 240 independent samples in five minutes."""
    total = sum(value for (*_, of), value in _tenants().items() if of == state)
    return total**2 * 300 / 240


def _tenants() -> Values:
    """osd.3 works for an image most, and two others wait; one name is not a friend's."""
    rates = {("image", "3", "17af"): (5.0, 7.1), ("image", "3", HOSTILE): (4.0, 1.9)}
    rates |= {("bucket", "9", "d1.4137.1"): (0.8, 0.5), ("client", "3", "client.7"): (0.1, 0.1)}
    rates |= {("other", "", ""): (0.2, 0.5)}
    return {
        (FSID, "osd.3", *who, state): rate
        for who, both in rates.items()
        for state, rate in zip(("waiting", "working"), both, strict=True)
    }


def _buckets(before: tuple[str, ...]) -> Values:
    """Reads between 1 and 2 ms, writes between 10 and 20 ms, a few of them slow."""
    read = {"0.001": 0.0, "0.002": 400.0, "0.02": 400.0, "1": 400.0, "+Inf": 400.0}
    write = {"0.001": 0.0, "0.01": 0.0, "0.02": 970.0, "1": 1000.0, "+Inf": 1000.0}
    return {
        (*before, op, le): rate
        for op, buckets in (("read", read), ("write", write))
        for le, rate in buckets.items()
    }


class FakeSource:
    """A source whose answers the test sets; an error is raised."""

    name = "Prometheus http://prometheus:9090"

    def __init__(self, answer: TopSamples | NoAnswer | None = None) -> None:
        self.answer = answer or example()
        self.asked: list[Selection] = []

    async def fetch(self, selection: Selection) -> TopSamples:
        self.asked.append(selection)
        if isinstance(self.answer, NoAnswer):
            raise self.answer
        return self.answer
