"""What the demo computes from two scrapes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_loadgen.demo.osd_table import rows, table
from cephqos_loadgen.scraping import parse_scrape, quantile

WHO = 'ceph_daemon="osd.0",cluster="f"'


def page(client: int, buckets: tuple[int, int], up: int = 1) -> str:
    return f"""# TYPE cephqos_daemon_up gauge
cephqos_daemon_up{{{WHO},reason=""}} {up}
# TYPE cephqos_qos_normalised_ops_total counter
cephqos_qos_normalised_ops_total{{{WHO},class="client"}} {client}
cephqos_qos_normalised_ops_total{{{WHO},class="immediate"}} 7
# TYPE cephqos_qos_queue_length gauge
cephqos_qos_queue_length{{{WHO},class="client",shard="0"}} 2
cephqos_qos_queue_length{{{WHO},class="client",shard="1"}} 3
# TYPE cephqos_qos_reservation_lag_seconds gauge
cephqos_qos_reservation_lag_seconds{{{WHO},class="client",shard="0"}} 0.5
cephqos_qos_reservation_lag_seconds{{{WHO},class="client",shard="1"}} 0.25
# TYPE cephqos_osd_op_latency_seconds histogram
cephqos_osd_op_latency_seconds_bucket{{{WHO},op="write",le="0.1"}} {buckets[0]}
cephqos_osd_op_latency_seconds_bucket{{{WHO},op="write",le="+Inf"}} {buckets[1]}
cephqos_osd_op_latency_seconds_count{{{WHO},op="write"}} {buckets[1]}
"""


def test_rates_are_per_second_of_the_interval_and_queues_add_up_over_shards() -> None:
    before = parse_scrape(page(100, (10, 10)), 50.0)
    now = parse_scrape(page(500, (110, 110)), 54.0)
    (osd,) = rows(before, now)
    assert osd.name == "osd.0"
    assert osd.client == 100.0
    assert osd.queued == 5
    assert osd.lag == 0.5
    assert osd.write_p99 == pytest.approx(0.099)
    assert osd.capacity is None


def test_a_counter_that_went_backwards_gives_no_rate() -> None:
    before = parse_scrape(page(500, (10, 10)), 50.0)
    now = parse_scrape(page(3, (10, 10)), 54.0)
    (osd,) = rows(before, now)
    assert osd.client is None
    assert osd.write_p99 is None


def test_an_osd_that_does_not_answer_is_shown_as_such() -> None:
    scrape = parse_scrape(page(1, (1, 1), up=0), 1.0)
    view = table("title", "caption", rows(scrape, parse_scrape(page(1, (1, 1), up=0), 2.0)))
    assert "does not answer" in str(next(iter(view.columns[0].cells)))


@given(
    st.lists(st.integers(0, 1000), min_size=2, max_size=12), st.floats(0.01, 0.99, allow_nan=False)
)
def test_a_quantile_lies_in_the_bucket_where_its_rank_falls(counts: list[int], q: float) -> None:
    bounds = [float(2**n) for n in range(len(counts) - 1)] + [float("inf")]
    cumulative: dict[float, float] = {}
    total = 0
    for bound, count in zip(bounds, counts, strict=True):
        total += count
        cumulative[bound] = total
    value = quantile(cumulative, q)
    if total == 0:
        assert value is None
        return
    assert value is not None
    bucket = next(bound for bound in bounds if cumulative[bound] >= q * total)
    assert value <= bucket
    index = bounds.index(bucket)
    assert value >= (bounds[index - 1] if index else 0)
