"""`cephqos lab …`: real Ceph on loopback from the command line."""

import argparse
import asyncio
import os
import sys
from typing import Any

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.terminal import say, say_json
from cephqos_base.units import GIB, parse_cpu_list, parse_size
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab import keeper
from cephqos_loadgen.lab.checks import check_root
from cephqos_loadgen.lab.faults import FULL_STATES
from cephqos_loadgen.lab.lab import RunningLab, end_lab
from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.lab.releases import RELEASES, find_release
from cephqos_loadgen.lab.spec import (
    AUTHS,
    BACKINGS,
    FILESYSTEMS,
    IO_SCHEDULERS,
    OBJECTSTORES,
    OP_QUEUES,
    REGIMES,
    LabSpec,
    osds_in_words,
    with_regime,
)
from cephqos_loadgen.lab.state import (
    LabState,
    clean_dead_lab,
    is_alive,
    lab_names,
    labs_and_others,
    load_living,
)
from cephqos_loadgen.lab.trees import ensure_tree, tree_path, tree_ready
from cephqos_loadgen.progress import Progress

DEFAULT_NAME = "lab"
DEFAULT_DB_SIZE = 2 * GIB
LIMITS = {
    "riops": "reads per second",
    "wiops": "writes per second",
    "rbps": "bytes read per second",
    "wbps": "bytes written per second",
}


def add_options(lab: Parser) -> None:
    verbs = lab.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_up(verbs.add_parser("up", help="start a cluster; returns when it is active"))
    down = verbs.add_parser("down", help="stop one cluster and remove its files, and no others")
    _add_name(down)
    down.set_defaults(run=_down)
    status = verbs.add_parser(
        "status", help="show addresses, folders, daemons and faults of a cluster"
    )
    _add_name(status)
    status.option("--json", "print JSON")
    status.set_defaults(run=_status)
    execute = verbs.add_parser("exec", help="run a command inside the cluster: lab exec -- ceph -s")
    _add_name(execute)
    execute.add_argument("argv", nargs="+", metavar="COMMAND", help="what to run, after --")
    execute.set_defaults(run=_exec)
    listing = verbs.add_parser("list", help="list the labs of this machine")
    listing.option("--json", "print JSON")
    listing.set_defaults(run=_list)
    trees = verbs.add_parser(
        "trees", help="build the release trees now instead of at the first `lab up`"
    )
    trees.option("--release RELEASE...", "release to build, repeatable (default: all)")
    trees.set_defaults(run=_trees)
    _add_fault(verbs.add_parser("fault", help="stop, kill, delay, throttle or fill an OSD"))


def _add_name(parser: Parser) -> None:
    parser.option("--name NAME", "name of the lab (default: %(default)s)", default=DEFAULT_NAME)


def _add_up(up: Parser) -> None:
    _add_name(up)
    _add_osds(up)
    _add_devices(up)
    _add_daemons(up)
    up.option("--port PORT", "first of the lab's 400 ports (default: a free block)")
    up.option(
        "--timeout SECONDS",
        "seconds until the cluster must be active (default: 120)",
        default=LabSpec().timeout,
    )
    up.set_defaults(run=_up)


def _add_osds(up: Parser) -> None:
    """How many OSDs, of which release, on what."""
    defaults = LabSpec()
    releases = ", ".join(f"{r.name} ({r.version})" for r in RELEASES.values())
    up.option(
        "--release RELEASE",
        f"Ceph release: {releases} (default: %(default)s)",
        default=defaults.release,
    )
    up.option("--osds N", "number of OSDs, 1 to 16 (default: 4)", default=defaults.osds)
    up.option("--osd-size SIZE", "size of each OSD; files are sparse (default: 10G)", default="10G")
    up.option(
        "--backing KIND",
        f"what holds an OSD's data: {' or '.join(BACKINGS)} (default: {defaults.backing})",
    )


def _add_devices(up: Parser) -> None:
    """What the loop devices are like."""
    regimes = "; ".join(f"{name}: {regime.about}" for name, regime in REGIMES.items())
    up.option("--regime NAME", f"settings that belong together. {regimes}")
    up.option(
        "--io-scheduler NAME", f"I/O scheduler of the loop devices: {', '.join(IO_SCHEDULERS)}"
    )
    up.option(
        "--rotational",
        "whether the loop devices report themselves as HDDs (1) or SSDs (0)",
        type=int,
        choices=(0, 1),
    )
    up.add_argument(
        "--db-device",
        nargs="?",
        const=str(DEFAULT_DB_SIZE),
        metavar="SIZE",
        help="a second loop device per OSD for BlueStore's DB and WAL (default size: 2G)",
    )
    up.option(
        "--device-iops N",
        "hold each OSD's device to N reads and N writes per second (default: no limit)",
    )
    up.add_argument(
        "--one-budget",
        type=int,
        choices=(0, 1),
        help="1: --device-iops holds reads and writes together, as in a real drive (default: each)",
    )
    up.add_argument(
        "--request-size",
        metavar="SIZE",
        help="with --one-budget 1: a larger request counts as several, as in a real drive, whose"
        " bytes per second are limited too (default: as one)",
    )


