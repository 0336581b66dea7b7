"""What alerts say of waiting: who waits, how long, and how much longer than a day ago."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.promtool.rendered import OF_OSD, description_of, rendered

from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import AccountSeries, OpSeries, QosSeries, count

VIOLATED: Final = "CephQosReservationViolated"
SLOW: Final = "CephQosReplicaSlow"
_LABELS: Final = OF_OSD | {"class": "client", "cause": "device"}
# Samples of a day, and of an hour after it.
_DAY, _HOUR = 5760, 240
_NOW: Final = "1450m"  # ten minutes after that day


def _account(osd: str, state: str, by: str = "") -> str:
    culprit = f',by="{by}"' if by else ""
    return f'{AccountSeries.SECONDS}{{cluster="c1",ceph_daemon="{osd}",state="{state}"{culprit}}}'


def _waits_for_it(osd: str, rank: float = 65) -> dict[str, str]:
    series = f'{PerClass.EVIDENCE}{{cluster="c1",ceph_daemon="{osd}",class="client"'
    return {f'{series},cause="other_osd",by="osd.3"}}': f"{rank}x9"}


def _waits(osd: str, seconds: float) -> dict[str, str]:
    """So long its clients' operations wait for osd.3 in each second."""
    return {_account(osd, "replica", "osd.3"): f"0+{15 * seconds}x9"}


def _waited_for(by_how_many: int) -> dict[str, str]:
    return {f'{PerOsd.WAITED_FOR}{{cluster="c1",ceph_daemon="osd.3"}}': f"{by_how_many}x9"}


def _told(name: str, series: Mapping[str, str], at: Path, value: float = 2) -> str:
    return rendered(description_of(name), _LABELS, value, series, at, name=name)


_TWO: Final = (
    _waits_for_it("osd.5")
    | _waits_for_it("osd.1", 72)
    | _waits_for_it("osd.8", 61)  # for a part of its time: it does not count
    | _waits("osd.1", 1)
    | _waits("osd.5", 5)
    | _waits("osd.9", 2)  # has no unmet demand
)


def test_the_osds_that_wait_are_named_the_longest_first(tmp_path: Path) -> None:
    text = _told(SLOW, _TWO, tmp_path)
    assert "Writes of 2 other OSDs (osd.5, osd.1) have waited for osd.3 for 5m," in text
    assert "In each second client operations wait 8s for it. Where:" in text


def test_the_alert_that_silences_the_one_of_the_waiters_names_them_too(tmp_path: Path) -> None:
    text = _told(VIOLATED, _TWO | _waited_for(2), tmp_path)
    assert (
        " Writes of 2 other OSDs (osd.5, osd.1) wait for osd.3, too: 8s in each second. Where:"
        in text
    )
    others = _told(VIOLATED, _TWO, tmp_path)
    assert "other OSD" not in others, "nobody waits longer than for any OSD"


def test_of_many_that_wait_five_are_named(tmp_path: Path) -> None:
    many: dict[str, str] = {}
    for number in range(4, 13):
        many |= _waits_for_it(f"osd.{number}") | _waits(f"osd.{number}", number)
    named = "8 other OSDs (osd.12, osd.11, osd.10, osd.9, osd.8 and 3 more)"
    assert named in _told(SLOW, many, tmp_path, 8)
    assert named in _told(VIOLATED, many | _waited_for(8), tmp_path)


def test_no_more_are_named_than_waited_at_a_time(tmp_path: Path) -> None:
    text = _told(VIOLATED, _TWO | _waited_for(1), tmp_path)
    assert " Writes of 1 other OSD (osd.5) wait for osd.3, too" in text


def test_who_waits_for_an_osd_that_completes_nothing_is_named_by_the_evidence(
    tmp_path: Path,
) -> None:
    text = _told(VIOLATED, _waits_for_it("osd.5") | _waited_for(1), tmp_path)
    assert " Writes of 1 other OSD (osd.5) wait for osd.3, too. Where:" in text


def _a_day(before: float, now: float) -> str:
    """A counter with one rate for a day, and another one for an hour after it."""
    return f"0+{before * 15}x{_DAY} {before * 15 * _DAY}+{now * 15}x{_HOUR}"


def _told_after_a_day(name: str, series: Mapping[str, str], at: Path) -> str:
    return rendered(description_of(name), _LABELS, 2, series, at, name=name, at=_NOW)


