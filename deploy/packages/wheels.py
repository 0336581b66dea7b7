"""The libraries of a package: wheels that a lock names with their checksums, for each Python.

They are fetched once, into the cache. A wheel that serves all Pythons is in the package once.
"""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cephqos_loadgen.lab.paths import cache_dir

ROOT: Final = Path(__file__).parents[2]
LOCK: Final = ROOT / "deploy/images/requirements-exporter.txt"
# What the load generator needs in addition.
TOP_LOCK: Final = LOCK.with_name("requirements-lab.txt")
# What Debian 12 and 13, Ubuntu 22.04 and 24.04, Enterprise Linux 9 and 10 have, and the next one.
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
# By Debian's name: the name in wheels.
ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
# glibc 2.28 and older: what all these distributions can load.
_LIBRARIES: Final = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
_SECONDS: Final = 600


def unpack(target: Path, architecture: str) -> None:
    """Unpack all wheels: into `lib`, or into `pythonX.Y` if compiled for that Python only."""
    for python in PYTHONS:
        for wheel in sorted(fetched(architecture, python).glob("*.whl")):
            _, _, abi, _ = wheel.stem.rsplit("-", 3)
            name = "lib" if abi in ("none", "abi3") else f"python{python}"
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(target / name)


def unpack_for_all(target: Path) -> None:
    """Unpack the wheels of `top`, which are the same for every Python and machine."""
    for wheel in sorted(fetched("amd64", PYTHONS[0], [TOP_LOCK]).glob("*.whl")):
        if not wheel.stem.endswith("-none-any"):
            raise RuntimeError(f"{wheel.name} is not for all: a package for each is needed")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)


def fetched(architecture: str, python: str, locks: Sequence[Path] = (LOCK,)) -> Path:
    """A folder with the wheels of these locks. pip compares them with the checksums.

    Other locks that a lock includes (`-r`) are left out.
    """
    lines = [line for lock in locks for line in lock.read_text(encoding="utf-8").splitlines(True)]
    text = "".join(line for line in lines if not line.startswith("-r "))
    recipe = [text, architecture, python, *_LIBRARIES]
    name = hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:8]
    folder = cache_dir() / "wheels" / f"{architecture}-{python}-{name}"
    if not folder.exists():
        partial = Path(f"{folder}.partial")
        partial.mkdir(parents=True, exist_ok=True)
        lock = partial / "lock.txt"
        lock.write_text(text, encoding="utf-8")
        argv = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-deps"]
        argv += ["--require-hashes", "--only-binary=:all:", "--implementation=cp"]
        argv += [f"--platform={libc}_{ARCHITECTURES[architecture]}" for libc in _LIBRARIES]
        argv += [f"--python-version={python}"]
        argv += [f"--dest={partial}", f"--requirement={lock}"]
        subprocess.run(argv, check=True, timeout=_SECONDS)
        partial.rename(folder)
    return folder
