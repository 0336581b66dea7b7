"""Compares the account of waiting with fio and with the events of all operations: `make account`.

On clusters of its own, whose OSDs keep the record of every operation. Each row is a load. It says
how far the account's sum is from what fio and the OSDs say, what share is unknown, and how far its
shares are from those that the events give.
"""

import argparse
import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tests.by_signal import clean_up_when_ended
from tests.lab.live_exporter import LiveExporter, LivePage
from tests.waiting import until

from cephqos_exporter.collectors import build_enabled
from cephqos_exporter.collectors.base import CollectorInputs
from cephqos_exporter.config import Settings
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.waits import completed
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec

ACCOUNT: Final = "cephqos_account_seconds_total"
OSDS: Final = 4
SUM_BAR, UNKNOWN_BAR = 5.0, 10.0  # percent

# Parts that both sources know: by states of the account, and by places of events.
PARTS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "receive": (frozenset({"receive"}), frozenset({"receive"})),
    "queue": (frozenset({"queue"}), frozenset({"queue"})),
    "blocked": (frozenset({"blocked"}), frozenset({"blocked"})),
    "this OSD": (
        frozenset({"cpu", "store_throttle", "store_device", "store_commit", "store_cpu"}),
        frozenset({"execute", "commit"}),
    ),
    "others": (frozenset({"replica", "network", "reply"}), frozenset({"subops", "reply"})),
}


@dataclass(frozen=True, slots=True)
class Load:
    name: str
    pool: str
    rw: str
    depth: int = 16
    block: int = 4096
    meanwhile: Callable[[RunningLab], Awaitable[None]] | None = None


async def ceph(lab: RunningLab, *argv: str) -> str:
    return (await lab.exec(["ceph", "--conf", str(lab.paths.conf), *argv], within=120)).stdout


async def take_out(lab: RunningLab) -> None:
    await asyncio.sleep(3)
    await ceph(lab, "osd", "out", "3")


LOADS: Final = (
    Load("replicated, write", "rep", "randwrite"),
    Load("replicated, read", "rep", "randread"),
    Load("replicated, both", "rep", "randrw"),
    Load("erasure-coded, write", "ec", "randwrite"),
    Load("erasure-coded, read", "ec", "randread"),
    Load("write, recovery beside", "rep", "randwrite", meanwhile=take_out),
)


async def fio(lab: RunningLab, load: Load, seconds: int) -> tuple[float, int]:
    """Seconds that its operations took, summed; and how many there were."""
    argv = ["env", f"CEPH_CONF={lab.paths.conf}", "fio", "--output-format=json", "--name=job"]
    argv += ["--ioengine=rados", "--clientname=admin", f"--pool={load.pool}", f"--rw={load.rw}"]
    argv += [f"--iodepth={load.depth}", f"--bs={load.block}", "--norandommap=1", "--randrepeat=0"]
    argv += ["--nrfiles=32", "--size=64m", "--time_based=1", f"--runtime={seconds}"]
    report = json.loads((await lab.exec(argv, within=seconds + 120)).stdout)
    sides = [job[side] for job in report["jobs"] for side in ("read", "write")]
    took = sum(side["total_ios"] * side["lat_ns"]["mean"] for side in sides) / 1e9
    return float(took), sum(side["total_ios"] for side in sides)


async def make_pools(lab: RunningLab) -> None:
    await ceph(lab, "osd", "pool", "create", "rep", "32", "32")
    profile = ("k=2", "m=1", "crush-failure-domain=osd")
    await ceph(lab, "osd", "erasure-code-profile", "set", "account", *profile)
    await ceph(lab, "osd", "pool", "create", "ec", "32", "32", "erasure", "account")
    await ceph(lab, "osd", "pool", "set", "ec", "allow_ec_overwrites", "true")

    async def clean() -> bool:
        status = json.loads(await ceph(lab, "pg", "stat", "--format", "json"))
        states = status.get("pg_summary", status)["num_pg_by_state"]
        return {state["name"] for state in states} == {"active+clean"}

    await until(clean, "every PG active and clean", 120)
    for pool in ("rep", "ec"):  # every object whole, so that reads find something
        await fio(lab, Load("fill", pool, "write", block=1 << 20), 10)


