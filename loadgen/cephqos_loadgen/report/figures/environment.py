"""Hardware and software of a run, which decide whether two runs can be compared."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.results.environment import facts_of_all

# Facts that may differ: a comparison is often about them.
_MAY_DIFFER: Final = ("cephqos",)


def environment_facts(run: ReportRun) -> dict[str, str]:
    """The facts that must be equal in runs that are compared, in words."""
    found = facts_of_all(run.environments or (run.environment,))
    fio = found.pop("fio", "")
    labs = [point.get("lab") or {} for point in run.plan.get("points", [])]
    limits = {int(lab["device_iops"]) for lab in labs if lab.get("device_iops")}
    if limits:
        found["Device limit"] = ", ".join(f"{limit} requests/s per OSD" for limit in sorted(limits))
    if fio:
        found["fio"] = fio
    found["cephqos"] = str(run.environment.get("cephqos", run.manifest.cephqos))
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
    """Whether an OSD's store is a file, or a loop device on one, as in a lab."""
    devices = str(osd.get("bluestore_bdev_devices", ""))
    return osd.get("bluestore_bdev_access_mode") == "file" or devices.startswith("loop")
