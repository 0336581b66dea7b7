"""Makes packages (Debian, RPM) of the exporter, of `top`, of the log collector: `make packages`.

The exporter's have all libraries in them, for each Python from 3.11 on: they need of a distribution
only one of these, so that one package is for all. Both architectures are made on any machine.
"""

import asyncio
import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))
import manual
import wheels

from cephqos_base.errors import CephqosError
from cephqos_base.version import __version__
from cephqos_loadgen.progress import Progress
from cephqos_stack.tools import ensure_tool

ROOT: Final = Path(__file__).parents[2]

PACKAGES: Final = (
    "exporter/cephqos_base",
    "exporter/cephqos_exporter",
    "alerts/cephqos_alerts",
    "dashboards/cephqos_dashboards",
    "deploy/cephqos_doctor",
)
_LICENCE_FILE: Final = re.compile(r"(un)?licen[cs]e(?!.*\.go$)|copying", re.I)
_SECONDS: Final = 600
# As packages call what the kernel calls otherwise; nfpm knows what RPM says.
HERE: Final = {kernel: name for name, kernel in wheels.ARCHITECTURES.items()}.get(
    platform.machine(), platform.machine()
)


def stage(directory: Path, architecture: str) -> None:
    """Lay out what the description takes from a staging directory."""
    wheels.unpack(directory / "libraries", architecture)
    for package in PACKAGES:
        _copy(package, directory / "libraries" / "lib")
    shutil.copytree(ROOT / "alerts" / "rules", directory / "rules")
    shutil.copytree(ROOT / "docs" / "operate" / "runbooks", directory / "runbooks")
    for file in manual.write(directory):
        if file.suffix == ".1":
            # No time in it: the same sources give the same bytes.
            (directory / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    _as_installed(directory)


def _copy(package: str, target: Path) -> None:
    """Links are followed: the default SLOs are one in a checkout."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / package, target / Path(package).name, ignore=ignored)


def _as_installed(directory: Path) -> None:
    """Whatever umask this runs with."""
    for path in directory.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def build(
    nfpm: Path, out: Path, version: str = __version__, architecture: str = HERE
) -> list[Path]:
    """The exporter's packages of both kinds, in `out`."""
    with tempfile.TemporaryDirectory() as name:
        stage(Path(name), architecture)
        filled = {"STAGE": name, "VERSION": version, "ARCH": architecture}
        _package(nfpm, "nfpm.yaml", filled, out)
    return sorted(path for path in out.glob("cephqos-exporter*") if version in path.name)


def build_top(nfpm: Path, out: Path, version: str = __version__) -> list[Path]:
    """What goes with the exporter's package where a person looks: one for all machines."""
    with tempfile.TemporaryDirectory() as name:
        wheels.unpack_for_all(Path(name) / "top")
        _copy("loadgen/cephqos_loadgen", Path(name) / "top")
        _as_installed(Path(name))
        _package(nfpm, "nfpm-top.yaml", {"STAGE": name, "VERSION": version}, out)
    return sorted(path for path in out.glob("cephqos-top*") if version in path.name)


def build_collector(
    nfpm: Path, collector: Path, out: Path, version: str = __version__, architecture: str = HERE
) -> list[Path]:
    """The log collector's, of a program that is there, with the licences of what is in it."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(collector, Path(name) / "cephqos-collector")
        texts = licence_texts(ROOT / "deploy" / "tools" / "collector").encode()
        (Path(name) / "licences.gz").write_bytes(gzip.compress(texts, mtime=0))
        (Path(name) / "licences.gz").chmod(0o644)
        filled = {"STAGE": name, "VERSION": version, "ARCH": architecture}
        _package(nfpm, "nfpm-collector.yaml", filled, out)
    return sorted(path for path in out.glob("cephqos-collector*") if version in path.name)


def licence_texts(folder: Path) -> str:
    """The licence files of all modules of a go.mod, for those who get the program. Needs Go."""
    argv = ["go", "-C", str(folder), "mod", "download", "-json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=_SECONDS)
    # One object after another, with no list around them.
    modules = json.loads("[" + done.stdout.replace("\n}\n{", "\n},\n{") + "]")
    return "\n".join(
        "\n".join([f"==== {one['Path']} {one['Version']}", "", *_licences(Path(one["Dir"]))])
        for one in sorted(modules, key=lambda one: str(one["Path"]))
    )


def _licences(directory: Path) -> Iterator[str]:
    for path in sorted(directory.iterdir()):
        if _LICENCE_FILE.match(path.name) and path.is_file():
            yield path.read_text(encoding="utf-8", errors="replace")


def _package(nfpm: Path, name: str, filled: Mapping[str, str], out: Path) -> None:
    """Both kinds, from a description with these words in place of its `${…}`."""
    out.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "deploy/packages" / name).read_text(encoding="utf-8")
    for word, value in filled.items():
        text = text.replace(f"${{{word}}}", value)
    description = Path(filled["STAGE"]) / "nfpm.yaml"
    description.write_text(text, encoding="utf-8")
    for kind in ("deb", "rpm"):
        subprocess.run(
            [nfpm, "package", "--config", description, "--packager", kind, "--target", out],
            cwd=ROOT,
            env={"SOURCE_DATE_EPOCH": "1700000000"} | os.environ,
            check=True,
            timeout=_SECONDS,
            stdout=subprocess.DEVNULL,
        )


def _collector(architecture: str) -> str:
    return "cephqos-collector" + ("" if architecture == HERE else f"-{architecture}")


async def _tools(*names: str) -> list[Path]:
    return [await ensure_tool(name, Progress()) for name in names]


def main(arguments: Sequence[str]) -> int:
    every = sorted(wheels.ARCHITECTURES)
    try:
        nfpm, *collectors = asyncio.run(_tools("nfpm", *map(_collector, every)))
    except CephqosError as error:
        print(f"packages: {error}", file=sys.stderr)
        return error.exit_status
    out = Path(arguments[0]) if arguments else ROOT / "dist"
    made = {*build_top(nfpm, out)}
    for architecture, collector in zip(every, collectors, strict=True):
        made |= {*build(nfpm, out, architecture=architecture)}
        made |= {*build_collector(nfpm, collector, out, architecture=architecture)}
    for path in sorted(made):
        print(f"{path}  {path.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
