"""What a check finds, and how findings are shown.

facts -> diagnose(checks) -> Diagnosis -> text or JSON
"""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, TypeVar

from cephqos_base.terminal import printable
from cephqos_base.version import __version__

F_contra = TypeVar("F_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is missing or wrong."""

    subject: str  # an OSD, a host, a job ...
    problem: str
    mend: str  # a command, or what to write where; comments after `#`


def then_restart(osd: str) -> str:
    """The comment after a command that counts only when an OSD starts again."""
    return f"   # then restart {osd}, after: ceph osd ok-to-stop {osd}. One host at a time"


@dataclass(frozen=True, slots=True)
class Check(Generic[F_contra]):
    """A question about gathered facts. `find` and `skip` are pure."""

    name: str
    find: Callable[[F_contra], Iterable[Finding]]
    skip: Callable[[F_contra], str] = lambda _: ""  # why the facts are not enough; empty: they are


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
        """The text for a terminal. A finding that many OSDs share is printed once."""
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
            names = ", ".join(name for name, reason in self.skipped if reason == why)
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
    for name, finding in findings:
        texts = [text.replace(finding.subject, "…") for text in (finding.problem, finding.mend)]
        groups.setdefault((name, *texts), []).append(finding)
    return [(name, alike) for (name, *_), alike in groups.items()]


def unless(
    facts_missing: Callable[[F_contra], str], checks: Iterable[Check[F_contra]]
) -> tuple[Check[F_contra], ...]:
    """The same checks, all skipped where `facts_missing` says why their facts are missing.

    Without facts no check finds anything, which would look like good news.
    """

    def skip_of(check: Check[F_contra]) -> Callable[[F_contra], str]:
        return lambda facts: facts_missing(facts) or check.skip(facts)

    return tuple(replace(check, skip=skip_of(check)) for check in checks)


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
