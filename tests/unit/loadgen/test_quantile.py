"""Quantiles from buckets."""

from hypothesis import given
from hypothesis import strategies as st

from cephqos_loadgen.top.quantile import quantile


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
