"""Names replaced by pseudonyms, so that an archive can be given away.

The same name always gets the same pseudonym, as long as the key is the same. The key stays with the
user. Without it the name cannot be found, even by trying.
"""

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_base.pseudonyms import pseudonym
from cephqos_loadgen.run_recording.columns import parse, render

# What may pass: a closed list. Labels whose values are numbers, and of the others, which values.
# Any other value of any label may be a name that a user chose, and is replaced.
_NUMBER_LABELS: Final = """
    cpus generation id iogroup le major minor node nodes nr_requests pool_id python_version
    patchlevel quantile reactor read_ahead_kb rotational shard shard_store_index version
    """
_NUMBERS: Final = frozenset(_NUMBER_LABELS.split())
_NUMBER: Final = re.compile(r"[-+]?[0-9]+([.,:-][0-9]+)*(e[-+]?[0-9]+)?|[+-]Inf")
_WORDS: Final = """
    bound: low likely high
    by: cpu device memory network replica reactor sibling thread client immediate
        background_recovery background_best_effort replica_writes cpu_limit memory_limit io_limit
    capacity_origin: default measured configured benchmark
    class: main client immediate background_recovery background_best_effort
    collector: account cgroup cluster crimson disks histograms host mclock network ops perf
        placement recovery scrub tenants threads
    command: config+diff config+get config+show counter+dump counter+schema dump_blocked_ops_count
        dump_historic_ops dump_historic_slow_ops dump_mempools dump_metrics dump_op_pq_state
        dump_osd_network dump_pgstate_history dump_recovery_reservations dump_scrub_reservations
        dump_scrubs get_mapped_pools ops perf+dump perf+histogram+dump perf+schema status version
        config+dump mon+dump osd+df osd+dump osd+pool+stats osd+tree pg+dump pg+ls pg+ls-by-primary
    configured: mclock_scheduler wpq prioritized debug_random
    device_class: hdd nvme ssd
    direction: in out receive transmit
    event: blocked commit execute queue receive reply subops
    flag: full nobackfill nodeep-scrub nodown noin noout norebalance norecover noscrub nosnaptrim
        noup pauserd pausewr sortbitwise
    group: main log msgr-worker bstore_aio rocksdb:high rocksdb:low cfin bstore_kv_sync
        bstore_kv_final bstore_mempool tp_osd_tp reactor alien-store-tp tp_fstore_op filestore_sync
        journal_write
    implementation: CPython PyPy
    in_force: mclock_scheduler wpq
    interface: front back
    kind: backfill bucket client degraded_backfill ec image involuntary recovery replica
        retransmitted scrub sent voluntary
    latency: DO_TRANSACTION GET_ATTR GET_ATTRS OMAP_GET_VALUES OMAP_ITERATE READ STAT
    layer: osd disk
    level: deep shallow either nearfull backfillfull full
    media: hdd ssd
    mode: steal system used user
    model: bandwidth
    op: commit discard flush read rw write
    op_class: background_best_effort background_recovery client immediate repop
    op_type: client_request peering_event replicated_request
    part: kept ring schedule states totals
    pool_type: erasure replicated
    pooltype: ec replicated
    profile: balanced custom high_client_ops high_recovery_ops
    reason: at_risk busy closed descriptors disk drops error errors failed forward full gone limit
        malformed manager_starting misplaced no_bindings no_command no_manager permission refused
        slow_client starting timeout too_large unknown_command unreachable
    reservations: config none policy
    resource: cpu io memory
    result: failure success
    role: block cluster db journal osd probe wal
    root: default
    scheduler: bfq cfq deadline kyber mq-deadline none noop
    severity: error warning
    side: local remote
    src: CLEANER_COLD CLEANER_MAIN MUTATE READ TRIM_ALLOC TRIM_DIRTY
    state: activating active backfill_toofull backfill_unfound backfill_wait backfill_wait_local
        backfill_wait_remote backfilling blocked clean cpu creating deep degraded down due
        failed_repair forced_backfill forced_recovery in_progress incomplete inconsistent laggy
        late network on_time overdue peered peering premerge queue queued receive recovering
        recovery_toofull recovery_unfound recovery_wait recovery_wait_local recovery_wait_remote
        remapped repair replica reply requested scrubbing snaptrim snaptrim_error snaptrim_wait
        stale store_commit store_cpu store_device store_throttle unclean undersized wait waiting
        working
    strategy: other pinned shared unpinned
    submitter: Dev(0x80)
    throttle: bluestore bluestore_deferred osd_client_bytes osd_client_messages seastore
    type: erasure replicated
    what: event unit value
    window: 1m 5m 15m
    write: deferred direct
    write_cache: write+back write+through
"""


def _allowed() -> Mapping[str, frozenset[str]]:
    allowed: dict[str, set[str]] = {}
    label = ""
    for word in _WORDS.split():
        if word.endswith(":"):
            label = word.removesuffix(":")
        else:
            allowed.setdefault(label, set()).add(word.replace("+", " "))
    allowed["promise"] = {"config", "policy"}
    return {label: frozenset(words) for label, words in allowed.items()}


