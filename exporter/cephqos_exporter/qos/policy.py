"""Targets that an operator sets, where the scheduler reserves nothing or something else.

version: 1
targets:
  - class: client
    scope: osd              # each OSD for itself
    reservation: 0.5        # share of the baseline
    limit: 0.9              # optional
    osds: [0, 1, 2]         # optional: these only
    baseline: 21500         # optional: normalised ops/s; without it the OSD's own capacity
  - class: client
    scope: cluster          # all OSDs together
    reservation: 0.5
    baseline: 60000         # needed: normalised ops/s of the whole cluster
    cluster: 7c2b...        # optional: the fsid, on a host with OSDs of several clusters
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from cephqos_base.series import SCHEDULED

if TYPE_CHECKING:
    from cephqos_base.yamlfile import Value

Scope = Literal["osd", "cluster"]

# More normalised ops/s than any cluster can do.
_MOST: Final = 1e15
_TOP_KEYS: Final = ("version", "targets")
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "osd": ("class", "scope", "reservation", "limit", "baseline", "osds", "cluster"),
    "cluster": ("class", "scope", "reservation", "limit", "baseline", "cluster"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """One target of a policy: shares of a baseline in normalised ops/s."""

    cls: str
    scope: Scope
    reservation_ratio: float | None = None
    limit_ratio: float | None = None
    baseline: float | None = None  # None: the capacity of the OSD
    osds: frozenset[str] | None = None  # None: every OSD
    cluster: str | None = None  # None: every cluster


@dataclass(frozen=True, slots=True)
class Policy:
    """All targets of a policy file."""

    targets: tuple[Target, ...] = ()

    def for_osd(self, cls: str, osd: str, cluster: str) -> Target | None:
        """The target of scope osd that holds for a class on an OSD: the first that fits."""
        for target in self.targets:
            if target.scope != "osd" or target.cls != cls:
                continue
            if target.cluster in (None, cluster) and (target.osds is None or osd in target.osds):
                return target
        return None

    def for_cluster(self, cluster: str) -> Sequence[Target]:
        """The targets of scope cluster that hold for a cluster."""
        return [t for t in self.targets if t.scope == "cluster" and t.cluster in (None, cluster)]


def load_policy(path: Path) -> Policy:
    """Read and check a policy file; ConfigError says in one line what is wrong with it."""
    from cephqos_base import yamlfile

    return parse_policy(yamlfile.read(path))


def parse_policy(document: "Value") -> Policy:
    """Check a policy that has been read already."""
    top = document.table(_TOP_KEYS, _TOP_KEYS)
    top["version"].integer(1, 1, "1")
    entries = top["targets"].sequence("a list of at least one target", least=1)
    targets = [_target(entry) for entry in entries]
    _no_duplicates(entries, targets)
    return Policy(tuple(targets))


def _target(entry: "Value") -> Target:
    keys = entry.entries()
    scope: Scope = "osd"
    if "scope" in keys and keys["scope"].choice(("osd", "cluster")) == "cluster":
        scope = "cluster"
    keys = entry.table(_KEYS[scope], ("class", "scope"))
    # A built-in profile may reserve 105 % in all, but no class more than everything.
    reservation = _positive(keys.get("reservation"), most=1.0)
    limit = _positive(keys.get("limit"))
    if reservation is None and limit is None:
        raise entry.missing("reservation", "a reservation, a limit or both")
    if reservation is not None and limit is not None and limit < reservation:
        keys["limit"].fail(f"at least the reservation, {reservation:g}")
    baseline = _positive(keys.get("baseline"))
    if scope == "cluster" and baseline is None:
        raise entry.missing("baseline", "normalised ops/s of the whole cluster, above 0")
    return Target(
        cls=keys["class"].choice(SCHEDULED),
        scope=scope,
        reservation_ratio=reservation,
        limit_ratio=limit,
        baseline=baseline,
        osds=_osds(keys["osds"]) if "osds" in keys else None,
        cluster=keys["cluster"].string("a text") if "cluster" in keys else None,
    )


def _positive(value: "Value | None", most: float | None = None) -> float | None:
    """A number above 0, or None where the key is absent."""
    if value is None:
        return None
    allowed = f"a number above 0, at most {most:g}" if most else "above 0"
    number = value.number(0, most or _MOST, allowed)
    if not number:
        value.fail(allowed)
    return number


def _osds(value: "Value") -> frozenset[str]:
    allowed = "a list of OSD numbers"
    named = [item.plain() for item in value.sequence(allowed, least=1)]
    if any(isinstance(osd, bool) or not isinstance(osd, int) or osd < 0 for osd in named):
        value.fail(allowed)
    return frozenset(map(str, named))


def _no_duplicates(entries: Sequence["Value"], targets: Sequence[Target]) -> None:
    """The same words twice would leave open which of the two numbers holds."""
    seen: set[tuple[object, ...]] = set()
    for entry, target in zip(entries, targets, strict=True):
        subject = (target.cls, target.scope, target.osds, target.cluster)
        if subject in seen:
            entry.fail(
                "one target per class, scope, OSDs and cluster",
                f"a second target for {target.cls} of scope {target.scope}",
            )
        seen.add(subject)
