"""What monitors and managers say and this cephqos does not know is counted."""

import pytest
from tests.recorded import RELEASES

from .test_cluster_poller import RecordedReader, poller, read, source


@pytest.mark.parametrize("release", RELEASES)
async def test_all_of_a_recorded_cluster_is_understood(release: str) -> None:
    for moment in ("idle", "scrub", "recovery"):
        reader = RecordedReader(release, moment)
        found = source(reader)
        await read(found)
        assert not found.not_understood.found
        await found.close()


async def test_a_reply_that_makes_no_sense_is_counted_and_the_cluster_is_down() -> None:
    reader = RecordedReader()
    reader.change = lambda name, reply: {} if name == "osd_dump" else reply
    polling = poller(reader)
    assert not await polling.poll()
    assert list(polling.not_understood.found) == ["reply"]
