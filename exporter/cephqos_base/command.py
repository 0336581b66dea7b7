"""The `cephqos` command: a table of commands. Only the one that is asked for is loaded.

To add a command, add a line to COMMANDS. Its function takes the command's Parser, adds options and
sets `run` to a coroutine function that takes the parsed arguments and returns an exit status:

    def add_options(parser: Parser) -> None:
        parser.option("--out DIR", "folder of the report")
        parser.set_defaults(run=_run)
"""

import argparse
import contextlib
import importlib
import importlib.util
import re
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from cephqos_base.completion import PrintCompletion
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.extras import how_to_install
from cephqos_base.hints import hint
from cephqos_base.terminal import OutputLost, discard_output, flush, say, say_json
from cephqos_base.textfile import reason_of
from cephqos_base.version import __version__


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """One command: a line of `cephqos --help`."""

    name: str
    help: str
    function: str  # `module:function` that adds the command's options
    extra: str = ""  # of pyproject.toml, with what the command needs for all that it can do
    needs: tuple[str, ...] = ()  # modules of that extra without which the command cannot start


# argparse's messages that Parser.error puts into other words.
_REQUIRED: Final = "the following arguments are required: "
_ONE_REQUIRED: Final = re.compile(r"one of the arguments (.*) is required")

COMMANDS: Final = (
    CommandEntry("demo", "show a real cluster under load; keys provoke faults in it",
            "cephqos_stack.demo.cli:add_options"),
    CommandEntry("lab", "start and end real Ceph clusters on loopback",
            "cephqos_loadgen.lab.cli:add_options"),
    CommandEntry("top", "show reservations and violations live in a terminal",
            "cephqos_loadgen.top.cli:add_options"),
    CommandEntry("run", "run a scenario and record it into an archive",
            "cephqos_loadgen.run.cli:add_run_options"),
    CommandEntry("scenarios", "list the scenarios that come with cephqos",
            "cephqos_loadgen.run.cli:add_scenarios_options"),
    CommandEntry("record", "keep, list and fetch what exporters have recorded by themselves",
            "cephqos_loadgen.recorded_pieces.cli:add_options"),
    CommandEntry("archive", "list, check, show and export what runs have recorded",
            "cephqos_loadgen.archive.cli:add_options"),
    CommandEntry("report", "write a report of archives: HTML, Markdown, tables, charts",
            "cephqos_stack.report:add_options", extra="report", needs=("numpy",)),
    CommandEntry("compare", "compare runs with a reference; exit 1 on a regression",
            "cephqos_loadgen.report.compare.cli:add_options", extra="report", needs=("numpy",)),
    CommandEntry("replay", "show recorded runs in Prometheus and Grafana again",
            "cephqos_stack.replay.cli:add_options"),
    CommandEntry("rules", "write recording rules, alerts and SLOs for Prometheus",
            "cephqos_alerts.cli:add_options"),
    CommandEntry("dashboards", "install Grafana dashboards, or build them from their sources",
            "cephqos_dashboards.cli:add_options"),
    CommandEntry("doctor", "say what is missing or wrong on a host, in a cluster or a Prometheus",
            "cephqos_doctor.cli:add_options"),
    CommandEntry("capacity", "compare the capacity of OSDs with what they delivered",
            "cephqos_insight.capacity.cli:add_options"),
    CommandEntry("advise", "show what another profile, WPQ or other reservations would give",
            "cephqos_insight.advise.cli:add_options"),
    CommandEntry("trial", "try settings on a cluster in turns, with guard rails and a way back",
            "cephqos_insight.trial.cli:add_options", extra="report", needs=("numpy",)),
    CommandEntry("who", "show which images, buckets and clients an OSD works for, and which wait",
            "cephqos_insight.who:add_options"),
    CommandEntry("blame", "list what client operations wait for, and on which OSDs",
            "cephqos_insight.blame:add_options"),
)  # fmt: skip


# The type of an option's value by the word behind the option. Any other word stands for text.
_TYPES: Final = {
    **dict.fromkeys(("DIR", "FILE", "FILE|DIR", "ARCHIVE"), Path),
    **dict.fromkeys(("N", "PORT"), int),
    **dict.fromkeys(("SECONDS", "FACTOR", "SHARE"), float),
}


class _WithOptions:
    add_argument: Callable[..., Any]  # of argparse

    def option(self, usage: str, help: str, **more: Any) -> None:
        """An option, by its usage: `--keep`, `--out DIR`, `--var NAME=VALUE...` (repeatable)."""
        name, _, word = usage.partition(" ")
        if word:
            repeatable = {"action": "append", "default": []} if word.endswith("...") else {}
            word = word.removesuffix("...")
            more = {"metavar": word, "type": _TYPES.get(word, str), **repeatable, **more}
        elif "choices" not in more:
            more["action"] = "store_true"
        self.add_argument(name, help=help, **more)


class Group(_WithOptions, argparse._ArgumentGroup):
    """Options under a heading of their own."""


class _Actions(argparse._SubParsersAction):  # type: ignore[type-arg]
    """The `--help` of an action (`cephqos lab start --help`) begins with its line in the list."""

    def add_parser(self, name: str, **settings: Any) -> Any:
        settings.setdefault("description", settings.get("help"))
        return super().add_parser(name, **settings)


