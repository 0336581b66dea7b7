"""The intervals of a job of fio, between the statuses that it prints about once a second."""

from dataclasses import dataclass

from cephqos_loadgen.engines.fio_output import JobStatus
from cephqos_loadgen.live.state import SHORTEST_SECONDS


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a job did from one of its statuses to a later one. A status has totals since the start
    of the job."""

    before: JobStatus | None  # the earlier status; None: the job's start
    job: JobStatus  # the later status
    end: float  # time of the later status

    @property
    def seconds(self) -> float:
        return self.job.runtime - (self.before.runtime if self.before else 0.0)


class JobIntervals:
    """Makes the intervals of one job, each at least `SHORTEST_SECONDS` long where it can be.

    A shorter one joins the interval before it, and a first one the next. So each interval is held
    back until the next is known.
    """

    def __init__(self) -> None:
        self._held: Stretch | None = None

    def add(self, job: JobStatus, before: JobStatus | None, end: float) -> Stretch | None:
        """Add an interval; returns the one before it if that is complete now.

        Without `before`, the job begins here, or begins again.
        """
        held, self._held = self._held, Stretch(before, job, end)
        if held is None or before is None:
            return held
        seconds = job.runtime - held.job.runtime
        if seconds < SHORTEST_SECONDS:
            self._held = Stretch(held.before, job, held.end + seconds)
            return None
        if held.seconds < SHORTEST_SECONDS:
            self._held = Stretch(held.before, job, end)
            return None
        return held

    def last(self) -> Stretch | None:
        """The interval that is held back, at the end of the job."""
        held, self._held = self._held, None
        return held
