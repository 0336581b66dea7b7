"""Each part of each reply in turn has another shape: what needs it is absent and counted.

Nothing else may suffer: no collector of several replies fails as a whole, and no figure of the
others becomes 0 or goes without a word.
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
# May be missing by a setting, in some releases, or because there are none.
MAY_BE_ABSENT: Final = re.compile(
    r"throttle-.*|write_blocked_by_scrub|level|deadline|osd_mclock_.*"
)
REPLIES: Final = (
    *("config diff", "counter dump", "perf dump", "dump_blocked_ops_count", "dump_op_pq_state"),
    *("dump_osd_network", "dump_recovery_reservations", "dump_scrub_reservations", "dump_scrubs"),
    *("ops", "perf histogram dump"),
)
# Their only reply is theirs to lose.
OF_ONE_REPLY: Final = ("histograms", "network", "perf")

Way = tuple[str | int, ...]


class Figures(Shown):
    """With the numbers, of which only whether they are 0 counts."""

    def add(self, families: Any) -> None:
        made: list[Family] = list(families)
        for family in made if not made or not made[0].name.startswith("ceph_") else ():
            for suffix, labels, value in family.samples:
                assert isinstance(value, int | float), f"{family.name} is {value!r}"
                mark = " 0" if value == 0 else ""
                self.fields.add(f"{family.name}{suffix}{{{labels}}}{mark}")


def ways(reply: Any, way: Way = ()) -> Iterator[Way]:
    """To the parts of a reply; of a list, to its first entry."""
    for key, part in reply.items() if isinstance(reply, dict) else enumerate(reply[:1]):
        yield (*way, key)
        if isinstance(part, dict | list):
            yield from ways(part, (*way, key))


def wanted(command: str, way: Way) -> bool:
    names = [key for key in way if isinstance(key, str)]
    if command in ("counter dump", "perf dump"):
        return all(READ.fullmatch(name) for name in names)
    if command == "perf histogram dump":
        return len(way) < 2 or (len(way) == 3 and way[1] == "op_w_latency_in_bytes_histogram")
    return command != "config diff" or all(OPTIONS.fullmatch(name) for name in names)


def changed(reply: Any, way: Way, shape: str) -> Any:
    """Every entry of a list is changed alike."""
    reply = json.loads(json.dumps(reply))

    def change(place: Any, rest: Way) -> None:
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

    change(reply, way)
    return reply


def figures(moments: list[Replies]) -> Shown:
    found = Figures()
    shown(moments, {}, found)
    return found


@pytest.mark.parametrize(
    ("name", "shape"),
    [("16.2", "missing"), ("20.2", "missing"), ("20.2", "null"), ("20.2", "deeper")],
)
def test_what_has_another_shape_costs_the_figures_that_need_it(name: str, shape: str) -> None:
    replies = [RELEASES[name].osd_replies(moment) for moment in MOMENTS]
    before = figures(replies)
    faults = []
    unread = "perf dump" if "counter dump" in replies[-1] else ""
    for command in REPLIES:
        loaded = None if command == unread else replies[-1].get(command)
        for way in ways(loaded) if loaded else ():
            by_design = shape == "missing" and (
                way[-1] == 0 or MAY_BE_ABSENT.fullmatch(str(way[-1]))
            )
            if by_design or not wanted(command, way):
                continue
            moments = [
                r | {command: changed(r[command], way, shape)} if command in r else r
                for r in replies
            ]
            try:
                found = figures(moments)
            except AssertionError as exc:
                faults.append(f"{command}: {way}: {exc}")
                continue
            faults += [f"{command}: {way}: {fault}" for fault in judged(before, found)]
    assert faults == [], "\n".join(faults)


def judged(before: Shown, found: Shown) -> Iterator[str]:
    for collector, why in found.failed.items():
        if "Error(" in why and collector not in OF_ONE_REPLY:
            yield f"{collector} fails as a whole: {why}"
    lost = sorted(before.fields - found.fields)
    if lost and not found.failed and not found.not_understood:
        yield f"lost without a word: {lost[0]} and {len(lost) - 1} more"
