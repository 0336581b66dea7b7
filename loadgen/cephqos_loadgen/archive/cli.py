"""`cephqos archive`: verify, list, show and export what runs have recorded."""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.terminal import aligned, say, say_json
from cephqos_loadgen.archive import export, reader
from cephqos_loadgen.recorded_pieces.slow_operations import longest_wait
from cephqos_loadgen.results.host import HostUse
from cephqos_loadgen.results.host_load import busy_cpu_seconds, disks_by_others
from cephqos_loadgen.results.json_form import to_json
from cephqos_loadgen.results.phase import LoadResult
from cephqos_loadgen.run_recording.layout import is_archive, is_running

_DEFAULT_BASE = "cephqos-runs"
_ARCHIVE = "folder of a recorded run"
# What is shown is in files that are smaller.
_SHOWN_BYTES = 4 << 20
_SHOWN_OPERATIONS = 5
_SHOWN_TEXT = 120
# What ended a phase, where it is not what the plan says.
_ENDED = {
    "cut_off": "cut off by at_most",
    "failed": "failed",
    "interrupted": "not finished: the run was interrupted",
}
_EXPORTERS = {
    "csv": export.to_csv,
    "parquet": export.to_parquet,
    "openmetrics": export.to_openmetrics,
}


def add_options(archive: Parser) -> None:
    verbs = archive.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("ls", help="list the archives of a folder")
    listing.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(_DEFAULT_BASE),
        help="folder of archives (default: %(default)s)",
    )
    listing.option("--json", "print JSON")
    listing.set_defaults(run=_ls)
    verify = verbs.add_parser("verify", help="check archives against their checksums")
    verify.add_argument("archive", nargs="+", type=Path, help=_ARCHIVE)
    verify.set_defaults(run=_verify)
    show = verbs.add_parser("show", help="show points, repeats, phases and curves")
    show.add_argument("archive", type=Path, help=_ARCHIVE)
    show.option("--json", "print archive.json")
    show.set_defaults(run=_show)
    _add_export(verbs.add_parser("export", help="write tables (CSV, Parquet) or OpenMetrics"))


def _add_export(parser: Parser) -> None:
    parser.add_argument("archive", type=Path, help=_ARCHIVE)
    parser.option(
        "--format", "form of the files (default: csv)", choices=export.FORMATS, default="csv"
    )
    parser.option("--to DIR", "folder to write to", required=True)
    parser.set_defaults(run=_export)


async def _ls(arguments: argparse.Namespace) -> int:
    named = arguments.folder != Path(_DEFAULT_BASE)
    if not arguments.folder.is_dir() and (named or arguments.folder.exists()):
        raise UsageError(f"{arguments.folder}: expected a folder of archives")
    rows = [_listed(path) for path in reader.find_archives(arguments.folder)]
    if arguments.json:
        say_json(rows)
    elif not rows:
        missing = "" if arguments.folder.exists() else ", which does not exist"
        say(f"no archives in {arguments.folder}{missing}")
    else:
        for row in rows:
            done = f"{row['repeats']}/{row['repeats_planned']} runs" if "repeats" in row else ""
            say(f"{row['status']:10} {done:12} {row['archive']}")
    return 0


def _listed(path: Path) -> dict[str, Any]:
    """One line of the list. An archive that cannot be read is one of them."""
    if not is_archive(path):
        return {"archive": str(path), "status": "running" if is_running(path) else "unfinished"}
    try:
        manifest = reader.open_archive(path).manifest
    except CephqosError as error:
        return {"archive": str(path), "status": "unreadable", "error": str(error)}
    return {
        "archive": str(path),
        "status": manifest.status,
        "scenario": manifest.scenario,
        "start_unix_seconds": manifest.start_unix_seconds,
        "seconds": manifest.end_unix_seconds - manifest.start_unix_seconds,
        "repeats": sum(line.status == "finished" for line in manifest.repeats),
        "repeats_planned": manifest.repeats_planned,
    }


