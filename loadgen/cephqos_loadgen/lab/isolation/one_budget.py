"""Devices whose reads and writes share one budget, as those of a real drive do.

A control group limits reads and writes each by itself, so a scrub, which reads, would take nothing
from clients that write. QEMU's storage daemon counts them together: it exports each OSD's file
through FUSE as another file, and the loop device lies on that one.
"""

import json
from pathlib import Path

from cephqos_loadgen.lab.paths import LabPaths

STORAGE = "storage"  # the daemon's name in the lab; it is none of Ceph's


def export(paths: LabPaths, osd: int) -> Path:
    """The file that has the budget. Outside of the lab's mounts it is empty."""
    return paths.disk(osd, "budget")


def seen_by_process_one(paths: LabPaths, osd: int) -> Path:
    """The same file from outside the lab's root, where its mount is not below the lab's folder."""
    return paths.root / export(paths, osd).relative_to("/")


def argv(paths: LabPaths, osds: int, iops: int, request_size: int | None) -> list[str]:
    """The command line of a daemon for all OSDs, each with `iops` requests per second. A larger
    request than `request_size` counts as several."""
    limits = {"iops-total": iops} | ({"iops-size": request_size} if request_size else {})
    words = ["qemu-storage-daemon"]
    for osd in range(osds):
        group = {"qom-type": "throttle-group", "id": f"budget{osd}", "limits": limits}
        file = {
            "driver": "file",
            "node-name": f"file{osd}",
            "filename": str(paths.disk(osd, "block")),
            "cache": {"direct": True},
            "discard": "unmap",
        }
        throttled = {
            "driver": "throttle",
            "node-name": f"throttled{osd}",
            "throttle-group": group["id"],
            "file": file["node-name"],
            "discard": "unmap",
        }
        exported = {
            "type": "fuse",
            "id": f"export{osd}",
            "node-name": throttled["node-name"],
            "mountpoint": str(export(paths, osd)),
            "writable": True,
        }
        words += ["--object", json.dumps(group), "--blockdev", json.dumps(file)]
        words += ["--blockdev", json.dumps(throttled), "--export", json.dumps(exported)]
    return words
