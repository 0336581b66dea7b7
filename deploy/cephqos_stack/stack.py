"""Exporter, Prometheus with the rules, and Alertmanager for a lab.

`async with Stack(lab, StackSpec(...)) as stack` for tests and for the demo. Prometheus and
Alertmanager come from the lab's release tree. All of it ends with the block.
"""

import contextlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil
import yaml

from cephqos_alerts.cli import load_slos
from cephqos_alerts.output.alertmanager import DEFAULT_WEBHOOK, alertmanager_config
from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base import textfile
from cephqos_base.prometheus import query
from cephqos_base.servers import fetch
from cephqos_base.units import duration
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.processes import in_background, own_module
from cephqos_loadgen.programs import free_ports, until_answers

_START_TIMEOUT = 90.0
_HIGH_PRIORITY = -10  # niceness


@dataclass(frozen=True, kw_only=True)
class StackSpec:
    """How to set up the servers."""

    name: str = "stack"  # of its directory; a lab can have several
    scrape_interval: float = 1.0  # seconds
    time_scale: float = 1 / 30  # of all windows and holds of the rules
    slos: Path | None = None  # a file of SLOs
    webhook: str = DEFAULT_WEBHOOK
    sockets: str = ""  # pattern of the admin sockets that the exporter reads; all without one
    exporter_options: Sequence[str] = field(default_factory=tuple)
    cluster_role: bool = True
    runbook_url: str = ""
    dashboard_url: str = ""
    dashboard_prefix: str = ""
    rules: bool = True  # whether Prometheus loads them
    goes_first: bool = False  # high priority on a busy host: a scrape has one second here
    runs_silence: bool = True  # whether a test run silences the alerts that it causes
    targets: Mapping[str, str] = field(default_factory=dict)  # more to scrape: host:port by job

    @property
    def rule_settings(self) -> RuleSettings:
        return RuleSettings(
            scrape_interval=self.scrape_interval,
            time_scale=self.time_scale,
            runbook_url=self.runbook_url,
            dashboard_url=self.dashboard_url,
            dashboard_prefix=self.dashboard_prefix,
        )

    def rule_files(self) -> dict[str, str]:
        return build_rules(self.rule_settings, load_slos(self.slos) if self.slos else [])


class Stack:
    """Exporter, Prometheus and Alertmanager of a lab, on loopback ports of their own."""

    def __init__(self, lab: RunningLab, spec: StackSpec) -> None:
        self.lab = lab
        self.spec = spec
        self._exporter_port, self._prometheus_port, self._alertmanager_port = free_ports(3)
        self.exporter_url = f"http://127.0.0.1:{self._exporter_port}"
        self.prometheus_url = f"http://127.0.0.1:{self._prometheus_port}"
        self.alertmanager_url = f"http://127.0.0.1:{self._alertmanager_port}"
        # Configuration, rules and data: the same path inside and outside the lab.
        self.dir = lab.paths.work / spec.name
        self._open = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        before = set(psutil.Process().children(recursive=True))
        try:
            self._write_files()
            await self._start("exporter", self._exporter(), f"{self.exporter_url}/-/ready")
            await self._start(
                "alertmanager", self._alertmanager(), f"{self.alertmanager_url}/-/ready"
            )
            await self._start("prometheus", self._prometheus(), f"{self.prometheus_url}/-/ready")
        except BaseException:
            await self._open.aclose()
            raise
        if self.spec.goes_first:
            _go_first(set(psutil.Process().children(recursive=True)) - before)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def query(self, expr: str) -> list[dict[str, Any]]:
        return await query(self.prometheus_url, expr)

    async def alerts(self) -> list[dict[str, Any]]:
        """The alerts that Prometheus has, pending and firing."""
        reply = json.loads(await fetch(f"{self.prometheus_url}/api/v1/alerts"))
        alerts: list[dict[str, Any]] = reply["data"]["alerts"]
        return alerts

    def _write_files(self) -> None:
        settings, webhook = self.spec.rule_settings, self.spec.webhook
        files = {f"rules/{name}": text for name, text in self.spec.rule_files().items()}
        files["alertmanager.yml"] = alertmanager_config(
            settings, webhook, runs_silence=self.spec.runs_silence
        )
        files["prometheus.yml"] = yaml.safe_dump(self._prometheus_config(), sort_keys=False)
        for name, text in files.items():
            textfile.write(self.dir / name, text)

    def _prometheus_config(self) -> dict[str, Any]:
        interval = duration(self.spec.scrape_interval)
        return {
            "global": {
                "scrape_interval": interval,
                "scrape_timeout": interval,
                "evaluation_interval": interval,
            },
            "rule_files": [str(self.dir / "rules" / "*.yml")] if self.spec.rules else [],
            "alerting": {"alertmanagers": [_targets(self._alertmanager_port)]},
            "scrape_configs": [
                {"job_name": "cephqos", **_targets(self._exporter_port)},
                {"job_name": "prometheus", **_targets(self._prometheus_port)},
                *(
                    {"job_name": job, "static_configs": [{"targets": [address]}]}
                    for job, address in self.spec.targets.items()
                ),
            ],
        }

    def _exporter(self) -> list[str]:
        argv = own_module("cephqos_exporter.cli")
        argv += [f"--web.listen-address=127.0.0.1:{self._exporter_port}"]
        argv += [f"--discovery.sockets={self.lab.paths.sockets / self.spec.sockets}"]
        # At every scrape: here a fault is staged and found within seconds.
        argv += ["--collector.histograms.interval=0", "--collector.cgroup.interval=0"]
        if self.spec.cluster_role:
            argv += ["--role=osd,cluster", f"--cluster.conf={self.lab.paths.conf}"]
            argv += ["--cluster.name=client.admin", "--cluster.interval=1"]
            argv += [f"--cluster.python={shlex.join(self.lab.enter_argv(['python3']))}"]
        return [*argv, *self.spec.exporter_options]

    def _prometheus(self) -> list[str]:
        return self.lab.enter_argv(
            [
                "prometheus",
                f"--config.file={self.dir / 'prometheus.yml'}",
                f"--storage.tsdb.path={self.dir / 'prometheus'}",
                f"--web.listen-address=127.0.0.1:{self._prometheus_port}",
                "--log.level=warn",
                # A second evaluation of an alert is a second chance to reach Alertmanager.
                "--rules.alert.resend-delay=1s",
            ]
        )

    def _alertmanager(self) -> list[str]:
        return self.lab.enter_argv(
            [
                "prometheus-alertmanager",
                f"--config.file={self.dir / 'alertmanager.yml'}",
                f"--storage.path={self.dir / 'alertmanager'}",
                f"--web.listen-address=127.0.0.1:{self._alertmanager_port}",
                "--cluster.listen-address=",
                "--log.level=warn",
            ]
        )

    async def _start(self, name: str, argv: Sequence[str], url: str) -> None:
        log = self.lab.paths.logs / f"{self.spec.name}-{name}.out"
        started = await self._open.enter_async_context(in_background(argv, log))
        await until_answers(url, started, log, name, _START_TIMEOUT)


def _go_first(servers: Iterable[psutil.Process]) -> None:
    """Give the servers a high priority, as far as the kernel lets us."""
    for server in servers:
        with contextlib.suppress(OSError, psutil.Error):
            server.nice(_HIGH_PRIORITY)
            # If the kernel groups tasks by session, niceness between sessions is set here.
            Path(f"/proc/{server.pid}/autogroup").write_text(str(_HIGH_PRIORITY))


def _targets(port: int) -> dict[str, Any]:
    return {"static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
