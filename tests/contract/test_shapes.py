"""A reply of which one part has another shape: only the figures that need the part are absent.

One after the other, each part of each recorded reply is left out, made null, or put a level deeper.
What is lost must be counted as not understood. No collector of several replies may fail as a whole,
and no other figure may become 0.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.contract.fields import Shown, shown
from tests.contract.releases import Replies, releases

from cephqos_exporter.families import Family

RELEASES: Final = {release.name: release for release in releases()}
MOMENTS: Final = ("load", "load")  # what is in progress is listed the second time
# Of the counters, a part: those that are read, and some that are not.
READ: Final = re.compile(
    r"osd|bluestore|recoverystate_perf|throttle-bluestore_throttle_bytes|osd_scrub_dp_repl"
    r"|op_latency|op_wip|subop_w|recovery_ops|successful_scrubs_replicated_elapsed|chunk_selected"
    r"|kv_commit_lat|waitlocalrecoveryreserved_latency|labels|counters|sum|avgcount|max"
)
OPTIONS: Final = re.compile(r"diff|default|final|osd_mclock_scheduler_client_res")
# May be missing by a setting, in some releases, or because there are none; a shard is one fewer.
MAY_BE_ABSENT: Final = re.compile(
    r"throttle-.*|write_blocked_by_scrub|level|deadline|osd_mclock_.*|OSD:ShardedOpWQ:\d"
)
REPLIES: Final = (
    *("config diff", "counter dump", "perf dump", "dump_blocked_ops_count", "dump_op_pq_state"),
    *("dump_osd_network", "dump_recovery_reservations", "dump_scrub_reservations", "dump_scrubs"),
    *("ops", "perf histogram dump"),
)
# Their only reply is theirs to lose.
OF_ONE_REPLY: Final = ("histograms", "network", "perf")

Keys = tuple[str | int, ...]  # that lead to a part of a reply


class Figures(Shown):
    """With the numbers, of which only whether they are 0 counts."""

    def add(self, families: Any) -> None:
        made: list[Family] = list(families)
        for family in made if not made or not made[0].name.startswith("ceph_") else ():
            for suffix, labels, value in family.samples:
                assert isinstance(value, int | float), f"{family.name} is {value!r}"
                mark = " 0" if value == 0 else ""
                self.fields.add(f"{family.name}{suffix}{{{labels}}}{mark}")


def parts_of(reply: Any, keys: Keys = ()) -> Iterator[Keys]:
    """The keys of all parts; of a list, those of its first entry."""
    for key, part in reply.items() if isinstance(reply, dict) else enumerate(reply[:1]):
        yield (*keys, key)
        if isinstance(part, dict | list):
            yield from parts_of(part, (*keys, key))


def tried(replies: Replies, shape: str) -> Iterator[tuple[str, Keys]]:
    """The parts that are changed, by command: of large replies a few, so that the test ends."""
    unread = "perf dump" if "counter dump" in replies else ""
    for command in REPLIES:
        reply = None if command == unread else replies.get(command)
        for keys in parts_of(reply) if reply else ():
            may_be_absent = keys[-1] == 0 or MAY_BE_ABSENT.fullmatch(str(keys[-1]))
            if is_read(command, keys) and not (shape == "missing" and may_be_absent):
                yield command, keys


def is_read(command: str, keys: Keys) -> bool:
    names = [key for key in keys if isinstance(key, str)]
    if command in ("counter dump", "perf dump"):
        return all(READ.fullmatch(name) for name in names)
    if command == "perf histogram dump":
        return len(keys) < 2 or (len(keys) == 3 and keys[1] == "op_w_latency_in_bytes_histogram")
    return command != "config diff" or all(OPTIONS.fullmatch(name) for name in names)


def changed(reply: Any, keys: Keys, shape: str) -> Any:
    """The reply with this part in another shape; every entry of a list is changed alike."""
    reply = json.loads(json.dumps(reply))

    def change(place: Any, rest: Keys) -> None:
        key, *more = rest
        for one in range(len(place)) if key == 0 and isinstance(place, list) else (key,):
            if isinstance(place, dict) and one not in place:
                continue
            if more:
                change(place[one], tuple(more))
            elif shape == "missing":
                del place[one]
            else:
                place[one] = None if shape == "null" else {"value": place[one]}

    change(reply, keys)
    return reply


def collected(moments: list[Replies]) -> Shown:
    figures = Figures()
    shown(moments, {}, figures)
    return figures


@pytest.mark.parametrize(
    ("name", "shape"),
    [("16.2", "missing"), ("20.2", "missing"), ("20.2", "null"), ("20.2", "deeper")],
)
def test_what_has_another_shape_costs_the_figures_that_need_it(name: str, shape: str) -> None:
    replies = [RELEASES[name].osd_replies(moment) for moment in MOMENTS]
    before = collected(replies)
    faults = []
    for command, keys in tried(replies[-1], shape):
        moments = [
            r | {command: changed(r[command], keys, shape)} if command in r else r for r in replies
        ]
        try:
            after = collected(moments)
        except AssertionError as exc:
            faults.append(f"{command}: {keys}: {exc}")
        else:
            faults += [f"{command}: {keys}: {fault}" for fault in faults_of(before, after)]
    assert faults == [], "\n".join(faults)


def faults_of(before: Shown, after: Shown) -> Iterator[str]:
    for collector, why in after.failed.items():
        if "Error(" in why and collector not in OF_ONE_REPLY:
            yield f"{collector} fails as a whole: {why}"
    lost = sorted(before.fields - after.fields)
    if lost and not after.failed and not after.not_understood:
        yield f"lost without a word: {lost[0]} and {len(lost) - 1} more"
