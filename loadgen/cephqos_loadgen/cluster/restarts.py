"""OSDs are restarted one failure domain after the other, and each is seen to have restarted.

Before each step Ceph is asked whether exactly these OSDs may stop (`osd ok-to-stop`). After it,
every OSD of the step must be up with a new process, and every placement group that was active and
clean before the step must be so again. Others, which were not clean before, get `OTHERS_SECONDS` to
become clean, and are then left as they are. A step that takes longer than its deadline ends the
restart: no further OSD is touched. No flag is set, so nothing hides what happens.

OSDs of a lab have no data that anyone needs. They are restarted all at once.
"""

import asyncio
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cephqos_base.errors import CephqosError
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster.connection import ClusterConnection, ClusterView, is_settled
from cephqos_loadgen.plan.errors import ClusterAway, RunError

MAY_STOP_SECONDS = 900.0  # until Ceph says that the OSDs of a step may stop
UP_SECONDS = 600.0  # until they are up again: an OSD on a disk that rotates may take minutes
CLEAN_SECONDS = 1800.0  # until what was clean before a step is clean again
OTHERS_SECONDS = 180.0  # for what was not clean before a step
_TELL_SECONDS = 30.0  # between two lines that say what is waited for
_LOOK_SECONDS = 1.0  # between two looks
_LOOKS = 2  # that must find it settled, one after the other
# Of `osd ok-to-stop`: no, and not known yet.
_NO: Final = frozenset((-16, -11))

# The processes of OSDs by number, as the OSD map knows them; None: it is down.
Processes = dict[int, str | None]


@dataclass(frozen=True, slots=True)
class RestartGroup:
    """OSDs that are restarted together."""

    where: str  # such as `host a`
    osds: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.where} ({named(self.osds)})"


def named(osds: Sequence[int]) -> str:
    """Such as `osd.0, osd.1`; `none` without any."""
    return ", ".join(f"osd.{osd}" for osd in osds) or "none"


# -- which OSDs restart together -----------------------------------------------------------------


def steps_of(
    osds: Sequence[int], crush: Mapping[str, Any], rules: Collection[int]
) -> list[RestartGroup]:
    """The OSDs by failure domain. `rules`: the CRUSH rules of the cluster's pools.

    A step must hold one copy at most for every pool, so the smallest failure domain of all rules
    decides. It is never larger than a host: to stop a whole rack would be allowed where copies are
    spread over racks, but it is more than a load generator should do.
    """
    kinds = {str(kind["name"]): int(kind["type_id"]) for kind in crush["types"]}
    used = [failure_domain(rule) for rule in crush["rules"] if rule["rule_id"] in rules]
    smallest = min(["host", *used], key=lambda kind: kinds.get(kind, 0))
    homes = homes_of(smallest, crush)
    steps: dict[str, list[int]] = {}
    for osd in osds:
        where = f"{smallest} {homes[osd]}" if osd in homes else "one OSD"
        steps.setdefault(where, []).append(osd)
    alone = [RestartGroup("one OSD", (osd,)) for osd in steps.pop("one OSD", [])]
    return [*(RestartGroup(where, tuple(steps[where])) for where in sorted(steps)), *alone]


def failure_domain(rule: Mapping[str, Any]) -> str:
    """Over buckets of which kind a rule spreads copies."""
    chosen = [step for step in rule["steps"] if str(step.get("op", "")).startswith("choose")]
    # `choose 0 host`, then `choose 1 osd` in each: hosts.
    if len(chosen) > 1 and chosen[-1]["type"] == "osd" and chosen[-1].get("num") == 1:
        chosen.pop()
    return str(chosen[-1]["type"]) if chosen else "osd"


def homes_of(kind: str, crush: Mapping[str, Any]) -> dict[int, str]:
    """By OSD, the bucket of this kind in which it is."""
    homes: dict[int, str] = {}
    for bucket in crush["buckets"]:
        # A name with ~ is the copy of a bucket for one class of devices.
        if bucket["type_name"] == kind and "~" not in bucket["name"]:
            homes |= dict.fromkeys(below(bucket["id"], crush), bucket["name"])
    return homes


def below(bucket: int, crush: Mapping[str, Any]) -> Iterator[int]:
    """All OSDs below a bucket of the CRUSH map."""
    items = {each["id"]: [item["id"] for item in each["items"]] for each in crush["buckets"]}
    left, seen = [bucket], set()
    while left:
        for item in items.get(left.pop(), ()):
            if item >= 0:
                yield item
            elif item not in seen:
                seen.add(item)
                left.append(item)


