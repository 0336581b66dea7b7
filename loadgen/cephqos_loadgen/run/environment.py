"""What a run ran on: enough to judge, later and elsewhere, whether two runs can be compared."""

import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from cephqos_base.errors import CephqosError
from cephqos_base.version import __version__
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_exporter.sysfs import read_queue, read_text
from cephqos_loadgen import processes, withheld
from cephqos_loadgen.cluster.connection import ClusterConnection

_TOOLS = (("fio", "--version"), ("rados", "--version"), ("qemu-nbd", "--version"))
_TOOL_SECONDS = 20.0


async def collect(cluster: ClusterConnection) -> dict[str, Any]:
    """Host, tools, cluster. What is not available is null."""
    return {
        "cephqos": __version__,
        "host": host(),
        "tools": await _tools(cluster),
        "cluster": await _cluster(cluster),
    }


def host(sys: Path = Path("/sys"), etc: Path = Path("/etc")) -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo").read_text()  # psutil does not name the model
    models = {
        line.partition(":")[2].strip()
        for line in cpuinfo.splitlines()
        if line.startswith("model name")
    }
    cpus = sys / "devices/system/cpu"
    nodes = sorted((sys / "devices/system/node").glob("node[0-9]*"))
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "cpu_models": sorted(models),
        "numa_nodes": len(nodes),
        "numa_cpus": {path.name.removeprefix("node"): _text(path / "cpulist") for path in nodes},
        # Empty where the kernel has no frequency scaling, or no tuned runs.
        "cpu_governors": sorted(
            {_text(path) for path in cpus.glob("cpu[0-9]*/cpufreq/scaling_governor")}
        ),
        "tuned_profile": _text(etc / "tuned/active_profile"),
        "memory_bytes": psutil.virtual_memory().total,
        "block_devices": {
            device.name: {"sectors": size, **asdict(read_queue(sys, device.name))}
            for device in sorted((sys / "block").glob("*"))
            if (size := _text(device / "size")) not in ("", "0")
        },
    }


def _text(path: Path) -> str:
    return read_text(path) or ""


async def _tools(cluster: ClusterConnection) -> dict[str, str | None]:
    versions: dict[str, str | None] = {}
    for argv in _TOOLS:
        try:
            done = await processes.run(cluster.access.argv(argv), within=_TOOL_SECONDS)
            versions[argv[0]] = (done.stdout or done.stderr).splitlines()[0]
        except (CephqosError, OSError, IndexError):
            versions[argv[0]] = None
    return versions


async def _cluster(cluster: ClusterConnection) -> dict[str, Any]:
    return {
        "fsid": cluster.fsid,
        "config": withheld.dump(await cluster.command("config dump")),
        "versions": await cluster.command("versions"),
        "osds": await cluster.command("osd metadata"),
        "tree": await cluster.command("osd tree"),
        "crush_rules": await cluster.command("osd crush rule dump"),
        "pools": await cluster.command("osd pool ls", detail="detail"),
        "options_not_default": await _not_default(cluster),
    }


async def _not_default(cluster: ClusterConnection) -> dict[str, Any]:
    """Per OSD: every option that is not at its default, with where each value came from."""
    options: dict[str, Any] = {}
    for osd in await cluster.up_osds():
        try:
            reply = await cluster.once("config diff", target=f"osd.{osd}")
        except (CommandFailed, ClusterUnreachable) as error:
            options[f"osd.{osd}"] = {"error": str(error)}
            continue
        options[f"osd.{osd}"] = withheld.diff(reply["diff"]) if isinstance(reply, dict) else reply
    return options
