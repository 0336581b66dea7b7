"""Packages of this checkout, and a Debian of its own to install them in."""

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.trees import tree_path, tree_ready
from cephqos_stack.tools import find_tool

from .fresh_root import FreshRoot

PACKAGES: Final = Path(__file__).parents[2] / "deploy" / "packages"
VERSIONS: Final = ("0.1.0", "0.1.1")
# As Debian's packages call it.
ARCH: Final = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
_BUILD: Final = (
    "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import build\n"
    "nfpm, out = map(Path, sys.argv[3:5])\n"
    "for version in sys.argv[5:]:\n"
    "    for make in sys.argv[2].split(): getattr(build, make)(nfpm, out, version)"
)


def exporter_packages(
    out: Path,
    pattern: str,
    versions: Sequence[str] = VERSIONS,
    *,
    makes: str = "build",
    where: Sequence[str] = (),
) -> list[Path]:
    """The exporter's packages of these versions, whose names are like this.

    `makes`: functions of build.py. `where`: a command line before the one that makes them.
    """
    nfpm = find_tool("nfpm")
    if nfpm is None:
        pytest.skip("nfpm is missing: make tools")
    argv = [*where, sys.executable, "-c", _BUILD, str(PACKAGES), makes, str(nfpm), str(out)]
    subprocess.run([*argv, *versions], check=True, timeout=540)
    return sorted(out.glob(pattern))


@contextmanager
def root_with(release: str, directory: Path, *shared: Path) -> Iterator[FreshRoot]:
    """The Debian of a release tree of Ceph, which sees these folders, such as of packages."""
    tree = find_release(release)
    if not tree_ready(tree):
        pytest.skip(f"no release tree of {release}: run `cephqos lab trees`")
    yield FreshRoot(tree_path(tree), directory, shared)
    shutil.rmtree(directory / "work", ignore_errors=True)
