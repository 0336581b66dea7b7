"""Whether a given cluster is the one that a point of the matrix is labelled with.

A scenario's own `lab:` is a wish for a lab that a run starts for itself. Two things are more. What
an axis decides about the lab is in the name of the point. And what a scenario says of the media,
its figures rest on: an SSD's throttles and capacity mean nothing on a disk that rotates.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.plan.errors import ClusterUnfit
from cephqos_loadgen.plan.planned import Point

Metadata = Sequence[Mapping[str, Any]]
# What figures rest on, whether an axis decides about it or not.
_DECLARED = ("rotational", "device_iops", "regime")


def check(points: Sequence[Point], metadata: Metadata, lab: LabSpec | None = None) -> None:
    """ClusterUnfit where a point says something of the lab that this cluster is not. `lab`: what it
    was started as, where it is a lab."""
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
    wish: LabSpec, keys: Sequence[str], metadata: Metadata, lab: LabSpec | None
) -> Iterator[str]:
    """One line for each of these keys of the wish that the OSDs' metadata or the lab contradict."""
    for key in keys:
        wanted = _shown(getattr(wish, key))
        if key == "osds":
            if wish.osds != len(metadata):
                yield f"osds {wanted}: it has {len(metadata)}"
        elif key in _READERS:
            values = {str(osd["id"]): _READERS[key](osd) for osd in metadata}
            wrong = {osd: value for osd, value in values.items() if value != _plain(wish, key)}
            if wrong:
                osd, value = next(iter(wrong.items()))
                yield f"{key} {wanted}: osd.{osd} has {value or 'none'}"
        elif lab:
            if (has := getattr(lab, key)) != getattr(wish, key):
                yield f"{key} {wanted}: the lab was started with {'none' if has is None else has}"
        else:
            yield f"{key} {wanted}: this cannot be seen in a cluster that was not started for it"


def disk_below(folder: Path, sys: Path = Path("/sys")) -> tuple[str, bool] | None:
    """The disk that a folder lies on, and whether it rotates; None where that cannot be seen."""
    device = os.stat(folder).st_dev  # noqa: PTH116 - its number is all that is wanted
    entry = sys / "dev/block" / f"{os.major(device)}:{os.minor(device)}"
    try:
        real = entry.resolve(strict=True)
        whole = real.parent if (real / "partition").exists() else real
        return whole.name, (whole / "queue/rotational").read_text().strip() == "1"
    except OSError:  # an overlay, btrfs, tmpfs
        return None


def other_disk(metadata: Metadata, below: tuple[str, bool] | None) -> str:
    """What is to be said where a lab's OSDs have one kind of disk, and their files lie on the
    other."""
    kinds = {False: "SSDs", True: "disks that rotate"}
    own = {_rotational(osd) == "true" for osd in metadata}
    if below is None or own == {below[1]} or not own:
        return ""
    said = " and ".join(kinds[kind] for kind in sorted(own))
    return (
        f"the lab's OSDs are configured to have {said}, but their files lie on {below[0]}, which"
        f" {'rotates' if below[1] else 'does not rotate'}: figures are of that disk"
    )


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(wish: LabSpec, key: str) -> str:
    """What the reader of this key must say."""
    value = getattr(wish, key)
    return "a DB apart" if key == "db_size" else _shown(value)


def _rotational(osd: Mapping[str, Any]) -> str:
    return "true" if str(osd.get("rotational", "")) == "1" else "false"


def _objectstore(osd: Mapping[str, Any]) -> str:
    return str(osd.get("osd_objectstore", ""))


def _db(osd: Mapping[str, Any]) -> str:
    return "a DB apart" if str(osd.get("bluefs_dedicated_db", "0")) == "1" else "no DB apart"


_READERS = {"rotational": _rotational, "objectstore": _objectstore, "db_size": _db}
