"""Loki and the collector, beside a lab or any folder of Ceph's logs.

    async with LogPipeline(LogSpec(folder=..., logs=lab.paths.logs, cluster=fsid)) as logs:
        print(logs.loki_url)

Both run with the configuration that deployments use (deploy/loki, deploy/collector). Ceph does not
wait for them: it writes its files, and the collector reads them when it can.
"""

import contextlib
from asyncio.subprocess import Process
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cephqos_base.errors import UsageError
from cephqos_loadgen.processes import in_background
from cephqos_loadgen.programs import free_ports, until_answers
from cephqos_stack.tools import find_tool

_DEPLOY: Final = Path(__file__).parents[2] / "deploy"
LOKI_CONFIG: Final = _DEPLOY / "loki" / "loki.yaml"
COLLECTOR_CONFIG: Final = _DEPLOY / "collector" / "collector.yaml"
# Offsets are stored only after their lines are in the queue on disk.
COLLECTOR_GATES: Final = "--feature-gates=stanza.synchronousLogEmitter"
_NO_ARCHIVES: Final = Path("/nonexistent")  # the collector then finds no events of runs


@dataclass(frozen=True, kw_only=True)
class LogSpec:
    """What to collect and where to keep it."""

    folder: Path  # data, state and output of both
    logs: Path  # Ceph's log files
    cluster: str  # fsid
    host: str = "lab"
    audit: bool = False  # whether lines with arguments of commands are sent to Loki
    archives: Path = _NO_ARCHIVES  # of the load generator
    rules: str = ""  # for Loki's ruler, YAML
    alertmanager_url: str = "http://127.0.0.1:9093"
    loki_port: int = 0  # 0: a free one


class LogPipeline:
    """A Loki and a collector. Started again, each goes on with the data that it has."""

    def __init__(self, spec: LogSpec) -> None:
        self.spec = spec
        free, self._grpc_port, self._health_port = free_ports(3)
        self._loki_port = spec.loki_port or free
        self._loki = contextlib.AsyncExitStack()
        self._collector = contextlib.AsyncExitStack()
        self._collector_process: Process | None = None
        self._loki_process: Process | None = None

    @property
    def loki_url(self) -> str:
        return f"http://127.0.0.1:{self._loki_port}"

    async def __aenter__(self) -> Self:
        rules = self.spec.folder / "rules" / "fake"
        rules.mkdir(parents=True, exist_ok=True)
        if self.spec.rules:
            (rules / "logs.yml").write_text(self.spec.rules)
        try:
            await self.start_loki()
            await self.start_collector()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._collector.aclose()
        await self._loki.aclose()

    async def start_loki(self) -> None:
        argv = [_program("loki"), f"-config.file={LOKI_CONFIG}", "-config.expand-env=true"]
        output = self.spec.folder / "loki.out"
        running = in_background(argv, output, environment=self._loki_environment())
        self._loki_process = await self._loki.enter_async_context(running)
        await until_answers(f"{self.loki_url}/ready", self._loki_process, output, "Loki")

    async def start_collector(self) -> None:
        argv = [_program("cephqos-collector"), f"--config={COLLECTOR_CONFIG}", COLLECTOR_GATES]
        output = self.spec.folder / "collector.out"
        running = in_background(argv, output, environment=self._collector_environment())
        self._collector_process = await self._collector.enter_async_context(running)
        health = f"http://127.0.0.1:{self._health_port}/"
        await until_answers(health, self._collector_process, output, "the collector")

    def _loki_environment(self) -> dict[str, str]:
        return {
            "LOKI_DATA": str(self.spec.folder / "loki"),
            "LOKI_RULES": str(self.spec.folder / "rules"),
            "LOKI_PORT": str(self._loki_port),
            "LOKI_GRPC_PORT": str(self._grpc_port),
            "ALERTMANAGER_URL": self.spec.alertmanager_url,
        }

    def _collector_environment(self) -> dict[str, str]:
        return {
            "LOKI_URL": self.loki_url,
            "CEPH_CLUSTER": self.spec.cluster,
            "CEPH_LOGS": str(self.spec.logs),
            "CEPHQOS_ARCHIVES": str(self.spec.archives),
            "COLLECTOR_AUDIT": "yes" if self.spec.audit else "no",
            "COLLECTOR_HOST": self.spec.host,
            "COLLECTOR_STATE": str(self.spec.folder / "collector"),
            "COLLECTOR_HEALTH": f"127.0.0.1:{self._health_port}",
        }


def _program(name: str) -> str:
    if (program := find_tool(name)) is None:
        raise UsageError(f"{name} is not there: `make tools` builds it")
    return str(program)
