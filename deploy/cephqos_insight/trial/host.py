"""`trial --host`: a setting on the OSDs of one host, beside OSDs like them on other hosts.

For what OSDs read only when they start, such as the scheduler. The host's OSDs are restarted twice:
with the setting, and back. Before, with and after it are as many blocks each. What counts is the
host's figure divided by that of the others at the same time, so load that changes favours none.

A round has one block of each. The first before belongs to the last after, so what goes on evenly
all the time favours none either. Before and after have the same settings: how far they are apart
stands beside the answer, and if they differ clearly, there is none.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_base.units import time_span
from cephqos_insight.trial.conduct import (
    Trial,
    TrialBlock,
    Watching,
    World,
    measured,
    no_measure,
    watch,
)
from cephqos_insight.trial.guard import Guard
from cephqos_insight.trial.measure import BLUR, BlockFigures, Reading, between
from cephqos_insight.trial.plan import REFERENCE, Timetable, TriedSetting
from cephqos_loadgen.cluster import restart_plan, restarts
from cephqos_loadgen.cluster.connection import ClusterView
from cephqos_loadgen.plan.errors import ClusterUnfit

AGAIN: Final = "as it is, again"
_ALIKE: Final = 0.1  # by how much weights of OSDs may differ


@dataclass(frozen=True, slots=True)
class HostGroups:
    """The OSDs of a host, and those that they are laid beside."""

    host: str
    osds: tuple[int, ...]
    others: tuple[int, ...]

    def __str__(self) -> str:
        mine, others = restarts.named(self.osds), restarts.named(self.others)
        return f"Host {self.host} ({mine}) beside {others}."


async def find_groups(cluster: ClusterView, host: str) -> HostGroups:
    """Of OSDs that are up and in. The others have the class and about the weight of one of them."""
    nodes = (await cluster.command("osd tree"))["nodes"]
    hosts = {node["name"]: node["children"] for node in nodes if node["type"] == "host"}
    if host not in hosts:
        raise UsageError(f"--host {host}: expected one of {', '.join(sorted(hosts))}")
    osds = {
        node["id"]: (str(node.get("device_class")), float(node["crush_weight"]))
        for node in nodes
        if node["type"] == "osd" and node["status"] == "up" and node["reweight"] > 0
    }
    mine = sorted({*osds} & {*hosts[host]})
    elsewhere = sorted({*osds} - {*mine})
    others = [osd for osd in elsewhere if any(_alike(osds[osd], osds[one]) for one in mine)]
    if not others:
        found = ", ".join(f"osd.{osd} {osds[osd][0]} {osds[osd][1]:g}" for osd in elsewhere)
        raise ClusterUnfit(
            f"--host {host}: expected an OSD that is up on another host, with the device class and"
            f" the weight of one that is up on this host; found {found or 'none on another host'}"
        )
    return HostGroups(host, tuple(mine), tuple(others))


def _alike(one: tuple[str, float], other: tuple[str, float]) -> bool:
    return one[0] == other[0] and abs(one[1] - other[1]) <= _ALIKE * max(one[1], other[1])


async def check_restart(cluster: ClusterView, osds: Sequence[int]) -> None:
    """ClusterUnfit or SettingRefused if they cannot, or must not, be restarted."""
    if cluster.access.at_once:
        return
    dump = await cluster.command("osd dump")
    if tight := sorted(restart_plan.tight_pools(dump)):
        raise ClusterUnfit(
            "OSDs are restarted, and without one of them pools stand still"
            f" ({', '.join(tight)} need all their copies)"
        )
    if held := restarts.kept_down(dump, osds):
        raise ClusterUnfit(held)
    await cluster.access.check_restart(cluster, osds)


def on_osds(candidate: TriedSetting, osds: Sequence[int | str]) -> TriedSetting:
    """The same settings, of these OSDs only."""
    options = [replace(o, section=f"osd.{osd}") for osd in osds for o in candidate.options]
    return TriedSetting(candidate.name, tuple(options))


@dataclass(slots=True)
class HostTrial(Trial):
    """`blocks` have the host's figures. A round has a block of the reference, one of the candidate
    and one of the reference again."""

    groups: HostGroups = HostGroups("", (), ())
    others: dict[tuple[int, str], BlockFigures] = field(default_factory=dict)  # by round and arm

    def differences(self, candidate: str, figure: str) -> list[float]:
        found = []
        for number in range(1, self.rounds + 1):
            beside = {
                arm: math.log(value)
                for arm in (REFERENCE, candidate, AGAIN)
                if (value := self._beside_others(number, arm, figure))
            }
            before, again = beside.get(REFERENCE), beside.get(AGAIN)
            if before is None or again is None or candidate not in beside:
                continue
            if candidate == AGAIN:
                found.append(again - before)
            else:
                found.append(beside[candidate] - (before + again) / 2)
        return found

    def _beside_others(self, number: int, arm: str, figure: str) -> float | None:
        """The host's figure divided by that of the others; None: not known, or one of both is 0."""
        stretches = [b.stretch for b in self.blocks if (b.round, b.arm) == (number, arm)]
        other = self.others.get((number, arm))
        if not stretches or stretches[0] is None or other is None:
            return None
        mine, theirs = (one.figures.get(figure, 0.0) for one in (stretches[0], other))
        return mine / theirs if mine and theirs else None

    def blur(self, figure: str) -> float:
        """The host's figure and that of the others may each be as far off."""
        return 2 * BLUR.get(figure, 0.0)


