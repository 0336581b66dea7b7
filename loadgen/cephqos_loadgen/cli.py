"""The `cephqos` command."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

from cephqos_alerts import cli as rules_cli
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_exporter.version import __version__
from cephqos_loadgen.archive import cli as archive_cli
from cephqos_loadgen.demo import cli as demo_cli
from cephqos_loadgen.errors import CephqosError
from cephqos_loadgen.lab import cli as lab_cli
from cephqos_loadgen.run import cli as run_cli


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong option costs one line, not a page."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The command that got what it does not know refuses it: the hint names its own help."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser() -> Parser:
    parser = Parser(
        prog="cephqos",
        description="Real Ceph clusters on loopback, and load that puts Ceph's QoS to the test.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    lab_cli.add_parser(commands)
    run_cli.add_parser(commands)
    archive_cli.add_parser(commands)
    demo_cli.add_parser(commands)
    rules_cli.add_parser(commands)
    return parser


def run_command(work: Coroutine[Any, Any, int]) -> int:
    """Run to the end; Ctrl-C and SIGTERM cancel it, so that clean-up runs in either case."""

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
    except (CommandFailed, ClusterUnreachable) as error:
        print(f"cephqos: {error}", file=sys.stderr)
        return 1
    except CephqosError as error:
        print(f"cephqos: {error}", file=sys.stderr)
        return error.exit_status


def main() -> int:
    arguments = build_parser().parse_args()
    try:
        status = run_command(arguments.run(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # `cephqos scenarios | head`: nobody reads on, and the interpreter must not complain later.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return status


if __name__ == "__main__":
    sys.exit(main())
