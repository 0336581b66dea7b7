"""The figures of clients that ran together at one depth."""

import time
from collections.abc import Mapping, Sequence

from cephqos_loadgen.engines.fio_output import DIRECTIONS, JobStatus, add, figures, figures_over
from cephqos_loadgen.load.followers import Follower
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.phase import Step
from cephqos_loadgen.results.rates import DoneSoFar, over_common_time

# A client counts its own time: one that was given a time ran for less than it only if it ended.
_EARLY_SECONDS = 1.0


def step_of(
    followers: Sequence[Follower], depth: int, started: float, asked: float | None = None
) -> Step:
    """`asked`: seconds, of a load that was to run for so long.

    Rates are taken over the time in which all jobs ran, everything else over all that they did.
    """
    statuses = {f.client: f.last for f in followers if f.last is not None}
    jobs: dict[str, JobStatus] = {}
    for client, status in statuses.items():
        for name, job in status.jobs.items():
            jobs[name if name == client else f"{client}/{name}"] = job
    courses = [points for follower in followers for points in follower.points.values()]
    common = over_common_time(courses)
    starts = [points[0].time for points in courses if points]
    runtime = max((status.runtime for status in statuses.values()), default=0.0)
    totals = {d: add(status.of(d) for status in statuses.values()) for d in DIRECTIONS}

    def together(*directions: str) -> LoadFigures:
        done = add(totals[direction] for direction in directions)
        if common is None:
            return figures_over(done, runtime)
        ios = sum(common.ios.get(direction, 0.0) for direction in directions)
        moved = sum(common.bytes.get(direction, 0.0) for direction in directions)
        return figures(done, ios, moved)

    read, write = (together(d) if totals[d].ios else None for d in DIRECTIONS)
    return Step(
        depth=depth,
        start_unix_seconds=started,
        end_unix_seconds=_end(courses) if common else time.time(),
        seconds=common.seconds if common else runtime,
        total=together(*DIRECTIONS),
        read=read,
        write=write,
        jobs={n: figures_over(add(job.totals.values()), job.runtime) for n, job in jobs.items()},
        asked_seconds=asked,
        ended_early=_ended_early(jobs, asked),
        counted_from_unix_seconds=min(filter(None, starts), default=None),
    )


def _end(courses: Sequence[Sequence[DoneSoFar]]) -> float:
    """That of the last job. What served the volumes takes time to go; nothing is loaded then."""
    return min(time.time(), max(points[-1].time for points in courses))


def _ended_early(jobs: Mapping[str, JobStatus], asked: float | None) -> dict[str, float]:
    """How long those jobs ran that ended before their time; one that did nothing has none."""
    if asked is None:
        return {}
    enough = asked - _EARLY_SECONDS
    return {name: job.runtime for name, job in jobs.items() if 0 < job.runtime < enough}
