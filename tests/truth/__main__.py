"""Stage situations on real clusters and print what the alerts said of each."""

import argparse
import asyncio
import json
import secrets
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.by_signal import clean_up_when_ended

from cephqos_base.errors import CephqosError
from cephqos_loadgen.lab.lab import Lab
from cephqos_stack.staged.situation import Situation

from . import load_all
from .run import run
from .runbook import not_as_said
from .table import table

_DEFAULT: Final = Path("build/truth.jsonl")
_INCOMPLETE: Final = 75


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.truth", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="situations with such a name")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each, on OSDs in turn")
    parser.add_argument("--first-seed", type=int, default=0, help="the first one's number")
    parser.add_argument("--results", type=Path, default=_DEFAULT, help="a line for each run")
    parser.add_argument("--resume", action="store_true", help="leave out what has a result there")
    parser.add_argument(
        "--budget",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="begin nothing after that; exit status 75 if something is left",
    )
    parser.add_argument(
        "--stay",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="faults last so much longer once they were found, healthy loads too",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="all series of each run (a Prometheus opens them), and the daemons' logs",
    )
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--table", action="store_true", help="print the table and end")
    return parser


Run = tuple[Situation, int]


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def _run(situation: Situation, seed: int, results: Path, keep: Path | None) -> None:
    """On a cluster of its own: removing the pool of another takes longer than making one, and is
    work of best effort, which on 20.2 has a reservation."""
    async with Lab(situation.cluster.spec(f"truth-{secrets.token_hex(3)}")) as lab:
        outcome = await run(lab, situation, seed, keep)
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(outcome.row()) + "\n")
    said = "; ".join(outcome.others)
    print(f"{outcome.verdict:12} {situation.name} (seed {seed}) {outcome.note}{said}", flush=True)


async def _all(runs: list[Run], results: Path, budget: float, keep: Path | None) -> int:
    """How many were left for want of time."""
    end = time.monotonic() + budget
    for done, (situation, seed) in enumerate(runs):
        if time.monotonic() > end:
            return len(runs) - done
        place = f"{done + 1} of {len(runs)}"
        print(f"truth: {place}: {situation.name} (seed {seed})", file=sys.stderr, flush=True)
        await _run(situation, seed, results, keep)
    return 0


def _latest(rows: list[dict[str, Any]], known: set[tuple[str, str]]) -> list[dict[str, Any]]:
    """The last result of each run, of situations as they are now."""
    last = {(row["name"], row["seed"]): row for row in rows}
    return [row for row in last.values() if (row["name"], row["digest"]) in known]


def main() -> int:
    parser = _parser()
    args = parser.parse_args()
    situations = [replace(it, stay=args.stay) for it in load_all(args.only)]
    if args.list:
        print("\n".join(f"{it.name}: {it.about}" for it in situations))
        return 0
    known = {(it.name, it.digest) for it in situations}
    earlier = _read(args.results) if args.resume or args.table else []
    done = {
        (it["name"], it["seed"]) for it in _latest(earlier, known) if it["verdict"] != "not run"
    }
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    runs = [(it, seed) for it in situations for seed in seeds if (it.name, seed) not in done]
    if not (runs or done):
        parser.error("nothing to stage: no situation has such a name, or --seeds is less than 1")
    args.results.parent.mkdir(parents=True, exist_ok=True)
    if not (args.resume or args.table):
        args.results.unlink(missing_ok=True)
    left = 0 if args.table else asyncio.run(_all(runs, args.results, args.budget, args.keep))
    rows = _latest(_read(args.results), known)
    print(table(rows))
    if left:
        print(f"{left} runs are left: again with --resume")
        return _INCOMPLETE
    return int(any(row["verdict"] != "right" or not_as_said(row["runbook"]) for row in rows))


if __name__ == "__main__":
    clean_up_when_ended()
    try:
        sys.exit(main())
    except CephqosError as exc:
        sys.exit(f"truth: {exc}")
    except KeyboardInterrupt:
        print("truth: ended; what has run is kept, and --resume goes on", file=sys.stderr)
        sys.exit(130)
