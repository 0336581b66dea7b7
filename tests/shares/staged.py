"""How often intervals of tenants' shares hold on a lab in which a client comes in bursts:

    PYTHONPATH=. python -m tests.shares.staged              # 18.2, bursts at random times
    PYTHONPATH=. python -m tests.shares.staged tentacle 20  # 20.2, one every 20 s

fio writes to two images all the time, and to a third one in bursts of about two seconds. Two
exporters look at the same time, with a sample every second and every ten. The share of an image is
that of the seconds for which fio's writes to it took. Figures: docs/internals/qos.md.
"""

import asyncio
import json
import random
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tests.by_signal import clean_up_when_ended
from tests.lab.live_exporter import LiveExporter, LivePage

from cephqos_base.prometheus import Sample
from cephqos_base.series import WORKING, AccountSeries, TenantsSeries
from cephqos_base.tenant_shares import OsdTenants
from cephqos_exporter.collectors import build_enabled
from cephqos_exporter.collectors.base import CollectorInputs
from cephqos_exporter.config import Settings
from cephqos_insight.who import shares_of
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec

STEADY: Final = {"a": 2, "b": 8}  # operations in progress, by image
BURST: Final = ("--iodepth=64", "--number_ios=600")
INTERVALS: Final = (1.0, 10.0)  # seconds between two samples
WARM_UP: Final = 60
WINDOW: Final = 120
WINDOWS: Final = 5


@dataclass(slots=True)
class Written:
    """When writes to an image ended, and how long each took."""

    image: str
    ended: list[tuple[float, float]] = field(default_factory=list)

    async def fio(self, lab: RunningLab, *more: str) -> None:
        log = lab.paths.work / f"{self.image}-{secrets.token_hex(3)}"
        argv = ["fio", "--name=a", "--ioengine=rbd", "--clientname=admin", "--pool=tenants"]
        argv += [f"--rbdname={self.image}", "--rw=randwrite", "--bs=4096", *more]
        argv += [f"--write_lat_log={log}", "--log_unix_epoch=1"]
        await lab.exec(argv, within=WARM_UP + WINDOW * WINDOWS + 120)
        lines = log.with_name(f"{log.name}_lat.1.log").read_text(encoding="utf-8").splitlines()
        for line in lines:
            ended, took, *_ = line.split(",")
            self.ended.append((float(ended) / 1e3, float(took) / 1e9))

    def between(self, first: float, last: float, of: Callable[[float], float]) -> float:
        return sum(of(took) for ended, took in self.ended if first <= ended < last)


async def bursts(written: Written, lab: RunningLab, until: float, pace: float | None) -> None:
    while time.time() < until:
        began = time.monotonic()
        await written.fio(lab, *BURST)
        gap = random.uniform(10, 30) if pace is None else pace  # noqa: S311 - no secret
        await asyncio.sleep(max(0.0, gap - (time.monotonic() - began)))


def grown(first: LivePage, last: LivePage, name: str) -> Sequence[Sample]:
    before = {tuple(sorted(labels.items())): value for labels, value in first.samples(name)}
    return [
        (labels, value - before.get(tuple(sorted(labels.items())), 0.0))
        for labels, value in last.samples(name)
    ]


def of_cluster(first: LivePage, last: LivePage, *, counted: bool) -> OsdTenants:
    """What `cephqos who` says of the cluster; without what OSDs count, as with no account."""
    account = {
        "counted": grown(first, last, AccountSeries.SECONDS),
        "counted_for_others": grown(first, last, AccountSeries.REPLICA_SECONDS),
    }
    found = shares_of(
        {
            "seconds": grown(first, last, TenantsSeries.SECONDS),
            "squares": grown(first, last, TenantsSeries.SQUARES),
            **(account if counted else dict.fromkeys(account, ())),
            "pools": (),
        }
    )
    return next(tenants for tenants in found if not tenants.osd)