async def _verify(arguments: argparse.Namespace) -> int:
    """Every archive that is named: one that cannot be read does not hide the others."""
    status = 0
    for path in arguments.archive:
        try:
            problems = list(reader.problems(reader.open_archive(path)))
        except reader.ArchiveDamaged as error:
            problems = [str(error)]
        for problem in problems:
            say(f"{path}: {problem}")
        if problems:
            status = 1
        else:
            say(f"{path}: sound")
    return status


async def _show(arguments: argparse.Namespace) -> int:
    archive = reader.open_archive(arguments.archive)
    with reader.damage_named(archive.folder):
        lines = list(describe(archive))
    damage = next(reader.problems(archive, added=False, read_up_to=_SHOWN_BYTES), None)
    if damage:
        raise reader.ArchiveDamaged(
            f"{archive.folder} is damaged, cephqos archive verify names what is: {damage}"
        )
    if arguments.json:
        say_json(to_json(archive.manifest))
    else:
        say(*lines)
    return 0


def describe(archive: reader.Archive) -> Iterator[str]:
    """What a person wants to know first."""
    manifest = archive.manifest
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(manifest.start_unix_seconds))
    seconds = manifest.end_unix_seconds - manifest.start_unix_seconds
    yield f"{manifest.run}: {manifest.status}, {started} UTC, {seconds:.0f} s"
    if manifest.error:
        yield f"  error: {manifest.error}"
    cluster = archive.environment.get("cluster", {})
    versions = cluster.get("versions", {}).get("overall", {})
    if versions:
        yield f"  cluster {cluster['fsid']}: {', '.join(versions)}"
    for line in manifest.restore_commands:
        yield f"  to restore: {line}"
    orders = {
        point["name"]: [phase["name"] for phase in point["phases"]]
        for point in archive.plan["points"]
    }
    for repeat in archive.repeats:
        yield from (f"  {line}" for line in _repeat(repeat, orders[repeat.record.point]))
    smallest = manifest.summary.found
    if smallest and len(smallest.iops) > 1:
        line = f"  smallest {smallest.axis} that keeps {smallest.keeping:.0%}: {smallest.value}"
        too_close = ", ".join(smallest.too_close)
        yield f"{line}; too close to call: {too_close}" if too_close else line


def _repeat(repeat: reader.RecordedRepeat, order: list[str]) -> Iterator[str]:
    record = repeat.record
    yield f"{repeat.name}: {record.status} {record.error}".rstrip()
    if record.cost.wall_seconds:  # what an exporter recorded by itself was not measured
        yield f"  recording took {record.cost.core_share:.2%} of a core"
    yield from (f"  finding: {finding}" for finding in record.findings)
    if record.in_force.capacity_iops:
        each = (f"{osd} {iops:,.0f}" for osd, iops in record.in_force.capacity_iops.items())
        yield f"  capacity measured, IOPS: {', '.join(each)}"
    yield from (f"  {line}" for line in _operations(repeat.operations()))
    hosts = repeat.host()
    for name in sorted(record.phases, key=order.index):
        phase = record.phases[name]
        shown = [figure(key, value) for key, value in phase.headline().items()]
        shown += [_ENDED[phase.ended_by]] if phase.ended_by in _ENDED else []
        yield f"  {name}: {', '.join(shown) or 'done'}"
        if phase.error:
            yield f"    {phase.error}"
        if isinstance(phase.result, LoadResult) and phase.result.is_curve:
            yield from (f"    {line}" for line in _curve(phase.result))
        if isinstance(phase.result, LoadResult) and name in hosts:
            yield f"    host: {_host(hosts[name])}"


