"""Which Grafana there is: one on this host, or an image of it."""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_stack.grafana.own import DockerGrafana, Grafana, docker_answers

HOW_TO_GET: Final = (
    "not found: install Grafana or start Docker, or set GRAFANA_HOME (its directory)"
)
_PACKAGED: Final = Path("/usr/share/grafana")


async def find_grafana(environment: Mapping[str, str]) -> Grafana | None:
    """GRAFANA_HOME, a program on the PATH, Docker: the first of them that is there."""
    if own := await asyncio.to_thread(_own, environment):
        return own
    if docker := shutil.which("docker", path=environment.get("PATH")):
        with tempfile.TemporaryDirectory(prefix="cephqos-docker-") as folder:
            if await docker_answers(docker, Path(folder) / "version.out"):
                return DockerGrafana(docker)
    return None


def _own(environment: Mapping[str, str]) -> Grafana | None:
    """One that can be started on this host."""
    if named := environment.get("GRAFANA_HOME"):
        home = Path(named).absolute()
        if not _is_home(home):
            raise UsageError(f"GRAFANA_HOME={named}: expected bin/grafana and conf in it")
        return Grafana(home)
    for name in ("grafana-server", "grafana"):
        if program := shutil.which(name, path=environment.get("PATH")):
            beside = Path(program).resolve().parent.parent
            homes = [home for home in (beside, _PACKAGED) if _is_home(home)]
            return Grafana(homes[0]) if homes else Grafana(None, program)
    return None


def _is_home(folder: Path) -> bool:
    return (folder / "bin" / "grafana").is_file() and (folder / "conf" / "defaults.ini").is_file()
