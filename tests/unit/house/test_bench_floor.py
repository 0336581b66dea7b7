"""The bench's bare client asks a replayed daemon what the exporter asked, no more and no less."""

from collections import Counter

from tests.bench.exporter.floor import (
    FLOOR_COMMANDS,
    floor,
    requests_since,
    requests_so_far,
    same_requests,
)
from tests.bench.exporter.replayed import replayed


def test_the_same_requests_are_made_once_more() -> None:
    with replayed(2) as host:
        before = requests_so_far(host.paths)
        floor(host.paths)
        asked = requests_since(before, requests_so_far(host.paths))
        assert asked == {path: Counter(FLOOR_COMMANDS) for path in host.paths}
        same_requests(asked)
        again = requests_since(before, requests_so_far(host.paths))
        assert again == {path: asked[path] + asked[path] for path in host.paths}
