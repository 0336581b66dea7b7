"""Whose operations wait on an OSD, and whose it works on: tenants, by samples of operations.

A tenant is an RBD image, an RGW bucket, a client of CephFS, or any other client in a pool. The
description of an operation names its client and placement group. It names the object, which shows
the tenant, only once the OSD has begun with the operation. So an operation in the queue counts for
the tenant that its client last worked for in that pool.
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
_WITH_TENANT: Final = ("osd_op(", "osd_repop(")  # not answers to replica writes

# Names of an image's objects. They have the number of the image's pool if the data is in another.
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

NAMED_TENANTS: Final = 4
_HELD_SECONDS: Final = 300.0  # that a named tenant is named at least
_KEEP: Final = 0.9  # of earlier seconds, at each sample: half of them count after a minute
_MOST_CLIENTS: Final = 4096  # whose last tenant is remembered


class Tenant(NamedTuple):
    """Whose operation it is. Names of objects are no labels: clients choose them."""

    kind: str
    pool: str  # its number
    name: str  # an image's id, a bucket's marker, or client.4128


NOBODY: Final = Tenant(OTHER, "", "")


class SentFor(NamedTuple):
    """What the description of an operation says."""

    client: str  # client.4128
    pool: str  # its number
    tenant: Tenant | None  # None: the OSD has not begun with the operation


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


# The state that an operation's kind and event mean. A replica write that waits is missing here: it
# counts on its primary, as its client waits there.
_STATES: Final[dict[tuple[str, str], State]] = {
    **dict.fromkeys([(CLIENT, event) for event in (RECEIVE, QUEUE, BLOCKED, SUBOPS)], "waiting"),
    **dict.fromkeys(
        [(kind, e) for kind in (CLIENT, REPLICA) for e in (EXECUTE, COMMIT)], "working"
    ),
}


def _seconds_by_state(operations: SampledOperations) -> dict[State, float]:
    """The seconds of each of the operations, by state."""
    by_state: dict[State, float] = {}
    for wait, seconds in operations.spent:
        state = _STATES.get((operations.kind, wait.event))
        if state is not None and seconds > 0:
            by_state[state] = by_state.get(state, 0.0) + seconds
    return by_state


def _senders(operations: SampledOperations, not_understood: NotUnderstood) -> dict[SentFor, int]:
    """Who sent the operations, and how many."""
    senders: dict[SentFor, int] = {}
    for description in operations.descriptions:
        sender = described(description)
        if sender is not None:
            senders[sender] = senders.get(sender, 0) + 1
        elif description.startswith(_WITH_TENANT):
            not_understood.add("operation", f"{operations.kind}: its client or object")
    return senders


@dataclass(slots=True)
class TenantMeter:
    """Adds up the time that operations of each tenant wait on one OSD, and are worked on.

    `squares` says how sure shares of these seconds are. A tenant's operations come in batches, so
    a hundred of one tenant in a sample say no more than one. So what one tenant has in one sample
    is squared and added: shares of S seconds are as sure as those of S * S / squares draws.
    """

    seconds: dict[tuple[Tenant, State], float] = field(default_factory=dict)
    squares: dict[State, float] = field(default_factory=lambda: dict.fromkeys(STATES, 0.0))
    _largest: Largest[Tenant] = field(
        default_factory=lambda: Largest(NAMED_TENANTS, keep=_KEEP, held=_HELD_SECONDS)
    )
    _last_tenant: dict[tuple[str, str], Tenant] = field(default_factory=dict)  # by client, pool

    def sample(
        self, ops: Iterable[SampledOperations], now: float, not_understood: NotUnderstood
    ) -> None:
        """Take in a sample."""
        sampled: dict[tuple[Tenant, State], float] = {}
        alike = [
            (_senders(operations, not_understood), _seconds_by_state(operations))
            for operations in ops
            if operations.kind in (CLIENT, REPLICA)
        ]
        for client, pool, tenant in chain.from_iterable(senders for senders, _ in alike):
            if tenant is not None:
                self._remember((client, pool), tenant)
        for senders, by_state in alike:
            for (client, pool, tenant), number in senders.items():
                who = tenant or self._last_tenant.get((client, pool), NOBODY)
                for state, seconds in by_state.items():
                    sampled[who, state] = sampled.get((who, state), 0.0) + number * seconds
        for (_, state), seconds in sampled.items():
            self.squares[state] += seconds * seconds
        self._add(sampled, now)

    def _remember(self, client: tuple[str, str], tenant: Tenant) -> None:
        self._last_tenant.pop(client, None)
        self._last_tenant[client] = tenant
        if len(self._last_tenant) > _MOST_CLIENTS:
            del self._last_tenant[next(iter(self._last_tenant))]

    def _add(self, sampled: dict[tuple[Tenant, State], float], now: float) -> None:
        """Add seconds to the series. A tenant named from now on begins at 0, as Prometheus sees no
        increase in a first value; in this sample it counts as other."""
        before = set(self._largest.shown)
        by_tenant: dict[Tenant, float] = {}
        for (tenant, _), seconds in sampled.items():
            if tenant is not NOBODY:
                by_tenant[tenant] = by_tenant.get(tenant, 0.0) + seconds
        for lost in self._largest.add(by_tenant, now):
            for state in STATES:
                self.seconds.pop((lost, state), None)
        for tenant in (*self._largest.shown, NOBODY):
            for state in STATES:
                self.seconds.setdefault((tenant, state), 0.0)
        for (tenant, state), seconds in sampled.items():
            shown = tenant if tenant in before and tenant in self._largest.shown else NOBODY
            self.seconds[shown, state] += seconds
