"""What is known of an OSD, and the places among which its seconds are divided."""

from enum import StrEnum
from typing import Final, NamedTuple


class State(StrEnum):
    """Where a second of an operation is spent. QUEUE and REPLICA also say by what or whom."""

    RECEIVE = "receive"  # until it is read from the network; the OSD may refuse to read on
    QUEUE = "queue"  # by: the class that is served instead, `limit`, or `cpu`
    BLOCKED = "blocked"  # by the state of its placement group or object
    CPU = "cpu"
    STORE_THROTTLE = "store_throttle"
    STORE_DEVICE = "store_device"
    STORE_COMMIT = "store_commit"  # in the key-value store
    STORE_CPU = "store_cpu"
    REPLICA = "replica"  # by: the OSD that is waited for, or `other`
    NETWORK = "network"
    REPLY = "reply"
    UNKNOWN = "unknown"


NOT_KNOWN: Final = "unknown"  # which class was served instead

Place = tuple[State, str]  # and `by`, empty for most states
Shares = dict[Place, float]  # in any unit: only their ratios matter


class Sums(NamedTuple):
    """What an OSD has counted since it started: seconds, and numbers of operations."""

    # Client operations of the OSD as primary.
    latency: float = 0.0
    ops: float = 0.0
    process: float = 0.0
    prepare: float = 0.0
    reads: float = 0.0
    read_process: float = 0.0
    read_prepare: float = 0.0
    refused: float = 0.0  # messages that the throttle of clients refused
    # Messages of all kinds.
    before_queue: float = 0.0
    queued: float = 0.0
    before_dequeue: float = 0.0
    dequeued: float = 0.0
    # Writes for other primaries.
    replica: float = 0.0
    replicas: float = 0.0
    # Transactions of all classes in the own store, and its reads.
    commit: float = 0.0
    commits: float = 0.0
    throttle: float = 0.0
    aio_wait: float = 0.0
    kv_queued: float = 0.0
    kv_committing: float = 0.0
    kv_flush: float = 0.0
    kv_sync: float = 0.0
    read_wait: float = 0.0
    read_waits: float = 0.0
    # Threads: those that take operations from the queue, and the one that commits.
    worker_run: float = 0.0
    worker_wait: float = 0.0
    kv_wait: float = 0.0
    # Normalised operations by class.
    client: float = 0.0
    recovery: float = 0.0
    best_effort: float = 0.0
    immediate: float = 0.0

    def gained_since(self, before: "Sums") -> "Sums":
        """What was added; a sum that went back was reset, and holds what was added since."""
        pairs = zip(self, before, strict=True)
        return Sums._make([new - old if new >= old else new for new, old in pairs])

    def then(self, gain: "Sums", kept: float) -> "Sums":
        """This much of the sums, and what was gained since."""
        return Sums._make([old * kept + new for old, new in zip(self, gain, strict=True)])


class Evidence(NamedTuple):
    """What else is known of an OSD; `store` and `threads` say whether their sums were read."""

    store: bool
    threads: bool
    limited: float = 0.0  # share of the queues whose first client operation waits for the limit
    ping: float = 0.0  # median heartbeat ping to its peers, seconds