async def stepper(cluster: ClusterView) -> Callable[[Sequence[int]], list[RestartGroup]]:
    """What sorts OSDs of this cluster into steps."""
    if cluster.access.at_once:
        return lambda osds: [RestartGroup("the lab", tuple(osds))] if osds else []
    rules = {int(pool["crush_rule"]) for pool in (await cluster.command("osd dump"))["pools"]}
    crush = await cluster.command("osd crush dump")
    return lambda osds: steps_of(osds, crush, rules)


def command(groups: Sequence[Sequence[int]], lab: str | None) -> str:
    """What does the same, for a shell: each step waits until Ceph allows it, and for clean."""
    if lab:
        restart = f"cephqos lab fault restart --name {lab} --osd"
        return " && ".join(f"{restart} {osd}" for group in groups for osd in group)
    steps = " ".join(f"'{' '.join(map(str, group))}'" for group in groups)
    return (
        f"for osds in {steps}; do until ceph osd ok-to-stop $osds; do sleep 10; done;"
        " for osd in $osds; do ceph orch daemon restart osd.$osd; done; sleep 60;"
        " while ceph health detail | grep -E 'OSD_DOWN|PG_AVAILABILITY|PG_DEGRADED';"
        " do sleep 10; done; done"
    )


async def plan_steps(cluster: ClusterView, osds: Sequence[int]) -> list[RestartGroup]:
    """In which steps these OSDs would be restarted."""
    return (await stepper(cluster))(osds)


# -- processes -----------------------------------------------------------------------------------


def processes(osd_dump: Mapping[str, Any]) -> Processes:
    """What tells one process of an OSD from the next: the nonces in its public address.

    An OSD draws them once, when it starts. The epoch in which it came up changes too when it only
    was marked down for a moment.
    """
    found: Processes = {}
    for osd in osd_dump["osds"]:
        addresses = osd.get("public_addrs", {}).get("addrvec", ())
        nonces = "/".join(dict.fromkeys(str(address["nonce"]) for address in addresses))
        found[int(osd["osd"])] = (nonces or str(osd["public_addr"])) if osd["up"] else None
    return found


# -- the restart ---------------------------------------------------------------------------------


async def restart(
    cluster: ClusterConnection,
    osds: Sequence[int],
    processes_before: Mapping[str, str] | None = None,
) -> None:
    """Restart them, one failure domain after the other.

    With `processes_before` (by number), those that have the same process still are left alone: when
    a change is undone, they were never restarted for it.
    """
    await _Restart(cluster).run(osds, processes_before or {})


class _Restart:
    def __init__(self, cluster: ClusterConnection) -> None:
        self._cluster = cluster
        self._done: list[int] = []

    async def run(self, osds: Sequence[int], before: Mapping[str, str]) -> None:
        now = processes(await self._cluster.command("osd dump"))
        for osd in (osd for osd in osds if osd not in now):
            self._cluster.note(f"osd.{osd} is not in the cluster any more: not restarted")
        wanted = [
            osd
            for osd in osds
            if osd in now and (now[osd] is None or now[osd] != before.get(str(osd)))
        ]
        down = tuple(osd for osd in wanted if now[osd] is None)
        steps = await plan_steps(self._cluster, wanted)
        if down and not self._cluster.access.at_once:
            # What is down holds up the others: it is started first.
            others = [osd for osd in wanted if osd not in down]
            steps = [RestartGroup("down", down), *await plan_steps(self._cluster, others)]
        for number, step in enumerate(steps, 1):
            title = f"step {number} of {len(steps)}: {step}"
            try:
                await self._step(step, title, first=number == 1)
            except (CephqosError, CommandFailed) as error:
                left = [osd for osd in wanted if osd not in {*self._done, *step.osds}]
                kind = ClusterAway if isinstance(error, ClusterAway) else RunError
                raise kind(
                    f"restart of OSDs, {title}: {error}. Restarted before it:"
                    f" {named(self._done)}. Not touched: {named(left)}"
                ) from error
            self._done += step.osds

    async def _step(self, step: RestartGroup, title: str, *, first: bool) -> None:
        cluster, at_once = self._cluster, self._cluster.access.at_once
        dump = await cluster.command("osd dump")
        before = processes(dump)
        if held := kept_down(dump, step.osds):
            raise RunError(held)
        clean: frozenset[str] = frozenset()
        if not at_once and any(before.get(osd) for osd in step.osds):
            if first:
                await self._until_clean(frozenset(), title)
            await self._until_they_may_stop(step, title)
            clean = await _clean_pgs(cluster)
        cluster.restarted |= set(step.osds)
        cluster.note(f"restarting OSDs, {title}")
        await cluster.access.restart(cluster, step.osds)
        await self._until_up(step, before, title)
        await self._until_clean(clean, title)

    async def _until_they_may_stop(self, step: RestartGroup, title: str) -> None:
        wait = _Wait(self._cluster, title, MAY_STOP_SECONDS)
        while no := await why_not_stop(self._cluster, step.osds):
            await wait.once_more(f"Ceph says that they must not stop now: {no}")

    async def _until_up(self, step: RestartGroup, before: Processes, title: str) -> None:
        """Each is up, and is another process than before."""
        wait = _Wait(self._cluster, title, UP_SECONDS)
        while True:
            now = processes(await self._cluster.command("osd dump"))
            down = [osd for osd in step.osds if now.get(osd) is None]
            same = [osd for osd in step.osds if osd not in down and now[osd] == before.get(osd)]
            if not down and not same:
                return
            await wait.once_more(f"down: {named(down)}; not restarted yet: {named(same)}")

    async def _until_clean(self, must: frozenset[str], title: str) -> None:
        """All PGs are active and clean; or those of `must` are, and others had their time."""
        if self._cluster.access.at_once:
            await self._cluster.wait_for_pgs(clean=True, within=OTHERS_SECONDS)
            return
        wait = _Wait(self._cluster, title, CLEAN_SECONDS)
        looks = 0  # that found it settled, one after the other
        while True:
            unclean = await unclean_pgs(self._cluster)
            others_only = must.isdisjoint(unclean) and wait.seconds > OTHERS_SECONDS
            looks = looks + 1 if not unclean or others_only else 0
            if looks == _LOOKS:
                break
            await wait.once_more(f"PGs are not clean: {_counted(unclean)}" if unclean else "")
        if unclean:
            self._cluster.note(
                f"{title}: not waited for, because they were not clean before:"
                f" {_counted(unclean)} PGs"
            )


