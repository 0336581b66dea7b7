"""Runs the shipped scenarios at scale tiny, each on a lab of its own, and prints one row for each:
how long, how many points, and the archive's figures beside what fio and rados bench printed.

`make bench-scenarios` (root, about half an hour), or this file with names of scenarios. What the
clients printed is read here again, from their recorded output; the readers of cephqos are not used.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.by_signal import clean_up_when_ended

from cephqos_loadgen.archive.reader import Archive, RecordedRepeat, open_archive, problems
from cephqos_loadgen.results.phase import LoadResult

RELEASE = "reef"
# Where all points would take too long: what is left out differs in settings only.
ONLY = {
    "baseline": (),
    "client-vs-recovery": ("media=ssd", "policy=wpq_boosted,high_client_ops"),
    "client-vs-scrub": ("policy=wpq,high_client_ops,custom",),
    "client-vs-scrub-recovery": ("policy=wpq,high_client_ops",),
    "cpu-placement": ("strategy=default,by_socket",),
    "io-scheduler": (),
    "latency-target": (),
    "qos-demo": (),
    "rbd-surface": ("path=librbd,qemu,qemu_cache", "rw=randread,randwrite"),
    "response-curve": (),
}
HEAD = (
    "| scenario | points | time | loads | I/Os in the archive | I/Os printed | IOPS, archive :"
    " printed | archive |\n|---|---|---|---|---|---|---|---|"
)


class Load(NamedTuple):
    """One phase with clients, or one step of a curve."""

    ios: int
    iops: float


def documents(text: str) -> Iterator[dict[str, Any]]:
    """The JSON documents in a text with other lines between them."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except ValueError:
            end = at + 1
        else:
            yield found
        at = text.find("{", end)


def printed(repeat: RecordedRepeat, client: str) -> Load | None:
    """What one client said last, of all that it did."""
    last = None
    for document in documents(repeat.output(client).decode(errors="replace")):
        if "jobs" in document or "total_writes_made" in document or "total_reads_made" in document:
            last = document
    if last is None:
        return None
    if "jobs" in last:
        parts = [job[way] for job in last["jobs"] for way in ("read", "write")]
        return Load(sum(p["total_ios"] for p in parts), sum(p["iops"] for p in parts))
    ops: Any = last.get("total_writes_made", last.get("total_reads_made"))
    return Load(int(ops), float(last["average_iops"]))


def archived(repeat: RecordedRepeat) -> dict[str, list[Load]]:
    """By phase, the steps of its load."""
    found = {}
    for name, phase in repeat.record.phases.items():
        if isinstance(phase.result, LoadResult):
            found[name] = [Load(s.total.ios, s.total.iops) for s in phase.result.steps]
    return found


def row(name: str, archive: Archive, seconds: float) -> str:
    steps, ios, said_ios, ratios = 0, 0, 0, []
    for repeat in archive.repeats:
        clients = [child.name for child in repeat.record.children]
        for phase, loads in archived(repeat).items():
            own = [c for c in clients if c.startswith(f"{phase}.") and ".qemu." not in c]
            said = [load for client in own if (load := printed(repeat, client))]
            steps += len(loads)
            ios += sum(load.ios for load in loads)
            said_ios += sum(load.ios for load in said)
            ratios.append(sum(load.iops for load in loads) / sum(load.iops for load in said))
    damage = list(problems(archive))
    state = "sound" if not damage else damage[0]
    points = len({repeat.record.point for repeat in archive.repeats})
    lowest, highest = min(ratios), max(ratios)
    return (
        f"| `{name}` | {points} | {seconds:.0f} s | {steps} | {ios:,} | {said_ios:,} |"
        f" {lowest:.3f} to {highest:.3f} | {archive.manifest.status}, {state} |"
    )


def run(name: str, out: Path) -> str:
    command = [sys.executable, "-m", "cephqos_base", "run", name, "--scale", "tiny"]
    command += ["--release", RELEASE, "--out", str(out / name), "--listen", "127.0.0.1:0"]
    for only in ONLY[name]:
        command += ["--only", only]
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    seconds = time.monotonic() - start
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return f"| `{name}` | - | {seconds:.0f} s | | | | | status {done.returncode}: {said[-1]} |"
    return row(name, open_archive(next((out / name).iterdir())), seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help=", ".join(ONLY))
    names = parser.parse_args().names or list(ONLY)
    if unknown := sorted(set(names) - ONLY.keys()):
        parser.error(f"{unknown[0]} is no scenario; expected one of {', '.join(ONLY)}")
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs, {platform.release()}, {RELEASE}")
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as out:
        rows = []
        for name in names:
            rows.append(run(name, Path(out)))
            print(rows[-1], flush=True)
    return sum("complete, sound" not in line for line in rows)


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(main())
