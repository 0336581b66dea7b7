"""Proof of `cephqos trial` on labs, in pieces that go on where they were ended:

    PYTHONPATH=. python -m tests.trial.labs                # all pieces: about three hours
    PYTHONPATH=. python -m tests.trial.labs same-3 rail-1  # these; or a kind, such as same
    PYTHONPATH=. python -m tests.trial.labs --table        # the table of docs/internals/trial.md

A piece is one trial on a lab of its own, and a line of `labs.jsonl`. One that is there is not made
again. `--minutes 9` begins no piece after so long.
"""

import argparse
import asyncio
import json
import math
import random
import re
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.by_signal import clean_up_when_ended
from tests.trial.staged import HARMFUL, Clients, OwnCount, keep, load, results, settings, trial

from cephqos_insight.trial.plan import parse_candidate
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.cluster.run_keys import KEY
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec, with_regime
from cephqos_loadgen.run.restore import restore

RESULTS: Final = Path(__file__).with_name("labs.jsonl")
_RELEASES: Final = ("reef", "tentacle")
_OSDS: Final = 3
_IOPS: Final = 200  # of each device: it is the bound, so latency goes with it
_SLOWER: Final = 0.7  # a known effect: latencies times 1 / 0.7
_INERT: Final = "osd_max_scrubs=2"  # not the default (3); does nothing to clients
# Of a capacity that no device here has.
_LIMIT: Final = "profile=custom client_res=0.001 client_lim=0.04"
# Beside scrubs, in the regime in which mClock decides.
_RESERVED: Final = (
    "profile=custom client_res=0.05 client_wgt=1 client_lim=0"
    " best_effort_res=0.5 best_effort_wgt=4 best_effort_lim=0"
)
_RAILS: Final = ("--block", "20s", "--harm", "3", "--harm-time", "6s", "--by", "mean")
_ROUNDS: Final = (*_RAILS, "--least-rounds", "6", "--rounds", "6")
_BESIDE_TESTS: Final = ("slower-5", "slower-7", "slower-9")  # these took both CPUs
_OPS: Final = r"ops/s (\S+) % [(](\S+) … ([^)]+)[)]"  # of an answer: the change, and its interval
_LONGEST: Final = 500.0  # seconds of a trial


@dataclass(frozen=True, slots=True)
class Told:
    """What a trial said."""

    status: int
    report: Sequence[str]
    events: Sequence[Mapping[str, Any]]

    @property
    def answer(self) -> str:
        return self.report[0] if self.report else ""


class Staged:
    """A lab under load, and a trial on it."""

    def __init__(self, lab: RunningLab, out: Path, number: int, clients: Clients) -> None:
        self.lab, self.out, self.clients, self.number = lab, out, clients, number
        self.chance = random.Random(number)  # noqa: S311 - no secret
        self.tried = False  # whether the setting was in force once

    async def devices(self, part: float) -> None:
        """Let them do this part of what they can."""
        for osd in range(_OSDS):
            iops = int(_IOPS * part)
            await self.lab.faults.throttle(osd, riops=iops, wiops=iops)

    async def slower(self, yes: bool) -> None:
        await self.devices(_SLOWER if yes else 1.0)

    async def slower_while_tried(self, event: Any) -> None:
        """As a block begins: devices are slower in those of the setting that is tried."""
        if event["event"] == "block_started":
            await self.slower(event["arm"] == _INERT)

    def events(self) -> list[dict[str, Any]]:
        files = list(self.out.glob("*/trial.jsonl"))
        lines = files[0].read_text().splitlines(keepends=True) if files else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    async def trial(
        self, candidate: str, *more: str, heard: Callable[[Any], Awaitable[None]] | None = None
    ) -> Told:
        """Run it to its end. `heard` gets each event soon after it is written."""
        process = await trial(self.lab, self.out, candidate, *more)
        told = 0
        output = asyncio.create_task(process.communicate())
        try:
            async with asyncio.timeout(_LONGEST):
                while not output.done():
                    await asyncio.wait([output], timeout=0.2)
                    events = self.events()
                    for event in events[told:]:
                        if heard:
                            await heard(event)
                    told = len(events)
        finally:
            if process.returncode is None:
                process.kill()
        print((await output)[0].decode(), flush=True)
        report = [line for file in self.out.glob("*/report.txt") for line in _lines(file)]
        return Told(process.returncode, report, self.events())

    async def killed(self, setting: tuple[str, str], within: float, *tried: str) -> float:
        """Begin a trial, kill it at a random time after this setting was made, and give back.
        Returns how long after."""
        process = await trial(self.lab, self.out, *tried)
        try:
            async with asyncio.timeout(_LONGEST):
                while setting not in await settings(self.lab):
                    assert process.returncode is None
            moment = self.chance.uniform(0, within)
            await asyncio.sleep(moment)
        finally:
            if process.returncode is None:
                process.kill()
        await process.wait()
        await restore(RunOptions(out=self.out, lab=self.lab.paths.name))
        return moment

    async def after_blocks(
        self, number: int, act: Callable[[], Awaitable[None]]
    ) -> Callable[[Any], Awaitable[None]]:
        """`heard` that acts once, at a random time in the block after so many."""
        ended = 0

        async def heard(event: Any) -> None:
            nonlocal ended
            ended += event["event"] == "block_ended"
            if event["event"] == "block_started" and ended == number:
                ended = 1000
                await asyncio.sleep(self.chance.uniform(2, 15))
                await act()

        return heard


