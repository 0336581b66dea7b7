"""Compares shares of tenants with what fio and Ceph's manager count of each image: `make tenants`.

On a cluster of its own. fio writes to four images at different depths and logs how many writes
ended in each second; the manager counts the writes of each image (`rbd perf image`). Printed: how
often the share of an image in a window of some seconds is in the interval that `cephqos who` shows
beside its own share.
"""

import argparse
import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.by_signal import clean_up_when_ended
from tests.lab.live_exporter import LiveExporter, LivePage
from tests.waiting import until

from cephqos_base.series import WORKING
from cephqos_base.tenant_shares import OsdSums, OsdTenants, TenantKey
from cephqos_exporter.collectors import build_enabled
from cephqos_exporter.collectors.base import CollectorInputs
from cephqos_exporter.config import Settings
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec

DEPTHS: Final = {"a": 2, "b": 8, "c": 16, "d": 32}  # by image
WARM_UP: Final = 60.0  # seconds at most, until the manager counts what each image writes
WINDOWS: Final = (10, 20)  # seconds


Course = Sequence[tuple[float, float]]  # Unix time, and how many writes had ended by then


@dataclass(frozen=True, slots=True)
class Counted:
    """What the manager counted of each image; its figures are new every five seconds."""

    time: float
    writes: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Look:
    """What exporter and manager said at one moment."""

    time: float
    page: LivePage
    counted: Counted


SharesBetween = Callable[[Look, Look], Mapping[str, float]]  # by image


async def image_ids(lab: RunningLab) -> dict[str, str]:
    found = {}
    for name in DEPTHS:
        await lab.exec(["rbd", "create", f"tenants/{name}", "--size", "256M"])
        info = await lab.exec(["rbd", "info", f"tenants/{name}", "--format", "json"])
        found[name] = json.loads(info.stdout)["id"]
    return found


async def fio(lab: RunningLab, image: str, depth: int, seconds: int) -> Course:
    """How many writes there were until a moment, by Unix time."""
    log = lab.paths.work / image
    argv = ["fio", "--name=a", "--ioengine=rbd", "--clientname=admin", "--pool=tenants"]
    argv += [f"--rbdname={image}", "--rw=randwrite", "--bs=4096", f"--iodepth={depth}"]
    argv += ["--time_based", f"--runtime={seconds}"]
    argv += [f"--write_iops_log={log}", "--log_avg_msec=1000", "--log_unix_epoch=1"]
    await lab.exec(argv, within=seconds + 120)
    writes, course = 0.0, []
    before = None
    for line in log.with_name(f"{image}_iops.1.log").read_text(encoding="utf-8").splitlines():
        moment, rate, *_ = line.split(",")
        at = float(moment) / 1000  # the rate is that of the time since the line before
        writes += float(rate) * (at - (before or at - 1.0))
        before = at
        course.append((at, writes))
    return course


async def counted_by_manager(lab: RunningLab) -> Counted:
    argv = ["ceph", "rbd", "perf", "image", "counters", "tenants", "--format", "json"]
    report = json.loads((await lab.exec(argv)).stdout)
    at = report["counter_descriptors"].index("write_ops")
    rows = [row for image in report["counters"] for row in image.items()]
    writes = {image.rpartition("/")[2]: float(values[at]) for image, values in rows}
    return Counted(report["timestamp"], writes)


def work(page: LivePage) -> OsdSums:
    """What all OSDs together have done for each tenant."""
    sums = OsdSums()
    name = "cephqos_tenants_seconds_total"
    for labels in page.labels(name):
        if labels["state"] == WORKING:
            key = TenantKey(labels["kind"], labels.get("pool_id", ""), labels.get("tenant", ""))
            (seconds,) = page.values(name, **labels)
            sums.add([OsdSums({(key, WORKING): seconds})])
    sums.samples[WORKING] = sum(page.values("cephqos_tenants_sampled_total", state=WORKING))
    return sums


def between(first: Look, last: Look) -> OsdTenants:
    before, after = work(first.page), work(last.page)
    seconds = {key: value - before.seconds.get(key, 0.0) for key, value in after.seconds.items()}
    samples = {WORKING: after.samples[WORKING] - before.samples[WORKING]}
    return OsdSums(seconds, samples).shares("", "")