def _add_daemons(up: Parser) -> None:
    """How the daemons are configured and where they run."""
    defaults = LabSpec()
    up.option(
        "--setuser USER", "ceph: run daemons as user ceph, as in production (default: as root)"
    )
    up.option(
        "--op-queue NAME",
        f"scheduler of the OSDs: {' or '.join(OP_QUEUES)} (default: the release's)",
    )
    up.option(
        "--objectstore KIND",
        f"{' or '.join(OBJECTSTORES)} (default: %(default)s)",
        default=defaults.objectstore,
    )
    up.option("--fs KIND", f"filesystem for filestore: {', '.join(FILESYSTEMS)} (default: xfs)")
    up.option(
        "--auth KIND",
        f"authentication: {' or '.join(AUTHS)}; without cephx every user of this host controls the"
        " lab's daemons (default: %(default)s)",
        default=defaults.auth,
    )
    up.option(
        "--set SECTION:OPTION=VALUE...",
        "add a line to ceph.conf, repeatable: --set osd:osd_max_backfills=2",
        dest="settings",
    )
    up.option("--cpus OSD=LIST...", "pin an OSD to CPUs, repeatable: 0=0,2-3")


def _add_fault(fault: Parser) -> None:
    kinds = fault.add_subparsers(dest="kind", required=True, metavar="KIND")
    for kind, text in (
        ("stop", "SIGSTOP: the OSD keeps its connections and answers nothing"),
        ("continue", "SIGCONT: end a stop"),
        ("kill", "SIGKILL: end the OSD without warning"),
        ("restart", "kill the OSD if it runs, then start it"),
        ("cut", "remove the admin socket's file; a restart brings it back"),
        ("delay", "delay each op before it is queued"),
        ("throttle", "limit the OSD's device (needs --backing loop); no option: remove the limits"),
        ("fill", "make the OSD report that it is full; --state none ends it"),
    ):
        parser = kinds.add_parser(kind, help=text)
        _add_name(parser)
        parser.option("--osd N", "number of the OSD", required=True)
        parser.set_defaults(run=_fault)
        if kind == "delay":
            parser.option("--seconds SECONDS", "delay; 0 ends it", required=True)
            parser.option("--probability SHARE", "share of ops to delay (default: 1)", default=1.0)
        elif kind == "throttle":
            for limit, unit in LIMITS.items():
                parser.add_argument(f"--{limit}", metavar="N", type=int, help=f"at most N {unit}")
        elif kind == "fill":
            parser.option("--state", "what the OSD reports", choices=FULL_STATES, required=True)


def spec_from(arguments: argparse.Namespace) -> LabSpec:
    """The spec that the options ask for, validated."""
    cpus = []
    for text in arguments.cpus:
        osd, equals, cpu_list = text.partition("=")
        if not equals or not osd.isdigit():
            raise UsageError(f"--cpus {text!r}: expected OSD=LIST, as in 0=0,2-3")
        cpus.append((int(osd), parse_cpu_list(cpu_list, least=1)))
    asked = {
        "name": arguments.name,
        "release": find_release(arguments.release).name,
        "osds": arguments.osds,
        "osd_size": parse_size(arguments.osd_size),
        "backing": arguments.backing,
        "io_scheduler": arguments.io_scheduler,
        "rotational": None if arguments.rotational is None else bool(arguments.rotational),
        "regime": arguments.regime,
        "db_size": None if arguments.db_device is None else parse_size(arguments.db_device),
        "device_iops": arguments.device_iops,
        "one_budget": None if arguments.one_budget is None else bool(arguments.one_budget),
        "request_size": None
        if arguments.request_size is None
        else parse_size(arguments.request_size),
        "setuser": arguments.setuser,
        "op_queue": arguments.op_queue,
        "objectstore": arguments.objectstore,
        "fs": arguments.fs,
        "auth": arguments.auth,
        "settings": tuple(CephOption.parse(text) for text in arguments.settings),
        "cpus": tuple(cpus),
        "port": arguments.port,
        "timeout": arguments.timeout,
    }
    spec = LabSpec(**with_regime(asked))
    spec.validate()
    return spec


async def _up(arguments: argparse.Namespace) -> int:
    spec = spec_from(arguments)
    check_root()
    await keeper.start(spec)
    status = await RunningLab.find(spec.name).status()
    say(f"lab {spec.name!r} is up: fsid {status['fsid']}, sockets in {status['socket_dir']}")
    say(f"try: cephqos lab exec --name {spec.name} -- ceph -s")
    return 0


