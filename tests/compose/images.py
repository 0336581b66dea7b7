"""The images that the stack's test runs: ours, and equivalents of the public ones.

They are built once per content of the repository and kept in the cache, as one archive. The engine
that builds them keeps its layers there too.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cephqos_loadgen.lab.paths import cache_dir
from cephqos_loadgen.lab.releases import RELEASES, Release
from cephqos_loadgen.lab.trees import ensure_tree
from cephqos_loadgen.progress import Progress
from cephqos_stack.tools import ensure_tool

from . import engine

BASE = Release("base", "Debian 13", "trixie", "sid")
BASE_PACKAGES = ("ca-certificates",)
_SOURCES: Final = (
    *("exporter", "loadgen", "alerts", "dashboards", "deploy/cephqos_doctor"),
    "deploy/cephqos_insight",
    *("deploy/cephqos_stack", "deploy/images", "pyproject.toml"),
)
_KINDS: Final = ("", ".py", ".toml", ".txt", ".yaml", ".yml", ".json", ".dockerignore")
_OURS: Final = tuple(f"cephqos-{name}:local" for name in ("exporter", "collector", "loki", "lab"))
_STAND_INS: Final = ("prometheus", "alertmanager")
# The parts of a Grafana that its image holds.
_GRAFANA: Final = ("bin", "conf", "public")
# How the compose file is told to use them. It is the file of the repository, unchanged.
_VARIABLES: Final = {
    "PROMETHEUS_IMAGE": "cephqos-standin/prometheus",
    "ALERTMANAGER_IMAGE": "cephqos-standin/alertmanager",
    "LOKI_BASE_IMAGE": "cephqos-standin/loki",
    "COLLECTOR_BASE_IMAGE": "cephqos-standin/collector",
    "DEBIAN_IMAGE": "cephqos-standin/debian",
    "LAB_BASE_IMAGE": "cephqos-standin/tree",
    "BUILD_NETWORK": "host",
    "GRAFANA_IMAGE": "cephqos-standin/grafana",
}


def grafana_home() -> Path | None:
    """GRAFANA_HOME, if it is set: a Grafana cannot be had otherwise."""
    named = os.environ.get("GRAFANA_HOME")
    return Path(named).absolute() if named else None


def profile() -> str:
    """Without a Grafana its profile is off."""
    return "grafana" if grafana_home() else ""


def variables() -> dict[str, str]:
    """What the compose file is given."""
    return {**_VARIABLES, "COMPOSE_PROFILES": profile()}


def prepare() -> tuple[Path, Path]:
    """The tree with Docker's programs, and the archive of all images."""
    progress = Progress()

    async def trees() -> tuple[Path, Path, Path, list[Path]]:
        docker = await ensure_tree(engine.RELEASE, progress, engine.PACKAGES)
        base = await ensure_tree(BASE, progress, BASE_PACKAGES)
        ceph = await ensure_tree(RELEASES["reef"], progress)
        tools = [await ensure_tool(name, progress) for name in ("loki", "cephqos-collector")]
        return docker, base, ceph, tools

    docker, base, ceph, tools = asyncio.run(trees())
    folder = cache_dir() / "compose"
    folder.mkdir(parents=True, exist_ok=True)
    grafana = [home / "bin/grafana"] if (home := grafana_home()) else []
    archive = folder / f"images-{_recipe([docker, base, ceph, *tools, *grafana])}.tar"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with engine.engine(docker, folder / "builder", network=True) as builder:
                _build(builder, base, ceph, tools)
                _save(builder, archive)
    return docker, archive


def _files() -> Iterator[Path]:
    for source in _SOURCES:
        path = engine.CHECKOUT / source
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (f for f in found if f.is_file() and f.suffix in _KINDS)


def _recipe(parts: list[Path]) -> str:
    recipe = hashlib.sha256(" ".join(map(str, parts)).encode())
    for file in _files():
        recipe.update(f"{file.relative_to(engine.CHECKOUT)}\0".encode() + file.read_bytes())
    return recipe.hexdigest()[:12]


def _build(builder: engine.DockerEngine, base: Path, ceph: Path, tools: list[Path]) -> None:
    _import(builder, base, "cephqos-standin/debian")
    _import(builder, ceph, "cephqos-standin/tree")
    context = builder.folder / "tools"
    context.mkdir(exist_ok=True)
    for tool in tools:
        shutil.copy2(tool, context / tool.name)
    home = builder.folder / "grafana"
    home.mkdir(exist_ok=True)
    if grafana := grafana_home():
        for part in _GRAFANA:
            shutil.copytree(grafana / part, home / part, dirs_exist_ok=True)
    for name in (*_stand_ins(), "loki", "collector"):
        builder.run(
            *("docker", "build", "--network=host", f"--target={name}"),
            f"--tag=cephqos-standin/{name}",
            *(f"--build-context=tools={context}", f"--build-context=grafana-home={home}"),
            "--build-arg=TREE_IMAGE=cephqos-standin/tree",
            "--build-arg=DEBIAN_IMAGE=cephqos-standin/debian",
            str(engine.CHECKOUT / "deploy/images/stand-ins"),
        )
    shutil.rmtree(home)
    builder.run("docker", "compose", "build", "--quiet", variables=variables(), within=1200)


def _stand_ins() -> tuple[str, ...]:
    return (*_STAND_INS, *(("grafana",) if grafana_home() else ()))


def _import(builder: engine.DockerEngine, tree: Path, image: str) -> None:
    """Once per tree: another digest of the same files would make all layers above it again."""
    tag = f"{image}:{tree.name}"
    if not builder.run("docker", "images", "--quiet", tag):
        tar = subprocess.Popen(
            ["nice", "tar", "-C", str(tree), "--one-file-system", "-c", "."], stdout=subprocess.PIPE
        )
        assert tar.stdout
        builder.run("docker", "import", "-", tag, stdin=tar.stdout.fileno())
        tar.stdout.close()
        assert tar.wait() == 0
    builder.run("docker", "tag", tag, f"{image}:latest")


def _save(builder: engine.DockerEngine, archive: Path) -> None:
    stand_ins = [f"cephqos-standin/{name}:latest" for name in _stand_ins()]
    saved = builder.folder / "images.tar"
    builder.run("docker", "save", f"--output={saved}", *_OURS, *stand_ins, within=600)
    builder.run("docker", "image", "prune", "--force")
    for old in archive.parent.glob("images-*.tar"):
        old.unlink()
    saved.replace(archive)
