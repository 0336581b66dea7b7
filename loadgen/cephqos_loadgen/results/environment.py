"""What a run ran on, of `environment.json`, in words: what decides whether figures can be compared.
Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

# What a lab of the run's own has in every cluster that it makes.
OF_EVERY_LAB: Final = ("CPU", "Memory", "Kernel", "Ceph", "fio")


def facts_of_all(environments: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Of clusters of different kinds each value once."""
    each = [facts_of(environment) for environment in environments]
    names = dict.fromkeys(name for facts in each for name in facts)
    return {
        name: " or ".join(dict.fromkeys(facts[name] for facts in each if name in facts))
        for name in names
    }


def facts_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """By what it is; only what was recorded."""
    host, cluster = environment.get("host") or {}, environment.get("cluster") or {}
    osds = cluster.get("osds") or []
    facts: dict[str, str] = {}
    if host:
        memory = int(host.get("memory_bytes", 0)) / (1 << 30)
        facts["CPU"] = f"{host.get('cpus')} × {', '.join(host.get('cpu_models', [])) or 'unknown'}"
        facts["Memory"] = f"{memory:.1f} GiB"
        facts["Kernel"] = str(host.get("kernel"))
    versions = (cluster.get("versions") or {}).get("osd") or {}
    if versions:
        facts["Ceph"] = ", ".join(sorted(versions))
    if osds:
        facts["OSDs"] = str(len(osds))
        for title, key in (
            ("Object store", "osd_objectstore"),
            ("Device class", "default_device_class"),
            ("Device access", "bluestore_bdev_access_mode"),
        ):
            values = sorted({str(osd[key]) for osd in osds if key in osd})
            if values:
                facts[title] = ", ".join(values)
        sizes = sorted({int(o["bluestore_bdev_size"]) for o in osds if "bluestore_bdev_size" in o})
        if sizes:
            facts["OSD size"] = ", ".join(f"{size / (1 << 30):.1f} GiB" for size in sizes)
    tools = environment.get("tools") or {}
    if tools.get("fio"):
        facts["fio"] = str(tools["fio"])
    return facts
