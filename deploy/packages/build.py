"""Makes packages (Debian, RPM) of the exporter, of `top` and of the log collector: `make packages`.

The exporter's package holds all its libraries, for each Python from 3.11 on. It depends only on one
of these Pythons, so one package serves all distributions. Any machine makes both architectures.
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
    "deploy/cephqos_insight",
    "deploy/cephqos_doctor",
)
_LICENCE_FILE: Final = re.compile(r"(un)?licen[cs]e(?!.*\.go$)|copying", re.I)
_SECONDS: Final = 600
# This machine's architecture, as Debian calls it. nfpm knows RPM's names.
HERE: Final = {kernel: name for name, kernel in wheels.ARCHITECTURES.items()}.get(
    platform.machine(), platform.machine()
)


def stage(directory: Path, architecture: str) -> None:
    """Lay out the files that nfpm.yaml takes from the staging directory."""
    wheels.unpack(directory / "libraries", architecture)
    for package in PACKAGES:
        _copy(package, directory / "libraries" / "lib")
    shutil.copytree(ROOT / "alerts" / "rules", directory / "rules")
    shutil.copytree(ROOT / "docs" / "operate" / "runbooks", directory / "runbooks")
    for file in manual.write(directory):
        if file.suffix == ".1":
            # Without a time: the same sources give the same bytes.
            (directory / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    _set_modes(directory)


def _copy(package: str, target: Path) -> None:
    """Copy a Python package. Links are followed: in a checkout the default SLOs are one."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / package, target / Path(package).name, ignore=ignored)


def _set_modes(directory: Path) -> None:
    """The modes of installed files, whatever umask this runs with."""
    for path in directory.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def build(
    nfpm: Path, out: Path, version: str = __version__, architecture: str = HERE
) -> list[Path]:
    """The exporter's packages of both kinds, in `out`."""
    with tempfile.TemporaryDirectory() as name:
        stage(Path(name), architecture)
        values = {"STAGE": name, "VERSION": version, "ARCH": architecture}
        _package(nfpm, "nfpm.yaml", values, out)
    return sorted(path for path in out.glob("cephqos-exporter*") if version in path.name)


def build_top(nfpm: Path, out: Path, version: str = __version__) -> list[Path]:
    """The package of `cephqos top`, which adds to the exporter's: one for all machines."""
    with tempfile.TemporaryDirectory() as name:
        wheels.unpack_for_all(Path(name) / "top")
        _copy("loadgen/cephqos_loadgen", Path(name) / "top")
        _set_modes(Path(name))
        _package(nfpm, "nfpm-top.yaml", {"STAGE": name, "VERSION": version}, out)
    return sorted(path for path in out.glob("cephqos-top*") if version in path.name)


def build_collector(
    nfpm: Path, collector: Path, out: Path, version: str = __version__, architecture: str = HERE
) -> list[Path]:
    """The package of a collector that is built already, with the licences of its modules."""
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(collector, Path(name) / "cephqos-collector")
        texts = licence_texts(ROOT / "deploy" / "tools" / "collector").encode()
        (Path(name) / "licences.gz").write_bytes(gzip.compress(texts, mtime=0))
        (Path(name) / "licences.gz").chmod(0o644)
        values = {"STAGE": name, "VERSION": version, "ARCH": architecture}
        _package(nfpm, "nfpm-collector.yaml", values, out)
    return sorted(path for path in out.glob("cephqos-collector*") if version in path.name)


def licence_texts(folder: Path) -> str:
    """The licence files of all modules of a go.mod, for those who get the program. Needs Go."""
    argv = ["go", "-C", str(folder), "mod", "download", "-json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=_SECONDS)
    # One object after another, with no list around them.
    modules = json.loads("[" + done.stdout.replace("\n}\n{", "\n},\n{") + "]")
    texts = []
    for module in sorted(modules, key=lambda module: str(module["Path"])):
        texts += [f"==== {module['Path']} {module['Version']}", "", *_licences(Path(module["Dir"]))]
    return "\n".join(texts)


def _licences(directory: Path) -> Iterator[str]:
    for path in sorted(directory.iterdir()):
        if _LICENCE_FILE.match(path.name) and path.is_file():
            yield path.read_text(encoding="utf-8", errors="replace")


def _package(nfpm: Path, name: str, values: Mapping[str, str], out: Path) -> None:
    """Make both kinds from a description, with these values in place of its `${WORD}`."""
    out.mkdir(parents=True, exist_ok=True)
    text = (ROOT / "deploy/packages" / name).read_text(encoding="utf-8")
    for word, value in values.items():
        text = text.replace(f"${{{word}}}", value)
    description = Path(values["STAGE"]) / "nfpm.yaml"
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
    """The name of the tool that is built for this architecture."""
    return "cephqos-collector" + ("" if architecture == HERE else f"-{architecture}")


def main(arguments: Sequence[str]) -> int:
    architectures = sorted(wheels.ARCHITECTURES)
    try:
        names = ["nfpm", *map(_collector, architectures)]
        nfpm, *collectors = [asyncio.run(ensure_tool(name, Progress())) for name in names]
    except CephqosError as error:
        print(f"packages: {error}", file=sys.stderr)
        return error.exit_status
    out = Path(arguments[0]) if arguments else ROOT / "dist"
    made = {*build_top(nfpm, out)}
    for architecture, collector in zip(architectures, collectors, strict=True):
        made |= {*build(nfpm, out, architecture=architecture)}
        made |= {*build_collector(nfpm, collector, out, architecture=architecture)}
    for path in sorted(made):
        print(f"{path}  {path.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
