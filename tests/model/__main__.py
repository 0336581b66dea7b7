"""Fit the model to one half of recorded runs, predict the other, and print how far off it is.

`--record DIR` makes the runs in labs of this machine; `--collect ARCHIVE...` takes what the fit
needs from their archives into runs.json.
"""

import argparse
import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Final

import numpy as np

from cephqos_base.series import BEST_EFFORT, RECOVERY, QosSeries
from cephqos_base.units import parse_size
from cephqos_loadgen.advise import model_error
from cephqos_loadgen.advise.model_error import MODEL_ERRORS, ModelError
from cephqos_loadgen.archive.reader import RecordedRepeat, open_archive
from cephqos_loadgen.lab.spec import REGIMES
from cephqos_loadgen.record.layout import METRICS_FILE
from cephqos_loadgen.report.arrays.samples import Series, read_samples
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.figures.observe import Observation, observe

from .fit import COVERAGE, FIGURES, MARGIN, FigureError, Predicted, Recorded, cross_predict, errors

HERE: Final = Path(__file__).parent
RUNS: Final = HERE / "runs.json"
NAMES: Final = {
    "iops": "client throughput",
    **{f"p{q}": f"client p{q}" for q in (50, 95, 99)},
    "recovery_seconds": "recovery time",
}
_PART: Final = (0.01, 0.99)  # of the pushes, in which the figures beside recovery are taken
_PUSHED: Final = _PART[1] - _PART[0]
PUSHES: Final = "cephqos_recovery_pushes_total"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--record", type=Path, metavar="DIR")
    parser.add_argument("--collect", type=Path, nargs="+", metavar="ARCHIVE")
    parser.add_argument("more", nargs="*", help="after --: options of `cephqos run`")
    given = parser.parse_args()
    if given.record:
        argv = [sys.executable, "-P", "-m", "cephqos_base", "run", str(HERE / "runs.yaml")]
        argv += ["--scale", "lab", "--out", str(given.record), *given.more]
        return subprocess.run(argv, check=False).returncode
    if given.collect:
        runs = [run for archive in given.collect for run in collect(archive)]
        RUNS.write_text(
            json.dumps([dataclasses.asdict(run) for run in runs], indent=1) + "\n", encoding="utf-8"
        )
        print(f"{len(runs)} runs")
        return 0
    runs = [Recorded(**run) for run in json.loads(RUNS.read_text(encoding="utf-8"))]
    predicted = cross_predict(runs)
    found = errors(predicted)
    print("\n".join([*each_run(predicted), "", *verdicts(found)]))
    made = tuple(map(told, found))
    if made == MODEL_ERRORS:
        return 0
    print(f"{model_error.__file__} has other errors; expected:", *made, sep="\n")
    return 1


def told(found: FigureError) -> ModelError:
    """As `cephqos advise` tells it."""
    simple = min(found.nothing_changes, found.by_reservation)
    name = NAMES[found.figure]
    return ModelError(name, found.runs, round(found.model, 2), round(simple, 2), found.known)


# -- from archives ---------------------------------------------------------------------------------


def collect(folder: Path) -> Iterator[Recorded]:
    """The finished points of an archive that have clients alone and beside a recovery."""
    archive = open_archive(folder)
    variables: Mapping[str, str] = dict(archive.plan["variables"])
    osds = archive.environment["cluster"]["osds"]
    options = archive.environment["cluster"]["options_not_default"]["osd.0"]
    for repeat in archive.repeats:
        if repeat.record.status != "finished":
            continue
        seen = observe(repeat, {})
        alone, during = alone_figures(seen), during_figures(seen, repeat)
        if len(during) == len(FIGURES):
            yield Recorded(
                policy=repeat.record.axes["policy"],
                release=int(osds[0]["ceph_version_short"].partition(".")[0]),
                capacity=float(variables["capacity"]),
                bandwidth=float(options["osd_mclock_max_sequential_bandwidth_ssd"]["final"]),
                osds=len(osds),
                copies=int(variables["size"]),
                shards=int(options["osd_op_num_shards"]["final"]),
                threads=int(options["osd_op_num_threads_per_shard"]["final"]),
                throttle_bytes=float(options["bluestore_throttle_bytes"]["final"]),
                device_iops=int(str(REGIMES["scheduler"].lab["device_iops"])),
                depth=int(repeat.record.axes["depth"]),
                # Ceph also counts copies that it need not push.
                objects=round(
                    _PUSHED * sum(grown(repeat, "client", PUSHES, "ceph_daemon").values())
                ),
                object_size=parse_size(variables["object"]),
                # Every OSD holds as many placement groups; all of one OSD's lacked objects.
                groups=round(int(variables["pg_num"]) * int(variables["size"]) / len(osds)),
                work=class_of_recovery(repeat),
                primaries=shares(repeat, "alone", "ceph_osd_op_w", len(osds)),
                replicas=shares(repeat, "alone", "ceph_osd_subop_w", len(osds)),
                sources=shares(repeat, "client", PUSHES, len(osds)),
                alone=alone,
                during=during,
            )


