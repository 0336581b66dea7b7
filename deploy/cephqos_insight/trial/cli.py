"""`cephqos trial`: its options, and the trial from its first check to its report."""

import argparse
import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.servers import Address
from cephqos_base.terminal import say
from cephqos_base.units import parse_seconds
from cephqos_base.urls import check_url
from cephqos_base.version import __version__
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_insight.prometheus_access import PASSWORDS, add_header, add_site, prometheus_of
from cephqos_insight.trial import host, plan, report
from cephqos_insight.trial.cluster import RealWorld
from cephqos_insight.trial.conduct import Trial, Watching, conduct
from cephqos_insight.trial.guard import Harm
from cephqos_insight.trial.live import NowLine, live_line
from cephqos_insight.trial.measure import DECIDING
from cephqos_insight.trial.plan import Timetable, TriedSetting
from cephqos_insight.trial.readers import OsdReaders
from cephqos_loadgen.check.ask_cluster import connected
from cephqos_loadgen.check.run_options import RunOptions, add_cluster
from cephqos_loadgen.cluster import run_keys
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.lock import ClusterLock
from cephqos_loadgen.live.notify import TOKEN_VARIABLE, Notifier
from cephqos_loadgen.plan.errors import ClusterUnfit, NotRestored
from cephqos_loadgen.progress import Progress
from cephqos_loadgen.run.session import finish
from cephqos_loadgen.run_recording.files import JsonLines
from cephqos_loadgen.run_recording.layout import new_run

DEFAULT_OUT: Final = "cephqos-trials"
_LEAST_BLOCK_SECONDS: Final = 10.0
_LEAST_LOOKS: Final = 5  # in a block
_LEAST_HARM_TIMES: Final = 3  # in a block, so that a guard rail can end it
_PROMETHEUS_SECONDS: Final = 5.0
_READERS: Final = 8  # connections over which OSDs are asked at once
# Interruptions that do not stop the way back.
_SPARE: Final = 1


def add_options(parser: Parser) -> None:
    parser.description = (
        "Ask the cluster what a setting does: the setting and what is set now take turns, in blocks"
        " in random order, under the load that is there. Then all is as it was."
    )
    parser.epilog = (
        "Status 0: an answer, also `no difference found`. 1: it ended early, or too little could be"
        " compared. 2: a mistake in the command, or a setting that cannot be tried."
    )
    parser.option(
        "--try SETTINGS...",
        "a candidate, such as profile=high_client_ops (repeatable); `same` changes nothing",
        dest="tries",
    )
    parser.option(
        "--host NAME",
        "try it on the OSDs of this host only, beside OSDs like them on others: for a setting that"
        " needs a restart, such as scheduler=wpq",
    )
    parser.option("--dry-run", "print the timetable and the commands, and ask no cluster")
    parser.option(
        "--by FIGURE",
        "the figure that decides: p99 (default), p95, p50, mean, ops/s or recovery/s",
        default="p99",
    )
    time_table = parser.add_argument_group("timetable")
    time_table.option("--block TIME", "length of a block (default: %(default)s)", default="5m")
    time_table.option(
        "--least-rounds N", "rounds before it may end; with --host, all (default: %(default)s)",
        default=6,
    )  # fmt: skip
    time_table.option("--rounds N", "rounds at most (default: %(default)s)", default=12)
    time_table.option("--seed N", "of the order (default: drawn, and recorded)")
    rails = parser.add_argument_group("guard rails")
    rails.option(
        "--harm FACTOR",
        "a block ends when clients' p99 is above this times the reference (default: %(default)s)",
        default=1.5,
    )
    rails.option(
        "--harm-time TIME", "and stays there for longer than this (default: %(default)s)",
        default="20s",
    )  # fmt: skip
    rails.option("--every SECONDS", "between two looks (default: %(default)s)", default=3.0)
    rails.option("--prometheus URL", "end when an alert fires there, or when it is lost")
    add_header(rails)
    add_site(rails)
    add_cluster(
        parser.add_argument_group("which cluster"),
        changes="the trial changes settings of this cluster",
        work="folder for the client's ceph.conf",
    )
    parser.option(
        "--out DIR", "folder of archives (default: %(default)s)", default=Path(DEFAULT_OUT)
    )
    parser.option("--grafana URL", f"annotate blocks there (token in {TOKEN_VARIABLE})")
    parser.set_defaults(run=_run)


