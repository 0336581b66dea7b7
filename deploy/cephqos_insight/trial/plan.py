"""What a trial compares, and when: candidates, and rounds of blocks in random order."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_base.profiles import CUSTOM, PROFILE_OPTION, SHARE_OPTIONS
from cephqos_base.units import time_span
from cephqos_base.yamlfile import Value
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster.settings import profile_first, set_option
from cephqos_loadgen.plan.ceph_options import read_ceph_option
from cephqos_loadgen.scenario.variables import variable_from_text

REFERENCE: Final = "as it is"
SAME: Final = "same"  # a candidate that changes nothing

_SHORT: Final = {
    "profile": (PROFILE_OPTION,),
    "scheduler": ("osd_op_queue",),
    "capacity": ("osd_mclock_max_capacity_iops_hdd", "osd_mclock_max_capacity_iops_ssd"),
    **{
        f"{short}_{part}": (f"osd_mclock_scheduler_{name}_{part}",)
        for short, name in (
            ("client", "client"),
            ("recovery", "background_recovery"),
            ("best_effort", "background_best_effort"),
        )
        for part in ("res", "wgt", "lim")
    },
}
# Releases differ in whether they have the first of these, and need it.
_SLOTS: Final = ("osd_mclock_override_recovery_settings?", "osd_max_backfills")
_WORD: Final = re.compile(r"(?:(osd(?:\.\d+)?)/)?([a-z][a-z0-9_]*)=(\S+)")
_EXPECTED: Final = (
    "expected settings such as profile=high_client_ops, osd_max_scrubs=3, slots=2,"
    " osd.3/capacity=450 or 'profile=custom client_res=0.6'; or same, which changes nothing"
)


@dataclass(frozen=True, slots=True)
class TriedSetting:
    """Settings to try. None of them: the same as the reference."""

    name: str
    options: tuple[CephOption, ...]

    @property
    def sections(self) -> set[str]:
        return {option.section for option in self.options}

    @property
    def commands(self) -> list[str]:
        return [set_option(option).shown for option in self.options]

    @property
    def unnamed_shares(self) -> list[tuple[str, str]]:
        """Section and name of what a custom profile has besides, and is not named."""
        named = {(option.section, option.name) for option in self.options}
        return [
            (option.section, share)
            for option in self.options
            if (option.name, option.value) == (PROFILE_OPTION, CUSTOM)
            for share in SHARE_OPTIONS
            if named.isdisjoint({(option.section, share), ("osd", share)})
        ]

    @property
    def planned(self) -> Iterator[str]:
        """Lines of `--dry-run`."""
        yield from self.commands or ["nothing is changed"]
        if self.unnamed_shares:
            yield "(and the shares that are not named, with the values in force when it begins)"


def osds_of(section: str, up: Sequence[int]) -> Sequence[int]:
    """The OSDs that a section means, of those that are up."""
    return up if section == "osd" else [int(section.removeprefix("osd."))]


def parse_candidate(text: str) -> TriedSetting:
    """From the text of `--try`; UsageError says what was expected."""
    words = text.split()
    if words == [SAME]:
        return TriedSetting(SAME, ())
    options: list[CephOption] = []
    for word in words:
        match = _WORD.fullmatch(word)
        if match is None:
            raise UsageError(f"--try {text!r}: {_EXPECTED}")
        options += _options(match[1] or "osd", match[2], match[3])
    if not options:
        raise UsageError(f"--try {text!r}: {_EXPECTED}")
    return TriedSetting(" ".join(words), tuple(profile_first(options)))


def _options(section: str, name: str, value: str) -> Iterator[CephOption]:
    if name == "slots":
        yield CephOption(section, _SLOTS[0].removesuffix("?"), "true", optional=True)
        yield CephOption(section, _SLOTS[1], value)
        return
    for option in _SHORT.get(name, (name,)):
        read, checked = read_ceph_option(option, _value(option, value))
        yield CephOption(section, read, checked)


def _value(name: str, text: str) -> Value:
    return Value(file="--try", raw=variable_from_text(text), key=name)


@dataclass(frozen=True, slots=True)
class Timetable:
    """Blocks of equal length. A round has one of the reference and one of each candidate."""

    candidates: tuple[str, ...]
    block_seconds: float
    least_rounds: int
    most_rounds: int
    seed: int

    @property
    def dropped_seconds(self) -> float:
        """At the start of each block, while what was queued before is still done."""
        return self.block_seconds / 5

    @property
    def looks(self) -> tuple[int, ...]:
        """The rounds after which the trial may end."""
        middle = (self.least_rounds + self.most_rounds) // 2
        return tuple(sorted({self.least_rounds, middle, self.most_rounds}))

    def rounds(self) -> list[list[str]]:
        """The order within each round is drawn, so that load that drifts favours no setting."""
        chance = random.Random(self.seed)  # noqa: S311 - an order is no secret
        arms = [REFERENCE, *self.candidates]
        return [chance.sample(arms, len(arms)) for _ in range(self.most_rounds)]

    def seconds(self, rounds: int) -> float:
        """One more block of the reference comes first, for the guard rails."""
        return self.block_seconds * (1 + rounds * (1 + len(self.candidates)))


def lines(timetable: Timetable, candidates: Sequence[TriedSetting]) -> Iterator[str]:
    """What `--dry-run` prints."""
    least, most = (timetable.seconds(n) for n in (timetable.least_rounds, timetable.most_rounds))
    length = time_span(timetable.block_seconds)
    yield (
        f"{timetable.least_rounds} to {timetable.most_rounds} rounds of blocks of {length},"
        f" seed {timetable.seed}: {time_span(least)} to {time_span(most)}"
    )
    looks = ", ".join(map(str, timetable.looks))
    yield f"it may end after round {looks}; guard rails can end it at any time"
    for candidate in candidates:
        yield ""
        yield f"{candidate.name}:"
        yield from (f"    {line}" for line in candidate.planned)
    yield ""
    yield "start     block"
    starts = iter(range(1 + timetable.most_rounds * (1 + len(candidates))))
    yield f"{_clock(next(starts) * timetable.block_seconds)}  {REFERENCE} (for the guard rails)"
    for number, arms in enumerate(timetable.rounds(), 1):
        for arm in arms:
            at = _clock(next(starts) * timetable.block_seconds)
            yield f"{at}  round {number}: {arm}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"
