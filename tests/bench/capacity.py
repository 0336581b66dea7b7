"""How far `cephqos capacity` is off, and when it refuses: `make bench-capacity` (root).

One lab whose devices are held to known rates. Each OSD has a pool of its own, so that a slow one
holds up no other. The truth is what each pool's client counted itself. The capacity is set to
several multiples of it; the estimate must not depend on that. Of five equals one device is three
times as slow, and one OSD has so little to do that its capacity cannot be known.
"""

import argparse
import asyncio
import secrets
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import aiohttp
from tests.by_signal import clean_up_when_ended

from cephqos_base.recorded import PerOsd
from cephqos_base.units import GIB
from cephqos_doctor.capacity import measure
from cephqos_doctor.capacity.estimate import JudgedCapacity, judge
from cephqos_doctor.capacity.series import gather
from cephqos_doctor.json_api import JsonApi
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_stack.stack import Stack, StackSpec

FACTORS: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
OSDS: Final = 5
SLOW: Final = 3  # the OSD with the slower device
IDLE: Final = 4  # the OSD with next to nothing to do
SLOWER: Final = 3
RATE: Final = 300  # requests of a device per second
USUAL: Final = 280  # small writes that an OSD does on such a device, of which the factors are
PIECE: Final = 8.0
_CACHES_FULL: Final = 40.0  # the first seconds of any device are its best
_SETTLED: Final = 10.0  # seconds until a setting is in all rates
_LOAD: Final = 64.0
_DEPTH: Final = 64
_FINDING: Final = "CapacityUnderstated"
_OPTION: Final = "osd_mclock_max_capacity_iops_ssd"
_EXPECTED: Final = {0.1: "too_low", 0.3: "too_low", 1.0: "fits", 3.0: "too_high", 10.0: "too_high"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One OSD under one setting."""

    factor: float
    osd: int
    truth: float  # what its client counted, per second
    judged: JudgedCapacity
    alerted: bool  # CephQosCapacityUnderstated counts it

    @property
    def busy(self) -> bool:
        return self.osd != IDLE

    @property
    def error(self) -> float | None:
        its = self.judged.estimate
        return its.ops / self.truth - 1 if its.kind == "measured" and its.ops else None

    @property
    def right(self) -> bool:
        if not self.busy:
            return self.judged.estimate.kind != "measured"
        return self.judged.verdict == _EXPECTED[self.factor]


async def _pools(lab: RunningLab) -> None:
    for osd in range(OSDS):
        ceph = ["ceph", "osd"]
        await lab.exec([*ceph, "crush", "rm-device-class", f"osd.{osd}"])
        await lab.exec([*ceph, "crush", "set-device-class", f"only{osd}", f"osd.{osd}"])
        rule = ["create-replicated", f"only{osd}", "default", "osd", f"only{osd}"]
        await lab.exec([*ceph, "crush", "rule", *rule])
        await lab.exec([*ceph, "pool", "create", f"p{osd}", "32", "32", "replicated", f"only{osd}"])
        await lab.exec([*ceph, "pool", "set", f"p{osd}", "size", "1", "--yes-i-really-mean-it"])


class Client:
    """Small writes to one OSD for as long as it is asked; what it counted itself, by second."""

    def __init__(self, lab: RunningLab, osd: int, seconds: int) -> None:
        depth = 1 if osd == IDLE else _DEPTH
        argv = ["rados", "-p", f"p{osd}", "bench", f"{seconds}", "write", "-b", "4096"]
        argv += ["-t", str(depth), "--no-cleanup", "--run-name", secrets.token_hex(4)]
        self._run = asyncio.create_task(lab.exec(argv, within=seconds + 120))
        self._started = time.monotonic()

    async def check(self) -> None:
        """Raise what ended it: without load there is nothing to measure."""
        if self._run.done():
            raise RuntimeError(f"a client ended too early: {await self._run}")

    async def rates(self, spans: list[tuple[float, float]]) -> list[float]:
        """Operations per second between moments, once it has ended."""
        finished: dict[int, int] = {}
        for line in (await self._run).stdout.splitlines():
            # second, in progress, started, finished, …
            words = line.split()
            if len(words) >= 8 and all(word.isdecimal() for word in words[:4]):
                finished[int(words[0])] = int(words[3])
        found = []
        for begin, end in spans:
            first, last = (round(moment - self._started) for moment in (begin, end))
            found.append((finished[last] - finished[first]) / (last - first))
        return found


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What was seen of a setting, and when."""

    begin: float
    end: float
    judged: dict[str, JudgedCapacity]
    alerted: set[str]


async def _look(stack: Stack, begin: float, end: float) -> Seen:
    async with aiohttp.ClientSession() as session:
        history = await gather(JsonApi(session, stack.prometheus_url, {}), end - begin, PIECE)
    return Seen(
        begin=begin,
        end=end,
        judged={one.record.osd: one for one in judge(history.records)},
        alerted={
            one["metric"]["ceph_daemon"]
            for one in await stack.query(f'{PerOsd.FINDING}{{finding="{_FINDING}"}}')
        },
    )


async def _set(lab: RunningLab, factor: float) -> None:
    for osd in range(OSDS):
        usual = USUAL / SLOWER if osd == SLOW else USUAL
        value = f"{factor * usual:.1f}"
        await lab.exec(["ceph", "config", "set", f"osd.{osd}", _OPTION, value])


async def _settings(lab: RunningLab, stack: Stack) -> list[Seen]:
    found = []
    for factor in FACTORS:
        await _set(lab, factor)
        await asyncio.sleep(_SETTLED)
        begin = time.monotonic()
        await asyncio.sleep(_LOAD)
        found.append(await _look(stack, begin, time.monotonic()))
    return found


async def once() -> tuple[list[Row], float, float]:
    """All settings on one lab; what Ceph's own benchmark says of osd.0, and its truth."""
    async with Lab(_spec()) as lab:
        slow = RATE // SLOWER
        await lab.faults.throttle(SLOW, riops=slow, wiops=slow)
        await _pools(lab)
        seconds = round(1.25 * (_CACHES_FULL + len(FACTORS) * (_SETTLED + _LOAD)))
        clients = [Client(lab, osd, seconds) for osd in range(OSDS)]
        await asyncio.sleep(_CACHES_FULL)
        for client in clients:
            await client.check()
        async with Stack(lab, StackSpec(name="capacity", cluster_role=False)) as stack:
            seen = await _settings(lab, stack)
        spans = [(one.begin, one.end) for one in seen]
        truths = [await client.rates(spans) for client in clients]
        async with lab.client() as connection:
            benched = await measure.measure(connection, "osd.0", lambda _: None, slices=2)
    rows = [
        Row(
            factor=factor,
            osd=osd,
            truth=truths[osd][number],
            judged=one.judged[f"osd.{osd}"],
            alerted=f"osd.{osd}" in one.alerted,
        )
        for number, (factor, one) in enumerate(zip(FACTORS, seen, strict=True))
        for osd in range(OSDS)
    ]
    return rows, benched.median, statistics.mean(truths[0])


def _spec() -> LabSpec:
    return LabSpec(
        name=f"bench-capacity-{secrets.token_hex(2)}",
        osds=OSDS,
        osd_size=2 * GIB,
        backing="loop",
        rotational=False,
        op_queue="mclock_scheduler",
        device_iops=RATE,
    )


def _print(rows: Iterable[Row]) -> None:
    for row in rows:
        its, error = row.judged.estimate, row.error
        said = f"{its.kind} {its.ops or 0:.0f}" + (f" ({its.why})" if its.why else "")
        print(
            f"{row.factor:5g} osd.{row.osd} truth {row.truth:6.0f} {said:60} {its.bound:16}"
            f" {row.judged.verdict:9} {'' if error is None else f'{error:+.0%}':>5}"
            f" {'outlier' if row.judged.outlier else '':8}{'alert' if row.alerted else '':6}"
            f"{'' if row.right else 'WRONG'}",
            flush=True,
        )


def table(rows: list[Row]) -> str:
    """As docs/internals/measured.md has it."""
    lines = [
        "| capacity set to | measured | error: median | error: worst | verdict right |"
        " idle OSD refused | slow OSD found | alert |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for factor in FACTORS:
        of_it = [row for row in rows if row.factor == factor]
        busy = [row for row in of_it if row.busy]
        errors = [row.error for row in busy if row.error is not None]
        idle = [row for row in of_it if not row.busy]
        slow = [row for row in of_it if row.osd == SLOW]
        middle = f"{statistics.median(errors):+.0%}" if errors else "–"
        worst = f"{max(errors, key=abs):+.0%}" if errors else "–"
        lines.append(
            f"| {factor:g} × the truth | {len(errors)} of {len(busy)} | {middle} | {worst}"
            f" | {sum(row.right for row in busy)} of {len(busy)}"
            f" | {sum(row.right for row in idle)} of {len(idle)}"
            f" | {sum(row.judged.outlier for row in slow)} of {len(slow)}"
            f" | {sum(row.alerted for row in busy)} of {len(busy)} |"
        )
    return "\n".join(lines).replace("%", " %")


async def main(runs: int) -> None:
    rows: list[Row] = []
    for number in range(1, runs + 1):
        started = time.monotonic()
        found, benched, truth = await once()
        rows += found
        _print(found)
        print(
            f"run {number}: {time.monotonic() - started:.0f} s; `ceph tell osd.0 bench` says"
            f" {benched:.0f}, {benched / truth:.1f} times the truth",
            flush=True,
        )
    print(table(rows))


if __name__ == "__main__":
    clean_up_when_ended()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="labs, one after the other")
    asyncio.run(main(parser.parse_args().runs))
