"""The figures of clients that ran together at one depth."""

import time
from collections.abc import Mapping, Sequence

from cephqos_loadgen.engines.fio_output import DIRECTIONS, JobStatus, add, figures, figures_over
from cephqos_loadgen.load.followers import Follower
from cephqos_loadgen.results.figures import LoadFigures
from cephqos_loadgen.results.phase import Step
from cephqos_loadgen.results.rates import over_common_time

# A client that was to run for a time and ran for less, by more than this, has ended early.
_EARLY_SECONDS = 1.0


def step_of(
    followers: Sequence[Follower], depth: int, started: float, asked_seconds: float | None = None
) -> Step:
    """The figures of a step from what its clients reported, after their end.

    `asked_seconds`: how long the load was to run, if it was to run for a time. Rates are taken over
    the time in which all jobs ran, everything else over all that they did.
    """
    statuses = {follower.client: follower.last for follower in followers if follower.last}
    jobs: dict[str, JobStatus] = {}
    for client, status in statuses.items():
        for name, job in status.jobs.items():
            jobs[name if name == client else f"{client}/{name}"] = job
    points_of_jobs = [points for follower in followers for points in follower.points.values()]
    common = over_common_time(points_of_jobs)
    starts = [points[0].time for points in points_of_jobs if points]
    runtime = max((status.runtime for status in statuses.values()), default=0.0)
    totals = {
        direction: add(status.of(direction) for status in statuses.values())
        for direction in DIRECTIONS
    }

    def figures_of(*directions: str) -> LoadFigures:
        total = add(totals[direction] for direction in directions)
        if common is None:
            return figures_over(total, runtime)
        io_rate = sum(common.ios.get(direction, 0.0) for direction in directions)
        byte_rate = sum(common.bytes.get(direction, 0.0) for direction in directions)
        return figures(total, io_rate, byte_rate)

    read, write = (figures_of(d) if totals[d].ios else None for d in DIRECTIONS)
    ended = time.time()
    if common:  # at the end of the last job: what served the volumes ends later, without any load
        ended = min(ended, max(points[-1].time for points in points_of_jobs))
    return Step(
        depth=depth,
        start_unix_seconds=started,
        end_unix_seconds=ended,
        seconds=common.seconds if common else runtime,
        total=figures_of(*DIRECTIONS),
        read=read,
        write=write,
        jobs={n: figures_over(add(job.totals.values()), job.runtime) for n, job in jobs.items()},
        asked_seconds=asked_seconds,
        ended_early=_ended_early(jobs, asked_seconds),
        counted_from_unix_seconds=min(filter(None, starts), default=None),
    )


def _ended_early(jobs: Mapping[str, JobStatus], asked_seconds: float | None) -> dict[str, float]:
    """How long those jobs ran that ended before their time. A job that did nothing is left out."""
    if asked_seconds is None:
        return {}
    enough = asked_seconds - _EARLY_SECONDS
    return {name: job.runtime for name, job in jobs.items() if 0 < job.runtime < enough}