class Parser(_WithOptions, argparse.ArgumentParser):
    """argparse, but an error is one line, not a page of usage."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.register("action", "parsers", _Actions)
        self._subparsers_action: argparse._SubParsersAction[Any] | None = None

    def add_argument_group(self, *given: Any, **settings: Any) -> Group:
        group = Group(self, *given, **settings)
        self._action_groups.append(group)
        return group

    def add_subparsers(self, **settings: Any) -> Any:
        self._subparsers_action = super().add_subparsers(**settings)
        return self._subparsers_action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown arguments here, in the parser of the command, and not in the parser above
        as argparse does: so the hint names the command's own options."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        actions = self._subparsers_action
        if actions is not None and message.endswith(f"required: {actions.metavar}"):
            message = f"expected one of: {', '.join(actions.choices)}"
        elif message.startswith(_REQUIRED):
            message = self._expected(message.removeprefix(_REQUIRED).split(", "))
        elif one_required := _ONE_REQUIRED.fullmatch(message):
            usages = {_argparse_name(action): _usage(action) for action in self._actions}
            allowed = [usages.get(name, name) for name in one_required[1].split()]
            message = f"expected one of: {', '.join(allowed)}"
        message += hint(self, message)
        say(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)

    def _expected(self, names: Sequence[str]) -> str:
        """The missing options and arguments, each with its help."""
        actions = {_argparse_name(action): action for action in self._actions}
        missing = []
        for name in names:
            action = actions.get(name)
            missing.append(f"{_usage(action)} ({action.help})" if action and action.help else name)
        return "expected " + "; ".join(missing)


def _argparse_name(action: argparse.Action) -> str:
    """What argparse's own messages call it."""
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def _usage(action: argparse.Action) -> str:
    """`--out DIR`, or the name of an argument."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    return "/".join(action.option_strings) + (f" {action.metavar}" if action.metavar else "")


class _CommandParser(Parser):
    """The parser of one command. It gets its options when it is used, and not before."""

    command: CommandEntry | None = None

    def add_options(self) -> None:
        """Add them, if that has not been done; UsageError if a part is not installed."""
        if self.command is not None:
            command, self.command = self.command, None
            load(command)(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.add_options()
        return super().parse_known_args(args, namespace)


def load(command: CommandEntry) -> Callable[[Parser], None]:
    """The function that adds the command's options; UsageError if a part is not installed."""
    module, _, function = command.function.partition(":")
    package = module.partition(".")[0]
    missing = [name for name in (package, *command.needs) if not _installed(name)]
    if missing:
        raise UsageError(
            f"{command.name} needs {', '.join(missing)}, not installed here;"
            f" {how_to_install(command.extra, missing[0])}"
        )
    add: Callable[[Parser], None] = getattr(importlib.import_module(module), function)
    return add


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def build_parser(commands: Sequence[CommandEntry] = COMMANDS) -> Parser:
    """The whole command line; what a command takes is added when that command is parsed."""
    parser = Parser(
        prog="cephqos",
        description="Shows whether Ceph keeps the reservations of its OSD scheduler, and produces"
        " the load that puts them to the test.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--print-completion", action=PrintCompletion)
    group = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_CommandParser
    )
    for command in commands:
        group.add_parser(
            command.name, help=command.help, description=command.help
        ).command = command
    return parser


def run_command(work: Coroutine[Any, Any, int]) -> int:
    """Run to the end; Ctrl-C and SIGTERM cancel it, so that clean-up runs in either case."""
    import asyncio  # a third of what --help would take

    async def guarded() -> int:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio.run gives one
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await work

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        return 130


def main(argv: Sequence[str] | None = None) -> int:
    try:
        try:
            return _status(argv)
        finally:  # also after --help, which ends in SystemExit
            flush()
    except KeyboardInterrupt:  # before run_command listens to signals
        return 130
    except BrokenPipeError:  # `cephqos scenarios | head`
        discard_output()
        return 128 + signal.SIGPIPE
    except OutputLost as error:
        discard_output()
        with contextlib.suppress(OutputLost):
            say(f"cephqos: {error}", file=sys.stderr)
        return 1


def _status(argv: Sequence[str] | None) -> int:
    """The exit status. An error is one line on standard error, and JSON where JSON was asked for:
    a script that reads it must not get nothing."""
    arguments = argparse.Namespace()
    try:
        build_parser().parse_args(argv, arguments)
        return run_command(arguments.run(arguments))
    except CephqosError as error:
        failure = error
    except BrokenPipeError:
        raise
    except OSError as error:
        # Such as a full disk, or a folder that has gone: a traceback would not help. Missing
        # permission is the user's to change: exit 2, as 1 also means findings and differences.
        kind = UsageError if isinstance(error, PermissionError) else CephqosError
        file = f"{error.filename}: " if error.filename else ""
        failure = kind(f"{file}{reason_of(error)}")
    say(f"cephqos: {failure}", file=sys.stderr)
    if getattr(arguments, "json", False) or getattr(arguments, "form", None) == "json":
        say_json({"error": str(failure), "exit_status": failure.exit_status})
    return failure.exit_status