def alone_figures(seen: Observation) -> dict[str, float]:
    found = {}
    for load in seen.loads:
        if (load.phase, load.op, load.window) == ("alone", "total", WHOLE):
            found["iops"] = load.iops
            found |= {f"p{q}": load.bins.percentile_seconds(q) or 0.0 for q in (50, 95, 99)}
    return found


def during_figures(seen: Observation, repeat: RecordedRepeat) -> dict[str, float]:
    """From the first push to the last but one in a hundred. Then the OSDs delete what they no
    longer need, which is recovery to Ceph, takes much from clients, and is not in the model."""
    start, end = repeat.record.phases["client"].worked
    pushes = [it.grown() for it in samples_of(repeat, PUSHES) if len(it.times)]
    times = [it.times for it in samples_of(repeat, PUSHES) if len(it.times)]
    moments = np.arange(start, end, 0.25)
    whole = np.sum([np.interp(moments, *pair) for pair in zip(times, pushes, strict=True)], axis=0)
    whole = whole - whole[0]
    first, last = (int(np.searchsorted(whole, part * whole[-1])) for part in _PART)
    within = float(moments[first]), float(moments[last])
    chosen = seen.intervals.of("client") & seen.intervals.within([within])
    bins = seen.intervals.bins(chosen)
    percentiles = {f"p{q}": bins.percentile_seconds(q) or 0.0 for q in (50, 95, 99)}
    found = {"iops": seen.intervals.rate(chosen), **percentiles}
    return found | {"recovery_seconds": within[1] - within[0]}


def samples_of(repeat: RecordedRepeat, family: str) -> Sequence[Series]:
    return read_samples(repeat.folder / METRICS_FILE, {family}).of(family)


def grown(repeat: RecordedRepeat, phase: str, family: str, by: str) -> dict[str, float]:
    """What a counter grew in a phase, by a label."""
    start, end = repeat.record.phases[phase].worked
    found: dict[str, float] = {}
    for series in samples_of(repeat, family):
        key = series.labels.get(by, "")
        found[key] = found.get(key, 0.0) + series.growth(start, end)
    return found


def class_of_recovery(repeat: RecordedRepeat) -> str:
    """The one that had more work; WPQ does not mind."""
    work = grown(repeat, "client", QosSeries.OPS, "class")
    return max((RECOVERY, BEST_EFFORT), key=lambda cls: work.get(cls, 0.0))


def shares(repeat: RecordedRepeat, phase: str, family: str, osds: int) -> list[float]:
    """Of each OSD in the growth of a counter."""
    found = grown(repeat, phase, family, "ceph_daemon")
    whole = sum(found.values())
    return [round(found.get(f"osd.{osd}", 0.0) / whole, 4) for osd in range(osds)]


def verdicts(found: Sequence[FigureError]) -> Iterator[str]:
    row = "{:<18} {:>5} {:>9} {:>16} {:>15} {:>9}  {}"
    yield row.format(
        *("figure", "runs", "model", "nothing changes", "by reservation", "coverage", "verdict")
    )
    for each in found:
        yield row.format(
            each.figure,
            each.runs,
            *(f"{v:.0%}" for v in (each.model, each.nothing_changes, each.by_reservation)),
            f"{each.coverage:.0%}",
            "known" if each.known else "unknown",
        )
    yield (
        "Median error of predictions of runs that the fit has not seen. Known: at most"
        f" {MARGIN:.0%} of the error of each simple predictor, and {COVERAGE:.0%} of the intervals"
        " right."
    )


def each_run(predicted: Sequence[Predicted]) -> Iterator[str]:
    row = "{:<18} {:>5} {:<17} {:>10} {:>10} {:>22} {:>16} {:>15}"
    heads = ("policy", "depth", "figure", "measured", "model", "interval", "nothing changes")
    yield row.format(*heads, "by reservation")
    for each in predicted:
        model = each.model
        between = "unknown"
        if model and each.factor < inf:
            between = f"{model / each.factor:.3g} - {model * each.factor:.3g}"
        yield row.format(
            each.run.policy,
            each.run.depth,
            each.figure,
            *(f"{v:.3g}" if v else "unknown" for v in (each.measured, model)),
            between,
            *(f"{v:.3g}" if v else "unknown" for v in (each.nothing_changes, each.by_reservation)),
        )


if __name__ == "__main__":
    sys.exit(main())
