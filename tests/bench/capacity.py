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

from cephqos_base.units import GIB
from cephqos_doctor.capacity import measure
from cephqos_doctor.capacity.estimate import Judged, judge
from cephqos_doctor.capacity.series import gather
from cephqos_doctor.json_api import JsonApi
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_stack.stack import Stack, StackSpec

FACTORS: Final = (0.1, 0.3, 1.0, 3.0, 10.0)
OSDS: Final = 5
SLOW: Final = 3  # the OSD with the slower device
IDLE: Final = 4  # the OSD with next to nothing to do
SLOWER: Final = 3
RATE: Final = 300  # requests of a device per second
PIECE: Final = 8.0
_WARM_UP: Final = 10.0
_LOAD: Final = 64.0
_DEPTH: Final = 64
_OPTION: Final = "osd_mclock_max_capacity_iops_ssd"
_EXPECTED: Final = {0.1: "too_low", 0.3: "too_low", 1.0: "fits", 3.0: "too_high", 10.0: "too_high"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One OSD under one setting."""

    factor: float
    osd: int
    truth: float  # what its client counted, per second
    judged: Judged

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


async def _write(lab: RunningLab, osd: int, seconds: float) -> float:
    """Small writes by a client of one OSD; what it counted per second."""
    depth = 1 if osd == IDLE else _DEPTH
    argv = ["rados", "-p", f"p{osd}", "bench", f"{seconds:g}", "write", "-b", "4096"]
    argv += ["-t", str(depth), "--no-cleanup", "--run-name", secrets.token_hex(4)]
    done = await lab.exec(argv, within=seconds + 120)
    line = next(it for it in done.stdout.splitlines() if it.startswith("Average IOPS"))
    return float(line.split(":")[1])


async def _load(lab: RunningLab, seconds: float) -> list[float]:
    return list(await asyncio.gather(*(_write(lab, osd, seconds) for osd in range(OSDS))))


async def _look(stack: Stack, seconds: float) -> dict[str, Judged]:
    async with aiohttp.ClientSession() as session:
        history = await gather(JsonApi(session, stack.prometheus_url, {}), seconds, PIECE)
    return {one.record.osd: one for one in judge(history.records)}


async def _setting(lab: RunningLab, stack: Stack, factor: float, usual: list[float]) -> list[Row]:
    for osd, ops in enumerate(usual):
        value = f"{factor * ops:.1f}"
        await lab.exec(["ceph", "config", "set", f"osd.{osd}", _OPTION, value])
    load = asyncio.create_task(_load(lab, _WARM_UP + _LOAD))
    await asyncio.sleep(_WARM_UP + _LOAD)
    seen = await _look(stack, _LOAD)
    truth = await load
    return [
        Row(factor=factor, osd=osd, truth=truth[osd], judged=seen[f"osd.{osd}"])
        for osd in range(OSDS)
    ]


async def once() -> tuple[list[Row], float, float]:
    """All settings on one lab; what Ceph's own benchmark says of osd.0, and its truth."""
    settings = (
        CephOption("osd", "osd_mclock_skip_benchmark", "true"),
        CephOption("global", "mon_allow_pool_size_one", "true"),
        CephOption("global", "mon_warn_on_pool_no_redundancy", "false"),
    )
    spec = LabSpec(
        name=f"bench-capacity-{secrets.token_hex(2)}",
        osds=OSDS,
        osd_size=2 * GIB,
        backing="loop",
        rotational=False,
        op_queue="mclock_scheduler",
        device_iops=RATE,
        settings=settings,
    )
    async with Lab(spec) as lab:
        slow = RATE // SLOWER
        await lab.faults.throttle(SLOW, riops=slow, wiops=slow)
        await _pools(lab)
        async with Stack(lab, StackSpec(name="capacity", cluster_role=False)) as stack:
            usual = await _load(lab, 20)
            rows = []
            for factor in FACTORS:
                rows += await _setting(lab, stack, factor, usual)
                _print(rows[-OSDS:])
        async with lab.client() as client:
            benched = await measure.measure(client, "osd.0", lambda _: None, slices=2)
    return rows, benched.middle, usual[0]


def _print(rows: Iterable[Row]) -> None:
    for row in rows:
        its, error = row.judged.estimate, row.error
        said = f"{its.kind} {its.ops or 0:.0f}" + (f" ({its.why})" if its.why else "")
        print(
            f"{row.factor:5g} osd.{row.osd} truth {row.truth:6.0f} {said:60} {its.bound:16}"
            f" {row.judged.verdict:9} {'' if error is None else f'{error:+.0%}':>5}"
            f" {'outlier' if row.judged.outlier else '':8}{'' if row.right else 'WRONG'}",
            flush=True,
        )


def table(rows: list[Row]) -> str:
    """As docs/operate/capacity.md has it."""
    lines = [
        "| capacity set to | measured | error: median | error: worst | verdict right |"
        " idle OSD refused | slow OSD found |",
        "|---|---|---|---|---|---|---|",
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
            f" | {sum(row.judged.outlier for row in slow)} of {len(slow)} |"
        )
    return "\n".join(lines).replace("%", " %")


async def main(runs: int) -> None:
    rows: list[Row] = []
    for number in range(1, runs + 1):
        started = time.monotonic()
        found, benched, truth = await once()
        rows += found
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
