"""Run the small study on labs of this machine and write its page. Takes up to an hour."""

import argparse
import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.by_signal import clean_up_when_ended

from cephqos_loadgen.archive.reader import open_archive
from cephqos_loadgen.report.build import build
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.analysis import ReportRow, ReportRun, ReportSettings, analyse
from cephqos_loadgen.report.pages.write import PAGE, write
from cephqos_loadgen.report.runs import against
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.run_recording.layout import is_archive
from cephqos_stack.report import evaluate_causes

from .document import to_markdown
from .side import RECOVERY, SCRUB, Side

_BASELINE: Final = "clients-alone"
_FILES: Final = {_BASELINE: str(Path(__file__).with_name("clients-alone.yaml"))}
# The regime's, not the studies': with 2M and 256K BlueStore takes all work at once here.
_THROTTLE: Final = "32K"
_POLICIES: Final = {
    SCRUB: "wpq,high_client_ops,balanced,high_recovery_ops",
    RECOVERY: "wpq_boosted,high_client_ops,balanced,high_recovery_ops",
}
# Of the scale `lab`, what is smaller here, so that all of it fits into an hour.
_COMMON: Final = {
    "regime": "scheduler",
    "osds": "3",
    "size": "2",
    "image": "256M",
    "repeats": "3",
}
_VARIABLES: Final = {
    _BASELINE: {"seconds": "40s"},
    SCRUB: {"client": "60s", "alone": "20s", "objects": "4500", "throttle": _THROTTLE},
    RECOVERY: {"expect": "60s", "at_most": "100s", "objects": "2000", "object": "64K",
               "throttle": _THROTTLE},
}  # fmt: skip
_QUICK: Final = {
    _BASELINE: {"seconds": "8s", "image": "128M", "osds": "3", "size": "2", "pg_num": "8",
                "repeats": "2"},
    SCRUB: {"alone": "4s", "client": "12s", "objects": "400", "image": "128M", "osds": "3",
            "size": "2", "pg_num": "8", "repeats": "2"},
    RECOVERY: {"expect": "10s", "objects": "30", "image": "128M", "osds": "3", "size": "2",
               "pg_num": "8", "repeats": "2"},
}  # fmt: skip
_QUICK_POLICIES: Final = {SCRUB: "wpq,high_client_ops", RECOVERY: "wpq_boosted,high_client_ops"}


@dataclass(frozen=True)
class Options:
    """Where archives and the page go, and whether it is only tried."""

    archives: Path
    out: Path
    quick: bool = False
    causes: bool = True
    more: tuple[str, ...] = field(default=())  # options of `cephqos run`

    def command(self, scenario: str) -> list[str]:
        variables = {**_COMMON, **_VARIABLES[scenario], **(_QUICK[scenario] if self.quick else {})}
        policies = (_QUICK_POLICIES if self.quick else _POLICIES).get(scenario)
        argv = [sys.executable, "-P", "-m", "cephqos_base", "run"]
        argv += [_FILES.get(scenario, scenario), "--scale", "lab"]
        if policies:
            argv += ["--only", f"policy={policies}"]
        if scenario == RECOVERY:
            argv += ["--only", "media=ssd"]
        argv += [f"--var={name}={value}" for name, value in variables.items()]
        # Neighbours in time resemble one another: in one order, so would neighbouring policies.
        return [*argv, "--order", "random", "--out", str(self.archives / scenario), *self.more]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.study", description=__doc__)
    parser.add_argument("--archives", type=Path, default=Path("build/study-small"))
    parser.add_argument("--out", type=Path, default=Path("docs/internals/study-small"))
    parser.add_argument("--quick", action="store_true", help="very short phases, to try it")
    parser.add_argument("--page-only", action="store_true", help="from the archives that are there")
    parser.add_argument("--no-causes", dest="causes", action="store_false")
    parser.add_argument("more", nargs="*", help="after --: options of `cephqos run`")
    given = parser.parse_args()
    options = Options(given.archives, given.out, given.quick, given.causes, tuple(given.more))
    began = time.monotonic()
    if not given.page_only:
        for scenario in (_BASELINE, SCRUB, RECOVERY):
            done = subprocess.run(options.command(scenario), check=False)
            print(f"{scenario}: {(time.monotonic() - began) / 60:.1f} minutes so far", flush=True)
            if done.returncode:
                return done.returncode
    print(write_page(options))
    return 0


def newest(folder: Path) -> Path:
    """The archive of the last run in a folder."""
    found = sorted(path for path in folder.glob("*") if is_archive(path))
    if not found:
        raise SystemExit(f"{folder}: no archive; run without --page-only")
    return found[-1]


def write_page(options: Options) -> Path:
    """The page, and beside it the whole report of each study."""
    alone = analyse(open_archive(newest(options.archives / _BASELINE)))
    sides = {}
    for study in (SCRUB, RECOVERY):
        folder = newest(options.archives / study)
        run = analyse(open_archive(folder))
        if options.causes:
            run = asyncio.run(evaluate_causes(run, folder))
        base = baseline_of(alone, _THROTTLE)
        sides[study] = Side(run, base.figures[metrics.IOPS.key].samples if base else ())
        settings = against(alone, base) if base else ReportSettings()
        settings = replace(settings, target=0.5 if base else None)
        write(build([run], settings), options.out / study)
        (options.out / study / PAGE).unlink()
    page = options.out / "README.md"
    page.write_text(to_markdown(sides, alone), encoding="utf-8")
    return page


def baseline_of(alone: ReportRun, throttle: str) -> ReportRow | None:
    """The clients' load with this throttle and nothing beside it."""
    rows = Subject([alone], ReportSettings()).main_loads
    return next((row for row in rows if row.axes.get("throttle") == throttle), None)


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(main())
