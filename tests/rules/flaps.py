"""Cases of faults that are there all the time while what they do comes and goes."""

from collections.abc import Sequence
from dataclasses import replace

from .across import CULPRIT, HOLDS_UP, REPLICA, SLOW_1, WAITS, WELL, with_more
from .cases import CaseMoment, RuleCase, firing, silent
from .nights import several
from .qos import FULL_OF_REPLICAS, PROVEN, SHORT, SLOW, VIOLATED, WIDE, osd, violated
from .series import BUSY, Series, State, merged

_NOBODY: State = replace(SLOW, in_progress=(0,), queue=(0, 0, 0, 0))
_SLOW_DEVICE = violated("critical", "device")
_REPLICAS_FILL_IT = 'count(osd_class:cephqos_main_cause{cluster="c1",cause="replica_writes"})'
# 60 evaluations. In Prometheus 2.53 a window of 15 minutes has a 61st at its far end.
_FIRING = f'ALERTS{{alertname=~"{VIOLATED}(CanWait)?",alertstate="firing"}}'
_EACH = f"count_over_time({_FIRING}[895s:15s])"
# The OSDs of one host, of which another one is the worst each minute.
_HOST = (1, 2, 3)
# Too little CPU. It delivers a third of what it did, or, as noise has it, more than that, of which
# most is for replicas.
_STARVED = replace(BUSY, client=200, immediate=400, cpu_waiting=8)
_ON_BUSY_CPUS = replace(PROVEN, client=1500, cpu_waiting=8)
_LESS_STARVED = replace(_STARVED, client=400, immediate=1000)


def _all_the_time(begin: int, end: int, *labels: dict[str, str]) -> Sequence[CaseMoment]:
    """Once a minute."""
    return tuple(firing(minute, *labels) for minute in range(begin, end))


def _is_worst(peer: int, minute: int) -> bool:
    return _HOST[minute % len(_HOST)] == peer


def _slow_links(minutes: int) -> Series:
    """Heartbeats of osd.0 to that host are slow from minute 10 on."""
    link = {"interface": "back"}
    return merged(
        with_more(0, "cephqos_network_slow_peers", "0x39 3x200", **link),
        *(
            with_more(
                0,
                "cephqos_network_worst_peer_info",
                " ".join(
                    "1x3" if _is_worst(peer, minute) else "stale _x3" for minute in range(minutes)
                ),
                peer=f"osd.{peer}",
                **link,
            )
            for peer in _HOST
        ),
    )


def _host_turns_slow(number: int) -> Sequence[tuple[float, State]]:
    """The OSDs of that host hold replicas only; all others wait for them."""
    if number not in _HOST:
        return ((10, replace(WELL, client=1400)), (20, WAITS))
    slow = [
        replace(HOLDS_UP, replica_latency=0.7 if _is_worst(number, minute) else 0.5)
        for minute in range(20)
    ]
    return ((10, replace(WELL, client=1400)), *((1, state) for state in slow))


CASES = [
    RuleCase(
        name="an alert goes on without a break while its cause becomes another one",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (12, replace(SHORT, thread=0.98)), (12, SLOW))),
        moments=(
            *(firing(minute, violated("critical", "cpu")) for minute in (15, 17, 19)),
            *_all_the_time(25, 31, _SLOW_DEVICE),
        ),
        # It fires at each of 60 evaluations, as one alert.
        values=((30, f"sum({_EACH})", 60), (30, f"count({_EACH})", 1)),
    ),
    RuleCase(
        name="a fault during which clients are away for half a minute again and again is told once",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (7, SLOW), *((0.5, _NOBODY), (3.5, SLOW)) * 4, (9, PROVEN))),
        moments=(silent(13), *_all_the_time(15, 31, _SLOW_DEVICE), silent(36)),
    ),
    RuleCase(
        name="a failed device that is mended, and clients that get less for two minutes more",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (7, SLOW), (2, SHORT), (14, PROVEN))),
        moments=(
            silent(12),
            *(firing(minute / 4, _SLOW_DEVICE) for minute in range(60, 78)),
            *(silent(minute / 4) for minute in range(82, 112)),
        ),
    ),
    RuleCase(
        name="a fault is told in time though one look in ten finds no operation in progress",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), *((2.25, SLOW), (0.25, _NOBODY)) * 8)),
        moments=(silent(13), *_all_the_time(16, 28, _SLOW_DEVICE)),
    ),
    RuleCase(
        name="an OSD without CPU that delivers somewhat more for minutes is still one without CPU",
        alert=VIOLATED,
        series=merged(osd((8, PROVEN), (7, _STARVED), (30, _LESS_STARVED))),
        moments=(
            silent(12),
            *_all_the_time(15, 28, violated("critical", "cpu")),
            silent(40),
        ),
        values=((40, _REPLICAS_FILL_IT, 1),),
    ),
    RuleCase(
        name="CPUs that were all busy, and did less for the moment in which a device failed",
        alert=VIOLATED,
        series=several(
            ((8, PROVEN), (3, _ON_BUSY_CPUS), (1, _STARVED), (15, WAITS)),
            ((8, PROVEN), (3, _ON_BUSY_CPUS), (16, CULPRIT)),
            ((8, PROVEN), (3, _ON_BUSY_CPUS), (1, _STARVED), (15, WAITS)),
        ),
        moments=tuple(
            firing(minute / 4, {**_SLOW_DEVICE, "ceph_daemon": "osd.1"}) for minute in range(66, 80)
        ),
    ),
    RuleCase(
        name="a load that begins slowly on busy CPUs is no OSD without CPU",
        alert=WIDE,
        series=merged(
            osd(
                (8, PROVEN),
                (3, _NOBODY),
                (1.5, replace(_STARVED, cpu_waiting=3)),
                (45, replace(_LESS_STARVED, client=700, cpu_waiting=3)),
            )
        ),
        moments=(
            silent(12),
            *_all_the_time(46, 56, FULL_OF_REPLICAS),
        ),
    ),
    RuleCase(
        name="a slow network of a host is told though its worst OSD changes every minute",
        alert=VIOLATED,
        series=several(((10, WELL), (20, WAITS)), *[((30, WELL),)] * 3, instance="host1")
        | _slow_links(60),
        moments=(
            silent(14),
            *_all_the_time(17, 29, violated("critical", "network", by="osd.3")),
        ),
    ),
    RuleCase(
        name="of the OSDs of a host that are all slow, one is told, and stays the one",
        alert=REPLICA,
        series=several(*(_host_turns_slow(number) for number in range(7))),
        moments=(silent(13), *_all_the_time(16, 29, SLOW_1)),
    ),
    RuleCase(
        name="a load that is there for half of each minute is no demand",
        alert=VIOLATED,
        series=merged(osd(*((0.5, SHORT), (0.5, _NOBODY)) * 30)),
        moments=(silent(15), silent(29)),
    ),
]
