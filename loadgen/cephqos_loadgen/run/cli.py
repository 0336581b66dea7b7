"""`cephqos run` and `cephqos scenarios`."""

import argparse
import re
import secrets
import shutil
import textwrap
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from cephqos_base.command import Group, Parser
from cephqos_base.errors import UsageError
from cephqos_base.servers import Address
from cephqos_base.terminal import say, say_text
from cephqos_loadgen.check import ask_cluster, plan_text, preflight
from cephqos_loadgen.check.run_options import RunOptions, add_cluster
from cephqos_loadgen.cluster.restart_plan import ALLOWED_OSDS
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.live.endpoint import DEFAULT_LISTEN
from cephqos_loadgen.live.notify import TOKEN_VARIABLE
from cephqos_loadgen.phase_kinds.pin import cpus_of_this_host
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import ORDERS
from cephqos_loadgen.progress import Progress
from cephqos_loadgen.run.restore import restore
from cephqos_loadgen.run.resume import recorded_plan
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.run_recording.layout import SCENARIO_FILE
from cephqos_loadgen.scenario import library
from cephqos_loadgen.scenario.parse import DEFAULT_SCALE, Choices, parse
from cephqos_loadgen.scenario.variables import load, variable_from_text

DEFAULT_OUT = "cephqos-runs"


def add_run_options(run: Parser) -> None:
    run.add_argument(
        "scenario",
        nargs="?",
        help="name of a shipped scenario (cephqos scenarios lists them) or a .yaml file",
    )
    _add_plan(run.add_argument_group("what to run"))
    _add_cluster(run.add_argument_group("which cluster (without --lab or --conf: a new lab)"))
    _add_recording(run.add_argument_group("recording and live metrics"))
    run.set_defaults(run=_run)


def add_scenarios_options(scenarios: Parser) -> None:
    scenarios.option("--show NAME", "print the YAML of one scenario")
    scenarios.set_defaults(run=_scenarios)


def _add_plan(group: Group) -> None:
    group.option("--check", "check and print the plan, then stop")
    group.option("--dry-run", "the same, with every command line of the run")
    _add_choices(group)
    group.option(
        "--path PATH...",
        "device or file that the scenario may load and overwrite (engines libaio and io_uring;"
        " repeatable)",
    )
    group.option(
        "--resume ARCHIVE", "continue an interrupted run: keep its finished repeats, run the others"
    )


def _add_choices(group: Group) -> None:
    """What a scenario leaves open."""
    group.option(
        "--scale NAME",
        "size of the run: tiny (minutes), lab (default), study (as published, hours)",
    )
    group.option("--repeats N", "repeats of each point (default: scenario's)")
    group.option(
        "--order",
        "interleaved (default): the first repeat of each point, then the second;"
        " grouped: all repeats of a point together; random",
        choices=ORDERS,
    )
    group.option("--seed N", "of --order random (default: drawn and recorded)")
    group.option("--var NAME=VALUE...", "set a variable of the scenario (repeatable)")
    group.option(
        "--only AXIS=VALUE[,VALUE]...",
        "run only these values of an axis of the matrix (repeatable)",
    )


def _add_cluster(group: Group) -> None:
    group.option("--release RELEASE", "Ceph release of the new lab (default: reef)")
    add_cluster(
        group,
        changes="the run changes settings of this cluster and loads it",
        work="folder for sockets and the clients' ceph.conf",
    )
    group.option(
        "--restart-osds N",
        f"up to N OSDs of this cluster may be restarted, one failure domain after the other"
        f" (default: {ALLOWED_OSDS}); --check says how many the run restarts",
    )
    group.option("--keep", "do not remove filled pools, so the next run skips that")
    group.option(
        "--take-over", "another run died and left the cluster changed: undo its changes first"
    )
    group.option("--restore-only", "undo the changes of a run that died, and run nothing")


def _add_recording(group: Group) -> None:
    group.option(
        "--out DIR", "folder of archives (default: %(default)s)", default=Path(DEFAULT_OUT)
    )
    group.option(
        "--exporter URL...",
        "record this cephqos-exporter, such as http://host:10130 (repeatable; default: start"
        " one if OSDs are local)",
    )
    group.option("--sockets DIR", "folder of admin sockets of local OSDs")
    group.option(
        "--listen HOST:PORT", f"address of the run's own /metrics (default: {DEFAULT_LISTEN})"
    )
    group.option("--grafana URL", f"annotate phases there (token in {TOKEN_VARIABLE})")
    group.option("--loki URL", "log phases there")
    group.option(
        "--others-cpu PERCENT",
        "make a repeat again, at most twice, if other programs used more than this share of this"
        " host's CPUs while a load ran: 10%% (default: only a finding says so)",
    )


