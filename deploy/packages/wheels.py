"""The libraries of a package: wheels that a lock names with their sums, for each Python of a host.

They are fetched once, into the cache. What is the same for all Pythons is there once.
"""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from cephqos_loadgen.lab.paths import cache_dir

ROOT: Final = Path(__file__).parents[2]
LOCK: Final = ROOT / "deploy/images/requirements-exporter.txt"
# What `cephqos top` needs besides.
TOP_LOCKS: Final = tuple(LOCK.with_name(f"requirements-{name}.txt") for name in ("lab", "top"))
# What Debian 12 and 13, Ubuntu 22.04 and 24.04, Enterprise Linux 9 and 10 have, and the next one.
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
# As packages call them, and as wheels do.
ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
# glibc 2.28 and older: what all these distributions can load.
_LIBRARIES: Final = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
_SECONDS: Final = 600


def unpack(target: Path, architecture: str) -> None:
    """Into `lib`, and into `pythonX.Y` what was compiled for that one only."""
    for python in PYTHONS:
        for wheel in sorted(fetched(architecture, python).glob("*.whl")):
            _, _, abi, _ = wheel.stem.rsplit("-", 3)
            name = "lib" if abi in ("none", "abi3") else f"python{python}"
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(target / name)


def unpack_for_all(target: Path) -> None:
    """What `top` needs: the same for every Python and machine."""
    for wheel in sorted(fetched("amd64", PYTHONS[0], TOP_LOCKS).glob("*.whl")):
        if not wheel.stem.endswith("-none-any"):
            raise RuntimeError(f"{wheel.name} is not for all: a package for each is needed")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)


def fetched(architecture: str, python: str, locks: Sequence[Path] = (LOCK,)) -> Path:
    """A folder with the wheels; pip compares each with the sums of the locks, and not of others
    that they name."""
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
        argv += [f"--python-version={python}", *_platforms(architecture)]
        argv += [f"--dest={partial}", f"--requirement={lock}"]
        subprocess.run(argv, check=True, timeout=_SECONDS)
        partial.rename(folder)
    return folder


def _platforms(architecture: str) -> Iterator[str]:
    yield from (f"--platform={it}_{ARCHITECTURES[architecture]}" for it in _LIBRARIES)
