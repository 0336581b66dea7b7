"""The compose project as a test sees it: its containers, its servers' answers, its logs."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import pytest

from .engine import DockerEngine

PROMETHEUS, ALERTMANAGER = "http://127.0.0.1:9090", "http://127.0.0.1:9093"
LOKI = "http://127.0.0.1:3100"
_ALERTS = "/var/lib/cephqos/alerts/alerts.jsonl"
_PRINT = (
    f"from pathlib import Path as P; p = P('{_ALERTS}'); print(p.read_text() if p.exists() else '')"
)


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long it took."""
    started = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - started:.1f} s", flush=True)


class ComposeStack:
    """A compose project, and when it was told to come up."""

    def __init__(
        self, running: DockerEngine, variables: Mapping[str, str], file: str = "compose.yml"
    ) -> None:
        self.engine = running
        self.variables = variables
        self.file = file
        self.started = time.time()

    @contextlib.contextmanager
    def brought_up(self) -> Iterator[None]:
        """All services healthy; nothing is left of them afterwards."""
        self.started = time.time()
        try:
            with timed(f"{self.file} up, all healthy"):
                self.compose("up", "--detach", "--wait", "--wait-timeout=280")
        except AssertionError as error:
            said = self.compose("ps", "--all") + self.compose("logs", "--tail=30")
            pytest.fail(f"{error}\n{said}")
        yield
        self.compose("down", "--volumes", "--timeout=20")

    def compose(self, *words: str, within: float = 300.0, check: bool = True) -> str:
        argv = ("docker", "compose", f"--file={self.file}", *words)
        return self.engine.run(*argv, variables=self.variables, within=within, check=check)

    def containers(self) -> dict[str, dict[str, Any]]:
        ids = self.compose("ps", "--all", "--quiet").split()
        found = json.loads(self.engine.run("docker", "inspect", *ids)) if ids else []
        return {c["Config"]["Labels"]["com.docker.compose.service"]: c for c in found}

    def json(self, url: str) -> Any:
        return json.loads(self.engine.fetch(url))

    def until(self, what: str, condition: Callable[[], Any], within: float = 90.0) -> Any:
        """The first true value of it. Errors of a service that is starting count as not yet."""
        started = time.monotonic()
        last: object = None
        while time.monotonic() < started + within:
            try:
                if value := condition():
                    print(f"{what}: {time.monotonic() - started:.1f} s", flush=True)
                    return value
                last = value
            except (OSError, ValueError, KeyError, IndexError) as error:
                last = error
            time.sleep(1.0)
        pytest.fail(f"not within {within:g} s: {what} (last: {last!r})")

    def targets(self) -> dict[str, str]:
        active = self.json(f"{PROMETHEUS}/api/v1/targets?state=active")["data"]["activeTargets"]
        return {f"{t['labels']['job']} {t['scrapeUrl']}": t["health"] for t in active}

    def all_targets_up(self) -> bool:
        if down := {name: state for name, state in self.targets().items() if state != "up"}:
            raise ValueError(str(down))
        return True

    def query(self, expr: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json(f"{PROMETHEUS}/api/v1/query?query={quote(expr)}")[
            "data"
        ]["result"]
        return found

    def lines(self, selector: str) -> int:
        expr = quote(f"sum(count_over_time({selector}[1h]))")
        found = self.json(f"{LOKI}/loki/api/v1/query?query={expr}")["data"]["result"]
        return int(found[0]["value"][1]) if found else 0

    def alerts(self, **labels: str) -> list[dict[str, Any]]:
        """The alerts that the webhook has received, oldest first."""
        text = self.compose("exec", "-T", "webhook", "/usr/bin/python3", "-c", _PRINT)
        found = [json.loads(line) for line in text.splitlines() if line]
        return [alert for alert in found if labels.items() <= alert["labels"].items()]

    def runs(self) -> set[str]:
        """The runs of which the load has an archive, finished or not."""
        said = self.compose("exec", "-T", "load", "ls", "/var/lib/cephqos/archives")
        return {name.removesuffix(".partial") for name in said.split()}

    def healthy(self) -> bool:
        states = {
            n: c["State"].get("Health", {}).get("Status") for n, c in self.containers().items()
        }
        bad = {name: state for name, state in states.items() if state != "healthy"}
        if bad:
            raise ValueError(str(bad))
        return True