def _operations(operations: list[dict[str, Any]]) -> Iterator[str]:
    """The slowest ones that exporters recorded by themselves."""
    if operations:
        yield f"slowest of {len(operations)} recorded operations (operations.jsonl):"
    for op in operations[:_SHOWN_OPERATIONS]:
        event, seconds = longest_wait(op)
        at = time.strftime("%H:%M:%S", time.gmtime(op["started_unix_seconds"]))
        yield (
            f"  {at} {op['ceph_daemon']} {op['seconds']:.3f} s, {seconds:.3f} s of it after"
            f" '{event}': {op['description'][:_SHOWN_TEXT]}"
        )


def _host(use: HostUse) -> str:
    """How busy the host was, and who made it so."""
    if use.cpu is None or use.seconds <= 0:
        return "not recorded"
    all_cpu_seconds = use.cpu.cpus * use.seconds
    others = use.cpu_users.others_seconds if use.cpu_users else 0.0
    shares = (
        ("CPUs busy", busy_cpu_seconds(use.cpu)),
        ("by others", others),
        ("waiting for disks", use.cpu.iowait_seconds),
        ("stolen", use.cpu.steal_seconds),
    )
    parts = [f"{seconds / all_cpu_seconds:.0%} {title}" for title, seconds in shares]
    return ", ".join([*parts, *_disks(use)])


def _disks(use: HostUse) -> list[str]:
    """How much of the time of the OSDs' disks others had, as far as this user may see it."""
    disks = disks_by_others(use)
    if disks is None or use.disk_users is None:
        return []
    hidden = use.disk_users.hidden
    unseen = f" (not seen: {hidden} processes)" if hidden > 1 else ""  # process 1 of a container
    return [f"{disks.time_share:.0%} of the OSDs' disks' time for others{unseen}"]


def _curve(result: LoadResult) -> Iterator[str]:
    """A table of the steps."""
    rows = [["depth", "IOPS", "mean ms", "p99 ms", "deviation ms", ""]]
    for step in result.steps:
        total = step.total
        p99 = total.latency_percentile_seconds(99)
        latency = total.latency_mean_seconds if total.ios else None
        cells = (latency, p99, total.latency_deviation_seconds)
        shown = ("-" if seconds is None else f"{seconds * 1e3:.3f}" for seconds in cells)
        outside = "" if step.within_target is not False else "above the target"
        rows.append([f"{step.depth}", f"{total.iops:,.0f}", *shown, outside])
    yield from aligned(rows, right=range(5))


def figure(key: str, value: float) -> str:
    """A figure as people read it: `latency_p99_seconds` 0.0123 as `12.30 ms p99`."""
    if key.endswith("_change_percent"):
        return f"{value:+.1f} % {key.removesuffix('_change_percent').replace('_', ' ')}"
    if key == "iops":
        return f"{value:,.0f} IOPS"
    if key.startswith("latency_"):
        statistic = key.removeprefix("latency_").removesuffix("_seconds")
        return f"{value * 1e3:.2f} ms {statistic}"
    if key.endswith("bytes_per_second"):
        return f"{value / 2**20:.1f} MiB/s"
    if key.endswith("_per_second"):
        return f"{value:.1f} {key.removesuffix('_per_second').replace('_', ' ')}/s"
    if key.endswith("seconds"):
        return f"{key.removesuffix('seconds').replace('_', ' ')}{value:.1f} s"
    return f"{key.replace('_', ' ')} {value:g}"


async def _export(arguments: argparse.Namespace) -> int:
    archive = reader.open_archive(arguments.archive)
    if arguments.to.exists() and not arguments.to.is_dir():
        raise UsageError(f"--to {arguments.to}: expected a folder")
    damage = list(reader.problems(archive, added=False))
    if damage:
        more = f" and {len(damage) - 1} more" if len(damage) > 1 else ""
        raise reader.ArchiveDamaged(
            f"{archive.folder} is damaged, nothing was exported: {damage[0]}{more}"
            " (cephqos archive verify names all)"
        )
    with reader.damage_named(archive.folder):
        written = list(_EXPORTERS[arguments.format](archive, arguments.to))
    say(*written)
    return 0
