"""`cephqos archive`: verify, list, show and export what runs have recorded."""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cephqos_loadgen.archive import export, reader
from cephqos_loadgen.archive.layout import is_archive
from cephqos_loadgen.errors import UsageError

_DEFAULT_BASE = "cephqos-runs"
_EXPORTERS = {
    "csv": export.to_csv,
    "parquet": export.to_parquet,
    "openmetrics": export.to_openmetrics,
}


def add_parser(commands: Any) -> None:
    archive = commands.add_parser("archive", help="what runs have recorded")
    verbs = archive.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("ls", help="the archives of a folder")
    listing.add_argument("folder", nargs="?", type=Path, default=Path(_DEFAULT_BASE))
    listing.add_argument("--json", action="store_true", help="for programs")
    listing.set_defaults(run=_ls)
    verify = verbs.add_parser("verify", help="check that archives are whole and unchanged")
    verify.add_argument("archive", nargs="+", type=Path)
    verify.set_defaults(run=_verify)
    show = verbs.add_parser("show", help="what an archive holds")
    show.add_argument("archive", type=Path)
    show.add_argument("--json", action="store_true", help="the whole manifest")
    show.set_defaults(run=_show)
    _add_export(verbs.add_parser("export", help="for other programs"))


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", type=Path)
    parser.add_argument("--format", choices=export.FORMATS, default="csv")
    parser.add_argument("--to", type=Path, required=True, help="a folder")
    parser.set_defaults(run=_export)


async def _ls(arguments: argparse.Namespace) -> int:
    rows = []
    for path in reader.find_archives(arguments.folder):
        if is_archive(path):
            manifest = reader.open_archive(path).manifest
            finished = [r for r in manifest["repeats"] if r["status"] == "finished"]
            rows.append(
                {
                    "archive": str(path),
                    "status": manifest["status"],
                    "scenario": manifest["scenario"],
                    "started": manifest["started"],
                    "seconds": manifest["ended"] - manifest["started"],
                    "repeats": len(finished),
                    "repeats_planned": manifest["repeats_planned"],
                }
            )
        else:
            rows.append({"archive": str(path), "status": "unfinished"})
    if arguments.json:
        print(json.dumps(rows, indent=1))
    elif not rows:
        missing = "" if arguments.folder.exists() else ", which does not exist"
        print(f"no archives in {arguments.folder}{missing}")
    else:
        for row in rows:
            done = f"{row['repeats']}/{row['repeats_planned']} runs" if "repeats" in row else ""
            print(f"{row['status']:10} {done:12} {row['archive']}")
    return 0


async def _verify(arguments: argparse.Namespace) -> int:
    status = 0
    for path in arguments.archive:
        found = list(reader.problems(reader.open_archive(path)))
        for problem in found:
            print(f"{path}: {problem}")
        if found:
            status = 1
        else:
            print(f"{path}: sound")
    return status


async def _show(arguments: argparse.Namespace) -> int:
    archive = reader.open_archive(arguments.archive)
    if arguments.json:
        print(json.dumps(archive.manifest, indent=1))
        return 0
    with reader.damage_named(archive.folder):
        lines = list(describe(archive))
    print(*lines, sep="\n")
    return 0


def describe(archive: reader.Archive) -> Iterator[str]:
    """What a person wants to know first."""
    manifest = archive.manifest
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(manifest["started"]))
    seconds = manifest["ended"] - manifest["started"]
    yield f"{manifest['run']}: {manifest['status']}, {started} UTC, {seconds:.0f} s"
    if manifest["error"]:
        yield f"  error: {manifest['error']}"
    cluster = archive.environment.get("cluster", {})
    versions = cluster.get("versions", {}).get("overall", {})
    if versions:
        yield f"  cluster {cluster['fsid']}: {', '.join(versions)}"
    for line in manifest["restore_commands"]:
        yield f"  to restore: {line}"
    for repeat in archive.repeats:
        outcome = repeat.outcome
        yield f"  {repeat.name}: {outcome['status']} {outcome.get('error', '')}".rstrip()
        share = outcome["cost"]["core_share"]
        yield f"    recording took {share:.2%} of a core"
        rows = outcome.get("figures", {})
        order = [phase["name"] for phase in archive.plan["points"][0]["phases"]]
        for phase in sorted(rows, key=order.index):
            figures = rows[phase]
            shown = ", ".join(_figure(key, value) for key, value in figures.items())
            done = "done" if outcome["phases"][phase].get("ok") else "not finished"
            yield f"    {phase}: {shown or done}"
    found = manifest["summary"].get("found")
    if found and len(found["iops"]) > 1:
        yield f"  smallest {found['axis']} that keeps {found['keeping']:.0%}: {found['value']}"


def _figure(key: str, value: float) -> str:
    if key == "iops":
        return f"{value:,.0f} IOPS"
    if key == "latency_mean":
        return f"{value * 1e3:.2f} ms mean"
    if key.endswith("seconds"):
        return f"{key.removesuffix('seconds').replace('_', ' ')}{value:.1f} s"
    return f"{key.replace('_', ' ')} {value:g}"


async def _export(arguments: argparse.Namespace) -> int:
    archive = reader.open_archive(arguments.archive)
    if arguments.to.exists() and not arguments.to.is_dir():
        raise UsageError(f"--to {arguments.to}: expected a folder")
    with reader.damage_named(archive.folder):
        written = list(_EXPORTERS[arguments.format](archive, arguments.to))
    print(*written, sep="\n")
    return 0