def compare(
    looks: Sequence[Look], ids: Mapping[str, str], window: int, shares: SharesBetween
) -> tuple[int, int]:
    """How often an image's share of a window is in the interval; of how many times."""
    right = total = 0
    start = looks[0]
    for look in looks[1:]:
        if look.counted.time - start.counted.time >= window:
            theirs = shares(start, look)
            ours = {it.key.tenant: it.working for it in between(start, look).tenants}
            for image, share in theirs.items():
                if ids[image] in ours:
                    total += 1
                    right += ours[ids[image]].low <= share <= ours[ids[image]].high
            start = look
    return right, total


def shares_of_manager(first: Look, last: Look) -> dict[str, float]:
    before, after = first.counted.writes, last.counted.writes
    return shares_of({image: after[image] - count for image, count in before.items()})


def shares_of_fio(done: Mapping[str, Course]) -> SharesBetween:
    def until(course: Course, moment: float) -> float:
        return max((writes for at, writes in course if at <= moment), default=0.0)

    return lambda first, last: shares_of(
        {image: until(it, last.time) - until(it, first.time) for image, it in done.items()}
    )


def shares_of(writes: Mapping[str, float]) -> dict[str, float]:
    whole = sum(writes.values())
    return {image: count / whole for image, count in writes.items()} if whole else {}


async def look_on(lab: RunningLab, exporter: LiveExporter, seconds: int) -> list[Look]:
    """What both said whenever the manager's figures were new."""
    looks: list[Look] = []
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        counted = await counted_by_manager(lab)
        page = await exporter.scrape()
        if not (looks and looks[-1].counted.time == counted.time):
            looks.append(Look(time.time(), page, counted))
        await asyncio.sleep(0.5)
    return looks


async def measure(lab: RunningLab, seconds: int, *, cached: bool) -> None:
    for command in (
        "osd pool create tenants 32",
        "osd pool application enable tenants rbd",
        f"config set client rbd_cache {str(cached).lower()}",
    ):
        await lab.exec(["ceph", *command.split()])
    ids = await image_ids(lab)
    settings = Settings().given({"collector.ops.sample-interval": 1.0})
    writing = asyncio.gather(
        *(fio(lab, image, depth, round(WARM_UP) + seconds) for image, depth in DEPTHS.items())
    )
    async with LiveExporter(lab, build_enabled(CollectorInputs(settings))) as exporter:

        async def all_write() -> bool:
            await exporter.scrape()
            return set((await counted_by_manager(lab)).writes) >= set(ids)

        with contextlib.suppress(AssertionError):  # the manager may never name an image
            await until(all_write, "the manager counts the writes of each image", WARM_UP)
        looks = await look_on(lab, exporter, seconds)
    done = dict(zip(DEPTHS, await writing, strict=True))
    by_id = {it.key.tenant: it.working for it in between(looks[0], looks[-1]).tenants}
    counted = {"fio": shares_of_fio(done), "rbd perf image": shares_of_manager}
    whole = {who: shares(looks[0], looks[-1]) for who, shares in counted.items()}
    for image, id_ in ids.items():
        ours = by_id[id_]
        theirs = ", ".join(f"{of[image]:6.1%} by {who}" for who, of in whole.items() if image in of)
        print(
            f"image {image}, depth {DEPTHS[image]:2}: {theirs}, {ours.share:6.1%}"
            f" ({ours.low:.1%} to {ours.high:.1%}) by samples"
        )
    for window in WINDOWS:
        for who, shares in counted.items():
            right, total = compare(looks, ids, window, shares)
            print(f"windows of {window:2} s, {who}: {right} of {total} in the interval")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="reef")
    parser.add_argument("--seconds", type=int, default=200, help="of load (default: 200)")
    parser.add_argument(
        "--cached",
        action="store_true",
        help="with librbd's writeback cache, which sends hundreds of writes at once: a storm",
    )
    arguments = parser.parse_args()
    name = f"tenants-{secrets.token_hex(3)}"
    spec = LabSpec(name=name, release=arguments.release, osds=3, backing="loop", device_iops=400)
    async with Lab(spec) as lab:
        await measure(lab, arguments.seconds, cached=arguments.cached)


if __name__ == "__main__":
    clean_up_when_ended()
    asyncio.run(main())