def _pairs(option: str, texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{option} {text!r}: expected NAME=VALUE")
        pairs[name] = value
    return pairs


def _share(option: str, text: str | None) -> float | None:
    """`10%` as 0.1."""
    if text is None:
        return None
    number = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if number is None or not 0 < float(number[1]) <= 100:
        raise UsageError(f"{option} {text!r}: expected a percentage above 0, such as 10%")
    return float(number[1]) / 100


def choices_from(arguments: argparse.Namespace) -> Choices:
    """What the command line says; on its scale and repeats, else, what the run to resume had."""
    if arguments.repeats is not None and not 1 <= arguments.repeats <= 1000:
        raise UsageError(f"--repeats {arguments.repeats}: expected 1 to 1000")
    only = _pairs("--only", arguments.only)
    before = recorded_plan(arguments.resume) if arguments.resume else {}
    return Choices(
        scale=arguments.scale or before.get("scale") or DEFAULT_SCALE,
        variables={n: variable_from_text(v) for n, v in _pairs("--var", arguments.var).items()},
        only={name: tuple(value.split(",")) for name, value in only.items()},
        repeats=arguments.repeats or before.get("repeats"),
        order=arguments.order or before.get("order"),
        seed=_seed(arguments, before),
        keep=arguments.keep,
        release=find_release(arguments.release or Choices().release).name,
    )


def _seed(arguments: argparse.Namespace, before: Mapping[str, Any]) -> int:
    if arguments.seed is not None:
        return int(arguments.seed)
    return int(before.get("seed", secrets.randbelow(1 << 31)))


def options_from(arguments: argparse.Namespace) -> RunOptions:
    if arguments.lab and arguments.conf:
        raise UsageError("--lab and --conf name two clusters: give one of them")
    if arguments.release and (arguments.lab or arguments.conf):
        raise UsageError("--release is for a lab that the run starts: not with --lab or --conf")
    if arguments.conf is None and (arguments.keyring or arguments.known_fsid):
        raise UsageError("--keyring and --i-know-this-cluster need --conf")
    given = {
        "conf": arguments.conf and arguments.conf.absolute(),
        "keyring": arguments.keyring and arguments.keyring.absolute(),
        "work": arguments.work.absolute(),
        "paths": tuple(arguments.path),
        "exporters": tuple(Address.of_exporter(u).below("/metrics") for u in arguments.exporter),
        "grafana": arguments.grafana and Address.parse(arguments.grafana, "--grafana", 3000),
        "loki": arguments.loki and Address.parse(arguments.loki, "--loki", 3100),
        "others_cpu": _share("--others-cpu", arguments.others_cpu),
    }
    names = {field.name for field in fields(RunOptions)}
    return RunOptions(**{name: vars(arguments)[name] for name in names - {*given}}, **given)


def place_for(arguments: argparse.Namespace) -> ProgramPaths:
    """Where the programs of a dry run would find things, as far as that is known before."""
    if arguments.conf:
        keyring = str(arguments.keyring) if arguments.keyring else None
        return ProgramPaths(conf=str(arguments.conf), user=arguments.user, keyring=keyring)
    if arguments.lab:
        work = RunningLab.find(arguments.lab).paths.work / "RUN"
        return ProgramPaths(conf=str(work / "ceph.conf"), work=str(work))
    return ProgramPaths()


async def _run(arguments: argparse.Namespace) -> int:
    if arguments.restore_only:
        return await _restore(arguments)
    choices, options = choices_from(arguments), options_from(arguments)
    if arguments.scenario:
        text, file = library.read(arguments.scenario)
    elif arguments.resume:
        text, file = library.read(str(arguments.resume / SCENARIO_FILE))
    else:
        raise UsageError(f"which scenario? there are {', '.join(library.shipped())}")
    plan = parse(text, file, choices)
    if arguments.check or arguments.dry_run:
        await preflight.check_plan(plan, options)
        cpus = await cpus_of_this_host()
        place = place_for(arguments)
        says = await ask_cluster.ask(plan, options)
        for line in plan_text.lines(
            plan, place, commands=arguments.dry_run, cpus=cpus, cluster=says
        ):
            say(line)
        return 0
    progress = Progress()
    for line in plan_text.heading(plan):
        progress.note(line)
    path = await Runner(plan, options, progress).run()
    say(path)
    return 0


async def _restore(arguments: argparse.Namespace) -> int:
    if arguments.scenario or arguments.resume:
        raise UsageError("--restore-only runs nothing: leave out the scenario and --resume")
    options = options_from(arguments)
    if options.conf:
        preflight.check_restore(options)
    await restore(options)
    return 0


async def _scenarios(arguments: argparse.Namespace) -> int:
    shipped = library.shipped()
    if arguments.show:
        text, _ = library.read(arguments.show)
        say_text(text)
        return 0
    columns = max(40, min(100, shutil.get_terminal_size((100, 24)).columns))
    for name, text in shipped.items():
        top = load(text, f"{name}.yaml").entries()
        about = " ".join(top["about"].text().split()) if "about" in top else ""
        scales = ", ".join(top["scales"].entries()) if "scales" in top else "none"
        folded = textwrap.wrap(about, columns - 2)
        say(name, *(f"  {line}" for line in folded), f"  scales: {scales}")
    return 0
