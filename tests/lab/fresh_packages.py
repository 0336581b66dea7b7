"""Packages of this checkout, and a Debian of its own to install them in."""

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
_BUILD: Final = (
    "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import build\n"
    "for version in sys.argv[4:]: build.build(Path(sys.argv[2]), Path(sys.argv[3]), version)"
)


def exporter_packages(out: Path, pattern: str, versions: Sequence[str] = VERSIONS) -> list[Path]:
    """The exporter's packages of these versions, whose names are like this."""
    nfpm = find_tool("nfpm")
    if nfpm is None:
        pytest.skip("nfpm is missing: make tools")
    argv = [sys.executable, "-c", _BUILD, str(PACKAGES), str(nfpm), str(out), *versions]
    subprocess.run(argv, check=True, timeout=540)
    return sorted(out.glob(pattern))


@contextmanager
def root_with(packages: Path, release: str, directory: Path) -> Iterator[FreshRoot]:
    """The Debian of a release tree of Ceph, which sees these packages."""
    tree = find_release(release)
    if not tree_ready(tree):
        pytest.skip(f"no release tree of {release}: run `cephqos lab trees`")
    yield FreshRoot(tree_path(tree), directory, (packages,))
    shutil.rmtree(directory / "work", ignore_errors=True)
