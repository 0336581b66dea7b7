"""The layout of an archive, format 1.

    archive.json       the manifest: format, status, what ran, every file with size and SHA-256
    archive.sha256     the checksum of the manifest
    scenario.yaml      the scenario as it was given
    plan.json          the frozen plan
    environment.json   hardware, kernel, releases, options, devices, before the first repeat
    environments.json  all of them, where the points had clusters of different kinds: the file above
                       is of the last one
    client.conf        the configuration that the clients of the last point used; what a point adds
                       to it is in the plan
    undo.json          the way back as it stood last; empty when the cluster was restored
    events.jsonl       what happened to the run as a whole
    prepare-XXXX/      what was done before the first repeat of a cluster: pools made and filled
        children.json       the processes, with argv and exit status
        output/NAME.{stdout,stderr}.gz
    repeats/NNN-POINT-rN/
        repeat.json           the record of the repeat: phases with their results, configuration in
                              force, processes with argv and exit status, checksums
        events.jsonl          phases, recovery, faults
        intervals.jsonl.gz    the clients' figures per second and job, with fio's latency bins
        cluster.jsonl.gz      health and PG progress per second
        cluster_log.jsonl.gz  the cluster's log, where it can be had
        metrics.columns       the exporters' metrics per second
        operations.jsonl      slow operations that exporters recorded by themselves
        host.json             CPUs, disks, who used them, and threads per phase
        output/NAME.{stdout,stderr}.gz

archive.json, repeat.json, host.json and the lines of intervals.jsonl.gz are the types Manifest,
RepeatRecord, HostUse (by phase) and Interval of `cephqos_loadgen.results`; results of phases are in
`cephqos_loadgen.phase_kinds`. Times are seconds since the epoch, in fields `…_unix_seconds`.

During a run the folder is called `ID.partial`, and the run holds a lock (flock) on it. It is
renamed at the end.
"""

import contextlib
import os
import secrets
import time
from pathlib import Path

from cephqos_base.locks import is_locked, try_lock

FORMAT = 1
MANIFEST = "archive.json"
MANIFEST_SUM = "archive.sha256"
PARTIAL = ".partial"

# A reader that looks whether a run is running has its lock for much less than one pause.
_LOCK_TRIES = 20
_LOCK_PAUSE_SECONDS = 0.01

# The scenario of an archive that no run made, and its only point: exporters recorded by themselves.
RECORDED = "recorded"

# Of a run.
SCENARIO_FILE = "scenario.yaml"
PLAN_FILE = "plan.json"
ENVIRONMENT_FILE = "environment.json"
ENVIRONMENTS_FILE = "environments.json"
CLIENT_CONF_FILE = "client.conf"
UNDO_FILE = "undo.json"
EVENTS_FILE = "events.jsonl"
# Of a repeat.
REPEAT_FILE = "repeat.json"
CHILDREN_FILE = "children.json"
INTERVALS_FILE = "intervals.jsonl.gz"
CLUSTER_FILE = "cluster.jsonl.gz"
CLUSTER_LOG_FILE = "cluster_log.jsonl.gz"
METRICS_FILE = "metrics.columns"
HOST_FILE = "host.json"
OPERATIONS_FILE = "operations.jsonl"


def new_run(kind: str) -> str:
    """A name that no other run has: of a scenario, or of what else goes on in a cluster."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{stamp}-{kind}-{secrets.token_hex(2)}"


def repeat_folder(index: int, point: str, repeat: int) -> str:
    """The folder of one repeat. What file names cannot hold becomes a dash."""
    safe = "".join(char if char.isalnum() or char in "=,._" else "-" for char in point)
    # File systems bound names in bytes, commonly to 255, and a letter may have four.
    safe = safe.encode(errors="replace")[:80].decode(errors="ignore")
    return f"repeats/{index:03d}-{safe}-r{repeat}"


def repeat_order(path: Path) -> tuple[int, str]:
    """Sorts files of repeats by the number of their folder: after 999 comes one of four digits."""
    number = path.parent.name.partition("-")[0]
    return int(number) if number.isdecimal() else 0, path.parent.name


def is_archive(path: Path) -> bool:
    """Whether this is the archive of a run that has ended. `verify` tells if files are missing."""
    return (path / MANIFEST).is_file() and not path.name.endswith(PARTIAL)


def hold(folder: Path) -> int:
    """Lock the folder of a run for `is_running`, until the returned descriptor is closed.

    It was just made, so only `is_running` of a reader can have the lock, for a moment. In a file
    system without locks the folder stays unlocked.
    """
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.suppress(OSError):
        for _ in range(_LOCK_TRIES):
            if try_lock(held):
                break
            time.sleep(_LOCK_PAUSE_SECONDS)
    return held


def is_running(folder: Path) -> bool:
    """Whether a run of this host is writing to the folder: it holds the lock of `hold`."""
    try:
        probe = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        return is_locked(probe)
    except OSError:
        return False
    finally:
        os.close(probe)
