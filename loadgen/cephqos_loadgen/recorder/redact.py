"""Names replaced by pseudonyms, so that an archive can be given away.

The same name always gets the same pseudonym, as long as the key is the same. The key stays with the
user. Without it the name cannot be found, even by trying.
"""

import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_loadgen.record.columns import parse, render

# Labels whose values are words of Ceph, of the kernel or of cephqos, or numbers. All others are
# names that a user chose, and are replaced.
_WORDS: Final = """
    by capacity_origin ceph_daemon class cluster collector command configured cpus device event
    flag generation group id implementation in_force interface iogroup kind latency layer le
    level major media minor mode model node nodes nr_requests op op_class op_type part
    patchlevel peer pool_id pool_type pooltype profile python_version quantile reactor
    read_ahead_kb reason reservations resource result role rotational scheduler shard
    shard_store_index side src state strategy submitter throttle version window write_cache
"""
WORDS: Final = frozenset(_WORDS.split())
HOSTS: Final = frozenset({"instance"})
# Pools of memory, which are no pools of the cluster.
_MEMPOOLS: Final = "cephqos_daemon_mempool_bytes"
# What Ceph itself calls a client or daemon, and what stands for several.
_NO_NAME: Final = re.compile(r"((client|osd|mds|mgr|mon)\.[0-9]+|other|unknown)?")


class Redaction:
    """Replaces names in labels, by such as `pool-0f3a91c2de`; those of hosts only if `hosts`."""

    def __init__(self, key: bytes, *, hosts: bool) -> None:
        self._key = key
        self.hosts = hosts

    def series(self, series: str) -> str:
        """`name{labels}` without names."""
        name, labels = parse(series)
        redacted = {label: self._value(name, label, value) for label, value in labels.items()}
        return render(name, redacted)

    def host(self, name: str) -> str:
        return self.pseudonym("host", name) if self.hosts else name

    def pseudonym(self, kind: str, value: str) -> str:
        digest = hmac.new(self._key, value.encode(errors="replace"), hashlib.sha256)
        return f"{kind}-{digest.hexdigest()[:10]}"

    def _value(self, name: str, label: str, value: str) -> str:
        if label in HOSTS:
            return self.host(value)
        is_mempool = name == _MEMPOOLS and label == "pool"
        if label in WORDS or is_mempool or _NO_NAME.fullmatch(value):
            return value
        return self.pseudonym(label, value)


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