def timetable_from(arguments: argparse.Namespace, candidates: Sequence[TriedSetting]) -> Timetable:
    block = parse_seconds(arguments.block)
    harm_times = _LEAST_HARM_TIMES * parse_seconds(arguments.harm_time)
    if harm_times <= 0:
        raise UsageError(f"--harm-time {arguments.harm_time}: expected more than 0 s")
    least = max(_LEAST_BLOCK_SECONDS, _LEAST_LOOKS * arguments.every, harm_times)
    if not least <= block <= 86400:
        why = f" ({_LEAST_HARM_TIMES} times --harm-time)" if least == harm_times else ""
        raise UsageError(
            f"--block {arguments.block}: expected {least:g} s or more{why}, and a day at most"
        )
    if not 0.5 <= arguments.every <= 60:
        raise UsageError(f"--every {arguments.every:g}: expected 0.5 to 60")
    if arguments.host and 3 <= arguments.least_rounds <= 1000:
        return host.timetable(candidates[0].name, block, arguments.least_rounds)
    if not 3 <= arguments.least_rounds <= arguments.rounds <= 1000:
        raise UsageError(
            f"--least-rounds {arguments.least_rounds} --rounds {arguments.rounds}: expected 3 or"
            " more, and as many rounds at most or more"
        )
    seed = arguments.seed if arguments.seed is not None else secrets.randbelow(1 << 31)
    names = tuple(candidate.name for candidate in candidates)
    return Timetable(names, block, arguments.least_rounds, arguments.rounds, seed)


def _candidates(arguments: argparse.Namespace) -> list[TriedSetting]:
    candidates = [plan.parse_candidate(text) for text in arguments.tries]
    names = [candidate.name for candidate in candidates]
    if not 1 <= len(names) <= 3 or len({*names}) < len(names):
        raise UsageError("--try: expected one to three candidates that are different")
    if arguments.host and (len(names) > 1 or candidates[0].sections != {"osd"}):
        raise UsageError("--host: expected one --try, of a setting for all OSDs")
    if arguments.by not in DECIDING:
        raise UsageError(f"--by {arguments.by}: expected one of {', '.join(DECIDING)}")
    return candidates


