"""Targets that an operator sets, where the scheduler promises nothing or something else.

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
from typing import Any, Final, Literal

import yaml

from cephqos_base.errors import MISSING, UNKNOWN_KEY, ConfigError, Described
from cephqos_base.series import SCHEDULED

Scope = Literal["osd", "cluster"]

_TOP_KEYS: Final = ("version", "targets")
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "osd": ("class", "scope", "reservation", "limit", "baseline", "osds", "cluster"),
    "cluster": ("class", "scope", "reservation", "limit", "baseline", "cluster"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """One promise of a policy: shares of a baseline in normalised ops/s."""

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
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(
            where=path, key="", found=Described(str(exc)), allowed="a readable YAML file"
        ) from exc
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise ConfigError(where=path, key="", found=Described(str(exc)), allowed="YAML") from exc
    return parse_policy(document, where=path)


def parse_policy(document: Any, *, where: str | Path) -> Policy:
    """Check a policy that has been read already."""
    top = _Reader(where, "", document)
    top.only(_TOP_KEYS)
    if top.get("version") != 1 or isinstance(top.get("version"), bool):
        top.fail("version", "1")
    entries = top.get("targets")
    if not isinstance(entries, list) or not entries:
        top.fail("targets", "a list of at least one target")
    targets = [_target(_Reader(where, f"targets[{i}]", e)) for i, e in enumerate(entries)]
    _no_duplicates(where, targets)
    return Policy(tuple(targets))


class _Reader:
    """A mapping of the document, with the place to name in an error."""

    def __init__(self, where: str | Path, place: str, value: Any) -> None:
        self._where = where
        self._place = place
        if not isinstance(value, dict):
            raise ConfigError(
                where=where,
                key=place,
                found=MISSING if value is None else value,
                allowed="a mapping",
            )
        self._value = value

    def get(self, key: str) -> Any:
        return self._value.get(key)

    def only(self, keys: Sequence[str]) -> None:
        for key in self._value:
            if key not in keys:
                self._raise(str(key), UNKNOWN_KEY, ", ".join(keys))

    def fail(self, key: str, allowed: str) -> None:
        found = self._value.get(key, MISSING)
        self._raise(key, found, allowed)

    def _raise(self, key: str, found: object, allowed: str) -> None:
        full = f"{self._place}.{key}" if self._place else key
        raise ConfigError(where=self._where, key=full, found=found, allowed=allowed)

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        value = self.get(key)
        if not isinstance(value, str) or value not in allowed:
            self.fail(key, ", ".join(allowed))
        return str(value)

    def number(self, key: str, *, highest: float | None = None) -> float | None:
        """A number above 0, or None where the key is absent."""
        if key not in self._value:
            return None
        value = self._value[key]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value < float("inf") or (highest and value > highest):
            self.fail(key, f"a number above 0, at most {highest:g}" if highest else "above 0")
        return float(value)

    def text(self, key: str) -> str | None:
        if key not in self._value:
            return None
        value = self._value[key]
        if not isinstance(value, str) or not value:
            self.fail(key, "a text")
        return str(value)

    def osds(self) -> frozenset[str] | None:
        if "osds" not in self._value:
            return None
        ids = self._value["osds"]
        fine = isinstance(ids, list) and bool(ids)
        if not fine or any(isinstance(i, bool) or not isinstance(i, int) or i < 0 for i in ids):
            self.fail("osds", "a list of OSD numbers")
        return frozenset(str(i) for i in ids)


def _target(entry: _Reader) -> Target:
    scope: Scope = "cluster" if entry.choice("scope", ("osd", "cluster")) == "cluster" else "osd"
    entry.only(_KEYS[scope])
    # A built-in profile may promise 105 % in all, but no class more than everything.
    reservation = entry.number("reservation", highest=1.0)
    limit = entry.number("limit")
    if reservation is None and limit is None:
        entry.fail("reservation", "a reservation, a limit or both")
    if reservation is not None and limit is not None and limit < reservation:
        entry.fail("limit", f"at least the reservation, {reservation:g}")
    baseline = entry.number("baseline")
    if scope == "cluster" and baseline is None:
        entry.fail("baseline", "normalised ops/s of the whole cluster, above 0")
    return Target(
        cls=entry.choice("class", SCHEDULED),
        scope=scope,
        reservation_ratio=reservation,
        limit_ratio=limit,
        baseline=baseline,
        osds=entry.osds(),
        cluster=entry.text("cluster"),
    )


def _no_duplicates(where: str | Path, targets: Sequence[Target]) -> None:
    """The same words twice would leave open which of the two numbers holds."""
    seen: set[tuple[object, ...]] = set()
    for position, target in enumerate(targets):
        subject = (target.cls, target.scope, target.osds, target.cluster)
        if subject in seen:
            raise ConfigError(
                where=where,
                key=f"targets[{position}]",
                found=Described(f"a second target for {target.cls} of scope {target.scope}"),
                allowed="one target per class, scope, OSDs and cluster",
            )
        seen.add(subject)