async def _down(arguments: argparse.Namespace) -> int:
    """End this lab, or remove what it left if it was killed. Everything else is only listed."""
    name = arguments.name
    paths = LabPaths.of(name)
    try:
        if clean_dead_lab(paths):
            say(f"lab {name!r} had been killed: removed {paths.dir}")
            return 0
        if not is_alive(paths):
            load_living(name, hint="nothing to end")  # its error lists the labs that are up
        with Progress().step(f"ending lab {name!r}"):
            await end_lab(name)
        say(f"lab {name!r} ended: removed {paths.dir}")
    finally:
        for line in _left(name):
            say(f"left: {line}")
    return 0


def _left(ended: str) -> list[str]:
    """What the folder of labs has besides this one and those that are up."""
    names, others = labs_and_others()
    dead = [name for name in names if not is_alive(LabPaths.of(name))]
    told = {name: f"{LabPaths.of(name).dir} of a lab that was {_killed(name)}" for name in dead}
    return [text for name, text in {**told, **others}.items() if name != ended]


def _killed(name: str) -> str:
    return f"killed; `cephqos lab down --name {name}` removes its files"


async def _status(arguments: argparse.Namespace) -> int:
    lab = RunningLab.find(arguments.name)
    status = await lab.status()
    if arguments.json:
        say_json(status)
        return 0
    say(f"lab {status['name']}: Ceph {status['version']} ({status['release']})")
    for key in ("fsid", "conf", "socket_dir", "log_dir", "work_dir", "bin_dir"):
        say(f"  {key:11} {status[key]}")
    say(f"  mon         {status['mon_address']['v2']} (v2), {status['mon_address']['v1']} (v1)")
    for osd in status["osds"]:
        pid = f"pid {osd['pid']}" if osd["pid"] else "not running"
        device = " ".join(filter(None, (osd["device"], osd["db_device"])))
        faults = "; ".join(faults_in_words(osd["faults"]))
        say(f"  osd.{osd['id']:<7} {pid:20} {device} {faults and f'[{faults}]'}".rstrip())
    return 0


def faults_in_words(faults: dict[str, Any]) -> list[str]:
    """The faults of an OSD as `lab status` prints them."""
    known = {"stop": "stopped", "cut": "socket cut"}
    words = [text for name, text in known.items() if name in faults]
    if limits := faults.get("throttle"):
        words.append("throttled: " + ", ".join(f"{key} {value}" for key, value in limits.items()))
    if "delay" in faults:
        delay = faults["delay"]
        if delay is None:
            words.append("delay not known: the OSD does not answer")
        else:
            share = f" ({delay['probability']:.0%} of them)" if delay["probability"] < 1 else ""
            words.append(f"ops delayed by {delay['seconds']:g} s{share}")
    return words


async def _exec(arguments: argparse.Namespace) -> int:
    lab = RunningLab.find(arguments.name)
    argv = lab.enter_argv(arguments.argv)
    sys.stdout.flush()
    # Becoming the command keeps its terminal, its signals and its exit status.
    os.execvp(argv[0], argv)  # noqa: S606


async def _list(arguments: argparse.Namespace) -> int:
    rows = []
    for name in lab_names():
        paths = LabPaths.of(name)
        alive = is_alive(paths)
        row: dict[str, Any] = {
            "name": name,
            "state": _killed(name),
        }
        if alive:
            row["state"] = "starting"
            if paths.state.exists():
                state = LabState.load(paths)
                row |= {
                    "state": "up" if state.ready else "starting",
                    "release": state.spec.release,
                    "osds": state.spec.osds,
                    "port": state.port,
                }
        rows.append(row)
    if arguments.json:
        say_json(rows)
    elif not rows:
        say("no lab is up; start one with: cephqos lab up")
    else:
        for row in rows:
            lab = f"{row['release']}, {osds_in_words(row['osds'])}" if "release" in row else ""
            say(f"{row['name']:20} {row['state']:10} {lab}")
    return 0


async def _trees(arguments: argparse.Namespace) -> int:
    releases = [find_release(name) for name in arguments.release or RELEASES]
    progress = Progress()
    missing = [release for release in releases if not tree_ready(release)]
    if missing:
        check_root()
    # Half of the work is unpacking by one process: two trees at once take little longer than one.
    results = await asyncio.gather(
        *(ensure_tree(release, progress.quieter(len(missing) > 1)) for release in missing),
        return_exceptions=True,
    )
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in failures[1:]:
        progress.note(str(failure))
    if failures:
        raise failures[0]
    for release in releases:
        say(f"{release.name:10} {tree_path(release)}")
    return 0


async def _fault(arguments: argparse.Namespace) -> int:
    faults = RunningLab.find(arguments.name).faults
    osd = arguments.osd
    kind = arguments.kind
    if kind == "delay":
        await faults.delay(osd, arguments.seconds, arguments.probability)
    elif kind == "throttle":
        limits = {key: getattr(arguments, key) for key in LIMITS}
        given = {key: value for key, value in limits.items() if value is not None}
        await faults.throttle(osd, **given)
    elif kind == "fill":
        await faults.fill(osd, arguments.state)
    else:  # the other kinds have a method of the same name
        await getattr(faults, "resume" if kind == "continue" else kind)(osd)
    return 0
