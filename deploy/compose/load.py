"""Runs a scenario against the lab again and again. `load.py --healthy`: whether it still does."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

LAB = Path("/var/lib/cephqos/labs/lab")
ARCHIVES = Path("/var/lib/cephqos/archives")
BEAT = Path("/tmp/beat")  # noqa: S108 - touched before each run, for `--healthy`
PAUSE = 10.0  # seconds between two runs
LONGEST = 3600.0  # seconds of a run, after which the load is not healthy


def argv() -> list[str]:
    return [
        *("cephqos", "run", os.environ["LOAD_SCENARIO"], f"--scale={os.environ['LOAD_SCALE']}"),
        *(f"--conf={LAB}/ceph.conf", f"--keyring={LAB}/keys/client.admin.keyring"),
        f"--i-know-this-cluster={os.environ['LAB_FSID']}",
        # What an earlier run of this container left behind when it was killed.
        "--take-over",
        *("--exporter=http://127.0.0.1:10130/metrics", f"--sockets={LAB}/run", f"--out={ARCHIVES}"),
    ]


def tidy(keep: int) -> None:
    """Remove all but the newest archives: the load never ends."""
    finished = sorted(p for p in ARCHIVES.iterdir() if p.is_dir() and p.name[:1].isdigit())
    for archive in finished[: max(0, len(finished) - keep)]:
        shutil.rmtree(archive, ignore_errors=True)


def repeat() -> None:
    run: subprocess.Popen[bytes] | None = None
    ending = starting = terminated = False

    def end(*_: object) -> None:
        """End the run first, which restores the cluster. `repeat` waits for it and then ends."""
        nonlocal ending, terminated
        ending = True
        if starting:
            return  # a run may have started that is not yet in `run`
        if run is None or run.returncode is not None:
            sys.exit(0)
        # Not `run.wait` here: this interrupts a `wait` that holds its lock.
        if not terminated:
            terminated = True
            run.terminate()

    signal.signal(signal.SIGTERM, end)
    while not ending:
        tidy(int(os.environ["LOAD_KEEP"]))
        BEAT.touch()
        starting = True
        run = subprocess.Popen(argv())
        starting = False
        if ending:
            end()
        print(f"cephqos run ended with status {run.wait()}", flush=True)
        if not ending:
            time.sleep(PAUSE)


if __name__ == "__main__":
    if "--healthy" in sys.argv:
        sys.exit(0 if BEAT.exists() and time.time() - BEAT.stat().st_mtime < LONGEST else 1)
    repeat()
