"""`cephqos run --resume`: an interrupted run goes on in a new archive. Its finished repeats are
taken into that, the others are run. `source` is the folder of the interrupted run."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cephqos_base.errors import UsageError
from cephqos_base.version import __version__
from cephqos_loadgen.archive.reader import ArchiveDamaged, read_record
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.planned import Plan
from cephqos_loadgen.results.environment import OF_EVERY_LAB, facts_of
from cephqos_loadgen.results.repeat import RepeatRecord
from cephqos_loadgen.run_recording import layout
from cephqos_loadgen.run_recording.regular import place_inside, read_json, size_and_digest
from cephqos_loadgen.run_recording.run_folder import ArchiveWriter


def recorded_plan(source: Path) -> dict[str, Any]:
    """The plan of the run to be resumed."""
    try:
        plan: dict[str, Any] = read_json(source / layout.PLAN_FILE)
        fits = all(key in plan for key in ("text", "variables", "points"))
    except OSError:
        raise UsageError(
            f"--resume {source}: expected the folder of an archive (cephqos archive ls)"
        ) from None
    except (ValueError, TypeError):
        fits = False
    if not fits:
        raise UsageError(f"--resume {source}: its plan.json is damaged")
    return plan


def take_along(
    source: Path, plan: Plan, archive: ArchiveWriter, note: Callable[[str], None]
) -> list[RepeatRecord]:
    """Link or copy the finished repeats of an interrupted run of the same plan; their records. One
    whose files are not as they were recorded is run again: after a power cut some may be empty."""
    _check_same(source, recorded_plan(source), plan)
    before = _environment(source)
    version = (before or {}).get("cephqos", __version__)
    if version != __version__:
        raise UsageError(
            f"--resume {source}: it ran with cephqos {version}, this is {__version__}, which may"
            " count otherwise: use that version, or start a new run without --resume"
        )
    if layout.is_running(source):
        raise UsageError(f"--resume {source}: that run is still going on")
    taken = []
    planned = {(point.name, number) for point, number in plan.runs}
    for path in sorted(source.glob(f"repeats/*/{layout.REPEAT_FILE}"), key=layout.repeat_order):
        place = path.parent
        folder = f"repeats/{place.name}"
        try:
            record = _read_undamaged(place, folder)
        except ArchiveDamaged as damage:
            archive.event("repeat_left_out", folder=folder, reason=str(damage))
            note(f"{folder} is made again: {damage}")
            continue
        if record.status == "finished" and (record.point, record.repeat) in planned:
            target = archive.folder / folder
            shutil.copytree(place, target, copy_function=_link_or_copy, symlinks=True)
            taken.append(record)
    if before is not None:
        archive.json(layout.ENVIRONMENT_FILE, before)  # until this run has looked for itself
    was = "an archive" if layout.is_archive(source) else "what a crash left"
    archive.event("resumed", source=str(source), was=was, repeats=len(taken))
    return taken


def _read_undamaged(place: Path, folder: str) -> RepeatRecord:
    """The record of a repeat in `place`, which is `folder` in its archive; ArchiveDamaged if the
    record, or a file that it has the checksum of, is not as it was."""
    record = read_record(place / layout.REPEAT_FILE)
    if record.folder != folder or place.is_symlink() or place.parent.is_symlink():
        raise ArchiveDamaged(f"its record is of {record.folder!r}, or it is a link")
    damage = next(_damage(place, record), "") if record.status == "finished" else ""
    if damage:
        raise ArchiveDamaged(damage)
    return record


def _damage(folder: Path, record: RepeatRecord) -> Iterator[str]:
    """Each file of a repeat that is not as its record says."""
    for name, entry in record.files.items():
        path = place_inside(folder, name)
        try:
            if path is None or size_and_digest(path) != (entry.bytes, entry.sha256):
                yield f"{name} is not as it was recorded"
        except OSError as error:
            yield f"{name}: {error.strerror}"


def _environment(source: Path) -> dict[str, Any] | None:
    try:
        environment = read_json(source / layout.ENVIRONMENT_FILE)
    except (OSError, ValueError):
        return None  # it ended before it had looked at a cluster
    return environment if isinstance(environment, dict) else None


def check_cluster(source: Path, fsid: str) -> None:
    """Repeats of two clusters do not belong into one archive."""
    before = ((_environment(source) or {}).get("cluster") or {}).get("fsid")
    if before and before != fsid:
        raise ClusterUnfit(
            f"--resume {source}: it ran on the cluster {before}, this is {fsid};"
            f" name that one, or start a new run without --resume"
        )


def environments_of(source: Path) -> list[dict[str, Any]]:
    """The environments of the clusters that the interrupted run has used."""
    with suppress(OSError, ValueError):
        return list(read_json(source / layout.ENVIRONMENTS_FILE))
    environment = _environment(source)
    return [] if environment is None else [environment]


def check_environment(source: Path, now: Mapping[str, Any], *, existing_cluster: bool) -> None:
    """Nor do repeats of two machines, or of two versions of Ceph. Labs that a run makes itself may
    differ in the rest, as its points ask for."""
    before, after = facts_of(_environment(source) or {}), facts_of(now)
    differing = [
        f"{name} was {before[name]}, is {after[name]}"
        for name in before.keys() & after.keys()
        if before[name] != after[name] and (existing_cluster or name in OF_EVERY_LAB)
    ]
    if differing:
        raise ClusterUnfit(
            f"--resume {source}: it ran on something else: {'; '.join(sorted(differing))}; give"
            " its --release again, or start a new run without --resume"
        )


def _check_same(source: Path, before: dict[str, Any], plan: Plan) -> None:
    """Repeats of two plans do not belong into one archive."""
    if before["text"] != plan.text:
        raise UsageError(
            f"--resume {source}: the scenario is not the same; without a scenario named, the run's"
            f" own is taken"
        )
    ours = dict(plan.variables)
    for name, value in before["variables"]:
        if ours.get(name) != value:
            raise UsageError(
                f"--resume {source}: it ran with {name} {value}, this would with"
                f" {ours.get(name)}: give its --var (and --scale) again"
            )
    names = [point["name"] for point in before["points"]]
    if names != [point.name for point in plan.points]:
        raise UsageError(
            f"--resume {source}: it ran the points {'; '.join(names)}: give its --only again"
        )


def _link_or_copy(source: str, target: str) -> None:
    """Finished files never change: a second name is as good as a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
