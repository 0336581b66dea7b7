"""`cephqos doctor host|cluster|prometheus|dump|collect`: options, and which checks each asks.

Each action gathers facts, asks its checks, and prints the findings.
"""

import argparse
import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.terminal import say, say_json, say_text
from cephqos_base.urls import check_url
from cephqos_doctor import (
    boards,
    clock,
    cluster_facts,
    cluster_state,
    collect,
    disks,
    dump,
    figures,
    host_facts,
    key,
    known_faults,
    leftovers,
    machine,
    placement,
    prometheus_facts,
    recovery,
    rules,
    scheduler,
    sockets,
    targets,
    tuning,
    upkeep,
)
from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.dump import DumpFacts
from cephqos_doctor.finding import Check, Diagnosis, diagnose, unless
from cephqos_doctor.host_facts import HostFacts, Osds
from cephqos_doctor.prometheus_facts import PrometheusFacts
from cephqos_exporter import core_options
from cephqos_exporter.ceph.cluster import ClusterReader
from cephqos_exporter.ceph.discovery import find_sockets
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_exporter.checks import check_root
from cephqos_exporter.cli import add_flag, read_settings
from cephqos_exporter.cluster import cluster_options
from cephqos_exporter.collectors.mclock.collector import POLICY
from cephqos_exporter.config import ENVIRONMENT_PREFIX, Settings
from cephqos_insight.prometheus_access import PASSWORDS, add_header, headers_of


def _no_osd_config(facts: Osds) -> str:
    return "" if any(osd.options for osd in facts.osds) else "no OSD's configuration is known"


def _no_cluster(facts: ClusterFacts) -> str:
    return "no connection" if facts.failure and not facts.status else ""


def _no_prometheus(facts: PrometheusFacts) -> str:
    return "Prometheus gives no usable answer" if facts.failure else ""


_OSD_CHECKS: Final = unless(
    _no_osd_config, (*scheduler.CHECKS, *tuning.CHECKS, *figures.CHECKS, *known_faults.CHECKS)
)
HOST_CHECKS: Final[tuple[Check[HostFacts], ...]] = (
    *sockets.CHECKS,
    *_OSD_CHECKS,
    *unless(_no_osd_config, (*disks.HOST_CHECKS, *tuning.HOST_CHECKS)),
    *machine.HOST_CHECKS,
    *clock.HOST_CHECKS,
)
CLUSTER_CHECKS: Final[tuple[Check[ClusterFacts], ...]] = (
    key.REACHABLE,
    *unless(
        _no_cluster,
        (
            *key.CHECKS,
            *cluster_state.CHECKS,
            *known_faults.CLUSTER_CHECKS,
            *placement.CHECKS,
            *upkeep.CLUSTER_CHECKS,
            *recovery.CHECKS,
            *leftovers.CHECKS,
        ),
    ),
)
DUMP_CHECKS: Final[tuple[Check[DumpFacts], ...]] = (
    *_OSD_CHECKS,
    *upkeep.CHECKS,
)
PROMETHEUS_CHECKS: Final[tuple[Check[PrometheusFacts], ...]] = (
    targets.REACHABLE,
    *unless(_no_prometheus, (*targets.CHECKS, *rules.CHECKS)),
    *boards.CHECKS,
    *unless(_no_prometheus, clock.PROMETHEUS_CHECKS),
)

_HOST_OPTIONS: Final = (core_options.SOCKETS, core_options.PROC, core_options.SYS, POLICY)
_CLUSTER_OPTIONS: Final = (
    cluster_options.CONF,
    cluster_options.NAME,
    cluster_options.KEYRING,
    cluster_options.PYTHON,
)
# The configuration of the packages' service. `doctor host` uses its sockets and policies, too.
PACKAGED: Final = Path("/etc/cephqos/exporter.yml")
_FILE_VARIABLE: Final = f"{ENVIRONMENT_PREFIX}CONFIG_FILE"


