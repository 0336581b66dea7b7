"""What advice is made from, out of the samples of an archive."""

import numpy as np
import pytest

from cephqos_base.series import CLIENT, QosSeries, RecoverySeries, ScrubSeries
from cephqos_base.time_left import TimeLeft
from cephqos_loadgen.report.arrays.samples import Samples, Series
from cephqos_loadgen.report.figures.advice_facts import advice_facts
from cephqos_loadgen.report.figures.observe import FAMILIES

_SECONDS = np.arange(0.0, 22.0)
_OSD = {"ceph_daemon": "osd.0", "cluster": "c"}


def saturated(capacity: float, done: float = 100.0) -> Samples:
    """An OSD that does `done` for clients, of whom some wait for all of the time."""
    of_class = _OSD | {"class": CLIENT}
    info = _OSD | {"in_force": "mclock_scheduler", "profile": "balanced", "model": "bandwidth"}

    def counter(name: str, rate: float, labels: dict[str, str] = _OSD) -> Series:
        return Series(name, labels, _SECONDS, 7 + _SECONDS * rate)

    def gauge(name: str, value: float, labels: dict[str, str] = _OSD) -> Series:
        return Series(name, labels, _SECONDS, np.full(len(_SECONDS), value))

    every = (
        gauge(QosSeries.SCHEDULER_INFO, 1.0, info),
        gauge(QosSeries.CAPACITY_OPS, capacity),
        counter(QosSeries.OPS, done, of_class),
        counter(QosSeries.DELIVERED_OPS, done),
        counter(QosSeries.CLIENT_WAIT_SECONDS, 10.0),
        gauge(QosSeries.CLIENT_OPS_IN_PROGRESS, 10.0),
        gauge(QosSeries.QUEUE_LENGTH, 10.0, of_class | {"shard": "0"}),
        gauge(QosSeries.RESERVATION_OPS, 150.0, of_class),
    )
    return Samples({it.name: [it] for it in every})


def test_a_load_of_a_few_seconds_has_demand_and_violations_as_a_long_one_has() -> None:
    (facts,) = advice_facts(saturated(capacity=300.0), 0.0, 21.0)
    pieces = facts.osds[0].pieces
    assert [it.demand for it in pieces] == [{CLIENT}] * 3
    assert [it.violated_seconds for it in pieces] == [7.0] * 3


def test_an_osd_whose_profile_was_changed_in_the_time_is_one_osd_with_the_new_one() -> None:
    samples = saturated(capacity=300.0)
    (info,) = samples.of(QosSeries.SCHEDULER_INFO)
    before = {**info.labels, "profile": "high_client_ops"}
    old = Series(info.name, before, info.times[:5], info.values[:5])
    new = Series(info.name, info.labels, info.times[5:], info.values[5:])
    for both in ([old, new], [new, old]):
        changed = Samples({**samples.families, info.name: both})
        (facts,) = advice_facts(changed, 0.0, 21.0)
        assert [it.profile for it in facts.osds] == ["balanced"]


def test_a_capacity_far_from_what_a_saturated_osd_did_is_put_right() -> None:
    def suggested(capacity: float) -> float | None:
        (facts,) = advice_facts(saturated(capacity), 0.0, 21.0)
        return facts.osds[0].suggested_capacity

    found = [suggested(it) for it in (60.0, 90.0, 140.0, 300.0)]
    assert found == [100.0, None, None, 100.0]


def test_two_clusters_whose_osds_have_the_same_names_are_not_mixed() -> None:
    def renamed(series: Series) -> Series:
        labels = {**series.labels, "cluster": "d"}
        return Series(series.name, labels, series.times, series.values)

    other = saturated(capacity=300.0, done=40.0).families
    both = {
        name: [*series, *map(renamed, other[name])]
        for name, series in saturated(capacity=300.0).families.items()
    }
    found = list(advice_facts(Samples(both), 0.0, 21.0))
    assert [it.cluster for it in found] == ["c", "d"]
    assert [it.osds[0].suggested_capacity for it in found] == [100.0, 40.0]


def test_all_that_advice_asks_an_archive_for_is_read_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, of = set[str](), Samples.of

    def noted(samples: Samples, family: str, **labels: str) -> list[Series]:
        asked.add(family)
        return of(samples, family, **labels)

    monkeypatch.setattr(Samples, "of", noted)
    list(advice_facts(saturated(capacity=300.0), 0.0, 21.0))
    assert ScrubSeries.POOL_BACKLOG_ETA_SECONDS in asked
    assert asked <= FAMILIES


def test_when_recovery_would_have_ended_is_in_the_archive_while_it_goes_on() -> None:
    def ends(last: float) -> object:
        families = dict(saturated(capacity=300.0).families)
        times = np.array([0.0, last])
        for name, pools in (
            (RecoverySeries.CLUSTER_ETA_SECONDS, {"": 1}),
            (ScrubSeries.POOL_BACKLOG_ETA_SECONDS, {"a": 2, "b": 0}),
        ):
            families[name] = [
                Series(
                    name,
                    {"cluster": "c", "bound": bound, "pool": pool},
                    times,
                    np.array([0.0, seconds * more]),
                )
                for bound, seconds in (("low", 30.0), ("likely", 60.0), ("high", 200.0))
                for pool, more in pools.items()
            ]
        (facts,) = advice_facts(Samples(families), 0.0, 21.0)
        return facts.recovery_end, facts.scrub_end

    assert ends(20.0) == (TimeLeft(30.0, 60.0, 200.0), TimeLeft(60.0, 120.0, 400.0))
    (without,) = advice_facts(saturated(capacity=300.0), 0.0, 21.0)
    assert without.recovery_end is None
