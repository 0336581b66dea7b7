"""Which packages requirements bring along, as far as they are installed here."""

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def closure(requirements: Iterable[str]) -> set[str]:
    """Names of packages and of all that they need, with the extras that are asked for."""
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        requirement, outer = waiting.pop()
        # One of another system is in the locks too, but none of an extra that nobody asked for.
        marker = str(requirement.marker or "")
        if "extra" in marker and f'"{outer}"' not in marker:
            continue
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                waiting += [(inner, extra) for inner in _needs(name)]
    return {name for name, _ in seen}


def _needs(name: str) -> list[Requirement]:
    try:
        return [Requirement(text) for text in distribution(name).requires or []]
    except PackageNotFoundError:
        return []
