"""Everything of deploy/scale on loopback: agents as pairs, Thanos and VictoriaMetrics behind them.

The settings and the start commands are those that users get; only addresses, folders and the pace
are other ones.
"""

import contextlib
import json
import os
import sys
import urllib.parse
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from cephqos_alerts.output.build import build_rules
from cephqos_base import textfile
from cephqos_base.servers import fetch
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.trees import ensure_tree
from cephqos_loadgen.processes import in_background
from cephqos_loadgen.programs import free_ports, last_words, tree_program, until_answers
from cephqos_loadgen.progress import Progress
from cephqos_stack.stack import Stack
from cephqos_stack.tools import ensure_tool

SCALE: Final = Path(__file__).parents[2] / "deploy" / "scale"
REPLICAS: Final = ("a", "b")
# The agents' batches leave every second, and the store answers a moment later.
LATE: Final = 5
_RELEASE: Final = "reef"
_PORTS: Final = (
    *("RECEIVE_GRPC", "RECEIVE_WRITE", "RECEIVE_HTTP", "QUERY_HTTP", "QUERY_GRPC"),
    *("RULE_HTTP", "RULE_GRPC", "STORAGE_HTTP", "ALERT_HTTP"),
)


@dataclass(frozen=True)
class Engine:
    """Where rules are evaluated and dashboards ask: an address for queries, one for alerts."""

    name: str
    url: str
    rules_url: str

    async def query(self, expr: str, at: float | None = None) -> list[dict[str, Any]]:
        asked = {"query": expr} | ({} if at is None else {"time": f"{at:.3f}"})
        text = urllib.parse.urlencode(asked)
        reply = await _json(f"{self.url}/api/v1/query?{text}")
        found: list[dict[str, Any]] = reply["data"]["result"]
        return found

    async def firing(self) -> set[frozenset[tuple[str, str]]]:
        """The labels of all alerts that fire; an empty one is none, as for Alertmanager."""
        found = (await _json(f"{self.rules_url}/api/v1/alerts"))["data"]
        return {
            frozenset((name, value) for name, value in alert["labels"].items() if value)
            for alert in found.get("alerts") or found.get("Alerts") or ()  # Thanos' spelling
            if alert["state"] == "firing"
        }