def add_options(parser: Parser) -> None:
    parser.epilog = "Status 0: nothing found. 1: findings. 2: a mistake in the command."
    actions = parser.add_subparsers(dest="action", required=True, metavar="WHAT")
    for name, text, run, options in (
        (
            "host",
            "this host: admin sockets, user, OSDs, memory, network, clock",
            _host,
            _HOST_OPTIONS,
        ),
        (
            "cluster",
            "a cluster: key, manager, fenced clients, pools, scrubs, recovery, runs that died",
            _cluster,
            _CLUSTER_OPTIONS,
        ),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.option(
            "--config.file PATH",
            "cephqos-exporter's configuration file, for what the options do not say"
            + (f" (default: {PACKAGED} if it is there)" if name == "host" else ""),
            dest="config.file",
        )
        for option in options:
            add_flag(action, option)
        if name == "cluster":
            action.option(
                "--try-powers",
                "also try six commands that the key should not allow; they change nothing,"
                " and the audit log shows them",
            )
        _add_json(action, run)
    _add_prometheus(actions)
    _add_dump(actions)
    _add_collect(actions)


def _add_prometheus(actions: Any) -> None:
    text = "a Prometheus: targets, intervals, rules, double scraping; Grafana's dashboards"
    action = actions.add_parser("prometheus", help=text, description=text)
    action.add_argument("url", help="such as http://localhost:9090")
    add_header(action)
    action.option("--grafana URL", "look at its dashboards too", default="")
    action.option("--grafana-header FILE", "the same as --header, for Grafana")
    action.option(
        "--rules DIR",
        "rule files that should be loaded (default: what `cephqos rules build` makes for the"
        " interval of those that are)",
    )
    _add_json(action, _prometheus)


def _add_dump(actions: Any) -> None:
    text = "saved replies of another cluster, such as a sosreport; nothing is asked"
    action = actions.add_parser("dump", help=text, description=text)
    action.add_argument(
        "folder",
        type=Path,
        metavar="DIR",
        help="folder with any of: ceph config dump, osd metadata, osd tree, pg dump, balancer"
        " status (--format json), report; ceph config show osd.N; ceph daemon osd.N config show,"
        " config diff, dump_op_pq_state",
    )
    _add_json(action, _dump)


def _add_collect(actions: Any) -> None:
    text = "write replies of an OSD and of the cluster, without names, for the maintainers' tests"
    action = actions.add_parser("collect", help=text, description=text)
    action.add_argument("folder", type=Path, metavar="DIR", help="new or empty folder")
    action.option("--osd N", "number of the OSD (default: the first one of this host)")
    action.option("--no-cluster", "ask the OSD only, not the monitors")
    for option in (core_options.SOCKETS, *_CLUSTER_OPTIONS):
        add_flag(action, option)
    action.set_defaults(run=_collect)


def _add_json(action: Parser, run: Any) -> None:
    action.option("--json", "write the findings as JSON")
    action.set_defaults(run=run)


async def _host(arguments: argparse.Namespace) -> int:
    given = vars(arguments)
    given["config.file"] = file_of(given["config.file"], os.environ)
    settings = _settings(arguments, _HOST_OPTIONS)
    check_root(settings, core_options.PROC)
    facts = await host_facts.gather(settings)
    return _print(diagnose("host", HOST_CHECKS, facts), arguments)


def file_of(
    named: str | None, variables: Mapping[str, str], packaged: Path = PACKAGED
) -> str | None:
    """The configuration of the host's exporter: the one that is named, or else the packages'."""
    if named or _FILE_VARIABLE in variables or not os.access(packaged, os.R_OK):
        return named
    return str(packaged)


async def _cluster(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments, _CLUSTER_OPTIONS)
    cluster_options.check(settings)
    connection = cluster_options.connection_of(settings)
    facts = await cluster_facts.gather(connection, try_powers=arguments.try_powers)
    if not arguments.json and (said := cluster_state.left_for_clients(facts)):
        say_text(said)
    return _print(diagnose("cluster", CLUSTER_CHECKS, facts), arguments)


async def _dump(arguments: argparse.Namespace) -> int:
    facts = await asyncio.to_thread(dump.gather, arguments.folder)
    if not arguments.json:
        say_text(f"read: {', '.join(facts.read)}; {len(facts.osds)} OSDs")
    return _print(diagnose("dump", DUMP_CHECKS, facts), arguments)


async def _collect(arguments: argparse.Namespace) -> int:
    collect.check_empty(arguments.folder)
    settings = _settings(arguments, (core_options.SOCKETS, *_CLUSTER_OPTIONS))
    sockets = find_sockets(settings[core_options.SOCKETS], ["osd"])
    chosen = [one for one in sockets if arguments.osd in (None, int(one.id))]
    if not chosen:
        found = ", ".join(f"osd.{one.id}" for one in sockets) or "no admin socket of an OSD"
        wanted = "an OSD" if arguments.osd is None else f"osd.{arguments.osd}"
        raise UsageError(f"found {found}, expected {wanted}: see `cephqos doctor host`")
    reader = None
    if not arguments.no_cluster:
        reader = ClusterReader(cluster_options.connection_of(settings))
    try:
        ask = None if reader is None else reader.ask
        arguments.folder.mkdir(parents=True, exist_ok=True)  # fails before a cluster is asked
        await collect.record(chosen[0], ask, arguments.folder)
    except CommandFailed as error:
        refused = key.refusal(settings[cluster_options.NAME], error)
        raise UsageError(f"{refused}. --no-cluster asks the OSD only") from error
    except ClusterUnreachable as error:
        raise UsageError(f"no cluster: {error}; --no-cluster asks the OSD only") from error
    finally:
        if reader is not None:
            await reader.close()
    say(f"wrote {arguments.folder}: look through it, then send it")
    return 0


async def _prometheus(arguments: argparse.Namespace) -> int:
    check_url("url", arguments.url, PASSWORDS)
    if arguments.grafana:
        check_url("--grafana", arguments.grafana, PASSWORDS, 3000)
    facts = await prometheus_facts.gather(
        arguments.url,
        headers=headers_of(arguments.header),
        grafana=arguments.grafana,
        grafana_headers=headers_of(arguments.grafana_header),
        rules=arguments.rules,
    )
    return _print(diagnose("prometheus", PROMETHEUS_CHECKS, facts), arguments)


def _settings(arguments: argparse.Namespace, options: tuple[Any, ...]) -> Settings:
    given = vars(arguments)
    names = {option.name for option in options} | {"config.file"}
    return read_settings({name: given.get(name) for name in names}, os.environ)


def _print(diagnosis: Diagnosis, arguments: argparse.Namespace) -> int:
    if arguments.json:
        say_json(diagnosis.document(), indent=2)
    else:
        say_text(diagnosis.text())
    return 1 if diagnosis.findings else 0
