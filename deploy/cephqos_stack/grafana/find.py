"""Which Grafana can be used: one that runs, a program on this host, or a container image."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cephqos_base.errors import UsageError
from cephqos_stack.grafana.other import OtherGrafana
from cephqos_stack.grafana.own import IMAGE, DockerGrafana, OwnGrafana, docker_answers
from cephqos_stack.grafana.place import Grafana

HOW_TO_GET: Final = (
    "not found: install Grafana or start Docker, or set GRAFANA_HOME (its directory) or"
    " GRAFANA_URL (one that runs)"
)
_PACKAGED: Final = Path("/usr/share/grafana")


async def find_grafana(environment: Mapping[str, str]) -> Grafana | None:
    """The first that is there: GRAFANA_URL, GRAFANA_HOME, a program on the PATH, Docker."""
    if url := environment.get("GRAFANA_URL"):
        return OtherGrafana(url, environment.get("GRAFANA_TOKEN", ""))
    if grafana := await asyncio.to_thread(_on_this_host, environment):
        return grafana
    docker = shutil.which("docker", path=environment.get("PATH"))
    if not docker or not await docker_answers(docker):
        return None
    return DockerGrafana(docker, environment.get("GRAFANA_IMAGE", IMAGE))


def _on_this_host(environment: Mapping[str, str]) -> OwnGrafana | None:
    """A Grafana that is installed on this host, and can be started."""
    if named := environment.get("GRAFANA_HOME"):
        home = Path(named).absolute()
        if not _is_home(home):
            raise UsageError(f"GRAFANA_HOME={named}: expected bin/grafana and conf in it")
        return OwnGrafana(home)
    for name in ("grafana-server", "grafana"):
        if program := shutil.which(name, path=environment.get("PATH")):
            parent = Path(program).resolve().parent.parent
            homes = [home for home in (parent, _PACKAGED) if _is_home(home)]
            return OwnGrafana(homes[0]) if homes else OwnGrafana(None, program)
    return None


def _is_home(folder: Path) -> bool:
    return (folder / "bin" / "grafana").is_file() and (folder / "conf" / "defaults.ini").is_file()