def _lines(file: Path) -> Sequence[str]:
    return file.read_text().splitlines()


# -- kinds of pieces: each says whether it went as it should, and what was seen ------------------


async def _same(staged: Staged) -> tuple[bool, str]:
    told = await staged.trial("same", *_ROUNDS)
    return "no difference found" in told.answer, told.answer


async def _slower(staged: Staged) -> tuple[bool, str]:
    """Devices are slower while the setting is in force. Clients say by how much they did less."""
    own = OwnCount(staged.clients)

    async def heard(event: Any) -> None:
        await own.heard(event)
        await staged.slower_while_tried(event)

    told = await staged.trial(_INERT, *_ROUNDS, "--harm", "10", heard=heard)
    said = re.search(_OPS, told.answer)
    true = 100 * (own.change(_INERT) or 0.0)
    held = said is not None and float(said[2]) <= true <= float(said[3])
    return held, f"clients' own count: {true:+.1f} %; {told.answer}"


async def _known(staged: Staged) -> tuple[bool, str]:
    """Devices as in `counted`."""
    return await _known_change(staged, _INERT, staged.slower, staged.slower_while_tried)


async def _limited(staged: Staged, candidate: str = _LIMIT) -> tuple[bool, str]:
    """The setting itself makes the effect: mClock holds clients to a limit."""
    options = parse_candidate(candidate).options

    async def limit(limited: bool) -> None:
        # Values that outlive their profile stay in force: docs/internals/qos.md.
        for it in options if limited else reversed(options):
            how = ["set", "osd", it.name, it.value] if limited else ["rm", "osd", it.name]
            await staged.lab.exec(["ceph", "config", *how])

    return await _known_change(staged, candidate, limit, None)


async def _reserved(staged: Staged) -> tuple[bool, str]:
    """As `limited`, by reservations: scrubs without end get a large one, clients a small one."""
    await staged.lab.exec(["ceph", "osd", "pool", "create", "scrubbed", "8", "8"])
    fill = ["rados", "-p", "scrubbed", "bench", "30", "write", "-b", "65536", "--no-cleanup"]
    await staged.lab.exec(fill)

    async def scrub() -> None:
        while True:
            await staged.lab.exec(["ceph", "osd", "pool", "deep-scrub", "scrubbed"])
            await asyncio.sleep(1)

    scrubbing = asyncio.create_task(scrub())
    try:
        return await _limited(staged, _RESERVED)
    finally:
        scrubbing.cancel()
        await asyncio.gather(scrubbing, return_exceptions=True)


