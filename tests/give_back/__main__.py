"""A run is killed with SIGKILL at a random moment, `cephqos run --restore-only` follows, and the
cluster is compared with what it was: `make give-back` (COUNT=50 SEED=1).

Every third time something more happens before it is restored: the work folder of the run is
removed, or the monitor is killed and started again. One situation has the journal filled to its
end. Exits 1 unless every cluster was given back.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.by_signal import clean_up_when_ended
from tests.give_back import state
from tests.give_back.situations import FULL, FULL_STEPS, KINDS, SITUATIONS

from cephqos_loadgen.lab.daemons.bringup import BringUp
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.progress import Progress, Silent

_SOON: Final = 120.0  # seconds for anything
# Seconds after its first change within which a run is killed, until one has ended by itself: then
# it is the length of that one.
_LONGEST: Final = 30.0
_FILL: Final = f"""\
from cephqos_loadgen.cluster import journal_size, undo
undo.MAX_STEPS = {FULL_STEPS}
journal_size.MAX_STEPS = 10000
"""
# Half of the runs are killed at a moment of their whole length, the others soon after a change of
# some kind: short ones are seldom met by chance.
_AT_A_STEP: Final = 0.5
_SOON_AFTER: Final = 1.5
_MORE: Final = ("", "work folder removed", "monitor started again")


@dataclass
class Round:
    """One run that was killed."""

    situation: str
    more: str
    after: float  # seconds after its first change, or after a step of that kind
    kind: str = ""
    kinds: tuple[str, ...] = ()  # of the steps that were left to undo
    ended_after: float = 0.0  # seconds; 0: it had not ended by itself
    restored_in: float = 0.0
    wrong: list[str] = field(default_factory=list)


def main() -> int:
    clean_up_when_ended()
    parser = argparse.ArgumentParser(prog="python -m tests.give_back", description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None, help="default: drawn, and printed")
    given = parser.parse_args()
    seed = secrets.randbelow(1 << 20) if given.seed is None else given.seed
    return asyncio.run(give_back(given.count, seed))


async def give_back(count: int, seed: int) -> int:
    print(f"{count} rounds, seed {seed}", flush=True)
    chance = random.Random(seed)  # noqa: S311 - no secret
    spec = LabSpec(
        name=f"give-back-{secrets.token_hex(3)}", osds=3, osd_size=2 << 30, backing="loop"
    )
    rounds: list[Round] = []
    longest = dict.fromkeys(SITUATIONS, _LONGEST)
    with tempfile.TemporaryDirectory(prefix="cephqos-give-back-") as folder:
        async with Lab(spec, Progress()) as lab:
            await _as_an_operator_has_it(lab)
            before = await _settled(lab)
            try:
                while len(rounds) < count:
                    number = len(rounds)
                    situation = list(SITUATIONS)[number % len(SITUATIONS)]
                    more = _MORE[number // len(SITUATIONS) % len(_MORE)]
                    one = Round(situation, more, chance.uniform(0.0, longest[situation]))
                    if situation == FULL or chance.random() < _AT_A_STEP:
                        one.kind = chance.choice(KINDS[situation])
                        one.after = chance.uniform(0.0, _SOON_AFTER)
                    with tempfile.TemporaryDirectory(dir=folder) as place:
                        await _one(lab, Path(place), one, before)
                    title = f"{number + 1:3} {situation}{f', {more}' if more else ''}"
                    if one.ended_after and not one.wrong:
                        longest[situation] = longest[situation] if one.kind else one.ended_after
                        print(f"{title}: ended by itself first, so once more", flush=True)
                        continue
                    rounds.append(one)
                    print(
                        f"{title}: killed {one.after:.1f} s after its first {one.kind or 'change'},"
                        f" {len(one.kinds)} steps, restored in {one.restored_in:.1f} s:"
                        f" {'; '.join(one.wrong) or 'given back'}",
                        flush=True,
                    )
            finally:
                _print(rounds)
    return 0 if all(not one.wrong for one in rounds) else 1


async def _as_an_operator_has_it(lab: RunningLab) -> None:
    """Options, flags, weights, placements and queues that are none of the defaults."""

    async def ceph(*words: str) -> None:
        await lab.exec(["ceph", *words])

    # A balancer that is on and an autoscaler, which do nothing by themselves meanwhile.
    await ceph("config", "set", "mgr", "mgr/balancer/sleep_interval", "86400")
    await ceph("config", "set", "mgr", "mgr/pg_autoscaler/sleep_interval", "86400")
    await ceph("config", "set", "osd", "osd_max_scrubs", "3")
    await ceph("config", "set", "osd.1", "osd_heartbeat_grace", "25")
    await ceph("osd", "set", "nosnaptrim")
    await ceph("osd", "set", "nodeep-scrub")
    await ceph("osd", "pool", "create", "placed", "8")
    await ceph("osd", "pool", "set", "placed", "size", "2")
    await ceph("osd", "pool", "set", "placed", "pg_autoscale_mode", "on")
    await ceph("osd", "pool", "set", "placed", "pg_num_max", "8")  # it has nothing to do
    await ceph("osd", "pool", "application", "enable", "placed", "rbd")
    await ceph("osd", "reweight", "0", "0.85")
    for device in lab.state.devices.values():
        queue = Path("/sys/block") / Path(device).name / "queue"
        (queue / "scheduler").write_text("none")
        (queue / "read_ahead_kb").write_text("512")
    async with lab.client() as client, asyncio.timeout(_SOON):
        sizes: set[int] = set()
        while sizes != {2}:  # the manager hears of a pool's new size a little later
            await _clean(lab)
            found = await client.command("pg ls-by-pool", target="mgr", poolstr="placed")
            sizes = {len(group["up"]) for group in found["pg_stats"]}
    for group in found["pg_stats"]:
        (away,) = {0, 1, 2} - set(group["up"])
        await ceph("osd", "pg-upmap-items", group["pgid"], str(group["up"][-1]), str(away))


async def _clean(lab: RunningLab) -> None:
    deadline = time.monotonic() + _SOON
    while time.monotonic() < deadline:
        async with lab.client() as client:
            status = await client.command("pg stat")
        entries = status.get("pg_summary", status)["num_pg_by_state"]
        if all(entry["name"] == "active+clean" for entry in entries):
            return
        await asyncio.sleep(0.5)
    raise TimeoutError("placement groups did not become clean")


async def _settled(lab: RunningLab) -> dict[str, Any]:
    """The state, once it is the same for a while: the manager makes a pool of its own."""
    last: dict[str, Any] = {}
    same_since = time.monotonic()
    while time.monotonic() - same_since < 6:
        await _clean(lab)
        now = await state.look(lab)
        if now != last:
            last, same_since = now, time.monotonic()
        await asyncio.sleep(0.5)
    return last


# -- one round -----------------------------------------------------------------------------------


async def _one(lab: RunningLab, folder: Path, one: Round, before: dict[str, Any]) -> None:
    try:
        async with _run(lab, folder, one.situation) as process:
            least = FULL_STEPS if one.situation == FULL else 1
            await _written(process, folder, one.kind, least)
            began = time.monotonic()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(process.wait()), one.after)
                one.ended_after = time.monotonic() - began
        one.kinds = await _kinds(lab)
        await _also(lab, one.more)
        began = time.monotonic()
        restored = await _cephqos(lab, "run", "--restore-only")
        one.restored_in = time.monotonic() - began
        if restored.returncode:
            one.wrong.append(f"status {restored.returncode}: {restored.stdout + restored.stderr}")
        left = [line for line in restored.stdout.splitlines() if "left as it is" in line]
        one.wrong += left
        one.wrong += await _compare(lab, before)
        if one.wrong:
            print((folder / "said").read_text()[-2000:], restored.stdout, restored.stderr)
    except (TimeoutError, OSError, subprocess.SubprocessError) as error:
        one.wrong.append(repr(error))
    with contextlib.suppress(TimeoutError):
        await _clean(lab)


@contextlib.asynccontextmanager
async def _run(
    lab: RunningLab, folder: Path, situation: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`cephqos run`, which is killed at the end of the block."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(SITUATIONS[situation])
    code = _FILL if situation == FULL else ""
    code += "from cephqos_base.command import main\nraise SystemExit(main())"
    argv = [sys.executable, "-c", code, "run", str(scenario), "--lab", lab.paths.name]
    argv += ["--out", str(folder / "out"), "--listen", "127.0.0.1:0"]
    with (folder / "said").open("wb") as said:
        process = await asyncio.create_subprocess_exec(*argv, stdout=said, stderr=said)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def _written(
    process: asyncio.subprocess.Process, folder: Path, kind: str, least: int
) -> None:
    """Wait until the run has written down so many steps, and one of this kind."""
    async with asyncio.timeout(_SOON):
        while True:
            texts = [path.read_text() for path in (folder / "out").glob("*/undo.json")]
            if any(f'"kind": "{kind}' in text and text.count('"kind"') >= least for text in texts):
                return
            if process.returncode is not None:
                raise OSError(f"the run ended first: {(folder / 'said').read_text()[-1500:]}")
            await asyncio.sleep(0.01)


async def _kinds(lab: RunningLab) -> tuple[str, ...]:
    """Of the steps in the cluster."""
    async with lab.client() as client:
        keys = await client.command("config-key dump", key="cephqos/run/steps/")
    return tuple(json.loads(step)["kind"] for step in keys.values())


async def _also(lab: RunningLab, what: str) -> None:
    if what == "work folder removed":
        for folder in lab.paths.work.iterdir():
            shutil.rmtree(folder)
    elif what == "monitor started again":
        os.kill((await lab.pids())["mon.a"], signal.SIGKILL)
        while "mon.a" in (await lab.ask_process_one(op="list"))["daemons"]:
            await asyncio.sleep(0.05)
        await BringUp(lab, Silent())._start("mon.a", ["ceph-mon", "-i", "a"])


async def _cephqos(lab: RunningLab, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "cephqos_base", *words, "--lab", lab.paths.name]
    return await asyncio.to_thread(
        subprocess.run, argv, capture_output=True, text=True, timeout=4 * _SOON, check=False
    )


async def _compare(lab: RunningLab, before: dict[str, Any]) -> list[str]:
    """What differs; an OSD may need a while until it is up."""
    deadline = time.monotonic() + _SOON / 2
    while True:
        found = state.differences(before, await state.look(lab))
        if not found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.5)


# -- the table -----------------------------------------------------------------------------------


def _print(rounds: list[Round]) -> None:
    """Markdown, as docs/internals/measure.md has it."""
    if not rounds:
        return
    groups: dict[str, list[Round]] = defaultdict(list)
    for one in rounds:
        groups[one.situation].append(one)
        if one.more:
            groups[f"of all: {one.more}"].append(one)
    groups["all"] = rounds
    print("\n| killed during | given back | steps left | seconds to restore |\n|---|---|---|---|")
    for name, some in groups.items():
        good = sum(not one.wrong for one in some)
        steps = [len(one.kinds) for one in some]
        seconds = sorted(one.restored_in for one in some)
        print(
            f"| {name} | {good} of {len(some)} | {min(steps)} to {max(steps)}"
            f" | {seconds[len(seconds) // 2]:.1f}, at most {seconds[-1]:.1f} |"
        )
    kinds = Counter(kind for one in rounds for kind in one.kinds)
    print("steps left by kind:", ", ".join(f"{kind} {n}" for kind, n in kinds.most_common()))


if __name__ == "__main__":
    sys.exit(main())
