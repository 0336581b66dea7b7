"""The account of waiting: conserved whatever the counters say, and right where it can be known."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_exporter.qos.account.account import Account
from cephqos_exporter.qos.account.sums import Evidence, Place, State, Sums
from cephqos_exporter.qos.waits import OperationWait, SampledOperations

MOST_PLACES = 28  # as many series of an OSD; its tenants have 12
ALL_KNOWN = Evidence(store=True, threads=True)

# 100 writes of 100 ms: 10 ms in the queue, 5 ms with a thread, 60 ms in the own store.
WRITES = Sums(
    latency=10.0,
    ops=100,
    process=9.0,
    prepare=0.5,
    queued=400,
    before_dequeue=1.3,
    dequeued=400,
    commit=18.0,
    commits=300,
    aio_wait=9.0,
    kv_queued=3.0,
    kv_committing=6.0,
    kv_flush=1.0,
    kv_sync=10.0,
    worker_run=2.0,
    client=100,
    immediate=300,
)


def account(
    *gains: Sums, evidence: Evidence = ALL_KNOWN, samples: Sequence[SampledOperations] = ()
) -> Account:
    """An account of an OSD that gained this in intervals of ten seconds."""
    found, sums, now = Account(), Sums(), 1000.0
    found.advance(sums, now, evidence)
    for gain in gains:
        now += 10.0
        sums = Sums._make(old + new for old, new in zip(sums, gain, strict=True))
        found.sample(samples)
        found.advance(sums, now, evidence)
    return found


def sampled(event: str, *peers: str, seconds: float = 10.0) -> SampledOperations:
    wait = OperationWait("client", event, peers)
    return SampledOperations("client", ((wait, seconds),), ["osd_op(x)"])


def places(found: Account) -> dict[Place, Any]:
    return {place: pytest.approx(seconds) for place, seconds in found.client.items() if seconds}


amounts = st.floats(0, 1e9, allow_subnormal=False)


@given(
    gains=st.lists(st.lists(amounts, min_size=len(Sums()), max_size=len(Sums())), max_size=4),
    store=st.booleans(),
    threads=st.booleans(),
    limited=st.floats(-1, 2),
    ping=st.floats(0, 100),
    waits=st.lists(
        st.tuples(
            st.sampled_from(
                ("receive", "queue", "blocked", "commit", "subops", "reply", "unknown")
            ),
            st.lists(st.sampled_from([f"osd.{n}" for n in range(9)]), max_size=3),
            st.floats(0, 1e6),
        ),
        max_size=9,
    ),
)
def test_every_second_goes_to_exactly_one_place(
    gains: list[list[float]],
    store: bool,
    threads: bool,
    limited: float,
    ping: float,
    waits: list[tuple[str, list[str], float]],
) -> None:
    """Whatever the counters say, and however little they agree."""
    sums = [Sums._make(gain) for gain in gains]
    samples = [sampled(event, *peers, seconds=seconds) for event, peers, seconds in waits]
    evidence = Evidence(store=store, threads=threads, limited=limited, ping=ping)
    found = account(*sums, evidence=evidence, samples=samples)
    for shares, name in ((found.client, "latency"), (found.replica, "replica")):
        whole = sum(getattr(one, name) for one in sums)
        assert sum(shares.values()) == pytest.approx(whole, rel=1e-6, abs=1e-6)
        assert all(seconds >= 0 for seconds in shares.values())
    assert len(found.client) + len(found.replica) <= MOST_PLACES


def test_a_write_waits_for_its_queue_its_store_and_its_replicas() -> None:
    waits = OperationWait("client", "commit"), OperationWait("client", "subops", ("osd.2",))
    both = SampledOperations("client", ((waits[0], 24.0), (waits[1], 10.0)), ["osd_op(x)"])
    found = account(WRITES, samples=[both])
    assert places(found) == {
        (State.QUEUE, "client"): 0.25,
        (State.QUEUE, "immediate"): 0.75,
        (State.CPU, ""): 0.5,
        (State.STORE_DEVICE, ""): 3.0 + 0.3,
        (State.STORE_COMMIT, ""): 2.7,
        (State.REPLICA, "osd.2"): 2.5,
    }
    assert found.excess == 0.0


def test_replicas_of_which_any_may_be_missing_share_the_time() -> None:
    samples = [sampled("subops", "osd.1", "osd.2", seconds=1.0), sampled("subops", "osd.2")]
    found = account(WRITES, samples=samples).client
    assert found[State.REPLICA, "osd.1"] == pytest.approx(
        found[State.REPLICA, "osd.2"] * 0.5 / 10.5
    )


def test_replicas_that_no_sample_names_are_replicas_all_the_same() -> None:
    assert places(account(WRITES))[State.REPLICA, "other"] == pytest.approx(2.5)


def test_many_samples_correct_a_mean_commit_that_is_of_other_transactions() -> None:
    """Those of recovery, say: the mean says 6.0 of 8.5 seconds, and the samples all of it."""
    few = account(WRITES, samples=[sampled("commit")])
    assert few.client[State.REPLICA, "other"] == pytest.approx(2.5, abs=0.1)
    many = account(*[WRITES] * 20, samples=[sampled("commit")] * 100)
    assert many.client[State.REPLICA, "other"] < 20 * 2.5 * 0.7


def test_the_network_has_the_share_of_a_ping_in_the_time_of_a_replica_write() -> None:
    pinged = Evidence(store=True, threads=True, ping=0.01)
    found = places(account(WRITES._replace(replica=8.0, replicas=200), evidence=pinged))
    assert found[State.NETWORK, ""] == pytest.approx(0.5)
    assert found[State.REPLICA, "other"] == pytest.approx(2.0)


def test_a_read_waits_for_the_device_or_the_cpu_and_on_other_osds_for_shards() -> None:
    read = Sums(
        latency=4.0,
        ops=100,
        reads=100,
        process=3.0,
        read_process=3.0,
        prepare=2.0,
        read_prepare=2.0,
        read_wait=1.5,
        read_waits=50,
        worker_run=0.3,
        client=100,
    )
    assert places(account(read)) == {
        (State.QUEUE, "client"): 1.0,
        (State.STORE_DEVICE, ""): 1.5,
        (State.CPU, ""): 0.3,
        (State.UNKNOWN, ""): 0.2,  # no thread was on a CPU or waited for one
        (State.REPLICA, "other"): 1.0,
    }


def test_operations_that_are_blocked_are_no_reason_to_blame_the_queue() -> None:
    found = account(WRITES, samples=[sampled("blocked"), sampled("queue", seconds=30.0)])
    assert places(found)[State.BLOCKED, ""] == pytest.approx(0.25)


def test_an_event_that_is_not_understood_is_unknown() -> None:
    found = account(WRITES, samples=[sampled("unknown"), sampled("queue")])
    assert places(found)[State.UNKNOWN, ""] == pytest.approx(0.5)


def test_what_waits_for_its_limit_waits_for_no_class() -> None:
    found = places(account(WRITES, evidence=Evidence(store=True, threads=True, limited=1.0)))
    assert found[State.QUEUE, "limit"] == pytest.approx(1.0)
    assert (State.QUEUE, "immediate") not in found


def test_threads_that_wait_for_a_cpu_serve_no_queue() -> None:
    found = places(account(WRITES._replace(worker_wait=6.0)))
    assert found[State.QUEUE, "cpu"] == pytest.approx(0.75)


def test_while_clients_are_refused_they_alone_wait_to_be_read() -> None:
    waiting = WRITES._replace(before_queue=0.8)
    assert places(account(waiting))[State.RECEIVE, ""] == pytest.approx(0.2)
    refused = places(account(waiting._replace(refused=7)))
    assert refused[State.RECEIVE, ""] == pytest.approx(0.8)


def test_a_commit_thread_that_waits_for_a_cpu_is_no_slow_device() -> None:
    found = places(account(WRITES._replace(kv_wait=5.0)))
    assert found[State.STORE_CPU, ""] == pytest.approx(1.5)
    assert found[State.STORE_DEVICE, ""] == pytest.approx(3.15)


def test_without_counters_of_the_store_or_the_threads_their_time_is_unknown() -> None:
    found = places(account(WRITES, evidence=Evidence(store=False, threads=False)))
    assert found[State.UNKNOWN, ""] == pytest.approx(9.0)


def test_counters_that_disagree_are_cut_and_counted() -> None:
    found = account(WRITES._replace(commit=900.0))
    assert found.excess == pytest.approx(300.0 - 8.5)
    assert (State.REPLICA, "other") not in places(found)


def test_writes_for_other_primaries_have_an_account_of_their_own() -> None:
    found = account(WRITES._replace(replica=13.0, replicas=200))
    # Their messages waited 0.3 s, all 300 of them; the store is that of the clients' writes.
    assert found.replica[State.QUEUE, ""] == pytest.approx(0.2)
    store = (State.STORE_DEVICE, State.STORE_COMMIT, State.STORE_CPU)
    assert sum(found.replica.get((s, ""), 0.0) for s in store) == pytest.approx(12.0)


def test_a_reset_of_the_counters_begins_anew() -> None:
    found = account(WRITES)
    found.advance(WRITES._replace(latency=3.0), 1100.0, ALL_KNOWN)
    assert sum(found.client.values()) == pytest.approx(13.0)


def test_the_worst_peers_keep_their_names() -> None:
    many: list[Any] = [sampled("subops", f"osd.{n}", seconds=10.0 - n) for n in range(9)]
    found = places(account(WRITES, samples=many))
    named = {by for state, by in found if state is State.REPLICA}
    assert named == {"osd.0", "osd.1", "osd.2", "other"}
