"""rados bench: command lines, and its output as 16.2, 18.2 and 20.2 wrote it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recorded import RELEASES, client_output

from cephqos_loadgen.engines import rados_bench
from cephqos_loadgen.phase_kinds.rados_bench import RadosBench
from cephqos_loadgen.plan.parts import Objects
from cephqos_loadgen.plan.place import ProgramPaths

PLACE = ProgramPaths(conf="/c.conf")


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("op", ["write", "seq", "rand"])
def test_the_result_of_every_release_and_operation_is_read(release: str, op: str) -> None:
    data = client_output(release, f"bench_{op}")
    found = rados_bench.read_result(data)
    assert found.ops > 5000 and found.seconds > 0.5
    assert 0 < found.latency_mean < found.latency_max
    finished = [row.finished for row in rados_bench.RowStream().feed(data)]
    assert finished == sorted(finished)
    assert finished[-1] <= found.ops


def test_an_output_without_a_document_is_refused() -> None:
    with pytest.raises(ValueError, match="no JSON"):
        rados_bench.read_result(b"error opening pool nopool\n")


def test_instances_share_out_what_is_in_flight() -> None:
    action = RadosBench(("a", "b", "c"), "write", 4096, 16)
    assert [action.in_flight_of(i) for i in range(3)] == [6, 5, 5]


def test_reads_find_what_the_writes_of_the_same_pool_and_size_left() -> None:
    write = RadosBench(("a",), "write", 4096, 4).argv(0, PLACE, 5)
    read = RadosBench(("a",), "seq", 4096, 4).argv(0, PLACE, 5)
    assert write[write.index("--run-name") + 1] == read[read.index("--run-name") + 1]
    assert "--no-cleanup" in write
    assert "--block-size" not in read, "reads take the size that was written"


@given(st.integers(1, 10**6), st.integers(1, 64))
def test_writers_fill_exactly_what_was_asked_for(count: int, writers: int) -> None:
    shares = Objects(count, 4096).shared_out(writers)
    assert sum(share.count for share in shares) == count
    assert all(share.count > 0 for share in shares)
    assert len(shares) == min(count, writers)
