"""The intervals of a job, from what it says of itself about once a second."""

from dataclasses import dataclass

from cephqos_loadgen.engines.fio_output import JobStatus
from cephqos_loadgen.live.state import SHORTEST_SECONDS


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a job did from one of its statuses to a later one; `before` is None at its start."""

    before: JobStatus | None
    job: JobStatus
    end: float

    @property
    def seconds(self) -> float:
        return self.job.runtime - (self.before.runtime if self.before else 0.0)


class JobIntervals:
    """Those of one job. One of less than `SHORTEST_SECONDS` joins the one before it, and a first
    one joins the next. So each is held back until the next is known.
    """

    def __init__(self) -> None:
        self._held: Stretch | None = None

    def add(self, job: JobStatus, before: JobStatus | None, end: float) -> Stretch | None:
        """The interval that is complete now. Without `before`, the job begins (again) here."""
        held, self._held = self._held, Stretch(before, job, end)
        if held is None or before is None:
            return held
        more = job.runtime - held.job.runtime
        if more < SHORTEST_SECONDS:
            self._held = Stretch(held.before, job, held.end + more)
            return None
        if held.seconds < SHORTEST_SECONDS:
            self._held = Stretch(held.before, job, end)
            return None
        return held

    def rest(self) -> Stretch | None:
        """What is still held back, at the end of the job."""
        held, self._held = self._held, None
        return held
