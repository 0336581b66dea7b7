"""Collectors pass clues to others, which run after them wherever they stand in the list."""

from cephqos_exporter.collectors import COLLECTORS, in_order
from cephqos_exporter.collectors.account import AccountCollector
from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.collectors.network import NetworkCollector


def test_a_collector_runs_after_those_whose_clues_it_reads() -> None:
    backwards = in_order(reversed(COLLECTORS))
    place = {collector: number for number, collector in enumerate(backwards)}
    assert place[AccountCollector] > max(place[MclockCollector], place[NetworkCollector])
    assert sorted(place.values()) == list(range(len(COLLECTORS)))


def test_the_list_is_in_that_order_already_so_the_page_has_its_order() -> None:
    assert tuple(in_order(COLLECTORS)) == COLLECTORS
