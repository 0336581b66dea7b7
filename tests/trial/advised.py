"""What `cephqos advise` guesses, tried by the trial that it proposes, in twelve situations:

    PYTHONPATH=. python -m tests.trial.advised         # all that were not made yet
    PYTHONPATH=. python -m tests.trial.advised 3 11    # these
    PYTHONPATH=. python -m tests.trial.advised --table # the table of docs/internals/advise-proof.md

Clients write in a lab in which the scheduler decides, beside scrubs or recovery. `advise --for` is
asked about some minutes of it, and its best guess is tried. Three trials are of the same. Beside
each answer stands what clients counted themselves. A situation is a line of `advised.jsonl`.
"""

import argparse
import asyncio
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.by_signal import clean_up_when_ended
from tests.trial.labs import Staged
from tests.trial.staged import OwnCount, keep, results, writes

from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec, with_regime
from cephqos_stack.stack import Stack, StackSpec

RESULTS: Final = Path(__file__).with_name("advised.jsonl")
_OSDS: Final = 3
_IOPS: Final = 300  # of each device, as the regime has it
_CAPACITY: Final = 110  # operations per second: about what these devices do
_TOO_HIGH: Final = 1100
# Else mClock's slots, and pauses between chunks, decide and not what is reserved.
_EAGER: Final = {
    "osd_mclock_override_recovery_settings": "true",
    "osd_max_backfills": "3",
    "osd_recovery_max_active": "3",
    "osd_max_scrubs": "5",
    "osd_scrub_sleep": "0",
    "osd_scrub_backoff_ratio": "0",
}
_TRIAL: Final = (
    *("--block", "24s", "--harm", "5", "--harm-time", "8s", "--by", "mean"),
    *("--least-rounds", "6", "--rounds", "6"),
)


@dataclass(frozen=True, slots=True)
class Situation:
    """What goes on, and what is set. `same`: a trial of the same instead of the guess."""

    release: str
    beside: str  # clients
    profile: str
    capacity: int = _CAPACITY
    same: bool = False


SITUATIONS: Final = {
    1: Situation("reef", "scrub", "high_recovery_ops"),
    2: Situation("tentacle", "scrub", "high_recovery_ops"),
    3: Situation("reef", "scrub", "balanced"),
    4: Situation("tentacle", "scrub", "high_client_ops"),
    5: Situation("reef", "recovery", "high_recovery_ops"),
    6: Situation("tentacle", "recovery", "high_recovery_ops"),
    7: Situation("reef", "recovery", "balanced"),
    8: Situation("tentacle", "recovery", "high_client_ops"),
    9: Situation("reef", "scrub", "high_client_ops", _TOO_HIGH),
    10: Situation("reef", "scrub", "balanced", same=True),
    11: Situation("tentacle", "recovery", "balanced", same=True),
    12: Situation("tentacle", "nothing", "balanced", same=True),
}


@asynccontextmanager
async def _beside(lab: RunningLab, what: str) -> AsyncIterator[None]:
    """Recovery or scrubs that go on for longer than the trial."""
    if what == "recovery":
        await lab.exec(["ceph", "osd", "out", str(_OSDS)])
    scrubs = asyncio.create_task(_scrub(lab)) if what == "scrub" else None
    try:
        yield
    finally:
        if scrubs:
            scrubs.cancel()
            await asyncio.gather(scrubs, return_exceptions=True)


async def _fill(lab: RunningLab) -> None:
    """Devices are fast meanwhile, unless reads and writes share a budget."""
    await _devices(lab, 5000)
    argv = ["rados", "-p", "tried", "bench", "100", "write", "-b", "16384", "-t", "32"]
    await lab.exec([*argv, "--no-cleanup", "--run-name", "there"], within=150)
    await _devices(lab, _IOPS)


async def _devices(lab: RunningLab, iops: int) -> None:
    for osd in range(lab.spec.osds):
        await lab.faults.throttle(osd, riops=iops, wiops=iops)


async def _scrub(lab: RunningLab) -> None:
    async with lab.client() as client:
        while True:
            for osd in range(_OSDS):
                await client.command("osd deep-scrub", target="mgr", who=str(osd))
            await asyncio.sleep(5)