_ALLOWED: Final = _allowed()
_HOSTS: Final = frozenset({"instance"})
# Pools of memory, which are no pools of the cluster.
_MEMPOOLS: Final = "cephqos_daemon_mempool_bytes"
_MEMPOOL: Final = re.compile(
    r"bluestore_(alloc|blob|cache_(buffer|data|meta|onode|other)|extent|fsck|inline_bl|shared_blob"
    r"|Blob|Buffer|Extent|SharedBlob|txc|writing|writing_deferred)|bluefs(_file_(reader|writer))?|bloom_filter|buffer_(anon|meta)"
    r"|ec_extent_cache|mds_co|osd(_mapbl|_pglog)?|osdmap(_mapping)?|pgmap|unittest_[12]"
)
# What the kernel calls a device.
_DEVICE: Final = re.compile(
    r"(sd|vd|xvd|hd)[a-z]{1,3}[0-9]*|nvme[0-9]+(c[0-9]+)?n[0-9]+(p[0-9]+)?"
    r"|(dm-|loop|md|rbd|nbd|sr|zd|bcache|drbd|mmcblk)[0-9]+(p[0-9]+)?"
    r"|(eth|ib|bond)[0-9]+|en[ops][0-9]+([dfnps][0-9]+)*"
)
# What Ceph calls a check of its health.
_CHECK: Final = re.compile(r"[A-Z][A-Z0-9_]{1,60}")
_FSID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Numbers that Ceph gives. Those of monitors, managers and others are names that a user chose, or
# hold the name of a host.
_NUMBERED: Final = re.compile(r"osd\.[0-9]+|client\.[0-9]+")
_WITH_NUMBERED: Final = frozenset({"by", "ceph_daemon", "peer", "tenant"})
_PATTERNS: Final = {"device": _DEVICE, "check": _CHECK}
# Stands for several, of any label.
_SEVERAL: Final = frozenset({"", "other", "unknown"})
_PREFIX: Final = re.compile(r"(client|mds|mgr|mon|osd|rgw)\.")
# Names of metrics are Ceph's and ours. Parts of Ceph that a client makes have its name in theirs.
_METRIC: Final = re.compile(
    r"(cephqos|process|python|ceph_(osd|bluestore|bluefs|objecter|blk|recoverystate|AsyncMessenger"
    r"|trackedop|rocksdb|mclock|paxos|mon|mds|mgr|finisher|cct|prioritycache))_[a-zA-Z0-9_]+"
)
_TYPES: Final = frozenset({"counter", "gauge", "histogram", "summary"})
_TIME: Final = re.compile(r"[0-9TZ:.+-]{1,40}")


class Redaction:
    """Replaces all but what may pass, by such as `pool-0f3a91c2de`; hosts only if `hosts`."""

    def __init__(self, key: bytes, *, hosts: bool) -> None:
        self._key = key
        self.hosts = hosts

    def series(self, series: str) -> str:
        """`name{labels}` without names."""
        name, labels = parse(series)
        redacted = {label: self._value(name, label, value) for label, value in labels.items()}
        return render(self.metric(name), redacted)

    def metric(self, name: str) -> str:
        """The name of a metric or family, or a pseudonym."""
        if _METRIC.fullmatch(name):
            return name
        return self.pseudonym("metric", name).replace("-", "_")

    def type(self, kind: str) -> str:
        """The type of a family."""
        return kind if kind in _TYPES else "untyped"

    def host(self, name: str) -> str:
        return self.pseudonym("host", name) if self.hosts else name

    def cluster(self, fsid: str) -> str:
        return fsid if not fsid or _FSID.fullmatch(fsid) else self.pseudonym("cluster", fsid)

    def daemon(self, name: str) -> str:
        """`osd.3` as it is, of all others the kind and a pseudonym: `mon.daemon-0f3a91c2de`."""
        if not name or _NUMBERED.fullmatch(name):
            return name
        kind = _PREFIX.match(name)
        return (kind[0] if kind else "") + self.pseudonym("daemon", name)

    def reason(self, text: str) -> str:
        """Why a piece was kept: a free text. The same one is the same on all hosts."""
        return self.pseudonym("reason", text)

    def time(self, text: str) -> str:
        return text if _TIME.fullmatch(text) else ""

    def pseudonym(self, kind: str, value: str) -> str:
        return pseudonym(self._key, kind, value)

    def _value(self, name: str, label: str, value: str) -> str:
        if label in _HOSTS:
            return self.host(value)
        if label == "cluster":
            return self.cluster(value)
        if label == "ceph_daemon":
            return self.daemon(value)
        return value if self._may_pass(name, label, value) else self.pseudonym(label, value)

    def _may_pass(self, name: str, label: str, value: str) -> bool:
        if value in _SEVERAL or value in _ALLOWED.get(label, ()):
            return True
        if label in _WITH_NUMBERED and _NUMBERED.fullmatch(value):
            return True
        pattern = _PATTERNS.get(label) or (_NUMBER if label in _NUMBERS else None)
        if label == "pool" and name == _MEMPOOLS:
            pattern = _MEMPOOL
        return bool(pattern and pattern.fullmatch(value))


def key_of_user() -> bytes:
    """The user's own key, made at first use; UsageError where it cannot be kept."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(state) / "cephqos" / "redact.key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            key = path.read_bytes()
            if len(key) < 32:
                raise UsageError(f"{path}: {len(key)} bytes, expected 32: remove it") from None
            return key
        key = secrets.token_bytes(32)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key)
        return key
    except OSError as error:
        raise UsageError(f"--redact: {path}: {error.strerror}") from None
