"""An exporter that sees no daemon says so, once, and when it sees one again."""

import logging
from pathlib import Path

import pytest
from tests.replay.daemons import RecordedDaemon, ReplayedHost

from cephqos_exporter.app import Finder


async def test_no_socket_is_a_warning_once_and_its_return_a_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    find = Finder([str(tmp_path)], ["osd"])
    for _ in range(3):
        assert find() == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(tmp_path) in caplog.text
    host = ReplayedHost(tmp_path)
    host.add(RecordedDaemon({}))
    async with host:
        assert len(find()) == len(find()) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
