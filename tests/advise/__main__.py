"""Ask `cephqos advise` about labs, set what it says, and measure what comes of it."""

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from tests.by_signal import clean_up_when_ended

from cephqos_loadgen.record.layout import is_archive

from .proof import Measured, Proof, page
from .situations import SITUATIONS, Situation

HERE: Final = Path(__file__).parent
PROOFS: Final = HERE / "proofs.json"
PAGE: Final = Path("docs/internals/advise-proof.md")
_PROOF: Final = "proof.json"
_OSDS: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.advise", description=__doc__)
    parser.add_argument("--archives", type=Path, default=Path("build/advise-proof"))
    parser.add_argument(
        "--only",
        choices=[it.name for it in SITUATIONS],
        action="append",
        help="run this situation, without the page (repeatable)",
    )
    parser.add_argument("--page-only", action="store_true", help="from the proofs that are there")
    given = parser.parse_args()
    if not given.page_only:
        for situation in SITUATIONS:
            if not given.only or situation.name in given.only:
                prove(situation, given.archives / situation.name)
    if given.only:
        return 0
    found = {it.name: it for it in read_proofs()}
    for at in SITUATIONS:
        file = given.archives / at.name / _PROOF
        if file.exists():
            found[at.name] = Proof(**json.loads(file.read_text(encoding="utf-8")))
    proofs = [found[at.name] for at in SITUATIONS if at.name in found]
    PROOFS.write_text(json.dumps([asdict(it) for it in proofs], indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(proofs), encoding="utf-8")
    print(PAGE)
    return 0


def read_proofs() -> list[Proof]:
    text = PROOFS.read_text(encoding="utf-8") if PROOFS.exists() else "[]"
    return [Proof(**it) for it in json.loads(text)]


def prove(situation: Situation, folder: Path) -> None:
    """A lab; a run; advice; what it says; a run."""
    with lab(situation) as name:
        for option, value in situation.settings.items():
            enter(name, ["ceph", "config", "set", "osd", option, value])
        before = run(situation, name, folder / "before")
        was = Measured.of(before)
        asked = ask(situation, before, was)
        print(f"{situation.name}: {asked}", flush=True)
        for line in asked.commands:
            enter(name, shlex.split(line))
        if asked.advised:
            asked = with_result(asked, Measured.of(run(situation, name, folder / "after")))
    (folder / _PROOF).write_text(json.dumps(asdict(asked), indent=1) + "\n", encoding="utf-8")
    print(f"{situation.name}: {asked}", flush=True)


def cephqos(*argv: str, statuses: Sequence[int] = (0,), out: bool = False) -> str:
    argv = (sys.executable, "-P", "-m", "cephqos_base", *argv)
    done = subprocess.run(argv, stdout=subprocess.PIPE if out else None, text=True, check=False)
    if done.returncode not in statuses:
        raise SystemExit(f"{shlex.join(argv)}: status {done.returncode}")
    return done.stdout or ""


@contextmanager
def lab(situation: Situation) -> Iterator[str]:
    name = f"advise-{situation.name}"
    try:
        argv = ["lab", "up", "--name", name, "--release", situation.release, "--osds", str(_OSDS)]
        argv += ["--osd-size", "3G", "--regime", "scheduler"]
        cephqos(*argv, "--rotational", "1" if situation.media == "hdd" else "0")
        yield name
    finally:
        cephqos("lab", "down", "--name", name, statuses=(0, 1, 2))


def enter(name: str, command: Sequence[str]) -> None:
    cephqos("lab", "exec", "--name", name, "--", *command)


def run(situation: Situation, name: str, folder: Path) -> Path:
    """The archive."""
    argv = ["run", str(HERE / f"{situation.load}.yaml"), "--lab", name, "--out", str(folder)]
    cephqos(*argv, "--var", f"rw={situation.clients}")
    return max(path for path in folder.glob("*") if is_archive(path))


def ask(situation: Situation, archive: Path, was: Measured) -> Proof:
    """As a user would: for less, if it refuses."""
    now = was.client if situation.better == "client" else was.seconds
    for goal in situation.goals(now):
        when = ["--at", f"{was.end:.3f}", "--since", f"{int(was.seconds)}s"]
        argv = ["advise", "--archive", str(archive), *when, "--for", goal, "--json"]
        said: dict[str, Any] = json.loads(cephqos(*argv, statuses=(0, 1), out=True))
        answer, chosen = said["answer"], chosen_of(said)
        asked = Proof(
            name=situation.name,
            asked=goal,
            goal=float(goal.strip("s").split()[-1 if situation.better == "recovery" else 3]),
            advised="" if chosen.get("now") else chosen.get("name", ""),
            why="what is set now gives it" if chosen.get("now") else answer["why"],
            commands=chosen.get("commands", []),
            osds=chosen.get("osds", {}),
            backlog=chosen.get("backlog_at_least_seconds"),
            before=now,
        )
        if asked.advised:
            break
    return asked


def chosen_of(said: dict[str, Any]) -> dict[str, Any]:
    name = said["answer"]["candidate"]
    return next((it for it in said["candidates"] if it["name"] == name), {})


def with_result(asked: Proof, now: Measured) -> Proof:
    after = now.client if asked.of_clients else now.seconds
    return replace(asked, after=after, seconds=now.seconds, violated=now.violated)


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(main())
