"""Makes the Debian package and the RPM in dist/: `make packages`."""

import asyncio
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from manual import GENERATED

from cephqos_base.errors import CephqosError
from cephqos_base.version import __version__
from cephqos_loadgen.progress import Progress
from cephqos_loadgen.tools import ensure_tool

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = (
    "exporter/cephqos_base",
    "exporter/cephqos_exporter",
    "exporter/cephqos_doctor",
    "alerts/cephqos_alerts",
    "dashboards/cephqos_dashboards",
)
_SECONDS: Final = 300


def stage(directory: Path) -> None:
    """Lay out what the description takes from a staging directory."""
    for package in PACKAGES:
        # Links are followed: the default SLOs are one in a checkout.
        shutil.copytree(
            ROOT / package,
            directory / "lib" / Path(package).name,
            ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
        )
    shutil.copytree(ROOT / "alerts" / "rules", directory / "rules")
    man = directory / "man"
    man.mkdir()
    for page in GENERATED.glob("*.1"):
        # No time in it: the same sources give the same bytes.
        (man / f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), mtime=0))
    # As installed, whatever umask this runs with.
    for path in directory.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def build(nfpm: Path, out: Path, version: str = __version__) -> list[Path]:
    """The packages of both kinds, in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        staged = Path(name)
        stage(staged)
        description = (ROOT / "deploy/packages/nfpm.yaml").read_text(encoding="utf-8")
        filled = description.replace("${STAGE}", str(staged)).replace("${VERSION}", version)
        (staged / "nfpm.yaml").write_text(filled, encoding="utf-8")
        for kind in ("deb", "rpm"):
            argv = [str(nfpm), "package", "--config", str(staged / "nfpm.yaml")]
            subprocess.run(
                [*argv, "--packager", kind, "--target", str(out)],
                cwd=ROOT,
                env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
                check=True,
                timeout=_SECONDS,
                stdout=subprocess.DEVNULL,
            )
    return sorted(path for path in out.glob("cephqos-exporter*") if version in path.name)


def main(arguments: Sequence[str]) -> int:
    try:
        nfpm = asyncio.run(ensure_tool("nfpm", Progress()))
    except CephqosError as error:
        print(f"packages: {error}", file=sys.stderr)
        return error.exit_status
    for path in build(nfpm, Path(arguments[0]) if arguments else ROOT / "dist"):
        print(f"{path}  {path.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
