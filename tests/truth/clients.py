"""What the load's clients measured themselves, beside the account of waiting of the same time.

rados bench reports once a second what it has completed so far, so it does not matter that it is
killed at the end. The time compared is from before the first load to the last moment at which all
clients had reported and all OSDs were read.
"""

import asyncio
import time
from asyncio.subprocess import PIPE
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from tests.stack.conftest import Watched

from cephqos_base.series import AccountSeries
from cephqos_loadgen.engines.rados_bench import RowStream, Second, read_result
from cephqos_loadgen.processes import how_it_ended, signal_group, start
from cephqos_loadgen.results.rates import count_at
from cephqos_stack.staged.stage import Stage

_SCRAPES: Final = 3.0  # seconds before the load, so that there is a reading
_SILENT: Final = 10.0  # seconds without a reading or a report: the fault's time would not be in it
_READ_BYTES: Final = 65536
_SAYS_NOTHING: Final = "does not say what it measured"

Report = tuple[float, float, float]  # Unix time, operations until then, seconds that they took
Course = Sequence[tuple[float, float]]  # Unix time, and a sum until then


@dataclass
class Client:
    """A program of a load, and what it said of itself; its start comes first."""

    name: str
    reports: list[Report]
    running: bool = True
    failed: str = "was broken off"  # once it does not run; empty: it ended well

    def course(self, figure: int) -> Course:
        return [(report[0], report[figure]) for report in self.reports]


@dataclass(frozen=True)
class Compared:
    """The account's sum over all OSDs beside what the clients measured."""

    off: float | None = None  # 0.01: the account has 1 % more
    ms: float | None = None  # per operation: what the clients measured, and no OSD did
    why: str = ""  # why there is no figure


@dataclass
class HeardStage(Stage):
    """A stage that hears what its clients measure."""

    clients: list[Client] = field(default_factory=list)

    async def client(self, argv: Sequence[str], within: float) -> None:
        client = Client(f"{argv[0]} {len(self.clients)}", [(time.time(), 0.0, 0.0)])
        self.clients.append(client)
        if "bench" not in argv:
            client.running, client.failed = False, _SAYS_NOTHING
            return await super().client(argv, within)
        # Without stdbuf, rows would come only in pieces of 4 KiB.
        argv = ["stdbuf", "--output=0", *argv, "--format", "json"]
        process = await start(self.on.lab.enter_argv(argv), stdout=PIPE)
        assert process.stdout is not None
        rows, output = RowStream(), b""
        try:
            async with asyncio.timeout(within):
                while data := await process.stdout.read(_READ_BYTES):
                    output += data
                    client.reports += reports(rows.feed(data))
                status = await process.wait()
            client.failed = how_it_ended(status) if status else ""
            if not status:
                client.reports.append(last_report(output))
        except (KeyError, ValueError):
            client.failed = _SAYS_NOTHING
        finally:
            client.running = False
            signal_group(process)
            await process.wait()


def reports(rows: Iterable[Second]) -> list[Report]:
    return [(time.time(), row.finished, row.finished * row.latency_mean) for row in rows]


def last_report(output: bytes) -> Report:
    """The last row of a bench lacks what ended after it."""
    result = read_result(output)
    return time.time(), result.ops, result.ops * result.latency_mean


def at(course: Course, moment: float) -> float:
    """The sum at a moment; 0 without a reading."""
    return count_at(course, moment) if course else 0.0


def compare(
    account: Mapping[str, Course],
    latency: Mapping[str, Course],
    clients: Sequence[Client],
    began: float,
    now: float,
) -> Compared:
    """`account` and `latency` (op_latency): by OSD, of all OSDs; one that was not read has none."""
    last = [(osd, course[-1][0] if course else began) for osd, course in account.items()]
    last += [(it.name, it.reports[-1][0]) for it in clients if it.running]
    end = min(then for _, then in last)
    problems = [f"{it.name} {it.failed}" for it in clients if it.failed and not it.running]
    problems += [
        f"{it} said nothing for {now - then:.0f} s" for it, then in last if now - then > _SILENT
    ]
    problems += [f"{osd} restarted" for osd, course in latency.items() if _fell(course)]
    problems += [
        f"{osd} was read too late"  # what it had done until then is in no account
        for osd, course in account.items()
        if course and course[0][0] > began and at(latency[osd], course[0][0]) > 0
    ]
    if problems or not clients:
        return Compared(why=", ".join(problems) or "no load")

    def gained(course: Course) -> float:
        return at(course, end) - at(course, began)

    ops, took = (sum(gained(it.course(figure)) for it in clients) for figure in (1, 2))
    if not took:
        return Compared(why="no operation ended")
    seconds = sum(gained(course) for course in account.values())
    return Compared(seconds / took - 1, 1000 * (took - seconds) / ops)


def _fell(course: Course) -> bool:
    return any(after < before for (_, before), (_, after) in pairwise(course))


async def compared(stage: HeardStage, on: Watched, began: float) -> Compared:
    """The clients that began since then, and all OSDs. Call it while the loads run."""
    now = time.time()
    osds = [f"osd.{osd}" for osd in range(stage.situation.cluster.osds)]

    async def courses(series: str) -> dict[str, Course]:
        found = await on.stack.query(f"{series}[{now - began + _SCRAPES:.0f}s] @ {now:.3f}")
        return {
            osd: _summed(it for it in found if it["metric"]["ceph_daemon"] == osd) for osd in osds
        }

    account = await courses(AccountSeries.SECONDS)
    latency = await courses("ceph_osd_op_latency_sum")
    clients = [it for it in stage.clients if it.reports[0][0] >= began]
    return compare(account, latency, clients, began, now)


def _summed(series: Iterable[Mapping[str, Any]]) -> Course:
    """The series of an OSD as one: they are read together, and one that is new was 0 before."""
    sums: dict[float, float] = {}
    for each in series:
        for moment, value in each["values"]:
            sums[moment] = sums.get(moment, 0.0) + float(value)
    return sorted(sums.items())