async def events(lab: RunningLab, since: datetime) -> dict[str, float]:
    """Seconds by place, of all client operations that began since."""
    found: dict[str, float] = {}
    for osd in range(OSDS):
        record = json.loads(await ceph(lab, "tell", f"osd.{osd}", "dump_historic_ops"))["ops"]
        new = [op for op in record if datetime.fromisoformat(op["initiated_at"]) >= since]
        for at in range(0, len(new), 500):  # a sample has that many at most
            for op in completed(new[at : at + 500], NotUnderstood()):
                for wait, seconds in op.spent if op.kind == "client" else ():
                    found[wait.event] = found.get(wait.event, 0.0) + seconds
    return found


def gained(after: LivePage, before: LivePage, name: str, **labels: str) -> float:
    return sum(after.values(name, **labels)) - sum(before.values(name, **labels))


async def measure(lab: RunningLab, load: Load, seconds: int) -> str:
    collectors = build_enabled(CollectorInputs(Settings()))
    async with LiveExporter(lab, collectors) as exporter:
        await exporter.scrape()
        await asyncio.sleep(1)
        before, since = await exporter.scrape(), datetime.now(UTC)
        work = asyncio.create_task(fio(lab, load, seconds))
        other = load.meanwhile and asyncio.ensure_future(load.meanwhile(lab))
        while not work.done():
            await asyncio.sleep(5)
            await exporter.scrape()
        await asyncio.sleep(1)
        after = await exporter.scrape()
        said = await work
        if other:
            await other
    return row(load, after, before, said, await events(lab, since))


def row(
    load: Load,
    after: LivePage,
    before: LivePage,
    said: tuple[float, int],
    events: Mapping[str, float],
) -> str:
    states = {labels["state"] for labels in after.labels(ACCOUNT)}
    account = {s: gained(after, before, ACCOUNT, state=s) for s in states}
    whole = sum(account.values())
    latency = gained(after, before, "ceph_osd_op_latency_sum")
    unknown = 100 * account["unknown"] / whole
    excess = 100 * gained(after, before, "cephqos_account_excess_seconds_total") / whole
    cells = [f"{load.name:24}", f"{whole:8.1f}", f"{100 * (whole / latency - 1):+6.2f}"]
    took, operations = said
    cells += [f"{100 * (whole / took - 1):+6.2f}", f"{1000 * (took - whole) / operations:5.2f}"]
    cells += [f"{unknown:5.2f}", f"{excess:5.2f}"]
    all_events = sum(events.values())
    for ours, theirs in PARTS.values():
        share = 100 * sum(account.get(state, 0.0) for state in ours) / whole
        told = 100 * sum(events.get(place, 0.0) for place in theirs) / all_events
        cells.append(f"{share:5.1f} {told:5.1f}")
    detail = {s: round(100 * v / whole, 1) for s, v in sorted(account.items()) if v > whole / 1000}
    places = {p: round(100 * s / all_events, 1) for p, s in sorted(events.items())}
    return f"{' | '.join(cells)}\n    account {detail}\n    events {places}"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", action="append", help="default: reef, tentacle")
    parser.add_argument("--seconds", type=int, default=30, help="of each load (default: 30)")
    parser.add_argument("--load", default="", help="only loads whose names have this in them")
    parser.add_argument("--device-iops", type=int, default=100)
    arguments = parser.parse_args()
    for release in arguments.release or ("reef", "tentacle"):
        keep = {"osd_op_history_size": "200000", "osd_op_history_duration": "600"}
        settings = tuple(CephOption("osd", name, value) for name, value in keep.items())
        spec = LabSpec(
            name=f"account-{secrets.token_hex(2)}",
            release=release,
            osds=OSDS,
            backing="loop",
            device_iops=arguments.device_iops,
            settings=settings,
        )
        print(f"{release}: {OSDS} OSDs, {arguments.device_iops} reads and writes per second each")
        heads = ("load", "seconds", "OSD %", "fio %", "client ms", "unknown %", "excess %", *PARTS)
        print(" | ".join(heads), "(account, events, %)", flush=True)
        async with Lab(spec) as lab:
            await make_pools(lab)
            for load in LOADS:
                if arguments.load in load.name:
                    print(await measure(lab, load, arguments.seconds), flush=True)


if __name__ == "__main__":
    clean_up_when_ended()
    asyncio.run(main())
