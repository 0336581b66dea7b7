"""The effective configuration from `config show` once and `config diff` at every scrape."""

from typing import Any

import pytest

from cephqos_exporter.qos.config import ConfigTracker

SHOW = {
    "osd_mclock_profile": "balanced",
    "osd_mclock_max_capacity_iops_ssd": "21500.000000",
    "osd_mclock_scheduler_client_res": "0.500000",
    "osd_op_queue": "mclock_scheduler",
    "fsid": "not ours to keep",
}


def diff(**entries: dict[str, Any]) -> dict[str, Any]:
    return {"diff": {"fsid": {"default": "", "final": "x"}, **entries}}


def tracker(**entries: dict[str, Any]) -> ConfigTracker:
    started = ConfigTracker()
    started.update(diff(**entries), SHOW)
    return started


def test_what_differs_from_the_default_wins_over_the_full_dump() -> None:
    entry = {"default": 21500, "mon": 1000.5, "final": 1000.5}
    config = tracker().update(diff(osd_mclock_max_capacity_iops_ssd=entry), None)
    assert config.number("osd_mclock_max_capacity_iops_ssd") == 1000.5
    assert config.text("osd_mclock_profile") == "balanced"


def test_an_option_that_is_reset_while_we_look_is_back_at_its_default() -> None:
    show = {**SHOW, "osd_mclock_profile": "custom"}
    entry = {"default": "balanced", "mon": "custom", "final": "custom"}
    started = ConfigTracker()
    assert started.update(diff(osd_mclock_profile=entry), show).text("osd_mclock_profile") == (
        "custom"
    )
    assert started.update(diff(), None).text("osd_mclock_profile") == "balanced"


def test_a_profile_that_rewrites_defaults_shows_in_the_difference() -> None:
    entry = {"default": 0.6, "final": 0.6}
    config = tracker().update(diff(osd_mclock_scheduler_client_res=entry), None)
    assert config.number("osd_mclock_scheduler_client_res") == 0.6
    assert config.origin("osd_mclock_scheduler_client_res") == "default"


@pytest.mark.parametrize(
    ("sources", "origin"),
    [
        ({}, "default"),
        ({"mon": 1}, "mon"),
        ({"override": 1}, "local"),
        ({"file": 1}, "local"),
        ({"mon": 1, "override": 2}, "local"),
    ],
)
def test_the_origin_is_the_strongest_source(sources: dict[str, int], origin: str) -> None:
    entry = {"default": 21500, **sources, "final": 1}
    config = tracker().update(diff(osd_mclock_max_capacity_iops_ssd=entry), None)
    assert config.origin("osd_mclock_max_capacity_iops_ssd") == origin


def test_nothing_new_gives_the_same_object_and_a_change_another() -> None:
    started = tracker()
    first = started.update(diff(), None)
    assert started.update(diff(), None) is first
    entry = {"default": "balanced", "mon": "custom", "final": "custom"}
    assert started.update(diff(osd_mclock_profile=entry), None) is not first


def test_only_the_options_of_qos_are_kept() -> None:
    assert "fsid" not in tracker().update(diff(), None)


def test_without_the_full_dump_there_is_no_configuration() -> None:
    started = ConfigTracker()
    assert started.needs_full
    with pytest.raises(ValueError, match="config show"):
        started.update(diff(), None)
    started.update(diff(), SHOW)
    assert not started.needs_full


def test_an_option_that_is_no_number_or_not_there_has_no_number() -> None:
    config = tracker().update(diff(), None)
    assert config.number("osd_mclock_profile") is None
    assert config.number("osd_mclock_nothing") is None
