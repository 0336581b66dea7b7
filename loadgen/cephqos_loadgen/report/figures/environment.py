"""Hardware and software of a run, which decide whether two runs can be compared."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.results.environment import facts_of_all

# Facts that may differ: a comparison is often about them.
_MAY_DIFFER: Final = ("cephqos",)


def environment_facts(run: ReportRun) -> dict[str, str]:
    """The facts that must be equal in runs that are compared, in words."""
    facts = facts_of_all(run.environments or (run.environment,))
    fio = facts.pop("fio", "")
    labs = [point.get("lab") or {} for point in run.plan.get("points", [])]
    limits = {
        (int(lab["device_iops"]), bool(lab.get("one_budget")), int(lab.get("request_size") or 0))
        for lab in labs
        if lab.get("device_iops")
    }
    if limits:
        facts["Device limit"] = ", ".join(map(_limit_in_words, sorted(limits)))
    if fio:
        facts["fio"] = fio
    facts["cephqos"] = str(run.environment.get("cephqos", run.manifest.cephqos))
    return facts


def _limit_in_words(limit: tuple[int, bool, int]) -> str:
    number, one_budget, size = limit
    sized = f" of up to {size >> 10} KiB" if size else ""
    return f"{number} {f'requests{sized}' if one_budget else 'reads and as many writes'}/s per OSD"


def environment_differences(reference: ReportRun, run: ReportRun) -> Iterator[str]:
    """What differs between the machines and clusters of two runs, one line each."""
    facts, others = environment_facts(reference), environment_facts(run)
    for name in facts | others:
        was, is_now = facts.get(name, "not recorded"), others.get(name, "not recorded")
        if name not in _MAY_DIFFER and was != is_now:
            yield f"{name}: {was} ({reference.name}), {is_now} ({run.name})"


def on_a_file(osd: Mapping[str, Any]) -> bool:
    """Whether an OSD's store is a file, or a loop device on one, as in a lab."""
    devices = str(osd.get("bluestore_bdev_devices", ""))
    return osd.get("bluestore_bdev_access_mode") == "file" or devices.startswith("loop")
