"""`cephqos run` and `cephqos scenarios`."""

import argparse
import secrets
import shutil
import textwrap
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.terminal import say, say_text
from cephqos_loadgen.check import plan_text, preflight
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.live.endpoint import DEFAULT_LISTEN
from cephqos_loadgen.live.notify import TOKEN_VARIABLE
from cephqos_loadgen.phase_kinds.pin import cpus_of_this_host
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import ORDERS
from cephqos_loadgen.progress import Progress
from cephqos_loadgen.record.layout import SCENARIO_FILE
from cephqos_loadgen.run.resume import recorded_plan
from cephqos_loadgen.run.runner import Runner
from cephqos_loadgen.scenario import library
from cephqos_loadgen.scenario.parse import DEFAULT_SCALE, Choices, parse
from cephqos_loadgen.scenario.variables import load, variable_from_text
from cephqos_loadgen.servers import Address

DEFAULT_OUT = "cephqos-runs"
# argparse has no public name for what add_argument_group returns.
Group = argparse._ArgumentGroup


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
    scenarios.add_argument("--show", metavar="NAME", help="print the YAML of one scenario")
    scenarios.set_defaults(run=_scenarios)


def _add_plan(group: Group) -> None:
    group.add_argument("--check", action="store_true", help="check and print the plan, then stop")
    group.add_argument(
        "--dry-run", action="store_true", help="the same, with every command line of the run"
    )
    _add_choices(group)
    group.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="PATH",
        help="device or file that the scenario may load and overwrite (engines libaio and io_uring;"
        " repeatable)",
    )
    group.add_argument(
        "--resume",
        type=Path,
        metavar="ARCHIVE",
        help="continue an interrupted run: keep its finished repeats, run the others",
    )


def _add_choices(group: Group) -> None:
    """What a scenario leaves open."""
    group.add_argument(
        "--scale",
        metavar="NAME",
        help="size of the run: tiny (minutes), lab (default), study (as published, hours)",
    )
    group.add_argument(
        "--repeats", metavar="N", type=int, help="repeats of each point (default: scenario's)"
    )
    group.add_argument(
        "--order",
        choices=ORDERS,
        help="interleaved (default): the first repeat of each point, then the second;"
        " grouped: all repeats of a point together; random",
    )
    group.add_argument(
        "--seed", metavar="N", type=int, help="of --order random (default: drawn and recorded)"
    )
    group.add_argument(
        "--var",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a variable of the scenario (repeatable)",
    )
    group.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="AXIS=VALUE[,VALUE]",
        help="run only these values of an axis of the matrix (repeatable)",
    )


def _add_cluster(group: Group) -> None:
    group.add_argument("--lab", metavar="NAME", help="a running lab (cephqos lab list)")
    group.add_argument(
        "--release", metavar="RELEASE", help="Ceph release of the new lab (default: reef)"
    )
    group.add_argument("--conf", metavar="FILE", type=Path, help="ceph.conf of an existing cluster")
    group.add_argument(
        "--keyring", metavar="FILE", type=Path, help="keyring of the client, with --conf"
    )
    group.add_argument(
        "--user", metavar="NAME", default="admin", help="name of the client (default: admin)"
    )
    group.add_argument(
        "--i-know-this-cluster",
        metavar="FSID",
        dest="known_fsid",
        help="required with --conf: the run changes settings of this cluster and loads it",
    )
    defaults = RunOptions(out=Path())
    group.add_argument(
        "--python",
        metavar="PROGRAM",
        default=defaults.python,
        help="Python interpreter that can import rados (default: %(default)s)",
    )
    group.add_argument(
        "--work",
        metavar="DIR",
        type=Path,
        default=defaults.work,
        help="folder for sockets and the clients' ceph.conf (default: %(default)s)",
    )
    group.add_argument(
        "--keep", action="store_true", help="do not remove filled pools, so the next run skips that"
    )
    group.add_argument(
        "--take-over",
        action="store_true",
        help="another run died and left the cluster changed: undo its changes first",
    )


def _add_recording(group: Group) -> None:
    group.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path(DEFAULT_OUT),
        help="folder of archives (default: %(default)s)",
    )
    group.add_argument(
        "--exporter",
        action="append",
        default=[],
        metavar="URL",
        help="record this cephqos-exporter, such as http://host:10130 (repeatable; default: start"
        " one if OSDs are local)",
    )
    group.add_argument(
        "--sockets", metavar="DIR", type=Path, help="folder of admin sockets of local OSDs"
    )
    group.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help=f"address of the run's own /metrics (default: {DEFAULT_LISTEN})",
    )
    group.add_argument(
        "--grafana", metavar="URL", help=f"annotate phases there (token in {TOKEN_VARIABLE})"
    )
    group.add_argument("--loki", metavar="URL", help="log phases there")


def _pairs(option: str, texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{option} {text!r}: expected NAME=VALUE")
        pairs[name] = value
    return pairs


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
        for line in plan_text.lines(plan, place, commands=arguments.dry_run, cpus=cpus):
            say(line)
        return 0
    progress = Progress()
    for line in plan_text.heading(plan):
        progress.note(line)
    path = await Runner(plan, options, progress).run()
    say(path)
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
