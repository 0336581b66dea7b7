"""What a check finds, and how findings are shown."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, TypeVar

from cephqos_base.terminal import printable
from cephqos_base.version import __version__

F_contra = TypeVar("F_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is missing or wrong. `mend` is a command, or what to write where."""

    subject: str
    problem: str
    mend: str


@dataclass(frozen=True, slots=True)
class Check(Generic[F_contra]):
    """A question to gathered facts. `find` and `skip` are pure."""

    name: str
    find: Callable[[F_contra], Iterable[Finding]]
    skip: Callable[[F_contra], str] = lambda _: ""  # why it cannot be answered; empty: it can


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was looked at, with which checks, and what they found."""

    looked_at: str
    checks: tuple[str, ...]
    findings: tuple[tuple[str, Finding], ...]  # name of the check, and what it found
    skipped: tuple[tuple[str, str], ...] = ()  # name of the check, and why

    def document(self) -> dict[str, Any]:
        """As `--json` writes it."""
        return {
            "version": __version__,
            "looked_at": self.looked_at,
            "checks": list(self.checks),
            "findings": [{"check": name, **asdict(finding)} for name, finding in self.findings],
            "skipped": [{"check": name, "why": why} for name, why in self.skipped],
        }

    def text(self) -> str:
        """As a terminal shows it: what is the same of sixty OSDs, once."""
        lines = []
        for name, alike in _alike(self.findings):
            first, *others = alike
            more = f" and {len(others)} more" if others else ""
            lines.append(f"{printable(first.subject)}{more}: {printable(first.problem)} [{name}]")
            lines += [f"    {printable(line)}" for line in first.mend.splitlines()]
            if others:
                names = ", ".join(printable(other.subject) for other in others)
                lines.append(f"    # the same for {names}")
        for why in dict.fromkeys(why for _, why in self.skipped):
            names = ", ".join(name for name, its in self.skipped if its == why)
            lines.append(f"not checked: {names} ({printable(why)})")
        checks = _count(len(self.checks) - len(self.skipped), "check")
        findings = _count(len(self.findings), "finding")
        lines.append(f"{printable(self.looked_at)}: {checks}, {findings}")
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _alike(findings: Iterable[tuple[str, Finding]]) -> Iterable[tuple[str, list[Finding]]]:
    """Findings of one check that differ in their subject only, in the order of the first."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for name, one in findings:
        texts = [text.replace(one.subject, "…") for text in (one.problem, one.mend)]
        groups.setdefault((name, *texts), []).append(one)
    return [(name, alike) for (name, *_), alike in groups.items()]


def unless(
    why: Callable[[F_contra], str], checks: Iterable[Check[F_contra]]
) -> tuple[Check[F_contra], ...]:
    """The checks, none of which can be answered where `why` says so.

    Without facts none finds anything: that is no good news.
    """

    def either(check: Check[F_contra]) -> Callable[[F_contra], str]:
        return lambda facts: why(facts) or check.skip(facts)

    return tuple(replace(check, skip=either(check)) for check in checks)


def diagnose(looked_at: str, checks: Sequence[Check[F_contra]], facts: F_contra) -> Diagnosis:
    """Ask every check that the facts can answer."""
    skipped = {check.name: why for check in checks if (why := check.skip(facts))}
    findings = [
        (check.name, finding)
        for check in checks
        if check.name not in skipped
        for finding in check.find(facts)
    ]
    names = tuple(check.name for check in checks)
    return Diagnosis(looked_at, names, tuple(findings), tuple(skipped.items()))


def quoted(text: object) -> str:
    """One word of a command for a shell, whatever is in it."""
    return shlex.quote(printable(str(text)))
