"""What plans and kinds of phases are made of: settings, devices, pools and their content."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capacity:
    """How the capacity of each OSD is measured before the first point: bytes in all, and per write.

    The defaults are those of the measurement that OSDs make at their start.
    """

    total: int = 12_288_000
    block_size: int = 4096
    iops: int | None = None  # what is set without a measurement, as a baseline of clients


@dataclass(frozen=True, slots=True)
class Device:
    """Queue settings of the OSDs' block devices; None leaves one as it is."""

    scheduler: str | None = None
    nr_requests: int | None = None
    read_ahead_kb: int | None = None


@dataclass(frozen=True, slots=True)
class Images:
    """RBD images of a pool, all alike; their names are `volume.0`, `volume.1` …"""

    count: int
    size: int  # bytes
    prefill: bool = True


@dataclass(frozen=True, slots=True)
class Objects:
    """RADOS objects that a pool is filled with."""

    count: int
    size: int

    def shared_out(self, writers: int) -> list["Objects"]:
        """The same objects divided between several writers, of which the first may get one more."""
        writers = max(1, min(writers, self.count))
        share, remainder = divmod(self.count, writers)
        return [Objects(share + (n < remainder), self.size) for n in range(writers)]


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """A pool that the run creates."""

    name: str
    size: int | None = None  # copies; None: the cluster's default
    pg_num: int = 32
    images: Images | None = None
    objects: Objects | None = None
    fresh: bool = False  # created again for every repeat
    emptied: bool = False  # before every repeat its objects are removed, and placement groups stay
    keep: bool = False  # left behind, for a later run that needs the same pool