async def _known_change(
    staged: Staged,
    candidate: str,
    change: Callable[[bool], Awaitable[None]],
    heard: Callable[[Any], Awaitable[None]] | None,
) -> tuple[bool, str]:
    """By how much clients do less is counted in other blocks, before and after the trial. That
    count has an error of its own, by which the interval is widened."""
    own = OwnCount(staged.clients)

    async def by_ourselves() -> None:
        for changed in staged.chance.sample((True, False) * 4, 8):
            arm = candidate if changed else "now"
            await change(changed)
            await own.heard({"event": "block_started", "arm": arm})
            await asyncio.sleep(14)
            await own.heard({"event": "block_ended", "arm": arm})
        await change(False)

    await by_ourselves()
    told = await staged.trial(candidate, *_ROUNDS, "--harm", "10", heard=heard)
    await by_ourselves()
    said = re.search(_OPS, told.answer)
    known = own.change(candidate)
    if said is None or known is None:
        return False, told.answer
    middle, low, high = map(float, said.groups())
    true, error, half = 100 * known, own.error(candidate), max(middle - low, high - middle)
    strictly = "in" if low <= true <= high else "not in"
    held = abs(true - middle) <= math.hypot(half, 200 * error)
    return held, f"before and after: {true:+.1f} ± {200 * error:.1f} %, {strictly}; {told.answer}"


async def _harmful(staged: Staged) -> tuple[bool, str]:
    told = await staged.trial(HARMFUL, "--block", "60s", "--harm-time", "20s")
    harmed = [event for event in told.events if event.get("harm")]
    seconds = harmed[0]["seconds"] if harmed else 0.0
    return 0 < seconds < 30, f"ended after {seconds:.0f} s; {told.answer}"


async def _killed(staged: Staged) -> tuple[bool, str]:
    before = await settings(staged.lab)
    moment = await staged.killed(("osd", "osd_mclock_profile"), 3, "profile=high_recovery_ops")
    async with staged.lab.client() as client:
        keys = str(await client.command("config-key ls"))
    same = await settings(staged.lab) == before and KEY not in keys
    return same, f"killed {moment:.1f} s after the change"


async def _device_slowed(staged: Staged) -> tuple[bool, str]:
    """A device is five times slower from the middle on: no setting is the reason."""
    return await _with_slow_device(staged, math.inf)


async def _device_slow_for_a_while(staged: Staged) -> tuple[bool, str]:
    """Long enough for a guard rail, and over before the next block."""
    return await _with_slow_device(staged, 12)


