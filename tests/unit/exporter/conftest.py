"""What tests of scrapes share."""

from pathlib import Path

import pytest
from tests.replay.daemons import ReplayedHost

from .scraping import four_daemons


@pytest.fixture
def host(tmp_path: Path) -> ReplayedHost:
    return four_daemons(tmp_path)
