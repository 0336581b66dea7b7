"""The contract fails on a release that changed: one mutation of each kind, in memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.fields import shown
from tests.contract.releases import CLUSTER_MOMENTS, Difference, Release, Replies, releases
from tests.contract.verdict import judge

RELEASES = {release.name: release for release in releases()}
CLIENT = '{class="client"}'


def faults(release: Release, change: Callable[[Replies], Any] = lambda replies: None) -> list[str]:
    osd = [release.osd_replies(moment) for moment in release.moments]
    for replies in osd:
        change(replies)
    cluster = {moment: release.cluster_replies(moment) for moment in CLUSTER_MOMENTS}
    return list(judge(release, shown(osd, cluster)).faults)


def mutated(release: str, *differences: Difference) -> list[str]:
    found = RELEASES[release]
    return faults(replace(found, differences=[*found.differences, *differences]))


def has(found: Sequence[str], *wanted: str) -> None:
    for text in wanted:
        assert any(text in fault for fault in found), f"{text!r} is not in {found}"


@pytest.mark.parametrize("release", ["18.2", "20.2"])
def test_a_class_with_another_number_is_a_fault(release: str) -> None:
    found = mutated(release, Difference("dump_op_pq_state", text={"class_id: 3": "class_id: 7"}))
    has(found, "not understood: mclock: class: 7")
    has(found, f"missing: cephqos_qos_reservation_lag_seconds{CLIENT}")


def test_a_class_with_another_name_is_a_fault() -> None:
    found = mutated("21.x", Difference("dump_op_pq_state", text={"3client": "3external"}))
    has(found, "not understood: mclock: class: 3external")


def test_a_record_of_another_form_is_a_fault() -> None:
    found = mutated("20.2", Difference("dump_op_pq_state", text={"req_count": "requests"}))
    has(found, "not understood: mclock: class", "cephqos_qos_reservation_lag_seconds")


def test_requests_that_no_record_has_are_a_fault() -> None:
    more = Difference("dump_op_pq_state", at=["*", "queue_sizes"], set={"scheduler": 999})
    has(mutated("20.2", more), "not understood: mclock: reply", "999 requests wait")


def test_a_new_scheduler_is_a_fault() -> None:
    def bfq(replies: Replies) -> None:
        replies["dump_op_pq_state"] = {"OSD:ShardedOpWQ:0": {"bfq": []}}

    has(
        faults(RELEASES["20.2"], bfq), "not understood: mclock: reply", "missing: cephqos_qos_queue"
    )


def test_a_new_event_is_a_fault() -> None:
    def wait_for_quota(replies: Replies) -> None:
        for op in replies["ops"]["ops"]:
            op["type_data"]["events"] = [{"event": "charged_for_quota"}]
            op["type_data"]["flag_point"] = "charged"

    has(faults(RELEASES["20.2"], wait_for_quota), "not understood: ops: event: charged_for_quota")


@pytest.mark.parametrize("option", ["osd_mclock_scheduler_client_res", "osd_mclock_max_capacity*"])
def test_a_missing_option_is_a_fault(option: str) -> None:
    def without(replies: Replies) -> None:
        for options in (replies["config show"], replies["config diff"]["diff"]):
            for key in [key for key in options if key.startswith(option.rstrip("*"))]:
                del options[key]

    found = faults(RELEASES["20.2"], without)
    has(found, f"missing: cephqos_qos_reservation_ratio{CLIENT}")
    assert any(fault.startswith(("failed", "not understood")) for fault in found)


def test_a_release_without_known_profiles_is_a_fault() -> None:
    found = mutated("21.x", Difference("version", set={"version": "22.2.0"}))
    has(found, "not understood: mclock: profile: balanced of release 22")
    has(found, f"missing: cephqos_qos_reservation_ratio{CLIENT}")


def test_a_profile_with_a_new_name_is_a_fault() -> None:
    new = {"default": "balanced", "mon": "gentle", "final": "gentle"}
    found = mutated("21.x", Difference("config diff", at=["diff"], set={"osd_mclock_profile": new}))
    has(found, "not understood: mclock: profile: gentle of release 21")


@pytest.mark.parametrize(
    "command",
    ["config diff", "counter dump", "dump_op_pq_state", "dump_scrubs", "perf histogram dump"],
)
def test_a_command_that_is_gone_is_a_fault(command: str) -> None:
    has(mutated("20.2", Difference(command, gone=True)), "missing: ")


@pytest.mark.parametrize("logger", ["osd", "bluestore", "mclock-shard-queue-0"])
def test_a_logger_that_is_gone_is_a_fault(logger: str) -> None:
    assert mutated("20.2", Difference("counter dump", remove=[logger]))


@pytest.mark.parametrize("counter", ["recovery_bytes", "op_latency", "subop_w_latency", "op_wip"])
def test_a_counter_that_is_renamed_is_a_fault(counter: str) -> None:
    assert mutated("20.2", Difference("counter dump", ["osd", "*", "counters"], remove=[counter]))


def test_scrub_reservations_of_another_shape_are_a_fault() -> None:
    other = Difference("dump_scrub_reservations", set={"remote_scrub_reservations": "none"})
    has(mutated("20.2", other), "not understood: scrub: reply")


@pytest.mark.parametrize(("reply", "key"), [("pools", "pool_stats"), ("status", "pgmap")])
def test_a_reply_of_the_monitors_that_lacks_a_part_is_a_fault(reply: str, key: str) -> None:
    release = RELEASES["20.2"]
    without = Difference(reply, remove=[key])
    has(faults(replace(release, cluster_differences=[without])), "failed: cluster: ", key)


@pytest.mark.parametrize(
    ("reply", "at", "key"),
    [
        *(
            ("status", ("pgmap",), "pgs_by_state"),
            ("osd_dump", (), "pools"),
            ("pools", (), "pool_stats"),
        ),
        *(
            ("osd_dump", (), "osds"),
            ("primary_0", (), "pg_stats"),
            ("osd_dump", ("osds", ""), "up"),
        ),
    ],
)
def test_what_is_no_list_in_a_reply_of_the_monitors_is_a_fault_and_not_empty(
    reply: str, at: Sequence[str], key: str
) -> None:
    other = Difference(reply, at=at, set={key: {}})
    has(faults(replace(RELEASES["20.2"], cluster_differences=[other])), "failed: cluster: ", "dict")


def test_a_reason_for_a_field_that_is_there_is_a_fault() -> None:
    release = RELEASES["20.2"]
    (one, *_) = release.absent
    wrong = replace(one, fields=["cephqos_qos_shards"])
    has(
        faults(replace(release, absent=[*release.absent, wrong])),
        "declared absent, but shown: cephqos_qos_shards",
    )


def test_an_unchanged_release_has_no_fault() -> None:
    assert faults(RELEASES["20.2"]) == []
