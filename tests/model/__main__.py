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

from cephqos_base.series import BEST_EFFORT, RECOVERY, QosSeries
from cephqos_base.units import parse_size
from cephqos_loadgen.archive.reader import RecordedRepeat, open_archive
from cephqos_loadgen.record.columns import parse
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.loads import WHOLE
from cephqos_loadgen.report.figures.observe import Observation, observe

from .fit import COVERAGE, FIGURES, MARGIN, FigureError, Predicted, Recorded, cross_predict, errors

HERE: Final = Path(__file__).parent
RUNS: Final = HERE / "runs.json"


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
    print("\n".join([*each_run(predicted), "", *verdicts(errors(predicted))]))
    return 0


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
        alone, during = figures(seen, "alone"), figures(seen, "client")
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
                depth=int(repeat.record.axes["depth"]),
                objects=int(seen.background["client"][metrics.RECOVERY_OBJECTS.key]),
                object_size=parse_size(variables["object"]),
                # Every OSD holds as many placement groups; all of one OSD's lacked objects.
                groups=round(int(variables["pg_num"]) * int(variables["size"]) / len(osds)),
                work=class_of_recovery(repeat),
                alone=alone,
                during=during,
            )


def figures(seen: Observation, phase: str) -> dict[str, float]:
    found = {}
    for load in seen.loads:
        if (load.phase, load.op, load.window) == (phase, "total", WHOLE):
            found["iops"] = load.iops
            found |= {f"p{q}": load.bins.percentile_seconds(q) or 0.0 for q in (50, 95, 99)}
    seconds = seen.background.get(phase, {}).get(metrics.RECOVERY_SECONDS.key)
    return found | ({"recovery_seconds": seconds} if seconds else {})


def class_of_recovery(repeat: RecordedRepeat) -> str:
    """The one that was longer in the queues; WPQ does not tell, and does not mind."""
    waited = {RECOVERY: 0.0, BEST_EFFORT: 0.0}
    for series, samples in repeat.metrics().series.items():
        name, labels = parse(series)
        cls = dict(labels).get("class", "")
        if name == QosSeries.QUEUE_LENGTH and cls in waited:
            waited[cls] += sum(value for _, value in samples)
    return max(waited, key=lambda cls: waited[cls])


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
