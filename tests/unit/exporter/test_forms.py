"""What a collector plans once is never shown for a daemon that is another by now."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recorded import RECORDINGS
from tests.replay.daemons import RecordedDaemon, ReplayedHost

from cephqos_exporter.collectors.histograms import HistogramsCollector
from cephqos_exporter.collectors.perf import PerfCollector
from cephqos_exporter.families import Family, Form
from cephqos_exporter.labels import LabelText, render_labels
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import Renderer, render
from cephqos_exporter.scrape.validity import Seen

from ..exporter.scraping import scraping, text
from ..exporter.test_rendering import FAMILIES, VALUES
from ..osd_views import RecordedOsd, by_name

FORMS = st.lists(FAMILIES, max_size=4).map(Form.of)


@settings(max_examples=300)
@given(st.lists(FORMS, min_size=1, max_size=3), st.data())
def test_a_filled_form_is_written_as_its_families_are_whatever_was_written_before(
    forms: list[Form], data: st.DataObject
) -> None:
    renderer = Renderer()
    for form in (*forms, *forms):
        for as_families in (False, False, False, True):
            values = data.draw(st.lists(VALUES, min_size=form.places, max_size=form.places))
            before = data.draw(st.lists(FAMILIES, max_size=1))
            there, also_there = Seen(), Seen()
            render(before, there)
            render(before, also_there)
            filled = form.fill(values)
            given_now: Iterable[Family] = list(filled) if as_families else filled
            assert renderer.render(given_now, there) == render(list(filled), also_there)
            # and whatever follows on the page meets the same series
            assert render(list(filled), there) == render(list(filled), also_there)


def test_a_form_has_exactly_one_number_for_each_place() -> None:
    labels = [render_labels({"a": str(n)}) for n in range(2)]
    form = Form.of([Family("x", "gauge", "Help.", [("", text, 0) for text in labels])])
    assert [f.samples for f in form.fill([1, 2.5])] == [[("", labels[0], 1), ("", labels[1], 2.5)]]
    for values in ([], [1], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"{len(values)} numbers for 2 places"):
            form.fill(values)


def test_two_forms_that_look_alike_are_not_taken_for_each_other() -> None:
    def of(label: str) -> Form:
        return Form.of([Family("x", "gauge", "Help.", [("", LabelText(f'a="{label}"'), 0)])])

    renderer, one, other = Renderer(), of("1"), of("2")
    shown = [renderer.render(form.fill([7]), Seen()).lines for form in (one, other, one, other)]
    assert shown == [['x{a="1"} 7\n'], ['x{a="2"} 7\n']] * 2


# Changes of what a daemon has, each of which keeps how many loggers and sets there are.


def rename(loggers: dict[str, Any]) -> None:
    loggers["another"] = loggers.pop("objecter")


def relabel(loggers: dict[str, Any]) -> None:
    loggers["AsyncMessenger::Worker"][0]["labels"]["id"] = "9"


def swap(loggers: dict[str, Any]) -> None:
    loggers["AsyncMessenger::Worker"].reverse()


@pytest.mark.parametrize("change", [rename, relabel, swap])
def test_counters_whose_loggers_change_are_never_shown_under_the_old_ones(
    change: Callable[[dict[str, Any]], None],
) -> None:
    osd, collector = workers_apart(), PerfCollector()
    osd.scrape(collector)
    change(osd.replies["counter schema"])
    change(osd.replies["counter dump"])
    true = by_series(osd.scrape(PerfCollector()))
    assert by_series(osd.scrape(collector)).items() <= true.items()
    assert by_series(osd.scrape(collector)) == true


@pytest.mark.parametrize("change", [rename, relabel, swap])
def test_loggers_that_change_while_their_description_is_read_are_shown_soon(
    change: Callable[[dict[str, Any]], None],
) -> None:
    osd, collector = workers_apart(), PerfCollector()
    before = by_series(osd.scrape(PerfCollector()))
    change(osd.replies["counter schema"])
    assert by_series(osd.scrape(collector)).items() <= before.items()
    change(osd.replies["counter dump"])
    osd.scrape(collector)
    assert by_series(osd.scrape(collector)) == by_series(osd.scrape(PerfCollector()))
    osd.scrape(collector)
    assert "counter schema" not in osd.asked[-1]


def workers_apart() -> RecordedOsd:
    """An OSD whose sets of one logger differ in their numbers."""
    osd = RecordedOsd("reef")
    for number, worker in enumerate(osd.replies["counter dump"]["AsyncMessenger::Worker"]):
        worker["counters"]["msgr_connection_idle_timeouts"] = 100 + number
    return osd


def by_series(families: Iterable[Family]) -> dict[tuple[str, str], float]:
    return {(f.name + suffix, text): n for f in families for suffix, text, n in f.samples}


def test_counters_that_were_reset_are_shown_as_they_are() -> None:
    osd, collectors = RecordedOsd("reef"), (PerfCollector(), HistogramsCollector(interval=0))
    for collector in collectors:
        osd.scrape(collector)
    for key, number in osd.counters("osd").items():
        osd.counters("osd")[key] = {"avgcount": 0, "sum": 0.0} if isinstance(number, dict) else 0
    for histogram in osd.replies["perf histogram dump"]["osd"].values():
        histogram["values"] = [[0] * len(row) for row in histogram["values"]]
    perf, histograms = (by_name(osd.scrape(collector)) for collector in collectors)
    assert [s[2] for s in perf["ceph_osd_op_w_latency"].samples] == [0, 0]
    assert {s[2] for f in histograms.values() for s in f.samples} == {0}


def recorded(release: str, osd: int) -> RecordedDaemon:
    """A daemon of another release, whose counters are its own."""
    bodies = dict(RecordedDaemon.load(RECORDINGS / release / "load").replies)
    for command in ("counter dump", "perf dump"):
        if command in bodies:
            dump = json.loads(bodies[command])
            counters = dump["osd"][0]["counters"] if command[0] == "c" else dump["osd"]
            counters["op"] = 1_000_000 + osd
            bodies[command] = json.dumps(dump).encode()
    return RecordedDaemon(bodies)


def of_daemons(page: str) -> Sequence[str]:
    lines = re.findall(r"^(?:ceph_|cephqos_osd_op)\S*{.*$", page, re.MULTILINE)
    assert len(lines) > 200
    return sorted(lines)


@pytest.mark.parametrize(("before", "after"), [("pacific", "tentacle"), ("tentacle", "reef")])
async def test_a_daemon_that_was_replaced_shows_nothing_of_the_one_before(
    tmp_path: Path, before: str, after: str
) -> None:
    host = ReplayedHost(tmp_path)
    daemon = host.add(recorded(before, 0))
    host.add(recorded(before, 1))

    def collectors() -> Sequence[Any]:
        return (PerfCollector(), HistogramsCollector())

    async with scraping(host, collectors()) as scraper:
        for _ in range(3):
            await text(scraper)
        daemon.stop()
        daemon.recording = recorded(after, 7)
        daemon.start()
        shown, *again = [of_daemons(await text(scraper)) for _ in range(4)]
        daemon.recording.replies |= recorded(after, 8).replies  # it goes on counting
        later = of_daemons(await text(scraper))
    async with scraping(host, collectors()) as fresh:
        expected = of_daemons(await text(fresh))
    assert again == [shown] * 3
    assert later == expected != shown
    assert [line.replace("1000008", "1000007") for line in later] == list(shown)


async def test_replies_that_change_by_one_digit_change_the_page(tmp_path: Path) -> None:
    host = ReplayedHost(tmp_path)
    daemon = host.add(recorded("reef", 1))
    async with scraping(host, [PerfCollector()]) as scraper:
        for number in (1, 2, 3):
            daemon.recording = recorded("reef", number)
            assert f"}} {1_000_000 + number}\n" in await text(scraper)


def test_families_are_in_the_order_of_the_daemons_even_where_some_lack_one() -> None:
    page = Page()
    for daemon, names in enumerate((("a", "b"), ("b",), ("a", "b"))):
        labels = render_labels({"daemon": str(daemon)})
        page.add(render([Family(name, "gauge", "Help.", [("", labels, 1)]) for name in names]))
    lines = [line for line in page.body(openmetrics=False).decode().splitlines() if "{" in line]
    assert lines == [
        f'{name}{{daemon="{d}"}} 1' for name, ds in (("a", "02"), ("b", "012")) for d in ds
    ]
