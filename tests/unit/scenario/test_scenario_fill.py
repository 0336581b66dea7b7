"""Filling pools: how long it may take, and that all was written."""

import pytest
from tests.recorded import RELEASES, client_output

from cephqos_loadgen.engines import rados_bench
from cephqos_loadgen.plan.errors import RunError
from cephqos_loadgen.plan.estimate import bytes_seconds, objects_seconds
from cephqos_loadgen.plan.parts import Objects
from cephqos_loadgen.pools.pools import check_written, fill_limit


def test_the_largest_pools_of_the_studies_have_time_to_be_filled() -> None:
    """10 million objects took seven hours at the rate of a lab on two cores."""
    assert fill_limit(objects_seconds(Objects(10_000_000, 32 << 10))) > 10 * 3600
    assert fill_limit(bytes_seconds(100 << 30)) >= 7000
    assert fill_limit(1.0) == 7200, "a small one is not given up early"


@pytest.mark.parametrize("release", RELEASES)
def test_a_writer_whose_time_was_up_has_not_filled_its_pool(release: str) -> None:
    """rados bench ends with status 0 in either case."""
    data = client_output(release, "bench_write")
    written = rados_bench.read_result(data).ops
    check_written("p", Objects(2 * written, 4096), [data, data], 60)
    with pytest.raises(RunError, match=rf"pool p: {written} of {written + 1} objects"):
        check_written("p", Objects(written + 1, 4096), [data], 60)


def test_a_writer_without_a_result_is_an_error() -> None:
    with pytest.raises(RunError, match="filling pool p: rados bench wrote no JSON"):
        check_written("p", Objects(1, 4096), [b""], 60)
