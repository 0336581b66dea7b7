"""What plans and kinds of phases are made of: settings, devices, pools and their content."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capacity:
    """How the capacity of each OSD is measured before the first point: bytes in all, and per write.

    The defaults are those of the measurement that OSDs make at their start.
    """

    total: int = 12_288_000
    block_size: int = 4096


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
    size: int
    prefill: bool = True


@dataclass(frozen=True, slots=True)
class Objects:
    """RADOS objects that a pool is filled with."""

    count: int
    size: int

    def shared_out(self, writers: int) -> list["Objects"]:
        """The same objects for several writers at once."""
        writers = max(1, min(writers, self.count))
        each, rest = divmod(self.count, writers)
        return [Objects(each + (n < rest), self.size) for n in range(writers)]


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """A pool that the run makes.

    `fresh`: made again for every repeat. `emptied`: its objects are removed before every repeat,
    and its placement groups stay where they are. `keep`: left behind, for a run that needs the
    same one.
    """

    name: str
    size: int | None = None
    pg_num: int = 32
    images: Images | None = None
    objects: Objects | None = None
    fresh: bool = False
    emptied: bool = False
    keep: bool = False
