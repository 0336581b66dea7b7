"""Agents, Thanos and VictoriaMetrics beside a single Prometheus on one cluster: `make test-scale`.

Two host groups with an HA pair of agents each write to both engines. One agent is killed for two
minutes and comes back; then both stores are away for twenty seconds. A device turns slow. Printed:
samples lost and doubled, recorded series and alerts compared with those of the single Prometheus,
and what the overview's queries say. Exits 1 where the engines differ in what an operator would see.
"""

import asyncio
import contextlib
import secrets
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from tests.board_panels import fill, promql
from tests.board_story import CAPACITY, VICTIM, story_lab
from tests.by_signal import clean_up_when_ended
from tests.scale.compare import Compared, compared, samples
from tests.scale.far import LATE, Engine, Far, exporter

from cephqos_base import dashboards
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.progress import Progress
from cephqos_stack.stack import Stack, StackSpec

_AWAY: Final = 120.0
_STORES_AWAY: Final = 20.0
# The last to be told of are those that wait for the slow one: by then the single Prometheus has.
_ALL_TOLD: Final = 240.0
_AGREED_BY: Final = 420.0
_COUNTER: Final = "ceph_osd_op_w"
# Engines evaluate at other moments: what one had all of the shorter time, the other had at some
# moment of the longer one.
_STEADILY: Final = 20
_LATELY: Final = 60
# A sum over an hour keeps what a single evaluation saw: below so many seconds it is not compared.
_BRIEF: Final = 30
_POOL: Final = "client"


class Verdict:
    """What was seen, printed as it comes; what is wrong is kept."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def say(self, right: bool, words: str) -> None:
        print(f"{'right' if right else 'WRONG'}  {words}", flush=True)
        if not right:
            self.wrong.append(words)


async def main() -> int:
    verdict = Verdict()
    with _folder() as folder:
        spec = story_lab(f"scale-{secrets.token_hex(3)}")
        async with (
            Lab(spec, Progress()) as lab,
            everything(lab, Path(folder)) as (stack, far),
        ):
            await _story(lab, stack, far, verdict)
    print(f"{len(verdict.wrong)} wrong", flush=True)
    return 1 if verdict.wrong else 0


def _folder() -> contextlib.AbstractContextManager[str]:
    """Of data and output of all servers; the one that is named stays."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True)
        return contextlib.nullcontext(sys.argv[1])
    return tempfile.TemporaryDirectory(prefix="cephqos-scale-")


@contextlib.asynccontextmanager
async def everything(lab: RunningLab, folder: Path) -> AsyncIterator[tuple[Stack, Far]]:
    """One exporter for osd.0 and the cluster, one for the others; all that reads them."""
    sockets = lab.paths.sockets
    async with exporter(sockets, "*osd.[12].asok", folder / "exporter-2.out") as second:
        spec = StackSpec(
            name="single",
            sockets="*osd.0.asok",
            # As many evaluations to a window as in production, and time for three engines.
            scrape_interval=4.0,
            time_scale=4 / 15,
            targets={"cephqos-2": second},
        )
        async with Stack(lab, spec) as stack:
            first = stack.exporter_url.removeprefix("http://")
            far = Far(stack, ({"cephqos": first}, {"cephqos-2": second}), folder)
            try:
                await far.start()
                yield stack, far
            finally:
                await far.end()


async def _story(lab: RunningLab, stack: Stack, far: Far, verdict: Verdict) -> None:
    single = Engine("single", stack.prometheus_url, stack.prometheus_url)
    async with _load(lab):
        await asyncio.sleep(20)
        begin = time.time()
        print(f"agent 2a is killed for {_AWAY:g} s", flush=True)
        await far.kill("agent 2a")
        await asyncio.sleep(_AWAY)
        await far.bring("agent 2a")
        print(f"both stores are away for {_STORES_AWAY:g} s", flush=True)
        for name in ("thanos receive", "victoria storage"):
            await far.kill(name)
        await asyncio.sleep(_STORES_AWAY)
        for name in ("thanos receive", "victoria storage"):
            await far.bring(name)
        await asyncio.sleep(60)  # what was kept is sent
        far.check()
        for engine in far.engines:
            await _complete(single, engine, stack.spec.scrape_interval, begin, verdict)
        print(f"the device of osd.{VICTIM} turns slow", flush=True)
        await lab.faults.throttle(VICTIM, wiops=60)
        await _told((single, *far.engines))
        far.check()
        for engine in far.engines:
            await _same(stack, single, engine, verdict)
            await _overview(single, engine, lab.state.fsid, verdict)
        await lab.faults.throttle(VICTIM)