async def _run(arguments: argparse.Namespace) -> int:
    candidates = _candidates(arguments)
    timetable = timetable_from(arguments, candidates)
    if arguments.dry_run:
        of_host = arguments.host and host.lines(timetable, candidates[0], arguments.host)
        say(*(of_host or plan.lines(timetable, candidates)))
        return 0
    harm = Harm(arguments.harm, parse_seconds(arguments.harm_time))
    if not 1 < harm.factor <= 100:
        raise UsageError(f"--harm {harm.factor:g}: expected more than 1")
    if bool(arguments.lab) == bool(arguments.conf):
        raise UsageError("which cluster? Name it with --conf FILE or --lab NAME")
    if arguments.prometheus:
        check_url("--prometheus", arguments.prometheus, PASSWORDS)
    kind = host.HostTrial if arguments.host else Trial
    trial = kind(timetable, arguments.by)
    name = new_run("trial")
    folder: Path = arguments.out / name
    stopped: NotRestored | asyncio.CancelledError | None = None
    try:
        async with _world(arguments, name, candidates) as world:
            await world.check()
            folder.mkdir(parents=True)  # noqa: ASYNC240 - once
            await _conducted(arguments, folder, trial, world, harm)
    except (NotRestored, asyncio.CancelledError) as error:
        if not folder.exists():  # noqa: ASYNC240 - once
            raise
        stopped = error
    lines = list(report.lines(trial, world.candidates, world.way_back, world.left))
    try:  # first the file: the terminal may be lost
        (folder / "report.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        lines.append(f"This is in no file: {error}")
    try:
        say(*lines)
    finally:
        if stopped:
            raise stopped
    return 0 if report.is_answered(trial) else 1


def _closed(archive: JsonLines) -> None:
    with suppress(OSError):  # what could not be written was said
        archive.close()


async def _conducted(
    arguments: argparse.Namespace, folder: Path, trial: Trial, world: RealWorld, harm: Harm
) -> None:
    """Carry the trial out. What it has changed is undone by the caller."""
    progress = Progress()
    grafana = arguments.grafana and Address.parse(arguments.grafana, "--grafana", 3000)
    async with AsyncExitStack() as stack:
        archive = JsonLines(folder / "trial.jsonl")
        stack.callback(_closed, archive)
        notify = await stack.enter_async_context(Notifier(grafana, None, folder.name))
        notify.cluster = world.fsid
        table = trial.timetable
        archive.write(
            {
                "event": "planned", "at": time.time(), "cephqos": __version__, "by": trial.by,
                "fsid": world.fsid, "seed": table.seed, "block_seconds": table.block_seconds,
                "looks": table.looks, "harm_factor": harm.factor, "harm_seconds": harm.seconds,
                "candidates": {each.name: each.commands for each in world.candidates},
            }
        )  # fmt: skip
        progress.note(f"archive: {folder}")
        now_line = NowLine(trial)
        say_now = stack.enter_context(progress.line("trial"))

        def heard(event: str, details: Mapping[str, Any]) -> None:
            archive.write({"event": event, "at": time.time(), **details})
            if event != "look_at":
                notify(f"trial_{event}", **{k: v for k, v in details.items() if k != "figures"})
            if line := live_line(trial, event, details):
                progress.note(line)
            if line := now_line.after(event, details):
                say_now(line)

        if not arguments.prometheus:
            progress.note("no alert ends this trial, as --prometheus names none")
        try:
            watching = Watching(harm, arguments.every, heard)
            if isinstance(trial, host.HostTrial) and world.groups:
                trial.groups = world.groups
                progress.note(str(world.groups))
                await host.conduct_on_host(trial, world, watching)
            else:
                await conduct(trial, world, watching)
        except (CephqosError, CommandFailed) as error:
            trial.ended = str(error)
        except OSError as error:  # a full disk: what is known is reported all the same
            trial.ended = f"the archive cannot be written: {error}"
        except asyncio.CancelledError:  # what was measured is reported all the same
            trial.ended = "it was interrupted"
        with suppress(OSError):
            archive.write({"event": "ended", "at": time.time(), "why": trial.ended})


@asynccontextmanager
async def _world(
    arguments: argparse.Namespace, name: str, candidates: Sequence[TriedSetting]
) -> AsyncIterator[RealWorld]:
    """The cluster, locked; what was changed is undone at the end, whatever happens."""
    options = RunOptions(
        out=arguments.out,
        lab=arguments.lab,
        conf=arguments.conf and arguments.conf.absolute(),
        keyring=arguments.keyring and arguments.keyring.absolute(),
        user=arguments.user,
        python=arguments.python,
    )
    work = arguments.work.absolute() / name
    async with connected(options, name, work) as cluster, AsyncExitStack() as stack:
        cluster.note = note = Progress().note
        if options.conf and arguments.known_fsid != cluster.fsid:
            raise ClusterUnfit(
                f"a trial changes settings of the cluster {cluster.fsid}, under the load that it"
                f" has; if that is what you want, add --i-know-this-cluster {cluster.fsid}"
            )
        await run_keys.check_size(cluster)
        watch = await stack.enter_async_context(ClusterConnection(cluster.access))
        readers = [ClusterConnection(cluster.access) for _ in range(_READERS)]
        for reader in readers:  # it connects when it is first asked
            stack.push_async_exit(reader)
        prometheus = prometheus_of(arguments, _PROMETHEUS_SECONDS)
        api = await stack.enter_async_context(prometheus if arguments.prometheus else nullcontext())
        lock = await stack.enter_async_context(ClusterLock(cluster, name, take_over=False))
        groups = await host.find_groups(cluster, arguments.host) if arguments.host else None
        world = RealWorld(cluster, watch, OsdReaders(readers), lock, candidates, api, groups)
        try:
            yield world
        finally:
            await finish(_give_back(world), note, _SPARE)


async def _give_back(world: RealWorld) -> None:
    """Undo what is still changed. NotRestored says how to do it by hand."""
    if failures := await world.give_back():
        commands = "".join(f"\n  {line}" for line in world.journal.commands())
        raise NotRestored(f"not undone: {'; '.join(failures)}; these commands do it:{commands}")
