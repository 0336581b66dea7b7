"""A Grafana that we start on a loopback port: an installed program, or a container."""

import contextlib
import secrets
import subprocess
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

from cephqos_base import dashboards, textfile
from cephqos_dashboards.cli import installed
from cephqos_dashboards.provisioning import Sources
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.builds import to_its_end
from cephqos_loadgen.processes import in_background, run
from cephqos_loadgen.programs import free_ports, last_words, until_answers
from cephqos_loadgen.progress import Say
from cephqos_stack.grafana.place import Grafana

# The same as in deploy/compose.
IMAGE: Final = (
    "grafana/grafana:13.2.3@sha256:b28bae15e219c998fb0e0424ed724930cc61b1f61fb404d47c862f9a23f9e572"
)
_START_SECONDS: Final = 120.0
_PULL_SECONDS: Final = 900.0
_SHOW_SECONDS: Final = 20.0  # until it has read its dashboards, after it first answers
# A shell script that ends when its input closes: a container outlives a client that is killed.
_UNTIL_INPUT_CLOSES: Final = """
exec 3<&0
trap 'exit 0' TERM
(cat <&3 >/dev/null; kill $$) &
"$@" &
wait $!
"""


class OwnGrafana(Grafana):
    """Every user who reaches the port may look and explore. No user may administer it."""

    _why_unseen = ""  # why it may not see the files of this host

    def __init__(self, home: Path | None, program: str = "") -> None:
        (self._port,) = free_ports(1)
        super().__init__(f"http://127.0.0.1:{self._port}")
        self._home, self._program = home, program

    @contextlib.asynccontextmanager
    async def showing(
        self, sources: Sources, folder: Path, say: Say = lambda _: None
    ) -> AsyncIterator[None]:
        for file, text in installed(folder, sources).items():
            textfile.write(file, text)
        await self._prepare(folder, say)
        say("Grafana is starting")
        log = folder / "grafana.out"
        argv, variables = self._argv(folder), self._variables(folder)
        async with in_background(
            argv, log, stdin=subprocess.PIPE, environment=variables
        ) as process:
            health = f"{self.url}/api/health"
            await until_answers(health, process, log, "Grafana", _START_SECONDS)
            await self._until_shown(process, log, folder)
            yield

    async def _until_shown(self, process: Process, log: Path, folder: Path) -> None:
        """Wait for the home page: a container may run where this host's files are not."""
        board = f"{self.url}/api/dashboards/uid/{dashboards.OVERVIEW}"
        try:
            await until_answers(board, process, log, "Grafana", _SHOW_SECONDS)
        except LabError:
            if process.returncode is not None:
                raise
            raise LabError(
                f"Grafana runs and has none of our dashboards: it does not see {folder}"
                f"{self._why_unseen}"
            ) from None

    async def _prepare(self, folder: Path, say: Say) -> None:
        """Fetch what must be there before it starts; nothing for an installed program."""

    def _variables(self, folder: Path) -> Mapping[str, str]:
        paths = {
            "GF_PATHS_DATA": str(folder / "data"),
            "GF_PATHS_LOGS": str(folder / "logs"),
            "GF_PATHS_PLUGINS": str(folder / "plugins"),
            "GF_PATHS_PROVISIONING": str(folder / "provisioning"),
        }
        return {**_settings(self._port, folder), **paths}

    def _argv(self, folder: Path) -> list[str]:
        home = [f"--homepath={self._home}"] if self._home else []
        program = self._program or f"{self._home}/bin/grafana"
        # The old program `grafana-server` needs no subcommand.
        server = [] if Path(program).name == "grafana-server" else ["server"]
        return [program, *server, *home]


class DockerGrafana(OwnGrafana):
    """The same in a container that shares the host's network, so that loopback is loopback."""

    _why_unseen = " (does the Docker engine run elsewhere, or without this host's /var/lib?)"

    def __init__(self, docker: str, image: str = IMAGE) -> None:
        super().__init__(None)
        self._docker, self._image = docker, image

    async def _prepare(self, folder: Path, say: Say) -> None:
        if not (await run([self._docker, "image", "inspect", self._image], within=30.0)).returncode:
            return
        log = folder / "pull.out"
        say(f"Docker is pulling {self._image}")
        try:
            async with in_background([self._docker, "pull", self._image], log) as process:
                await to_its_end(
                    "docker pull", process, log, _PULL_SECONDS, lambda: say(last_words(log))
                )
        except LabError:
            raise LabError(f"Docker cannot pull {self._image}: {last_words(log)}") from None

    def _variables(self, folder: Path) -> Mapping[str, str]:
        return _settings(self._port, folder)

    def _argv(self, folder: Path) -> list[str]:
        provisioned, boards = folder / "provisioning", folder / "dashboards"
        return [
            self._docker,
            *("run", "--rm", "--interactive", "--network=host"),
            # Without their values, which come from the client's environment.
            *(f"--env={name}" for name in self._variables(folder)),
            f"--volume={provisioned}:/etc/grafana/provisioning:ro",
            f"--volume={boards}:{boards}:ro",
            *("--entrypoint=sh", self._image, "-c", _UNTIL_INPUT_CLOSES, "sh", "/run.sh"),
        ]


def _settings(port: int, folder: Path) -> Mapping[str, str]:
    home = folder / "dashboards" / f"{dashboards.OVERVIEW}.json"
    return {
        "GF_SERVER_HTTP_ADDR": "127.0.0.1",
        "GF_SERVER_HTTP_PORT": str(port),
        "GF_SERVER_PROTOCOL": "http",
        "GF_SERVER_ROOT_URL": f"http://127.0.0.1:{port}/",
        "GF_AUTH_ANONYMOUS_ENABLED": "true",
        # Not Admin: Grafana may run as root, and an administrator makes it read and run things.
        "GF_AUTH_ANONYMOUS_ORG_ROLE": "Editor",
        "GF_AUTH_BASIC_ENABLED": "false",
        "GF_AUTH_DISABLE_LOGIN_FORM": "true",
        # Not used. Without it, the well-known default would work.
        "GF_SECURITY_ADMIN_PASSWORD": secrets.token_urlsafe(24),
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
        "GF_NEWS_NEWS_FEED_ENABLED": "false",
        # From 13.2 on, it would replace its own data sources by newer ones from the internet.
        "GF_PLUGINS_PREINSTALL_DISABLED": "true",
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": str(home),
    }


async def docker_answers(docker: str) -> bool:
    """Whether an engine is behind the client."""
    try:
        return not (await run([docker, "version"], within=5.0)).returncode
    except LabError:
        return False
