"""Series of made-up OSDs for promtool: what an exporter would have shown of a described behaviour.

A timeline is a list of (minutes, State); the first sample is at time 0, then one every 15 s.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

STEP = 15
CLUSTER = "c1"
SHARDS = 4

Series = dict[str, str]
Timeline = Sequence[tuple[float, "State"]]


@dataclass(frozen=True)
class State:
    """What an OSD does for a while. Rates per second; absent where None."""

    client: float = 0.0
    immediate: float = 0.0
    recovery: float = 0.0
    in_progress: tuple[float, ...] = (0,)  # repeated for as long as it lasts
    present: float | None = None  # on average; None: as many as in samples
    waiting: float = 0.0  # client operations waiting, on average
    store: float = 0.0  # transactions in BlueStore, on average
    store_latency: float = 0.002
    store_used: float = 0.0  # of the throttle of BlueStore
    queue: tuple[float, ...] = (0, 0, 0, 0)  # of clients, per shard
    lag: tuple[float, ...] = (0, 0, 0, 0)
    recovery_queue: float = 0.0
    recovery_lag: float = 0.0
    hold: float = 0.0  # of the client limit
    device_latency: float = 0.001
    device_ops: float | None = None  # per second; None: two for each piece of work
    depth: float = 0.1
    kv_commit: float = 0.001
    read_wait: float | None = None  # seconds; None: no reads
    own_write: float = 0.001  # seconds of what BlueStore writes beside its database
    compaction: float = 0.0  # CPUs
    spilled: float = 0.0  # bytes of the database
    fragmented: float = 0.0  # allocations of the database per second
    device_bytes: float | None = None  # per second; None: 4 KiB for each piece of work
    db_latency: float | None = None  # of a device of its own for the database; None: it has none
    db_ops: float = 100
    db_bytes: float = 4e6
    write_latency: float | None = None  # of client writes; None: twice their store's
    replica_writes: float = 0.0
    replica_latency: float = 0.004
    thread: float = 0.1
    cpu_waiting: float = 0.1
    up: float | None = 1.0
    good: float = 1.0  # share of operations within the threshold
    scrape: bool = True  # False: the whole OSD is missing from the scrape


IDLE = State()
# As many operations as a size-1 pool can use: they pile up in BlueStore, one device at its end.
BUSY = State(
    client=1000,
    in_progress=(30, 20, 40, 25),
    waiting=3,
    store=20,
    store_latency=0.02,
    store_used=0.01,
    queue=(3, 2, 4, 1),
    depth=3,
    kv_commit=0.01,
)


@dataclass(frozen=True)
class SimulatedOsd:
    """One OSD: how it is set up, and what it does in time."""

    timeline: Timeline
    id: int = 0
    media: str = "ssd"
    capacity: float | None = 2000
    reserved: Mapping[str, float] = field(
        default_factory=lambda: {"client": 1000, "background_recovery": 500}
    )
    limit: Mapping[str, float] = field(default_factory=dict)
    target: Mapping[str, float] = field(default_factory=dict)
    in_force: str = "mclock_scheduler"
    profile: str = "balanced"
    origin: str = "mon"
    device: str = "sda"
    instance: str = "host1"
    cluster: str = CLUSTER
    restarts: bool = False

    @property
    def name(self) -> str:
        return f"osd.{self.id}"

    def series(self) -> Series:
        """Everything that its exporter shows."""
        return _osd_series(self)


def _samples(minutes: float) -> int:
    return round(minutes * 60 / STEP)


def gauge(timeline: Timeline, value: Callable[[State], float | None]) -> str:
    """A gauge that holds a value for each stretch of time; absent where it is None."""
    parts = []
    for minutes, state in timeline:
        found = value(state) if state.scrape else None
        count = _samples(minutes)
        parts.append(f"_x{count}" if found is None else f"{found:g}x{count - 1}")
    return " ".join(parts)


def cycle(timeline: Timeline, values: Callable[[State], Sequence[float]]) -> str:
    """A gauge that goes through several values again and again."""
    parts = []
    for minutes, state in timeline:
        found = values(state)
        for i in range(_samples(minutes)):
            parts.append(f"{found[i % len(found)]:g}" if state.scrape else "_")
    return " ".join(parts)


def counter(timeline: Timeline, rate: Callable[[State], float]) -> str:
    """A counter that grows at a rate; what is missed in a gap is made up for after it."""
    parts, total = [], 0.0
    for minutes, state in timeline:
        count, step = _samples(minutes), rate(state) * STEP
        if state.scrape:
            parts.append(f"{total:.12g}+{step:.12g}x{count - 1}")
        else:
            parts.append(f"_x{count}")
        total += step * count
    return " ".join(parts)


def selector(name: str, labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{name}{{{inner}}}"


def _osd_series(osd: SimulatedOsd) -> Series:
    own = {
        "job": "cephqos",
        "instance": osd.instance,
        "cluster": osd.cluster,
        "ceph_daemon": osd.name,
    }
    line = osd.timeline
    found: Series = {}

    def add(name: str, values: str, **labels: str) -> None:
        labels = {key.rstrip("_"): value for key, value in labels.items()}
        found[selector(name, own | labels)] = values

    def add_gauge(name: str, value: Callable[[State], float | None], **labels: str) -> None:
        add(name, gauge(line, value), **labels)

    def add_counter(name: str, rate: Callable[[State], float], **labels: str) -> None:
        add(name, counter(line, rate), **labels)

    _add_settings(osd, add_gauge)
    _add_demand(osd, add_gauge, add_counter, add)
    _add_work(add_counter)
    _add_resources(osd, add_gauge, add_counter)
    cpu = counter(line, lambda s: 1)
    if osd.restarts:
        cpu = f"1000x{_samples(line[0][0]) - 1} 1+15x400"
    add("cephqos_daemon_cpu_seconds_total", cpu, mode="user")
    return found


def _add_settings(osd: SimulatedOsd, add_gauge: Callable[..., None]) -> None:
    ops = "normalised_ops_per_second"
    for cls, value in osd.reserved.items():
        add_gauge(f"cephqos_qos_reservation_{ops}", lambda s, v=value: v, class_=cls)
        if osd.capacity:
            ratio = value / osd.capacity
            add_gauge("cephqos_qos_reservation_ratio", lambda s, v=ratio: v, class_=cls)
    for cls, value in osd.limit.items():
        add_gauge(f"cephqos_qos_limit_{ops}", lambda s, v=value: v, class_=cls)
        if osd.capacity:
            ratio = value / osd.capacity
            add_gauge("cephqos_qos_limit_ratio", lambda s, v=ratio: v, class_=cls)
    for cls, value in osd.target.items():
        add_gauge(f"cephqos_qos_target_reservation_{ops}", lambda s, v=value: v, class_=cls)
    if osd.capacity is not None:
        add_gauge(f"cephqos_qos_capacity_{ops}", lambda s: osd.capacity)
    add_gauge("cephqos_qos_shards", lambda s: SHARDS)
    about = {"in_force": osd.in_force, "profile": osd.profile, "media": osd.media}
    add_gauge("cephqos_qos_scheduler_info", lambda s: 1, capacity_origin=osd.origin, **about)
    add_gauge("cephqos_disks_info", lambda s: 1, layer="osd", device=osd.device)


def _add_demand(
    osd: SimulatedOsd,
    add_gauge: Callable[..., None],
    add_counter: Callable[..., None],
    add: Callable[..., None],
) -> None:
    add("cephqos_qos_client_ops_in_progress", cycle(osd.timeline, lambda s: s.in_progress))
    add_counter("cephqos_qos_client_wait_seconds_total", lambda s: s.waiting)
    add_counter("cephqos_qos_throttle_wait_seconds_total", lambda s: 0, throttle="bluestore")
    add_gauge("cephqos_qos_throttle_used_ratio", lambda s: s.store_used, throttle="bluestore")
    add_counter("cephqos_qos_store_seconds_total", lambda s: s.store)
    add_counter("cephqos_qos_store_transactions_total", lambda s: s.store / s.store_latency)
    if osd.in_force != "mclock_scheduler":
        return
    for shard in range(SHARDS):
        at = {"shard": str(shard)}
        name = "cephqos_qos_queue_length"
        add_gauge(name, lambda s, i=shard: s.queue[i], class_="client", **at)
        background = {"class_": "background_recovery", **at}
        add_gauge(name, lambda s: s.recovery_queue / SHARDS, **background)
        name = "cephqos_qos_reservation_lag_seconds"
        if osd.reserved.get("client"):
            add_gauge(name, lambda s, i=shard: s.lag[i], class_="client", **at)
        add_gauge(name, lambda s: s.recovery_lag, **background)
        if "client" in osd.limit:
            name = "cephqos_qos_limit_wait_seconds"
            add_gauge(name, lambda s: s.hold, class_="client", **at)


def _add_work(add_counter: Callable[..., None]) -> None:
    name = "cephqos_qos_normalised_ops_total"
    add_counter(name, lambda s: s.client, class_="client")
    add_counter(name, lambda s: s.immediate, class_="immediate")
    add_counter(name, lambda s: s.recovery, class_="background_recovery")
    add_counter(
        "cephqos_qos_delivered_normalised_ops_total",
        lambda s: s.client + s.immediate + s.recovery,
    )
    histogram = "cephqos_osd_op_latency_seconds"
    for op in ("read", "write"):
        add_counter(f"{histogram}_sum", lambda s, op=op: _op_seconds(s, op), op=op)
        add_counter(f"{histogram}_count", lambda s: s.client, op=op)
        for le in ("0.0128", "0.0512", "0.1024", "0.2048"):
            add_counter(f"{histogram}_bucket", lambda s: s.client * s.good, op=op, le=le)


def _device_bytes(state: State) -> float:
    if state.device_bytes is not None:
        return state.device_bytes
    return 4096 * (state.client + state.immediate + state.recovery)


def _device_ops(state: State) -> float:
    if state.device_ops is not None:
        return state.device_ops
    return 10 + 2 * (state.client + state.immediate + state.recovery)


def _op_seconds(state: State, op: str) -> float:
    """Of the operations that are there on average, those that write take as long as it says."""
    latency = state.write_latency or 2 * state.store_latency
    writes = min(state.client * latency, _present(state))
    return writes if op == "write" else _present(state) - writes


def _present(state: State) -> float:
    if state.present is not None:
        return state.present
    return sum(state.in_progress) / len(state.in_progress) + sum(state.queue)


def _add_resources(
    osd: SimulatedOsd, add_gauge: Callable[..., None], add_counter: Callable[..., None]
) -> None:
    disk = {"layer": "osd", "device": osd.device, "role": "block"}
    add_counter(
        "cephqos_disks_time_seconds_total",
        lambda s: _device_ops(s) * s.device_latency,
        op="write",
        **disk,
    )
    add_counter("cephqos_disks_ops_total", _device_ops, op="write", **disk)
    add_counter("cephqos_disks_bytes_total", _device_bytes, op="write", **disk)
    add_counter("cephqos_disks_weighted_seconds_total", lambda s: s.depth, **disk)
    if any(state.db_latency is not None for _, state in osd.timeline):
        db = {"layer": "osd", "device": "nvme0n1p1", "role": "db", "op": "write"}
        add_counter(
            "cephqos_disks_time_seconds_total", lambda s: s.db_ops * (s.db_latency or 0), **db
        )
        add_counter("cephqos_disks_ops_total", lambda s: s.db_ops, **db)
        add_counter("cephqos_disks_bytes_total", lambda s: s.db_bytes, **db)
    # One thread commits: no more than a second of it in a second.
    add_counter("cephqos_qos_store_kv_commit_seconds_total", lambda s: min(100 * s.kv_commit, 1.0))
    add_counter("cephqos_qos_store_kv_commits_total", lambda s: 1 / max(s.kv_commit, 0.01))
    for write, time in (("direct", 1.0), ("deferred", 0.0)):
        name = "cephqos_qos_store_own_write"
        add_counter(f"{name}_seconds_total", lambda s, t=time: 50 * t * s.own_write, write=write)
        add_counter(f"{name}s_total", lambda s, t=time: 50 * t, write=write)
    add_gauge("cephqos_qos_store_spilled_bytes", lambda s: s.spilled)
    add_gauge("cephqos_qos_store_db_used_bytes", lambda s: 1e9)
    add_counter("cephqos_qos_store_fragmented_allocations_total", lambda s: s.fragmented)
    # Ten threads read: no more than ten seconds of it in a second.
    add_counter("cephqos_qos_store_read_waits_total", _reads)
    add_counter(
        "cephqos_qos_store_read_wait_seconds_total", lambda s: _reads(s) * (s.read_wait or 0.0)
    )
    add_counter("cephqos_qos_replica_writes_total", lambda s: s.replica_writes)
    add_counter(
        "cephqos_qos_replica_write_seconds_total", lambda s: s.replica_writes * s.replica_latency
    )
    name = "cephqos_threads_busiest_cpu_seconds_total"
    add_counter(name, lambda s: s.thread, group="bstore_kv_sync")
    add_counter(name, lambda s: 0.99, group="other")
    add_counter("cephqos_threads_wait_seconds_total", lambda s: s.cpu_waiting, group="tp_osd_tp")
    group = {"group": "rocksdb:low", "mode": "user"}
    add_counter("cephqos_threads_cpu_seconds_total", lambda s: s.compaction, **group)
    add_gauge("cephqos_daemon_up", lambda s: s.up, reason="")


def _reads(state: State) -> float:
    return 0 if state.read_wait is None else 10 / max(state.read_wait, 0.1)


def merged(*parts: Series | SimulatedOsd) -> Series:
    """All series of a case."""
    found: Series = {}
    for part in parts:
        found |= part.series() if isinstance(part, SimulatedOsd) else part
    return found


def osds(count: int, timeline: Timeline, **changes: object) -> Iterable[SimulatedOsd]:
    """Several OSDs that do the same."""
    base = SimulatedOsd(timeline=timeline)
    for i in range(count):
        yield replace(base, id=i, **changes)  # type: ignore[arg-type]


def flat(name: str, value: float | str, **labels: str) -> Series:
    """One series with one value for an hour, or in promtool's own notation."""
    labels = {key.rstrip("_"): text for key, text in labels.items()}
    text = value if isinstance(value, str) else f"{value:g}x240"
    return {selector(name, labels): text}
