"""Whether a given cluster is the one that a point of the matrix is labelled with.

A scenario's own `lab:` describes a lab that a run starts for itself. On a given cluster (`--lab`,
`--conf`) only two parts of it are checked: what an axis decides, because it is in the name of the
point; and _DECLARED, because figures depend on it. An SSD's throttles and capacity, for example,
mean nothing on a disk that rotates.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.planned import Point

Metadata = Sequence[Mapping[str, Any]]
# Figures depend on these, whether an axis decides them or not.
_DECLARED = ("rotational", "device_iops", "one_budget", "request_size", "regime")


def check(points: Sequence[Point], metadata: Metadata, lab: LabSpec | None = None) -> None:
    """ClusterUnfit if a point describes another lab than this cluster. `lab`: the spec with which
    it was started, if it is a lab."""
    for point in points:
        declared = [key for key in _DECLARED if getattr(point.lab, key) is not None]
        keys = tuple(dict.fromkeys((*point.lab_axes, *declared)))
        wrong = list(differences(point.lab, keys, metadata, lab))
        if wrong:
            raise ClusterUnfit(
                f"point {point.name} is not this cluster: {'; '.join(wrong)}. Choose points with"
                " --only, a variable with --var (rotational=keep does not look at the media),"
                " another cluster, or neither --lab nor --conf: the run then starts a lab for each"
            )


def differences(
    planned: LabSpec, keys: Sequence[str], metadata: Metadata, lab: LabSpec | None
) -> Iterator[str]:
    """A line for each of these keys of a point's lab that the cluster contradicts."""
    for key in keys:
        wanted = _shown(getattr(planned, key))
        if key == "osds":
            if planned.osds != len(metadata):
                yield f"osds {wanted}: it has {len(metadata)}"
        elif key in _READERS:
            values = {str(osd["id"]): _READERS[key](osd) for osd in metadata}
            expected = "a DB apart" if key == "db_size" else wanted
            wrong = {osd: value for osd, value in values.items() if value != expected}
            if wrong:
                osd, value = next(iter(wrong.items()))
                yield f"{key} {wanted}: osd.{osd} has {value or 'none'}"
        elif lab:
            if (has := getattr(lab, key)) != getattr(planned, key):
                yield f"{key} {wanted}: the lab was started with {'none' if has is None else has}"
        else:
            yield f"{key} {wanted}: this cannot be seen in a cluster that was not started for it"


def disk_below(folder: Path, sys: Path = Path("/sys")) -> tuple[str, bool] | None:
    """The disk that a folder lies on, and whether it rotates; None where that cannot be seen."""
    device = os.stat(folder).st_dev  # noqa: PTH116 - its number is all that is wanted
    entry = sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}"
    try:
        real = entry.resolve(strict=True)
        disk = real.parent if (real / "partition").exists() else real
        return disk.name, (disk / "queue/rotational").read_text().strip() == "1"
    except OSError:  # an overlay, btrfs, tmpfs
        return None


def other_disk(metadata: Metadata, below: tuple[str, bool] | None) -> str:
    """A warning if a lab's OSDs report one kind of disk, and their files lie on the other.

    `below`: what `disk_below` returned.
    """
    kinds = {False: "SSDs", True: "disks that rotate"}
    reported = {_rotational(osd) == "true" for osd in metadata}
    if below is None or not reported:
        return ""
    disk, rotates = below
    if reported == {rotates}:
        return ""
    names = " and ".join(kinds[kind] for kind in sorted(reported))
    return (
        f"the lab's OSDs are configured to have {names}, but their files lie on {disk}, which"
        f" {'rotates' if rotates else 'does not rotate'}: figures are of that disk"
    )


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rotational(osd: Mapping[str, Any]) -> str:
    return "true" if str(osd.get("rotational", "")) == "1" else "false"


def _objectstore(osd: Mapping[str, Any]) -> str:
    return str(osd.get("osd_objectstore", ""))


def _db(osd: Mapping[str, Any]) -> str:
    return "a DB apart" if str(osd.get("bluefs_dedicated_db", "0")) == "1" else "no DB apart"


_READERS = {"rotational": _rotational, "objectstore": _objectstore, "db_size": _db}
