"""From samples to the picture of `cephqos top`, and what it says of what is missing."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_base.terminal import printable
from cephqos_base.version import __version__
from cephqos_loadgen.top.build import build_picture
from cephqos_loadgen.top.cli import to_json
from cephqos_loadgen.top.figures import Selection, Values
from cephqos_loadgen.top.picture import Picture, TopSamples
from cephqos_loadgen.top.screen import text
from cephqos_loadgen.top.screen.layout import cut, line, plain
from cephqos_loadgen.top.screen.sections import headline
from cephqos_loadgen.top.screen.view import View, chosen_osds, pressed

from ..top_samples import CLIENT, FSID, HOSTILE, NOW, RECOVERY, example, without


def picture(samples: TopSamples | None = None, **selection: Any) -> Picture:
    return build_picture(samples or example(), Selection(**selection))


def order(view: View) -> list[str]:
    return [osd.name for osd in chosen_osds(picture(), view)]


def reasons(samples: TopSamples) -> str:
    return " | ".join(f"{it.what}: {it.why}" for it in picture(samples).missing)


def test_the_worst_class_of_an_osd_comes_first_with_its_cause_and_culprit() -> None:
    osd = {osd.name: osd for osd in picture().osds}
    worst = osd["osd.7"].worst
    assert worst
    assert (worst.name, worst.state) == (CLIENT, "violated")
    assert (worst.cause, worst.by) == ("other_class", RECOVERY)
    assert worst.attainment == pytest.approx(610 / 1070)


def test_a_class_is_summed_over_osds_and_counts_those_where_it_is_violated() -> None:
    client = picture().classes[0]
    assert client.name == CLIENT
    assert client.attained == pytest.approx(
        sum(900 * (1 + n / 100) for n in range(11) if n not in (3, 7)) + 750
    )
    assert client.violated_osds == 2


def test_osds_are_in_the_order_of_their_numbers_not_of_their_letters() -> None:
    assert order(View(sort="name"))[-3:] == ["osd.9", "osd.10", "osd.11"]


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("worst", ["osd.11", "osd.3", "osd.7"]),
        ("lag", ["osd.3"]),
        ("queue", ["osd.3"]),
        ("attainment", ["osd.3"]),
        ("name", ["osd.0", "osd.1"]),
    ],
)
def test_each_sort_key_puts_first_what_needs_attention(sort: str, first: list[str]) -> None:
    found = order(View(sort=sort))
    assert found[: len(first)] == first
    assert sorted(order(View(sort=sort, reverse=True))) == sorted(found)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("3", ["osd.3"]),
        ("osd.1", ["osd.1"]),
        ("violated", ["osd.3", "osd.7"]),
        ("client other_class", ["osd.7"]),
        ("DOWN", ["osd.11"]),
        ("nothing of the kind", []),
    ],
)
def test_the_filter_finds_osds_by_number_state_and_cause(words: str, expected: list[str]) -> None:
    assert order(View(filter=words)) == expected


def test_latency_percentiles_are_interpolated_within_their_bucket() -> None:
    read, write = picture().latency
    assert (read.op, read.ops_per_second) == ("read", 400)
    assert read.p50 == pytest.approx(0.0015)
    assert write.p95 == pytest.approx(0.01 + 0.01 * 950 / 970)
    assert write.p99 is not None
    assert write.p99 > 0.02  # in the slow tail


def test_a_bucket_whose_bound_is_no_number_is_passed_over() -> None:
    values = example().of("latency")
    odd = {**values, (FSID, "read", "many"): 5.0}
    assert picture(example(latency=odd)).latency == picture().latency


def test_alerts_that_differ_in_the_osd_only_are_one_and_pages_come_first() -> None:
    samples = example()
    of_osd_3 = samples.alerts[2]
    of_others = ({**of_osd_3, "ceph_daemon": osd} for osd in ("osd.10", "osd.9"))  # without a cause
    found = picture(replace(samples, alerts=(*samples.alerts, *of_others))).alerts
    assert [alert.severity for alert in found] == ["critical", "critical", "critical", "info"]
    assert [alert.osds for alert in found[:3]] == [("osd.3",), ("osd.7",), ("osd.9", "osd.10")]
    assert [(alert.cause, alert.by) for alert in found[:2]] == [
        ("device", ""),
        ("other_class", RECOVERY),
    ]
    assert found[0].since == NOW - 95


def test_alerts_of_another_cluster_and_the_watchdog_are_left_out() -> None:
    samples = example()
    others = {**samples.alerts[1], "cluster": "another"}
    assert picture(replace(samples, alerts=(samples.alerts[0], others))).alerts == ()


def test_without_rules_a_class_that_waits_and_gets_less_is_behind() -> None:
    bare = without("violated", "demand", "shortfall", "cause", rules=False)
    osd = {osd.name: osd for osd in picture(bare).osds}
    waiting, working = osd["osd.3"].worst, osd["osd.0"].worst
    assert waiting and working
    assert waiting.state == "behind"  # its queue is not empty
    assert waiting.shortfall == pytest.approx(1030 - 140)
    assert working.state == "kept"  # 900 of 1,000, and nothing waits


def test_without_rules_clients_that_wait_inside_the_store_count_as_waiting() -> None:
    bare = without("violated", "demand", "shortfall", "cause", "queued", "lag", rules=False)
    osd7 = (FSID, "osd.7")
    judging: dict[str, Values] = {
        "client_present": {osd7: 20.0},
        "store_seconds": {osd7: 60.0},
        "store_transactions": {osd7: 40.0},
    }
    samples = replace(bare, values={**bare.values, **judging})
    states = {osd.name: osd.worst.state for osd in picture(samples).osds if osd.worst}
    assert states["osd.7"] == "behind"
    assert states["osd.3"] == "kept"  # the same shortfall, but nobody waits


@pytest.mark.parametrize(("media", "state"), [("ssd", "behind"), ("hdd", "kept")])
def test_without_rules_a_disk_is_not_blamed_for_the_time_that_disks_take(
    media: str, state: str
) -> None:
    """2,000 transactions a second of 30 ms each: too long on flash, usual on a disk."""
    bare = without("violated", "demand", "shortfall", "cause", "queued", "lag", rules=False)
    osd7 = (FSID, "osd.7")
    changed: dict[str, Values] = {
        "scheduler": {(*osd7, "mclock_scheduler", "balanced", media, "config"): 1.0},
        "client_present": {osd7: 20.0},
        "store_seconds": {osd7: 60.0},
        "store_transactions": {osd7: 2000.0},
    }
    samples = replace(bare, values={**bare.values, **changed})
    assert {osd.name: osd.worst.state for osd in picture(samples).osds if osd.worst}[
        "osd.7"
    ] == state


def test_nothing_is_missing_from_the_whole_example() -> None:
    assert picture().missing == ()


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (TopSamples(time=NOW, values={}, rules=False), "no series of cephqos-exporter"),
        (
            TopSamples(time=NOW, values={}, rules=False, from_prometheus=False),
            "no exporter sees a daemon",
        ),
        (without("violated", rules=False), r"does not have the rules of cephqos \(`cephqos rules"),
        (without("scheduler"), "no cephqos_qos_scheduler_info: the exporter is too old"),
        (without("latency"), "client latency: no cephqos_osd_op_latency_seconds_bucket"),
        (without("attained"), "--window is shorter than two scrape intervals"),
        (without("lag"), "queues and lag of 11 OSDs: .*an mClock that is not supported"),
        (without("cluster_up"), "recovery and scrub: no exporter runs with --role=cluster"),
        (example(cluster_up={(FSID, "timeout"): 0.0}), "no answer from the monitors: timeout"),
        (example(version={("0.0.1",): 2.0}), rf"version 0\.0\.1; this is cephqos {__version__}"),
        (
            example(scheduler={(FSID, "osd.0", "wpq", "", "bandwidth", "none"): 1.0}),
            "reservations of osd.0: they run wpq, which has no reservations",
        ),
    ],
)
def test_what_is_missing_is_said_with_its_reason(samples: TopSamples, expected: str) -> None:
    assert re.search(expected, reasons(samples))


def test_a_monitor_that_answers_makes_no_exporter_too_old_for_osds_that_do_not() -> None:
    samples = example(
        up={(FSID, "mon.a", ""): 1.0, (FSID, "osd.0", "timeout"): 0.0}, scheduler={}, latency={}
    )
    assert "too old" not in reasons(samples)


def test_a_prometheus_that_has_just_begun_to_scrape_is_not_said_to_lack_anything() -> None:
    young = replace(without("attained", "latency", "threads", rules=False), with_rates=False)
    assert [(part.what, part.why) for part in picture(young).missing] == [
        (
            "rates and causes",
            "Prometheus began to scrape less than --window ago: they follow",
        )
    ]
    assert picture(replace(example(), with_rates=False)).missing == ()


def test_a_policy_that_sets_targets_for_wpq_is_not_reported_as_missing() -> None:
    held = example(scheduler={(FSID, "osd.0", "wpq", "", "bandwidth", "policy"): 1.0})
    assert "wpq" not in reasons(held)


def test_an_osd_that_is_down_is_not_said_to_lack_queues() -> None:
    assert "osd.11" not in reasons(example())


def test_a_cluster_that_is_not_there_is_named() -> None:
    found = build_picture(example(), Selection("0000")).missing
    assert "no series of cluster 0000" in found[0].why


def test_clusters_are_kept_apart() -> None:
    samples = example()
    other: Values = {("another", "osd.0", ""): 1.0}
    both = replace(samples, values={**samples.values, "up": {**samples.values["up"], **other}})
    assert build_picture(both, Selection()).clusters == (FSID, "another")
    assert len(build_picture(both, Selection()).osds) == 12
    assert [osd.name for osd in build_picture(both, Selection("another")).osds] == ["osd.0"]


def test_scrubs_under_way_are_done_within_an_interval() -> None:
    assert [str(scrub.left) for scrub in picture().scrubs if scrub.left] == [
        "3 min (1 min to 10 min)"
    ]
    values = dict(example().values)
    values["scrub_eta"] = {key: 180.0 for key in values["scrub_eta"] if key[-1] == "likely"}
    beside_recovery = picture(replace(example(), values=values)).scrubs
    assert [(scrub.eta, scrub.left) for scrub in beside_recovery if scrub.eta] == [(180.0, None)]


def test_no_control_character_of_the_cluster_enters_the_model() -> None:
    pools = [scrub.pool for scrub in picture().scrubs]
    assert printable(HOSTILE) in pools
    assert "\\x1b[2J" in pools[0]
    hostile = ({"alertname": HOSTILE, "severity": HOSTILE, "cluster": FSID, "class": HOSTILE},)
    shown = repr(picture(replace(example(), alerts=hostile)))
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@given(st.text(max_size=30).map(printable), st.integers(0, 40))
def test_a_line_is_exactly_as_wide_as_the_screen(words: str, columns: int) -> None:
    shown = cut(line(words, "tail"), columns)
    assert sum(text.width(span.text) for span in shown) == columns


def test_a_line_that_is_cut_says_so() -> None:
    assert plain(cut(line("osd.1", " is down"), 9)) == "osd.1 is…"
    assert plain(cut(line("osd.1", " is down"), 13)) == "osd.1 is down"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.6, "1 min"), (202, "3 min 22 s"), (7500, "2 h 5 min"), (360000, "4 d 4 h")],
)
def test_durations_have_two_units_at_most(seconds: float, words: str) -> None:
    assert text.duration(seconds) == words


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (example(), "VIOLATED: client on 2 OSDs; 1 OSD not answering"),
        (example(violated={}), "BEHIND at this moment: client on 1 OSD; 1 OSD not answering"),
        (
            without("violated", "queued", "lag", "client_waiting"),
            "KEPT: every class gets its reservation, or needs less (11 OSDs); 1 OSD not answering",
        ),
        (without("violated", "reserved"), "NO RESERVATIONS: no OSD has a reservation; 1 OSD not"),
        (without("violated", "attained"), "NOT KNOWN: the work of the classes is not known"),
        (without("violated", "attained", with_rates=False), "Measuring"),
        (example(up={(FSID, "osd.0", "timeout"): 0.0}, violated={}), "NO DATA: no OSD answers"),
        (TopSamples(time=NOW, values={}, rules=False), "NO DATA: no OSD is known"),
    ],
)
def test_the_headline_claims_no_more_than_is_known(samples: TopSamples, expected: str) -> None:
    assert plain(headline(picture(samples))).startswith(expected)


def test_json_has_what_the_screen_has_and_null_for_what_is_not_known() -> None:
    data = to_json(picture(osd="osd.3"), "Prometheus http://p:9090")
    assert data["version"] == 1
    osd = next(osd for osd in data["osds"] if osd["name"] == "osd.3")
    assert osd["classes"][0]["attainment"] == pytest.approx(140 / 1030)
    assert osd["classes"][-1]["reserved"] is None


def test_keys_move_open_and_step_back() -> None:
    view, shown = View(), picture()
    for key in ("down", "enter"):
        view = pressed(view, key, shown)
    assert view.opened == "osd.3"
    assert pressed(view, "escape", shown).opened is None
    assert pressed(View(), "up", shown).cursor == 0
    assert pressed(View(), "end", shown).cursor == 11


def test_while_the_filter_is_typed_keys_are_letters() -> None:
    view = View()
    for key in ("/", "q", "s", "backspace"):
        view = pressed(view, key, picture())
    assert view.typing
    assert view.filter == "q"
    kept = pressed(view, "enter", picture())
    assert (kept.typing, kept.filter) == (False, "q")
    assert pressed(view, "escape", picture()).filter == ""
    assert pressed(view, "ctrl+c", picture()).over


def test_a_key_that_is_not_known_changes_nothing() -> None:
    assert pressed(View(), "f12", picture()) == View()


def test_the_next_cluster_follows_in_a_circle() -> None:
    shown = replace(picture(), clusters=("a", "b"), cluster="b")
    assert View().next_cluster(shown).cluster == "a"
    assert View().next_cluster(picture()) == View()


def test_every_field_of_the_json_is_documented_and_every_documented_field_is_there() -> None:
    page = (Path(__file__).parents[3] / "docs/operate/top.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `([a-z_.\[\]]+)`[^|]* \| (.*) \|$", page.split("## JSON")[1], re.MULTILINE
    )
    documented = {
        name: set(re.findall(r"`([a-z_0-9]+)(?:\[\])?`", fields)) for name, fields in rows
    }
    data = to_json(picture(osd="osd.3"), "x")
    for name in (
        "classes",
        "osds",
        "latency",
        "recovery",
        "scrubs",
        "threads",
        "devices",
        "alerts",
    ):
        assert set(data[name][0]) <= documented[f"{name}[]"], name
        assert documented[f"{name}[]"] <= {*data[name][0], "osd", "client"}, name
    assert set(data["osds"][0]["classes"][0]) == documented["osds[].classes[]"]
    assert set(data["runs"][0]) == documented["runs[]"]
    top_level = page.split("## JSON")[1]
    assert not {name for name in data if f"`{name}" not in top_level}