def timetable(candidate: str, block_seconds: float, rounds: int) -> Timetable:
    """`rounds` blocks before, with and after the setting. Nothing is drawn."""
    return Timetable((candidate, AGAIN), block_seconds, rounds, rounds, 0)


def stages(table: Timetable) -> Iterator[tuple[int, str]]:
    """All blocks in their order: their rounds, and what is in force."""
    candidate, rounds = table.candidates[0], range(1, table.most_rounds + 1)
    for arm, numbers in ((REFERENCE, rounds), (candidate, rounds), (AGAIN, reversed(rounds))):
        yield from ((number, arm) for number in numbers)


def lines(table: Timetable, candidate: TriedSetting, host: str) -> Iterator[str]:
    """What `--dry-run` prints. Which OSDs the host has is not known then."""
    length, rounds = time_span(table.block_seconds), table.most_rounds
    yield (
        f"{rounds} blocks of {length} before, with and after the setting:"
        f" {time_span(3 * rounds * table.block_seconds)}, and two restarts of the host's OSDs"
    )
    yield ""
    yield f"{candidate.name}, for each OSD N of host {host}, which is then restarted:"
    yield from (f"    {line}" for line in on_osds(candidate, ["N"]).planned)


async def conduct_on_host(trial: HostTrial, world: World, watching: Watching) -> None:
    """As `conduct`: the caller undoes what is changed after an exception or a harmful block."""
    in_force, candidate = REFERENCE, trial.timetable.candidates[0]
    for number, arm in stages(trial.timetable):
        if arm == candidate and in_force == REFERENCE:
            trial.ended = _no_reference(trial) or no_measure(trial, watching.harm)
            if trial.ended:
                return
        if arm != in_force:
            watching.heard("restart", {"arm": arm})
            await (world.put(arm) if arm == candidate else world.back())
            in_force = arm
        block = await _block(trial, number, arm, world, watching, guarded=arm == candidate)
        if block.harm:
            block = await _blamed(trial, block, world, watching)
        trial.blocks.append(block)
        if block.harm:
            trial.harmed[arm] = block.harm
        if trial.ended or block.harm:
            return
    trial.rounds = trial.timetable.most_rounds
    trial.look()
    if trial.verdicts[AGAIN] == "clear":
        trial.verdicts.pop(candidate)
        trial.ended = "the host differs from the others by another amount after it than before"


def _no_reference(trial: HostTrial) -> str:
    lost = [block.lost for block in trial.blocks if block.lost]
    known = trial.known or not lost
    return "" if known else f"what is set now could not be measured: {lost[-1]}"


async def _blamed(
    trial: HostTrial, block: TrialBlock, world: World, watching: Watching
) -> TrialBlock:
    """The harmful block, or the same without the blame. Clients wait for all OSDs, also for those
    of other hosts: the setting is blamed if they do not suffer once the host is as before. It is
    not put in force again, as that takes restarts."""
    watching.heard("restart", {"arm": AGAIN})
    await world.back()
    check = await _block(trial, 0, AGAIN, world, watching, guarded=True)
    trial.blocks.append(replace(check, harm=""))
    if not check.harm and not trial.ended:
        return block
    trial.ended = trial.ended or f"{block.harm}; without the setting it was no better"
    return replace(block, harm="", lost=trial.ended)


async def _block(
    trial: HostTrial, number: int, arm: str, world: World, watching: Watching, *, guarded: bool
) -> TrialBlock:
    guard = Guard(watching.harm, trial.known) if guarded else None
    watching.heard("block_started", {"round": number, "arm": arm})
    began = world.now()
    readings: list[Reading] = []
    dropped = began + trial.timetable.dropped_seconds
    # OSDs that have just started again are slow for a while.
    judged_from = dropped if arm == AGAIN else began
    harm = await watch(trial, began, world, watching, guard, readings, judged_from=judged_from)
    kept, lost = measured(readings, dropped)
    lost = harm or trial.ended or lost
    mine, theirs = (
        None if lost else between(_only(kept[0], osds), _only(kept[-1], osds))
        for osds in (trial.groups.osds, trial.groups.others)
    )
    if theirs:
        trial.others[number, arm] = theirs
    whole = None if lost else between(kept[0], kept[-1])
    if arm == REFERENCE and whole and "p99" in whole.figures:
        trial.known.append(whole)
    seconds = world.now() - began
    watching.heard(
        "block_ended",
        {
            "round": number, "arm": arm, "seconds": seconds, "lost": lost, "harm": harm,
            "figures": dict(mine.figures) if mine else {},
            "others": dict(theirs.figures) if theirs else {},
        },
    )  # fmt: skip
    return TrialBlock(number, arm, seconds, mine, lost, harm)


def _only(reading: Reading, osds: Sequence[int]) -> Reading:
    """What these OSDs did. What is counted for the whole cluster is left out."""
    counters = {osd: reading.osds[osd] for osd in osds}
    return Reading(reading.at, reading.bounds, counters)