@dataclass(frozen=True, slots=True)
class Looked:
    """The pages of one exporter at the bounds of windows."""

    interval: float
    pages: Sequence[tuple[float, LivePage]]

    def judge(self, written: Sequence[Written], ids: Mapping[str, str]) -> None:
        for counted in (True, False):
            held, by_writes, widths, unnamed = 0, 0, list[float](), 0
            for (begin, first), (end, last) in pairwise(self.pages):
                tenants = of_cluster(first, last, counted=counted)
                assert tenants.bursts_known[WORKING] == counted
                shares = {it.key.tenant: it.working for it in tenants.tenants}
                seconds, writes = (
                    {it.image: it.between(begin, end, of) for it in written}
                    for of in (lambda took: took, lambda _: 1.0)
                )
                for image, id_ in ids.items():
                    if (said := shares.get(id_)) is None:
                        unnamed += 1
                        continue
                    true = seconds[image] / sum(seconds.values())
                    also = writes[image] / sum(writes.values())
                    held += said.low <= true <= said.high
                    by_writes += said.low <= also <= said.high
                    widths.append(said.high - said.low)
                    print(
                        f"  {image}: {true:.1%} by fio's seconds, {also:.1%} by writes;"
                        f" {said.share:.1%} ({said.low:.1%} to {said.high:.1%})"
                    )
            print(
                f"every {self.interval:g} s, {'with' if counted else 'without'} the account:"
                f" {held} of {len(widths)} hold ({by_writes} by writes), {unnamed} in no row,"
                f" {100 * sum(widths) / len(widths):.0f} points wide",
                flush=True,
            )


async def measure(lab: RunningLab, pace: float | None) -> None:
    for command in (
        "osd pool create tenants 32",
        "osd pool application enable tenants rbd",
        "config set client rbd_cache false",
    ):
        await lab.exec(["ceph", *command.split()])
    ids = {}
    for image in (*STEADY, "d"):
        await lab.exec(["rbd", "create", f"tenants/{image}", "--size", "256M"])
        info = await lab.exec(["rbd", "info", f"tenants/{image}", "--format", "json"])
        ids[image] = json.loads(info.stdout)["id"]
    written, seconds = {image: Written(image) for image in ids}, WARM_UP + WINDOW * WINDOWS + 10
    load = [
        written[image].fio(lab, f"--iodepth={depth}", "--time_based", f"--runtime={seconds}")
        for image, depth in STEADY.items()
    ]
    load.append(bursts(written["d"], lab, time.time() + seconds, pace))
    writing = asyncio.gather(*load)
    async with AsyncExitStack() as stack:
        exporters = []
        for interval in INTERVALS:
            settings = Settings().given({"collector.ops.sample-interval": interval})
            collectors = build_enabled(CollectorInputs(settings))
            exporters.append(await stack.enter_async_context(LiveExporter(lab, collectors)))
        pages: list[list[tuple[float, LivePage]]] = [[] for _ in exporters]
        begin = time.monotonic()
        for number in range(WARM_UP + WINDOW * WINDOWS + 1):  # a sample comes with a scrape
            await asyncio.sleep(max(0.0, begin + number - time.monotonic()))
            for exporter, seen in zip(exporters, pages, strict=True):
                page = await exporter.scrape()
                if number >= WARM_UP and (number - WARM_UP) % WINDOW == 0:
                    seen.append((time.time(), page))
    await writing
    for interval, seen in zip(INTERVALS, pages, strict=True):
        Looked(interval, seen).judge(list(written.values()), ids)


async def main(release: str, pace: float | None) -> None:
    name = f"shares-{secrets.token_hex(3)}"
    spec = LabSpec(name=name, release=release, osds=3, backing="loop", device_iops=400)
    async with Lab(spec) as lab:
        await measure(lab, pace)


if __name__ == "__main__":
    clean_up_when_ended()
    given = sys.argv[1:]
    asyncio.run(main(given[0] if given else "reef", float(given[1]) if len(given) > 1 else None))
