"""What a run ran on: what decides whether two runs can be compared."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cephqos_loadgen.report.figures.analysis import ReportRun

# Facts that may differ: they are what a comparison is often about.
_MAY_DIFFER: Final = ("cephqos",)


def environment_facts(run: ReportRun) -> dict[str, str]:
    """What decides whether two runs can be compared, in words."""
    environment = run.environment
    host, cluster = environment.get("host") or {}, environment.get("cluster") or {}
    osds = cluster.get("osds") or []
    found: dict[str, str] = {}
    if host:
        memory = int(host.get("memory_bytes", 0)) / (1 << 30)
        found["CPU"] = f"{host.get('cpus')} × {', '.join(host.get('cpu_models', [])) or 'unknown'}"
        found["Memory"] = f"{memory:.1f} GiB"
        found["Kernel"] = str(host.get("kernel"))
    versions = (cluster.get("versions") or {}).get("osd") or {}
    if versions:
        found["Ceph"] = ", ".join(sorted(versions))
    if osds:
        found["OSDs"] = str(len(osds))
        for title, key in (
            ("Object store", "osd_objectstore"),
            ("Device class", "default_device_class"),
            ("Device access", "bluestore_bdev_access_mode"),
        ):
            values = sorted({str(osd[key]) for osd in osds if key in osd})
            if values:
                found[title] = ", ".join(values)
        sizes = sorted({int(o["bluestore_bdev_size"]) for o in osds if "bluestore_bdev_size" in o})
        if sizes:
            found["OSD size"] = ", ".join(f"{size / (1 << 30):.1f} GiB" for size in sizes)
    labs = [point.get("lab") or {} for point in run.plan.get("points", [])]
    limits = {int(lab["device_iops"]) for lab in labs if lab.get("device_iops")}
    if limits:
        found["Device limit"] = ", ".join(f"{limit} requests/s per OSD" for limit in sorted(limits))
    tools = environment.get("tools") or {}
    if tools.get("fio"):
        found["fio"] = str(tools["fio"])
    found["cephqos"] = str(environment.get("cephqos", run.manifest.cephqos))
    return found


def environment_differences(runs: Sequence[ReportRun]) -> Iterator[str]:
    """What differs between the machines and clusters of runs, one line each."""
    facts = [environment_facts(run) for run in runs]
    for name in dict.fromkeys(name for found in facts for name in found):
        values = [found.get(name, "not recorded") for found in facts]
        if name not in _MAY_DIFFER and len(set(values)) > 1:
            shown = ", ".join(
                f"{value} ({run.name})" for run, value in zip(runs, values, strict=True)
            )
            yield f"{name}: {shown}"


def on_a_file(osd: Mapping[str, Any]) -> bool:
    """Whether an OSD's store is a file, or a loop device on one: a lab's, not a drive."""
    devices = str(osd.get("bluestore_bdev_devices", ""))
    return osd.get("bluestore_bdev_access_mode") == "file" or devices.startswith("loop")