def _counted(states: Mapping[str, str]) -> str:
    """PGs by state."""
    kinds = sorted(set(states.values()))
    return ", ".join(f"{list(states.values()).count(kind)} {kind}" for kind in kinds)


class _Wait:
    """One wait, with its deadline and with a line at times that says what for."""

    def __init__(self, cluster: ClusterConnection, title: str, within: float) -> None:
        self._cluster, self._title, self._within = cluster, title, within
        self._began = self._told = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    async def once_more(self, what: str) -> None:
        """Sleep until the next look; RunError after the deadline."""
        if self.seconds > self._within:
            raise RunError(f"waited for {self._within:g} s; {what}")
        if what and time.monotonic() - self._told >= _TELL_SECONDS:
            self._told = time.monotonic()
            left = self._within - self.seconds
            self._cluster.note(f"{self._title}: waiting, {left:.0f} s at most: {what}")
        await asyncio.sleep(_LOOK_SECONDS)


async def why_not_stop(cluster: ClusterView, osds: Sequence[int]) -> str:
    """Why Ceph does not want these OSDs to stop together; empty if they may."""
    try:
        ids = [str(osd) for osd in osds]
        reply = await cluster.command("osd ok-to-stop", target="mgr", ids=ids)
    except CommandFailed as error:
        if error.code in _NO:
            return str(error)
        raise
    # 15.2 answers with nothing but its status.
    report = reply.get("ok_to_stop", True) if isinstance(reply, dict) else True
    # From 17.2 on, the report is below this key.
    may = report.get("ok_to_stop", True) if isinstance(report, dict) else report
    return "" if may else json.dumps(reply)


def kept_down(osd_dump: Mapping[str, Any], osds: Collection[int]) -> str:
    """Why OSDs that stop would not come up again; empty if nothing keeps them down."""
    held = [
        f"osd.{entry['osd']}"
        for entry in osd_dump["osds"]
        if entry["osd"] in osds and "noup" in entry.get("state", ())
    ]
    if "noup" in str(osd_dump.get("flags", "")).split(","):
        held = ["the cluster"]
    if not held:
        return ""
    return f"the flag noup of {', '.join(held)} keeps OSDs from coming up again: clear it first"


async def _pgs(cluster: ClusterView) -> dict[str, str]:
    """The state of each PG, as its OSDs know it now."""
    await cluster.fresh_stats()
    dump = await cluster.command("pg dump", target="mgr", dumpcontents=["pgs_brief"])
    entries = dump["pg_stats"] if isinstance(dump, dict) else dump
    return {str(pg["pgid"]): str(pg["state"]) for pg in entries}


async def unclean_pgs(cluster: ClusterView) -> dict[str, str]:
    """The PGs that are not active and clean, with their states."""
    states = await _pgs(cluster)
    return {pg: state for pg, state in states.items() if not is_settled(state, clean=True)}


async def _clean_pgs(cluster: ClusterView) -> frozenset[str]:
    states = await _pgs(cluster)
    return frozenset(pg for pg, state in states.items() if is_settled(state, clean=True))
