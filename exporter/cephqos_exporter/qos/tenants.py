"""Whose operations wait on an OSD and occupy it: tenants, by samples of operations.

A tenant is an RBD image, an RGW bucket, a client of CephFS, or any other client in a pool. The
description of an operation names its client and placement group. It names the object only once the
OSD has begun with the operation: what is in the queue is not decoded. So a queued operation counts
for the tenant that its client was last seen to work for in that pool.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Final, Literal, NamedTuple

from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.qos.largest import Largest
from cephqos_exporter.qos.waits import (
    BLOCKED,
    CLIENT,
    COMMIT,
    EXECUTE,
    OTHER,
    QUEUE,
    RECEIVE,
    REPLICA,
    SUBOPS,
    SampledOperations,
)

State = Literal["waiting", "working"]
STATES: Final[tuple[State, ...]] = ("waiting", "working")

IMAGE: Final = "image"
BUCKET: Final = "bucket"
CEPHFS: Final = "cephfs"
ANY_CLIENT: Final = "client"

# `osd_op(client.4128.0:1508 2.1 2:8253546a:namespace:key:object:head [...] ...`. EC pools have the
# shard behind the placement group. Ceph writes colons in names as %3a.
_OPERATION: Final = re.compile(
    r"osd_(?:op|repop)\(([a-z]{1,20}\.[0-9]{1,20})\.[0-9]+:[0-9]+ "
    r"([0-9]{1,20})\.[0-9a-f]+(?:s[0-9]+)? "
    # Objects of one image differ in their number only, which is left out.
    r"(?:(?:e[0-9]+/[0-9]+ )?-?[0-9]+:[0-9a-f]+:[^:]*:[^:]*:"
    r"(rbd_data\.[0-9a-z.]{1,60}\.(?=[0-9a-f]+:)|[^:]{0,120})"
    r"|[0-9]+\.[0-9a-f]+ \(undecoded\)|e[0-9]+/[0-9]+\))"
)
_OURS: Final = ("osd_op(", "osd_repop(")  # an answer to a replica write is no work

# The name of an image's object has its pool if the data is in another one.
_RBD: Final = re.compile(
    r"(?:rbd_data|journal_data)\.(?:([0-9]{1,10})\.)?([0-9a-z]{1,40})\.[0-9a-f]*\Z"
    r"|(?:rbd_header|rbd_object_map|journal)\.([0-9a-z]{1,40})(?:\.[0-9a-f]+)?\Z"
)
_CEPHFS: Final = re.compile(r"[0-9a-f]{1,16}\.[0-9a-f]{8}\Z")
# A bucket's marker: its zone's id, and two numbers.
_RGW: Final = re.compile(
    r"(?:\.dir\.)?((?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|default)\.[0-9]{1,20}\.[0-9]{1,20})"
    r"(?:[_.]|\Z)"
)

NAMED_TENANTS: Final = 5
_HELD_SECONDS: Final = 300.0
_KEEP: Final = 0.9  # of what was before, at each sample: half of it after a minute
_MOST_CLIENTS: Final = 4096


class Tenant(NamedTuple):
    """Whose operation it is. No label has the name of an object, which is up to a client."""

    kind: str
    pool: str  # its number
    name: str  # an image's id, a bucket's marker, or client.4128


class SentFor(NamedTuple):
    """What a description says; without tenant if the operation is not decoded yet."""

    client: str
    pool: str
    tenant: Tenant | None


def described(description: str) -> SentFor | None:
    """Who sent an operation, and for which tenant; None if that is not understood."""
    match = _OPERATION.match(description)
    if match is None:
        return None
    return _sent_for(*match.groups())


@lru_cache(maxsize=1024)
def _sent_for(client: str, pool: str, name: str | None) -> SentFor:
    return SentFor(client, pool, None if name is None else _tenant(client, pool, name))


def _tenant(client: str, pool: str, name: str) -> Tenant:
    if image := _RBD.match(name):
        return Tenant(IMAGE, image[1] or pool, image[2] or image[3])
    if _CEPHFS.match(name):
        return Tenant(CEPHFS, pool, client)
    if bucket := _RGW.match(name):
        return Tenant(BUCKET, pool, bucket[1])
    return Tenant(ANY_CLIENT, pool, client)


# A replica write that waits is counted where its client waits for it: on its primary.
_STATES: Final[dict[tuple[str, str], State]] = {
    **dict.fromkeys([(CLIENT, event) for event in (RECEIVE, QUEUE, BLOCKED, SUBOPS)], "waiting"),
    **dict.fromkeys(
        [(kind, e) for kind in (CLIENT, REPLICA) for e in (EXECUTE, COMMIT)], "working"
    ),
}
_NOBODY: Final = Tenant(OTHER, "", "")


def _by_state(those: SampledOperations) -> dict[State, float]:
    """The seconds of each operation by state."""
    found: dict[State, float] = {}
    for wait, seconds in those.spent:
        state = _STATES.get((those.kind, wait.event))
        if state is not None and seconds > 0:
            found[state] = found.get(state, 0.0) + seconds
    return found


def _senders(those: SampledOperations, not_understood: NotUnderstood) -> dict[SentFor, int]:
    """Who sent them, and how many."""
    found: dict[SentFor, int] = {}
    for description in those.descriptions:
        who = described(description)
        if who is not None:
            found[who] = found.get(who, 0) + 1
        elif description.startswith(_OURS):
            not_understood.add("operation", f"{those.kind}: its client or object")
    return found


@dataclass(slots=True)
class TenantMeter:
    """Adds up the time that operations of each tenant wait on one OSD, and are worked on."""

    seconds: dict[tuple[Tenant, State], float] = field(default_factory=dict)
    sampled: dict[State, int] = field(default_factory=lambda: dict.fromkeys(STATES, 0))
    _largest: Largest[Tenant] = field(
        default_factory=lambda: Largest(NAMED_TENANTS, keep=_KEEP, held=_HELD_SECONDS)
    )
    _clients: dict[tuple[str, str], Tenant] = field(default_factory=dict)

    def sample(
        self, ops: Iterable[SampledOperations], now: float, not_understood: NotUnderstood
    ) -> None:
        """Take in a sample."""
        sampled: dict[tuple[Tenant, State], float] = {}
        found = [
            (_senders(those, not_understood), _by_state(those))
            for those in ops
            if those.kind in (CLIENT, REPLICA)
        ]
        for client, pool, tenant in chain.from_iterable(senders for senders, _ in found):
            if tenant is not None:
                self._remember((client, pool), tenant)
        for senders, by_state in found:
            for (client, pool, tenant), number in senders.items():
                who = tenant or self._clients.get((client, pool), _NOBODY)
                for state, seconds in by_state.items():
                    self.sampled[state] += number
                    sampled[who, state] = sampled.get((who, state), 0.0) + number * seconds
        self._add(sampled, now)

    def _remember(self, client: tuple[str, str], tenant: Tenant) -> None:
        self._clients.pop(client, None)
        self._clients[client] = tenant
        if len(self._clients) > _MOST_CLIENTS:
            del self._clients[next(iter(self._clients))]

    def _add(self, sampled: dict[tuple[Tenant, State], float], now: float) -> None:
        """One that gets a place begins at 0: Prometheus sees no increase in a first value."""
        before = set(self._largest.shown)
        by_tenant: dict[Tenant, float] = {}
        for (tenant, _), seconds in sampled.items():
            if tenant is not _NOBODY:
                by_tenant[tenant] = by_tenant.get(tenant, 0.0) + seconds
        for lost in self._largest.add(by_tenant, now):
            for state in STATES:
                self.seconds.pop((lost, state), None)
        for tenant in (*self._largest.shown, _NOBODY):
            for state in STATES:
                self.seconds.setdefault((tenant, state), 0.0)
        for (tenant, state), seconds in sampled.items():
            shown = tenant if tenant in before and tenant in self._largest.shown else _NOBODY
            self.seconds[shown, state] += seconds
