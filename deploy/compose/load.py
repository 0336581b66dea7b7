"""Runs a scenario against the lab again and again. `load.py --healthy`: whether it still does."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from cephqos_base import marked
from cephqos_base.marked import NotOurs

LAB = Path("/var/lib/cephqos/labs/lab")
ARCHIVES = Path("/var/lib/cephqos/archives")
BEAT = Path("/tmp/beat")  # noqa: S108 - touched before each run, for `--healthy`
KIND = "load"  # what the mark of an archive says that this load has made
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
    """Remove all but the newest archives of this load, which never ends. Others stay."""
    ours = [path for path in sorted(ARCHIVES.iterdir()) if is_ours(path)]
    for archive in ours[: max(0, len(ours) - keep)]:
        try:
            marked.remove(archive, KIND)
        except (NotOurs, OSError) as error:
            print(f"{archive} cannot be removed: {error}", flush=True)


def is_ours(archive: Path) -> bool:
    try:
        return bool(marked.read(archive, KIND))
    except NotOurs:
        return False


def mark(before: set[Path]) -> None:
    """Mark what the run has written, so that `tidy` may remove it. Others have other users."""
    for path in set(ARCHIVES.iterdir()) - before:
        if path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.geteuid():
            with contextlib.suppress(FileExistsError):
                marked.mark(path, KIND)


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
        before = set(ARCHIVES.iterdir())
        starting = True
        run = subprocess.Popen(argv())
        starting = False
        if ending:
            end()
        print(f"cephqos run ended with status {run.wait()}", flush=True)
        mark(before)
        if not ending:
            time.sleep(PAUSE)


if __name__ == "__main__":
    if "--healthy" in sys.argv:
        sys.exit(0 if BEAT.exists() and time.time() - BEAT.stat().st_mtime < LONGEST else 1)
    repeat()
