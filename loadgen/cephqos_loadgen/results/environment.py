"""What a run ran on, from `environment.json`, in words such as `{"Ceph": "19.2.1", "OSDs": "3"}`.

These facts decide whether figures of two runs can be compared. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

# Facts that are the same in every cluster of a run that makes its labs itself.
OF_EVERY_LAB: Final = (
    "CPU",
    "Memory",
    "Kernel",
    "CPU governor",
    "tuned profile",
    "Ceph",
    "fio",
)


def facts_of_all(environments: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The facts of several clusters: a fact that differs has all its values."""
    by_cluster = [facts_of(environment) for environment in environments]
    names = dict.fromkeys(name for facts in by_cluster for name in facts)
    return {
        name: " or ".join(dict.fromkeys(facts[name] for facts in by_cluster if name in facts))
        for name in names
    }


def facts_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """The facts of one cluster, by name; only what was recorded."""
    host, cluster = environment.get("host") or {}, environment.get("cluster") or {}
    osds = cluster.get("osds") or []
    facts: dict[str, str] = {}
    if host:
        memory = int(host.get("memory_bytes", 0)) / (1 << 30)
        facts["CPU"] = f"{host.get('cpus')} × {', '.join(host.get('cpu_models', [])) or 'unknown'}"
        facts["Memory"] = f"{memory:.1f} GiB"
        facts["Kernel"] = str(host.get("kernel"))
        if governors := host.get("cpu_governors"):
            facts["CPU governor"] = ", ".join(governors)
        if profile := host.get("tuned_profile"):
            facts["tuned profile"] = str(profile)
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
        size = "bluestore_bdev_size"
        sizes = sorted({int(osd[size]) for osd in osds if size in osd})
        if sizes:
            facts["OSD size"] = ", ".join(f"{size / (1 << 30):.1f} GiB" for size in sizes)
    tools = environment.get("tools") or {}
    if tools.get("fio"):
        facts["fio"] = str(tools["fio"])
    return facts
