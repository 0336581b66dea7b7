"""Archives of our container images, each with its components. Needs a Docker engine."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import sbom

_TARGETS: Final = ("exporter", "collector", "loki")
_CERTIFICATES: Final = "id=certificates,src=/etc/ssl/certs/ca-certificates.crt"
_PACKAGES: Final = "${Package} ${Version} ${Architecture}\\n"
_SECONDS: Final = 3600


def _docker(*words: str | Path) -> str:
    """Run docker. Returns its output; its errors go to the terminal."""
    argv = ["docker", *words]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=_SECONDS)
    return done.stdout


def engine() -> bool:
    """Whether a Docker engine answers."""
    if shutil.which("docker") is None:
        return False
    argv = ["docker", "version", "--format", "{{.Server.Version}}"]
    return subprocess.run(argv, capture_output=True, check=False, timeout=60).returncode == 0


def archives(source: Path, out: Path, version: str) -> Iterator[tuple[Path, list[sbom.Bill]]]:
    """Each image of this machine's architecture, for `docker load`, and its components."""
    if not engine():
        print("images: none built, no Docker engine answers", file=sys.stderr)
        return
    for target in _TARGETS:
        name = f"cephqos-{target}:{version}"
        dockerfile = source / "deploy/images/Dockerfile"
        wanted = ("--file", dockerfile, "--target", target, "--tag", name)
        _docker("build", "--quiet", "--secret", _CERTIFICATES, *wanted, source)
        file = out / f"cephqos-{target}-image-{version}.tar"
        _docker("save", "--output", file, name)
        asked = ("run", "--rm", "--entrypoint", "dpkg-query", name, "-W", "-f", _PACKAGES)
        yield file, sbom.debian(_docker(*asked)) + _python(source, target)


def _python(source: Path, target: str) -> list[sbom.Bill]:
    """The Python packages of an image. Programs of others have bills of their own."""
    if target != "exporter":
        return []
    lock = source / "deploy/images/requirements-exporter.txt"
    return sbom.among({"components": []}, sbom.locked(lock))
