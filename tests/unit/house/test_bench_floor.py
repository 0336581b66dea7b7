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

from cephqos_exporter.cli import build_parser, every_option, read_settings
from cephqos_exporter.core_options import PROC


def test_the_same_requests_are_made_once_more() -> None:
    with replayed(2) as host:
        before = requests_so_far(host.paths)
        floor(host.paths)
        asked = requests_since(before, requests_so_far(host.paths))
        assert asked == {path: Counter(FLOOR_COMMANDS) for path in host.paths}
        same_requests(asked)
        again = requests_since(before, requests_so_far(host.paths))
        assert again == {path: asked[path] + asked[path] for path in host.paths}


def test_the_exporter_knows_the_flags_of_the_bench() -> None:
    """No test runs the benches whole, so nothing else would tell of an option that has gone."""
    parser = build_parser(every_option())
    with replayed(1) as host:
        arguments = parser.parse_args([f"--discovery.sockets={host.sockets}", *host.flags])
        settings = read_settings(vars(arguments), {})
        assert settings[PROC].startswith(str(host.sockets.parent))
