"""All of a cluster and of this host that a run changes, as one can see it from outside."""

import json
import os
from pathlib import Path
from typing import Any

import psutil

from cephqos_loadgen.lab.lab import RunningLab

_STATES = ("noup", "nodown", "noin", "noout")
# Daemons write these themselves.
_OWN_FIGURES = ("osd_mclock_max_capacity_iops", "osd_mclock_iops")
_TOOLS = (b"fio", b"rados", b"rbd")


async def look(lab: RunningLab) -> dict[str, Any]:
    """What must be the same before a run and after what it left is restored."""
    async with lab.client() as client:
        osds = await client.command("osd dump")
        options = await client.command("config dump")
        crush = await client.command("osd crush dump")
        balancer = await client.command("balancer status", target="mgr")
        keys = await client.command("config-key ls")
    pids = await lab.pids()
    return {
        "configuration": sorted(
            (entry["section"], entry.get("mask", ""), entry["name"], entry["value"])
            for entry in options
            if not entry["name"].startswith(_OWN_FIGURES)
        ),
        "flags": sorted(osds["flags"].split(",")),
        "flags of OSDs": [
            (osd["osd"], sorted(set(osd["state"]) & {*_STATES})) for osd in osds["osds"]
        ],
        "OSDs up and in": [(osd["osd"], osd["up"], osd["in"]) for osd in osds["osds"]],
        "weights": [
            (osd["osd"], round(osd["weight"], 4), osd["primary_affinity"]) for osd in osds["osds"]
        ],
        "pools": sorted(
            (
                pool["pool"],
                pool["pool_name"],
                *(pool[name] for name in ("size", "min_size", "pg_num", "pg_autoscale_mode")),
                json.dumps(pool["application_metadata"], sort_keys=True),
            )
            for pool in osds["pools"]
        ),
        "CRUSH": json.dumps(crush, sort_keys=True),
        "upmaps": sorted(
            (entry["pgid"], json.dumps(entry["mappings"])) for entry in osds["pg_upmap_items"]
        ),
        "balancer": balancer["active"],
        "krbd mappings": sorted(path.name for path in Path("/sys/bus/rbd/devices").glob("*")),
        "queues": _queues(lab),
        "CPUs": {name: _cpus(pid) for name, pid in sorted(pids.items()) if name[:4] == "osd."},
        "keys of a run": sorted(key for key in keys if key.startswith("cephqos")),
        "work folders": sorted(path.name for path in lab.paths.work.iterdir()),
        "clients": _clients(lab),
    }


def _queues(lab: RunningLab) -> list[tuple[str, str, str]]:
    found = []
    for device in sorted(lab.state.devices.values()):
        queue = Path("/sys/block") / Path(device).name / "queue"
        for path in sorted(queue.rglob("*")):
            if path.is_file() and path.stat().st_mode & 0o200:
                try:
                    found.append((device, str(path.relative_to(queue)), path.read_text().strip()))
                except OSError:
                    continue  # some kernels refuse one
    return found


def _cpus(pid: int) -> list[tuple[int, ...]]:
    """Each set of CPUs that a thread has, once."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sorted({tuple(sorted(os.sched_getaffinity(int(task.name)))) for task in tasks})


def _clients(lab: RunningLab) -> list[str]:
    """Client processes of runs in this lab."""
    found = []
    mine = f"{lab.paths.name}/work/"
    for process in psutil.process_iter():
        try:
            argv, environment = process.cmdline(), process.environ()
        except psutil.Error:
            continue
        told = " ".join([*argv, *environment.values()])
        if argv and Path(argv[0]).name in ("fio", "rados", "rbd") and mine in told:
            found.append(argv[0])
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is not as it was, in words."""
    lines = []
    for name, was in before.items():
        now = after[name]
        if now == was:
            continue
        if isinstance(was, list):
            gone = [entry for entry in was if entry not in now]
            new = [entry for entry in now if entry not in was]
            lines.append(f"{name}: gone {gone}, new {new}")
        else:
            lines.append(f"{name}: was {str(was)[:300]}, is {str(now)[:300]}")
    return lines