async def _with_slow_device(staged: Staged, seconds: float) -> tuple[bool, str]:
    async def slow() -> None:
        await staged.lab.faults.throttle(0, riops=_IOPS // 5, wiops=_IOPS // 5)
        if seconds < math.inf:
            await asyncio.sleep(seconds)
            await staged.lab.faults.throttle(0, riops=_IOPS, wiops=_IOPS)

    heard = await staged.after_blocks(6, slow)
    told = await staged.trial("same", *_ROUNDS, heard=heard)
    lost = sum(bool(event.get("lost")) for event in told.events)
    thrown = sum(line.startswith("Thrown away") for line in told.report)
    right = "no difference found" in told.answer and bool(lost or thrown)
    return right, f"{thrown} thrown away; {told.answer}"


# What others do, and how the trial names it.
_OTHERS_DO: Final = (
    ("osd set noscrub", "someone has changed flags of the cluster: noscrub"),
    ("osd reweight 1 0.9", "someone has set the weight of osd.1 to 0.9"),
    ("osd out 2", "someone has set the weight of osd.2 to 0 (0: it is out)"),
    ("osd crush reweight osd.1 0.5", "the CRUSH map has changed"),
    ("config set osd osd_max_scrubs 5", "someone has changed osd osd_max_scrubs"),
    ("osd stop 1", "down: osd.1"),
)


async def _rail(staged: Staged) -> tuple[bool, str]:
    command, named = _OTHERS_DO[(staged.number - 1) % len(_OTHERS_DO)]

    async def act() -> None:
        await staged.lab.exec(["ceph", *command.split()])

    heard = await staged.after_blocks(3, act)
    told = await staged.trial("same", *_ROUNDS, heard=heard)
    return told.status == 1 and named in told.answer, f"{command}: {told.answer}"


async def _osd_stopped(staged: Staged) -> tuple[bool, str]:
    heard = await staged.after_blocks(6, lambda: staged.lab.faults.stop(1))
    told = await staged.trial("same", *_ROUNDS, heard=heard)
    await staged.lab.faults.resume(1)
    return told.status == 1 and "osd.1 has not answered" in told.answer, told.answer


async def _host(staged: Staged) -> tuple[bool, str]:
    """The scheduler of one OSD, on a host of its own, and back."""
    await _own_host(staged.lab)
    before, seen = await settings(staged.lab), list[str]()

    async def heard(event: Any) -> None:
        if event["event"] == "restart":
            await staged.devices(10.0)  # what was written meanwhile is recovered soon
        if event["event"] == "block_started":
            await staged.devices(1.0)
            seen.append(await _scheduler(staged.lab))

    rounds = (*_RAILS, "--least-rounds", "4")
    told = await staged.trial("scheduler=wpq", "--host", "alone", *rounds, heard=heard)
    there_and_back = seen == [*["mclock_scheduler"] * 4, *["wpq"] * 4, *["mclock_scheduler"] * 4]
    right = there_and_back and told.status == 0 and await settings(staged.lab) == before
    return right, "; ".join(told.report[:2])


async def _host_other(staged: Staged) -> tuple[bool, str]:
    """The setting is in force on osd.0, and the device of osd.1 becomes slow, for good."""
    await _own_host(staged.lab)

    async def heard(event: Any) -> None:
        if event["event"] == "restart":
            await staged.devices(10.0)
        if event["event"] == "block_started":
            await staged.devices(1.0)
            if event["arm"] not in ("as it is", "as it is, again") or staged.tried:
                staged.tried = True
                await staged.lab.faults.throttle(1, riops=_IOPS // 8, wiops=_IOPS // 8)

    rounds = ("--block", "20s", "--harm", "2", "--harm-time", "6s", "--least-rounds", "4")
    told = await staged.trial("scheduler=wpq", "--host", "alone", *rounds, heard=heard)
    right = told.status == 1 and "without the setting it was no better" in told.answer
    return right, "; ".join(told.report[:2])


async def _host_killed(staged: Staged) -> tuple[bool, str]:
    """Killed at a random time while OSDs are restarted, or soon after."""
    await _own_host(staged.lab)
    before = await settings(staged.lab)
    tried = ("scheduler=wpq", "--host", "alone")
    moment = await staged.killed(("osd.0", "osd_op_queue"), 8, *tried)
    scheduler = await _scheduler(staged.lab)
    same = await settings(staged.lab) == before and scheduler == "mclock_scheduler"
    return same, f"killed {moment:.1f} s after the change; {scheduler} is in force"


async def _own_host(lab: RunningLab) -> None:
    """osd.0 gets a host of its own, where it stays when it starts again."""
    for command in (
        "config set osd osd_crush_update_on_start false",
        "osd crush add-bucket alone host",
        "osd crush move alone root=default",
        "osd crush create-or-move osd.0 1.0 root=default host=alone",  # its weight stays
    ):
        await lab.exec(["ceph", *command.split()])


async def _scheduler(lab: RunningLab) -> str:
    async with lab.client() as client:
        found = await client.command("config get", target="osd.0", var="osd_op_queue")
    return str(found["osd_op_queue"])


_KINDS: Final[Mapping[str, tuple[int, Callable[[Staged], Awaitable[tuple[bool, str]]], str]]] = {
    "same": (10, _same, "a trial of the same says no difference"),
    "counted": (
        6,
        _slower,
        "what clients counted is in the interval of ops/s, with slower devices",
    ),
    "known": (
        22,
        _known,
        "what clients counted in other blocks is in the interval of ops/s, with slower devices",
    ),
    "limited": (
        4,
        _limited,
        "what clients counted in other blocks is in the interval of ops/s, with a limit of mClock",
    ),
    "reserved": (
        4,
        _reserved,
        "the same beside scrubs, with reservations of mClock",
    ),
    "harmful": (10, _harmful, "a harmful block ends in less than 30 s"),
    "killed": (20, _killed, "what kill -9 left is given back"),
    "device": (4, _device_slowed, "a device becomes slow: no wrong answer, blocks thrown away"),
    "awhile": (4, _device_slow_for_a_while, "a device is slow for 12 s: the same"),
    "rail": (12, _rail, "others change something, or stop an OSD: the trial ends and names it"),
    "host": (4, _host, "--host: the scheduler of one host's OSD changes, and is what it was"),
    "hostother": (2, _host_other, "--host: an OSD of another host is slow: no setting is blamed"),
    "hostkilled": (4, _host_killed, "--host: what kill -9 left is given back, the scheduler too"),
    "stopped": (2, _osd_stopped, "an OSD stands still: the trial ends, and no setting is blamed"),
}


async def _piece(name: str) -> Mapping[str, Any]:
    kind, _, number = name.partition("-")
    release = _RELEASES[int(number) % len(_RELEASES)]
    devices: dict[str, Any] = {"backing": "loop", "rotational": False, "device_iops": _IOPS}
    if kind == "reserved":
        devices = {"regime": "scheduler", "settings": ()}
    asked = {"name": f"trial-{name}", "release": release, "osds": _OSDS, **devices}
    spec = LabSpec(**with_regime(asked))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        async with Lab(spec) as lab, load(lab, 900) as clients:
            right, seen = await _KINDS[kind][1](Staged(lab, Path(folder), int(number), clients))
    seconds = round(time.monotonic() - began)
    return {"piece": name, "release": release, "right": right, "seen": seen, "seconds": seconds}


def table() -> str:
    lines = ["| staged on labs | so, in | of | median time of a piece |", "|---|---|---|---|"]
    for kind, (_, _, about) in _KINDS.items():
        found = [one for one in results(RESULTS) if one["piece"].startswith(f"{kind}-")]
        seconds = sorted(one["seconds"] for one in found)
        middle = f"{seconds[len(seconds) // 2]} s" if seconds else "not made yet"
        lines.append(f"| {about} | {sum(o['right'] for o in found)} | {len(found)} | {middle} |")
    return "\n".join(lines)


def effects() -> str:
    """Of trials with slower devices: how often the mean of the others on its release was in the
    interval of the mean latency."""
    found = []
    for one in results(RESULTS):
        said = re.search(r"mean (\S+) % [(](\S+) … ([^)]+)[)]", one["seen"])
        wanted = one["piece"].startswith(("slower-", "counted-"))
        if said and wanted and one["piece"] not in _BESIDE_TESTS:
            found.append((one["release"], *map(float, said.groups())))
    held = 0
    for index, (release, _, low, high) in enumerate(found):
        others = [it[1] for at, it in enumerate(found) if at != index and it[0] == release]
        held += low <= sum(others) / len(others) <= high
    return f"slower devices: the mean of the others is in {held} of {len(found)} intervals"


async def main(names: Sequence[str], minutes: float) -> None:
    all_names = [f"{kind}-{n}" for kind, (most, *_) in _KINDS.items() for n in range(1, most + 1)]
    wanted = [n for n in all_names if not names or n in names or n.split("-")[0] in names]
    made = {result["piece"] for result in results(RESULTS)}
    end = time.monotonic() + 60 * minutes
    for name in wanted:
        if name not in made and time.monotonic() < end:
            keep(RESULTS, await _piece(name))


if __name__ == "__main__":
    clean_up_when_ended()
    parser = argparse.ArgumentParser()
    parser.add_argument("pieces", nargs="*")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        asyncio.run(main(arguments.pieces, arguments.minutes))
    print(table())
    print(effects())
