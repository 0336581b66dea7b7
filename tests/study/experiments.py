"""What the small study consists of: experiments, and pieces, each an experiment in one lab.

One repeat of each policy makes a piece, in random order. Labs are what is repeated: the same load
alone differs more between two labs than within one, so policies are compared within a lab, and the
interval is over labs.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cephqos_loadgen.archive.reader import Archive, open_archive
from cephqos_loadgen.results.host_load import cpu_by_others
from cephqos_loadgen.run_recording.layout import is_archive

PROFILES: Final = ("high_client_ops", "balanced", "high_recovery_ops")
PUBLISHED: Final = {profile: f"published_{profile}" for profile in PROFILES}
PLANNED: Final = 4  # labs of each experiment
BAR: Final = 0.10  # of this host's CPUs, for other programs


@dataclass(frozen=True, slots=True)
class Experiment:
    """A scenario with its policies. `about` says what is laid beside what; `minutes` how long a
    piece takes, as it was when this was written."""

    name: str
    scenario: str
    about: str
    policies: tuple[str, ...]
    minutes: int
    variables: Mapping[str, str] = field(default_factory=dict)
    only: Mapping[str, str] = field(default_factory=dict)

    @property
    def ran_with(self) -> str:
        """A short name of all that its labs have in common: figures of others do not count."""
        what = [self.scenario, {**_COMMON, **self.variables}, dict(self.only)]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]


# Beside a scrub the regime's throttle, not the study's 2M: with that BlueStore takes all at once.
_NARROW: Final = "32K"
_COMMON: Final = {"regime": "scheduler", "osds": "3", "size": "2", "image": "256M"}
# The study's objects and throttle. A request of 64 KiB or less takes one of the device's 300 a
# second, so a device does 19 MiB/s: beside 333 IOPS of clients about what the study's drives did
# beside 21,500. Where any request counts once, and objects are small, recovery costs next to
# nothing. So many objects that they take half a minute: its end is known to two seconds.
_OBJECTS: Final = "200"
_RECOVERY: Final = {
    "alone": "30s",
    "expect": "45s",
    "at_most": "2m",
    "object": "4M",
    "request_size": "64K",
}
# Depth 8: clients of depth 64 make the queue so long that the scrub hardly reads (studies.md).
# Without the backoff, as otherwise that decides how long a small scrub takes, by chance: an OSD
# begins one placement group in three seconds. Clients go on for longer than any of the scrubs.
_SCRUB: Final = {
    "alone": "30s",
    "client": "100s",
    "objects": "5000",
    "pg_num": "16",
    "depth": "8",
    "throttle": _NARROW,
    "scrub_backoff": "0",
}
_EVERY_PROFILE: Final = (*PROFILES, *PUBLISHED.values())

RECOVERY: Final = Experiment(
    "client-vs-recovery",
    "client-vs-recovery",
    "study A on SSDs",
    ("wpq_default", "wpq_boosted", *_EVERY_PROFILE),
    20,
    {**_RECOVERY, "objects": _OBJECTS},
    {"media": "ssd"},
)
HDD: Final = Experiment(
    "client-vs-recovery-hdd",
    "client-vs-recovery",
    "study A on HDDs with the DB on a fast device",
    ("wpq_default", "wpq_boosted", *_EVERY_PROFILE),
    20,
    {**_RECOVERY, "hdd_objects": _OBJECTS, "hdd_throttle": "256K"},
    {"media": "hdd_db"},
)
SMALL: Final = Experiment(
    "client-vs-recovery-small-objects",
    "client-vs-recovery",
    "a control of recovery: as many bytes in objects of 256 KiB, which BlueStore's throttle holds",
    ("wpq_default", "wpq_boosted", *PROFILES),
    20,
    {**_RECOVERY, "objects": str(16 * int(_OBJECTS)), "object": "256K", "at_most": "4m"},
    {"media": "ssd"},
)
HDD_WIDE: Final = Experiment(
    "client-vs-recovery-hdd-wide",
    "client-vs-recovery",
    "a control of recovery on HDDs: the study's throttles of 40 MiB",
    ("wpq_default", "wpq_boosted", *PROFILES),
    14,
    {**_RECOVERY, "hdd_objects": _OBJECTS},
    {"media": "hdd_db"},
)
SCRUB: Final = Experiment(
    "client-vs-scrub",
    "client-vs-scrub",
    "study B, five scrubs at once",
    ("wpq", *PROFILES, "custom", *PUBLISHED.values()),
    20,
    _SCRUB,
    {"experiment": "scrub"},
)
TEN: Final = Experiment(
    "client-vs-scrub-ten",
    "client-vs-scrub",
    "study B, five and ten scrubs at once",
    ("wpq", "high_client_ops", PUBLISHED["high_client_ops"]),
    16,
    _SCRUB,
    {"experiment": "scrub,ten_scrubs"},
)
COST: Final = Experiment(
    "client-vs-scrub-cost",
    "client-vs-scrub",
    "study B, osd_scrub_cost of 50 and 20 MiB, with a requested priority of 120",
    ("wpq", *PROFILES),
    20,
    _SCRUB,
    {"experiment": "cost_50m,cost_20m"},
)
APART: Final = Experiment(
    "client-vs-scrub-apart",
    "client-vs-scrub",
    "a control of scrub: reads and writes of a device have a budget each",
    ("wpq", "high_client_ops", "balanced"),
    6,
    {**_SCRUB, "one_budget": "false"},
    {"experiment": "scrub"},
)
BOTH: Final = Experiment(
    "client-vs-scrub-recovery",
    "client-vs-scrub-recovery",
    "study B, scrub and recovery together",
    ("wpq", *_EVERY_PROFILE),
    30,
    {"alone": "30s", "client": "90s", "objects": "1000", "scrub_objects": "2500", "object": "64K",
     "throttle": _NARROW, "scrub_backoff": "0"},
)  # fmt: skip
EXPERIMENTS: Final = (RECOVERY, SCRUB, HDD, BOTH, TEN, COST, SMALL, HDD_WIDE, APART)
# Their policies are laid over one another, over time.
OVER_TIME: Final = (RECOVERY, SCRUB)

# Very short, to see that all of it runs.
_QUICK: Final[Mapping[str, Mapping[str, str]]] = {
    "client-vs-recovery": {"alone": "4s", "expect": "10s", "at_most": "40s"},
    "client-vs-scrub": {"alone": "4s", "client": "10s", "objects": "300"},
    "client-vs-scrub-recovery": {"alone": "4s", "client": "10s", "objects": "60",
                                 "scrub_objects": "200"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Piece:
    """One experiment in one lab; `folder` has the archives of all its attempts. `quick`: its phases
    are very short."""

    experiment: Experiment
    lab: int
    folder: Path
    quick: bool = False

    @property
    def title(self) -> str:
        return f"{self.experiment.name}, lab {self.lab}"

    @property
    def archives(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*") if is_archive(path))

    def done(self, bar: float) -> Path | None:
        """The archive that counts: whole, of the variables of now, and not disturbed."""
        for path in reversed(self.archives):
            archive = open_archive(path)
            has = {name: str(value) for name, value in archive.plan["variables"]}
            fits = self.variables.items() <= has.items()
            whole = archive.manifest.status == "complete"
            if whole and fits and most_by_others(archive) <= bar:
                return path
        return None

    @property
    def variables(self) -> dict[str, str]:
        it = self.experiment
        variables = {**_COMMON, **it.variables}
        if self.quick:
            few = {name: "40" for name in variables if name in ("objects", "hdd_objects")}
            variables |= {"image": "128M", "pg_num": "8"} | few | dict(_QUICK[it.scenario])
        return variables

    def command(self, bar: float) -> list[str]:
        it = self.experiment
        few = dict.fromkeys((*it.policies[:2], it.policies[-1]))
        policies = few if self.quick else it.policies
        argv = [sys.executable, "-P", "-m", "cephqos_base", "run", it.scenario, "--scale", "lab"]
        for axis, values in {"policy": ",".join(policies), **it.only}.items():
            argv += ["--only", f"{axis}={values}"]
        argv += [f"--var={name}={value}" for name, value in self.variables.items()]
        argv += ["--others-cpu", f"{bar:.0%}", "--repeats", "1", "--order", "random"]
        return [*argv, "--out", str(self.folder)]


def pieces(folder: Path, labs: int, *, quick: bool = False) -> Iterator[Piece]:
    """One lab of each experiment, then the next: whenever it ends, all have about as many."""
    for lab in range(1, labs + 1):
        for experiment in EXPERIMENTS:
            yield Piece(experiment, lab, folder / experiment.name / f"lab-{lab}", quick)


def most_by_others(archive: Archive) -> float:
    """The largest share of this host's CPUs that other programs used while a load ran."""
    shares = [0.0]
    for repeat in archive.repeats:
        host = repeat.host()
        for name, phase in repeat.record.phases.items():
            if phase.kind == "fio" and name in host and (cpu := cpu_by_others(host[name])):
                shares.append(cpu.others)
    return max(shares)
