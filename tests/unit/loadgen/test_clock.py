"""A clock that is set while a repeat runs is noticed: durations are taken from it."""

from typing import Any

from cephqos_loadgen.run.clock import ClockWatch


class Clocks:
    """Both clocks of a host."""

    def __init__(self) -> None:
        self.now, self.steady = 1_795_000_000.0, 50.0

    def go_on(self, seconds: float, moved: float = 0.0) -> None:
        self.steady += seconds
        self.now += seconds + moved


def test_a_clock_that_is_set_is_an_event_and_a_finding_and_one_that_is_slewed_is_none() -> None:
    clocks = Clocks()
    events: list[tuple[str, dict[str, Any]]] = []
    watch = ClockWatch(
        lambda kind, **details: events.append((kind, details)),
        lambda: clocks.now,
        lambda: clocks.steady,
    )
    for _ in range(3600):
        clocks.go_on(1.0, 0.0005)
        watch.look()
    assert (events, watch.findings) == ([], [])
    clocks.go_on(1.0, -3600.0)
    watch.look()
    clocks.go_on(1.0)
    watch.look()
    ((kind, details),) = events
    assert (kind, round(details["seconds"])) == ("clock_set", -3600)
    assert watch.findings == ["clock: this host's clock moved by -3600.0 s at 11:06:42 UTC"]
