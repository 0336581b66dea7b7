"""What a prediction is made for: the store, the cluster, its clients and its background work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cephqos_base.series import BEST_EFFORT
from cephqos_exporter.qos.cost_models import QosState

# Priorities that WPQ goes by (defaults of osd_client_op_priority, osd_recovery_priority,
# osd_recovery_op_priority, osd_scrub_priority), and what it takes recovery and scrub to cost.
CLIENT_PRIORITY: Final = 63
REPLICA_PRIORITY: Final = 127  # of a message that sets none
RECOVERY_PRIORITY: Final = 5
PUSH_PRIORITY: Final = 3
SCRUB_PRIORITY: Final = 5
WPQ_RECOVERY_COST: Final = 20 << 20
WPQ_SCRUB_COST: Final = 50 << 20
# A push carries this much beside its data; a message of a scrub costs this much.
PUSH_BYTES: Final = 1000
SCRUB_BYTES: Final = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Store:
    """The service curve of a device with its store, as measured; seconds are of the device.

    A device serves `slots` requests at once: at depth d it does min(d, slots) / seconds. Reads hold
    a thread of the shard. A write holds it only until BlueStore's throttle lets it pass: below the
    throttle BlueStore takes whatever comes.
    """

    read_seconds: float
    write_seconds: float
    read_byte_seconds: float = 0.0
    write_byte_seconds: float = 0.0
    slots: int = 1
    spread: float = 0.3  # standard deviation of a request's seconds, as a share of their mean
    throttle_bytes: float | None = None
    # Charged beside the data: bluestore_throttle_cost_per_io_ssd for the data and for the commit,
    # and about as much of the placement group's log.
    throttle_bytes_per_write: float = 9500.0
    # After its data a write waits for a commit of the key-value store, which takes so long on the
    # device for all that wait together (BlueStore's _kv_sync_thread).
    commit_seconds: float = 0.0
    apart: bool = False  # reads and writes do not take one another's slots

    def seconds(self, size: float, requests: int = 1, *, write: bool) -> float:
        if write:
            return requests * self.write_seconds + size * self.write_byte_seconds
        return requests * self.read_seconds + size * self.read_byte_seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Clients:
    """What clients ask of the cluster: closed with a depth, or open with a rate."""

    size: int = 4096
    reads: float = 0.0  # their share
    depth: int = 0
    rate: float = 0.0  # operations per second


@dataclass(frozen=True, kw_only=True, slots=True)
class RecoveryWork:
    """Objects to recover onto one OSD, from all others.

    A placement group is queued again when what it recovers has ended, so each recovers one object
    at a time (`osd_recovery_max_single_start` is 1).
    """

    objects: int
    size: int
    groups: int  # placement groups that lack objects; objects are in one of them by chance
    at_once: int = 1 << 16  # that have a reservation at the target (`osd_max_backfills`)
    target: int = 0
    sources: Sequence[float] = ()  # shares of the groups by OSD that pushes; empty: all others
    work: str = BEST_EFFORT  # the class: background_recovery where redundancy is lacking


@dataclass(frozen=True, kw_only=True, slots=True)
class ScrubWork:
    """Objects of each OSD to scrub as a primary, `slots` placement groups at once."""

    objects: int  # of one OSD
    size: int
    deep: bool = True
    slots: int = 1
    chunk: int = 15
    priority: int = SCRUB_PRIORITY


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A cluster of equal OSDs. `qos` is None under WPQ.

    `placements`: OSDs of a client's operation, the primary first, each with its share; empty: even.
    """

    osds: int
    copies: int
    store: Store
    qos: QosState | None
    shards: int = 1
    threads: int = 4  # of a shard
    hop_seconds: float = 0.0002  # a message from one daemon to another, with its handling
    placements: Mapping[Sequence[int], float] = field(default_factory=dict)