@contextlib.asynccontextmanager
async def _load(lab: RunningLab) -> AsyncIterator[None]:
    """Clients that want more than they get, for as long as the block runs."""
    await lab.exec(["ceph", "config", "set", "osd", CAPACITY, "1000"])
    for argv in (["create", _POOL, "32"], ["set", _POOL, "size", "2"]):
        await lab.exec(["ceph", "osd", "pool", *argv])
    bench = ["rados", "-p", _POOL, "bench", "900", "write", "-b", "4096", "-t", "96"]
    running = asyncio.create_task(lab.exec(bench, within=1000))
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def _complete(
    single: Engine, engine: Engine, interval: float, begin: float, verdict: Verdict
) -> None:
    """No sample lost and none doubled, of every OSD, in the time of both faults."""
    now = time.time() - 10  # both have these
    asked = f"{_COUNTER}[{int(now - begin)}s]"
    here = samples(await single.query(asked, now))
    there = samples(await engine.query(asked, now))
    for key, ours in sorted(here.items(), key=str):
        osd = dict(key)["ceph_daemon"]
        theirs = there.get(key)
        if theirs is None:
            verdict.say(False, f"{engine.name}: {osd} is not there with the same labels")
            continue
        right = theirs.count >= ours.count - 2 and theirs.shortest_gap > 0
        verdict.say(
            right and theirs.longest_gap <= max(ours.longest_gap, 2.5 * interval),
            f"{engine.name}: {osd} {theirs.count} samples of {ours.count}; longest gap"
            f" {theirs.longest_gap:.1f} s ({ours.longest_gap:.1f}), shortest"
            f" {theirs.shortest_gap:.2f} s",
        )
    verdict.say(set(there) == set(here), f"{engine.name}: {len(there)} series of {len(here)}")


async def _told(engines: Sequence[Engine]) -> None:
    """Prints when each engine first told of each alert; ends when all have told the same for long.

    An engine that does not agree by then is left to be compared.
    """
    began = alike = time.monotonic()
    first: dict[frozenset[tuple[str, str]], dict[str, float]] = {}
    while (now := time.monotonic()) < began + _AGREED_BY:
        firing = [await engine.firing() for engine in engines]
        for engine, alerts in zip(engines, firing, strict=True):
            for alert in alerts:
                first.setdefault(alert, {}).setdefault(engine.name, now - began)
        alike = alike if all(alerts == firing[0] for alerts in firing) else now
        if now > began + _ALL_TOLD and now > alike + _STEADILY:
            break
        await asyncio.sleep(1)
    for alert, times in first.items():
        when = ", ".join(f"{name} after {seconds:.0f} s" for name, seconds in times.items())
        print(f"  {_alert_words(alert)}: {when}", flush=True)


def _alert_words(alert: frozenset[tuple[str, str]]) -> str:
    told = dict(alert)
    named = ("alertname", "ceph_daemon", "class", "cause")
    return " ".join(told[label] for label in named if label in told)


async def _same(stack: Stack, single: Engine, engine: Engine, verdict: Verdict) -> None:
    """Recorded series and alerts."""
    now = time.time() - LATE - 2
    rows = []
    enough = 0.8 * _STEADILY / stack.spec.scrape_interval
    for name in recorded(stack.dir / "rules"):
        asked = f"count_over_time({name}[{_STEADILY}s]) >= {enough}"
        if name.endswith("_seconds:sum1h"):
            asked += f" and {name} > {_BRIEF}"
        steady = [await one.query(asked, now) for one in (single, engine)]
        asked = f"avg_over_time({name}[{_LATELY}s])"
        lately = [await one.query(asked, now) for one in (single, engine)]
        rows.append(compared(name, steady, lately))
    _print_rows(engine, rows)
    there = [row for row in rows if row.here]
    different = [row for row in there if not row.same_series]
    verdict.say(
        not different,
        f"{engine.name}: {len(there) - len(different)} of {len(there)} recorded names have the"
        f" same series ({sum(row.here for row in there)})",
    )
    ours, theirs = await single.firing(), await engine.firing()
    for key in sorted(ours | theirs, key=_alert_words):
        where = (
            "both" if key in ours and key in theirs else "single" if key in ours else engine.name
        )
        verdict.say(where == "both", f"{engine.name}: {_alert_words(key)} fires: {where}")


def recorded(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("*.yml")):
        for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]:
            yield from sorted({rule["record"] for rule in group["rules"] if "record" in rule})


def _print_rows(engine: Engine, rows: Sequence[Compared]) -> None:
    for row in rows:
        if not row.same_series:
            print(f"  {engine.name}: {row.name}: of {row.here} missing {row.missing[:3]},"
                  f" extra {row.extra[:3]}")  # fmt: skip
    apart = sorted(row.apart for row in rows if row.here)
    if apart:
        print(f"  {engine.name}: values are apart by {apart[len(apart) // 2]:.1%} (median over"
              f" names), {apart[-1]:.1%} (largest)", flush=True)  # fmt: skip


async def _overview(single: Engine, engine: Engine, cluster: str, verdict: Verdict) -> None:
    """The overview's panels have an answer there where they have one here."""
    values = {"cluster": cluster, "detail": cluster, "osd": f"osd.{VICTIM}"}
    values |= {"host": ".+", "run": "", "second": "", "shift": "1", "load": ""}
    now = time.time() - LATE
    asked = [query for query in promql() if query.uid == dashboards.OVERVIEW]
    fewer, slowest = [], 0.0
    for query in asked:
        expr = fill(query.expr, values)
        here: list[Any] = await single.query(expr, now)
        began = time.monotonic()
        there = await engine.query(expr, now)
        slowest = max(slowest, time.monotonic() - began)
        if bool(here) != bool(there):
            fewer.append(f"{query.where}: {len(here)} here, {len(there)} there")
    verdict.say(
        not fewer,
        f"{engine.name}: {len(asked) - len(fewer)} of {len(asked)} queries of the overview are"
        f" answered as here, the slowest in {slowest * 1000:.0f} ms {fewer[:4] or ''}",
    )


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(asyncio.run(main()))
