"""Recorded replies of three releases' clusters, and placement groups made to order."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from tests.recorded import RECORDINGS

from cephqos_exporter.cluster.replies import PgStat, Pool
from cephqos_exporter.not_understood import NotUnderstood

T = TypeVar("T")

NOW: Final = 1_795_000_000.0
P1: Final = Pool(id=2, name="p1", type="replicated", pg_num=8, flags=frozenset())


def recorded(release: str, moment: str, name: str) -> Any:
    """A reply of the cluster: `moment` is idle, scrub or recovery."""
    return json.loads((RECORDINGS / "cluster" / release / moment / f"{name}.json").read_text())


def understood(parse: Callable[[Any, NotUnderstood], T | None], reply: Any) -> T:
    """What a reply says, all of which must be understood."""
    odd = NotUnderstood()
    found = parse(reply, odd)
    assert found is not None and not odd.found
    return found


_PG: Final = PgStat(
    pgid="2.0",
    pool=2,
    primary=0,
    states=frozenset({"active", "clean"}),
    scrubbed=NOW - 5000,
    deep_scrubbed=NOW - 9000,
    changed=NOW - 5000,
    objects=500,
    bytes=500 * 4096,
    objects_scrubbed=500,
    duration=7.5,
)


def pg(pgid: str = "2.0", **changes: Any) -> PgStat:
    """A clean placement group of pool 2 with 500 objects of 4 KiB."""
    return replace(_PG, pgid=pgid, **changes)


def scrubbing(pgid: str = "2.0", done: int | None = 0, deep: bool = True, **more: Any) -> PgStat:
    """The same while it is scrubbed."""
    states = {"active", "clean", "scrubbing"} | ({"deep"} if deep else set())
    return pg(pgid, states=frozenset(states), objects_scrubbed=done, **more)