async def _advice(lab: RunningLab) -> dict[str, Any]:
    """Of three and a half minutes, from the Prometheus of a stack."""
    async with Stack(lab, StackSpec(name="advised", time_scale=1.0, scrape_interval=5.0)) as stack:
        await asyncio.sleep(215)
        argv = ["advise", "--prometheus", stack.prometheus_url, "--since", "210s", "--json"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cephqos_base", *argv, "--for", "client p99 < 1ms"),
            stdout=subprocess.PIPE,
        )
        found: dict[str, Any] = json.loads((await process.communicate())[0])
        return found


def best_guess(command: str) -> str:
    return next(
        word.removeprefix("--try=") for word in shlex.split(command) if word.startswith("--try=")
    )


async def _tried(staged: Staged, candidate: str) -> dict[str, Any]:
    """The trial's answer, and by how much clients did more by their own count."""
    own = OwnCount(staged.clients)
    told = await staged.trial(candidate, *_TRIAL, heard=own.heard)
    return {"answer": told.answer, "status": told.status, "clients": own.change(candidate)}


async def piece(number: int) -> dict[str, Any]:
    it = SITUATIONS[number]
    osds = _OSDS + (it.beside == "recovery")
    settings = tuple(CephOption("osd", name, value) for name, value in _EAGER.items())
    asked = {"name": f"advised-{number}", "release": it.release, "osds": osds, "settings": settings}
    # A scrub reads: it costs those who write something where both have one budget.
    asked |= {"regime": "scheduler", "osd_size": 4 << 30, "one_budget": it.beside == "scrub"}
    spec = LabSpec(**with_regime(asked))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        async with Lab(spec) as lab:
            for osd in range(osds):
                option = "osd_mclock_max_capacity_iops_ssd"
                await lab.exec(["ceph", "config", "set", f"osd.{osd}", option, str(it.capacity)])
            await lab.exec(["ceph", "config", "set", "osd", "osd_mclock_profile", it.profile])
            await lab.exec(["ceph", "osd", "pool", "create", "tried", "16", "16"])
            await _fill(lab)
            async with writes(lab, 1200) as clients, _beside(lab, it.beside):
                guess = "same" if it.same else best_guess((await _advice(lab))["trial"])
                if it.beside == "recovery" and not it.same:  # the first one may be over
                    await lab.exec(["ceph", "osd", "in", str(_OSDS)])
                    await asyncio.sleep(10)
                seen = await _tried(Staged(lab, folder / "trial", number, clients), guess)
    seconds = round(time.monotonic() - began)
    return {"situation": number, "guess": guess, **seen, "seconds": seconds}


def _results() -> dict[int, dict[str, Any]]:
    return {found["situation"]: found for found in results(RESULTS)}


def table() -> str:
    lines = [
        "| situation | tried | mean latency | scrub, recovery | ops/s | by clients' own count |",
        "|---|---|---|---|---|---|",
    ]
    for number, found in sorted(_results().items()):
        it = SITUATIONS[number]
        high = f", capacity {it.capacity:,} instead of {_CAPACITY}" * (it.capacity != _CAPACITY)
        about = f"{number}. {it.release}, beside {it.beside}, {it.profile}{high}"
        said = [
            _figure(found["answer"], name)
            for name in ("mean ", "scrubbed/s |recovery (?!/)", "ops/s ")
        ]
        own = "–" if found["clients"] is None else f"{100 * found['clients']:+.0f} %"
        lines.append(f"| {about} | `{found['guess']}` | {' | '.join(said)} | {own} |")
    return "\n".join(lines)


def _figure(answer: str, name: str) -> str:
    """A figure with its interval, as the first line of a report has it."""
    found = re.search(f"(?:{name})([^,(]*[(][^)]*[)])", answer)
    return found[1] if found else "–"


async def main(numbers: Sequence[int]) -> None:
    for number in numbers or sorted(SITUATIONS):
        if number not in _results():
            keep(RESULTS, await piece(number))


if __name__ == "__main__":
    clean_up_when_ended()
    parser = argparse.ArgumentParser()
    parser.add_argument("numbers", nargs="*", type=int)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        asyncio.run(main(arguments.numbers))
    print(table())
