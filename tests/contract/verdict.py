"""Whether a release keeps the contract: every field present, or absent by design."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from tests.contract.fields import Shown, shown_by
from tests.contract.releases import Release, releases


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a release, in words; and why each absent field is absent."""

    faults: Sequence[str]
    absent: Mapping[str, str]  # field to reason


@cache
def all_shown() -> Mapping[str, Shown]:
    return {release.name: shown_by(release) for release in releases()}


@cache
def all_fields() -> frozenset[str]:
    """A field that any release shows is asked of every one."""
    return frozenset(field for found in all_shown().values() for field in found.fields)


def judge(release: Release, found: Shown) -> Verdict:
    """A field that is neither there nor declared absent is a fault; so is a reason too many."""
    missing = all_fields() - found.fields
    absent: dict[str, str] = {}
    faults = []
    for absence in release.absent:
        for pattern in absence.fields:
            if not _matching(pattern, missing):
                faults.append(f"declared absent, but nothing is: {pattern}")
            faults += [
                f"declared absent, but shown: {field}" for field in _matching(pattern, found.fields)
            ]
            absent |= dict.fromkeys(_matching(pattern, missing), absence.why)
    faults += [f"missing: {field}" for field in sorted(missing - absent.keys())]
    faults += [f"not understood: {what}: {text}" for what, text in found.not_understood.items()]
    faults += [f"failed: {name}: {why}" for name, why in found.failed.items()]
    return Verdict(faults, absent)


def _matching(pattern: str, fields: frozenset[str] | set[str]) -> list[str]:
    return sorted(field for field in fields if fnmatchcase(field, pattern))