@dataclass
class Far:
    """The servers, by name. `groups`: the exporters of each host group, job to `host:port`."""

    stack: Stack
    groups: Sequence[Mapping[str, str]]
    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    _argv: dict[str, list[str]] = field(default_factory=dict)
    _open: dict[str, contextlib.AsyncExitStack] = field(default_factory=dict)
    _processes: dict[str, Process] = field(default_factory=dict)
    _bin: str = ""

    async def start(self) -> None:
        """All of them; the stores before the agents that write to them."""
        names = [*_PORTS, *self.agents()]
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self._bin = await self._programs()
        often = replace(self.stack.spec.rule_settings, evaluations_per_scrape=5)
        for name, text in build_rules(often, []).items():
            textfile.write(self.folder / "rules" / name, text)
        for engine, part in (
            *(("thanos", part) for part in ("receive", "query", "rule")),
            *(("victoria", part) for part in ("storage", "alert")),
        ):
            self._argv[f"{engine} {part}"] = [str(SCALE / f"{engine}.sh"), part]
        for number, group in enumerate(self.groups, 1):
            for replica in REPLICAS:
                self._argv[f"agent {number}{replica}"] = self._agent(number, replica, group)
        for name in self._argv:
            await self.bring(name)

    def agents(self) -> list[str]:
        return [f"agent {n}{r}" for n in range(1, len(self.groups) + 1) for r in REPLICAS]

    async def bring(self, name: str) -> None:
        """Start one; its data are those that it left."""
        log = self._log(name)
        opened = contextlib.AsyncExitStack()
        replica = name[-1] if name.startswith("agent") else ""
        environment = self._environment(name, replica).items()
        argv = ["env", *(f"{key}={value}" for key, value in environment)]
        process: Process = await opened.enter_async_context(
            in_background([*argv, *self._argv[name]], log)
        )
        self._open[name], self._processes[name] = opened, process
        await until_answers(self._ready_url(name), process, log, name)

    def check(self) -> None:
        """LabError with its last words if one ended by itself."""
        for name in self._open:
            if self._processes[name].returncode is not None:
                raise LabError(f"{name} ended: {last_words(self._log(name))}")

    def _log(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '-')}.out"

    async def kill(self, name: str) -> None:
        await self._open.pop(name).aclose()

    async def end(self) -> None:
        for name in reversed(list(self._open)):
            await self.kill(name)

    @property
    def engines(self) -> tuple[Engine, Engine]:
        def url(port: str) -> str:
            return f"http://127.0.0.1:{self.ports[port]}"

        return (
            Engine("thanos", url("QUERY_HTTP"), url("RULE_HTTP")),
            Engine("victoria", url("STORAGE_HTTP"), url("ALERT_HTTP")),
        )

    def _environment(self, name: str, replica: str) -> dict[str, str]:
        return {
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "DATA": str(self.folder),
            "RULES": str((self.folder if name == "victoria alert" else self.stack.dir) / "rules"),
            "ALERTMANAGER": self.stack.alertmanager_url,
            "INTERVAL": f"{self.stack.spec.scrape_interval:g}s",
            "LATE": f"{LATE}s",
            "REPLICA": replica,
            **{name: str(self.ports[name]) for name in _PORTS},
        }

    def _ready_url(self, name: str) -> str:
        if name.startswith("agent"):
            return f"http://127.0.0.1:{self.ports[name]}/-/ready"
        engine, part = name.split()
        port = self.ports[f"{part.upper()}_HTTP"]
        return f"http://127.0.0.1:{port}/{'-/ready' if engine == 'thanos' else 'health'}"

    def _agent(self, number: int, replica: str, group: Mapping[str, str]) -> list[str]:
        """The committed settings with this machine's addresses and pace."""
        text = (SCALE / "agent.yml").read_text(encoding="utf-8")
        for known, port in (("10908", "RECEIVE_WRITE"), ("8428", "STORAGE_HTTP")):
            assert f"127.0.0.1:{known}/" in text
            text = text.replace(f"127.0.0.1:{known}/", f"127.0.0.1:{self.ports[port]}/")
        settings = yaml.safe_load(text)
        interval = f"{self.stack.spec.scrape_interval:g}s"
        settings["global"] |= {"scrape_interval": interval, "scrape_timeout": interval}
        settings["scrape_configs"] = [
            {"job_name": job, "static_configs": [{"targets": [address]}]}
            for job, address in group.items()
        ]
        file = self.folder / f"agent-{number}{replica}.yml"
        file.write_text(yaml.safe_dump(settings), encoding="utf-8")
        return [
            *tree_program(find_release(_RELEASE), "prometheus"),
            "--enable-feature=agent,expand-external-labels",
            f"--config.file={file}",
            f"--storage.agent.path={self.folder / f'agent-{number}{replica}'}",
            f"--web.listen-address=127.0.0.1:{self.ports[f'agent {number}{replica}']}",
            "--log.level=warn",
        ]

    async def _programs(self) -> str:
        """A folder for the PATH with thanos, and with VictoriaMetrics of a Debian tree."""
        folder = self.folder / "bin"
        folder.mkdir(parents=True)
        (folder / "thanos").symlink_to(await ensure_tool("thanos", Progress()))
        release, packages = find_release(_RELEASE), ("victoria-metrics",)
        await ensure_tree(release, Progress(), packages)
        for name in ("victoria-metrics", "vmalert"):
            argv = tree_program(release, name, packages)
            if not argv:
                raise LabError(f"{name} is not in the tree of {packages[0]}")
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {" ".join(argv)} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        return str(folder)


@contextlib.asynccontextmanager
async def exporter(sockets: Path, pattern: str, log: Path) -> AsyncIterator[str]:
    """One more exporter, of another host as it were; gives its address."""
    (port,) = free_ports(1)
    argv = [sys.executable, "-m", "cephqos_exporter.cli", "--collector.histograms.interval=0"]
    argv += [f"--web.listen-address=127.0.0.1:{port}", f"--discovery.sockets={sockets}/{pattern}"]
    async with in_background(argv, log) as process:
        await until_answers(f"http://127.0.0.1:{port}/-/ready", process, log, "exporter")
        yield f"127.0.0.1:{port}"


async def _json(url: str) -> Any:
    return json.loads(await fetch(url, within=20.0))
