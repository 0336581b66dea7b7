"""The demo without a terminal: its events, and the picture when an alert begins or ends."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.picture import TopSamples
from cephqos_loadgen.top.screen.layout import line
from cephqos_loadgen.top.watch import Watch
from cephqos_stack.demo.printout import Printout

from ..top_samples import NOW, example

VIOLATED = example().values["violated"]
QUIET = replace(example(violated=dict.fromkeys(VIOLATED, 0.0)), alerts=())
DEVICE = {
    "alertname": "CephQosReservationViolated",
    "severity": "critical",
    "ceph_daemon": "osd.1",
    "class": "client",
    "cause": "device",
}


def firing(*alerts: Mapping[str, str]) -> TopSamples:
    return replace(example(), alerts=alerts)


class Shown:
    """A printout of these samples, one after the other, and its events."""

    name = "Prometheus"

    def __init__(self, *samples: TopSamples) -> None:
        self._samples = list(samples)
        self.events: list[str] = []
        watch = Watch(self, 2.0, now=lambda: NOW)
        self.printout = Printout(watch, self.events.append, lambda: [line("Ceph 18.2")])

    async def fetch(self, _: Selection) -> TopSamples:
        return self._samples.pop(0)


def pictures(capsys: pytest.CaptureFixture[str]) -> int:
    printed = capsys.readouterr().out
    assert printed.count("Ceph 18.2") == printed.count("cephqos top") == printed.count("CLASSES")
    return printed.count("CLASSES")


async def test_a_picture_is_printed_when_an_alert_begins_and_when_it_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = Shown(QUIET, QUIET, firing(DEVICE), firing(DEVICE), QUIET, QUIET)
    printed = []
    for _ in range(6):
        await shown.printout.refresh()
        printed.append(pictures(capsys))
    assert printed == [0, 0, 1, 0, 1, 0]


async def test_an_alert_of_another_osd_is_another_picture_and_a_changed_cause_is_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other_osd, other_cause = {**DEVICE, "ceph_daemon": "osd.2"}, {**DEVICE, "cause": "cpu"}
    shown = Shown(firing(DEVICE), firing(other_cause), firing(DEVICE, other_osd))
    printed = []
    for _ in range(3):
        await shown.printout.refresh()
        printed.append(pictures(capsys))
    assert printed == [1, 0, 1]


async def test_the_sentence_on_all_reservations_is_an_event_when_it_has_changed_for_good() -> None:
    short = replace(QUIET, values=example().values)
    shown = Shown(QUIET, QUIET, short, QUIET, short, short, short, QUIET, QUIET)
    for _ in range(9):
        await shown.printout.refresh()
    kept, violated, again = shown.events
    assert kept.startswith("KEPT: ") and again == kept
    assert violated.startswith("VIOLATED: client on 2 OSDs")


async def test_a_picture_that_is_asked_for_is_printed_unless_the_last_one_is_as_new(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begins = firing(DEVICE)
    soon, later = replace(begins, time=NOW + 0.5), replace(begins, time=NOW + 2)
    shown = Shown(begins, soon, later)
    await shown.printout.refresh()
    assert pictures(capsys) == 1
    await shown.printout.refresh(picture=True)
    assert pictures(capsys) == 0
    await shown.printout.refresh(picture=True)
    assert pictures(capsys) == 1