_OPS: Final = f'{count(OpSeries.LATENCY_SECONDS)}{{cluster="c1",ceph_daemon="osd.3",op="write"}}'
# 100 operations per second waited 2 s a day ago, so 50 would wait 1 s.
_OWN: Final = {
    _OPS: _a_day(100, 50),
    _account("osd.3", "store_device"): _a_day(1, 10),
    _account("osd.3", "queue", "client"): _a_day(1, 2),
}
_WRITES: Final = f'{QosSeries.REPLICA_WRITES}{{cluster="c1",ceph_daemon="osd.3"}}'


@pytest.mark.parametrize(
    ("name", "series", "said"),
    [
        pytest.param(
            VIOLATED,
            _OWN,
            "wait 12s, longest in state store_device. That is 11s more than as many operations"
            " waited a day ago. Where:",
            id="slower",
        ),
        pytest.param(
            VIOLATED,
            _OWN
            | {
                _account("osd.3", "store_device"): _a_day(1, 0.5),
                _account("osd.3", "queue", "client"): _a_day(1, 0.25),
            },
            "wait 750ms, longest in state store_device. That is no more than as many operations"
            " waited a day ago. Where:",
            id="only more of them",
        ),
        pytest.param(
            VIOLATED,
            {it: re.sub(r"\S+ ", f"_x{_DAY + 1} ", values) for it, values in _OWN.items()},
            "wait 12s, longest in state store_device. Where:",
            id="no figures of a day ago",
        ),
        pytest.param(
            VIOLATED,
            _OWN | {_OPS: _a_day(0.02, 50)},
            "wait 12s, longest in state store_device. Where:",
            id="hardly an operation a day ago",
        ),
        pytest.param(
            SLOW,
            {
                _account("osd.1", "replica", "osd.3"): _a_day(1, 5),
                _account("osd.5", "replica", "osd.3"): _a_day(1, 3),
                _WRITES: _a_day(200, 50),
            },
            "client operations wait 8s for it. That is 7.5s more than for as many replica writes a"
            " day ago. Where:",
            id="for replicas",
        ),
    ],
)
def test_it_is_said_how_much_longer_than_a_day_ago_clients_wait(
    name: str, series: Mapping[str, str], said: str, tmp_path: Path
) -> None:
    assert said in _told_after_a_day(name, series, tmp_path)


def _condition(name: str, values: str = "1x40") -> dict[str, str]:
    return {f'{PerOsd.CONDITION}{{cluster="c1",ceph_daemon="osd.3",condition="{name}"}}': values}


_DENIED: Final = {f'{PerOsd.CPU_DENIED}{{cluster="c1",ceph_daemon="osd.3",by="cpu_limit"}}': "1x40"}
_IO: Final = {
    f'{PerOsd.IO_LIMIT_REACHED}{{cluster="c1",ceph_daemon="osd.3",unit="requests/s"}}': "200x40"
}
_DEVICE: Final = " Its device is slow or has stopped."
_FAILING: Final = _condition("device_failing")
_CPU: Final = _condition("cpu_short")


@pytest.mark.parametrize(
    ("series", "said"),
    [
        pytest.param(_FAILING, f"{_DEVICE} Can it", id="device"),
        pytest.param(_FAILING | _CPU, f"{_DEVICE} Also: cpu. Can it", id="device and CPU"),
        pytest.param(
            _FAILING | _CPU | _DENIED,
            f"{_DEVICE} Also: cpu by cpu_limit. Can it",
            id="device and limit of the CPU",
        ),
        pytest.param(
            _FAILING | _condition("cpu_short", "_x36 1x9"),
            f"{_DEVICE} Can it",
            id="device, and CPU for a moment",
        ),
        pytest.param(
            _DENIED | _IO, "stops its threads. Also: device by io_limit. Can it", id="two limits"
        ),
        pytest.param(
            _IO | _CPU, "holds up its requests. Also: cpu. Can it", id="limit of requests and CPU"
        ),
        pytest.param(_CPU, "Likely cause: the CPU. Its threads wait for a CPU. Can it", id="CPU"),
    ],
)
def test_a_second_cause_of_a_slow_osd_is_said(
    series: Mapping[str, str], said: str, tmp_path: Path
) -> None:
    text = rendered(description_of(SLOW), _LABELS, 2, series, tmp_path, name=SLOW, at="10m")
    assert said in text
