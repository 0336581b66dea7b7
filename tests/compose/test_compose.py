"""deploy/compose with a real Docker engine: `make test-compose`.

The compose file is the repository's, unchanged. Variables give it equivalents of the public images,
which no machine without a registry could pull.
"""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from . import images
from .engine import STACK, DockerEngine, engine

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]

VARIABLES = {**images.VARIABLES, "LOAD_SCALE": "tiny"}
PROMETHEUS, ALERTMANAGER = "http://127.0.0.1:9090", "http://127.0.0.1:9093"
LOKI, HOSTS = "http://127.0.0.1:3100", "http://127.0.0.1:10130"
# What a container may be given beyond nothing, and why compose.yml says it.
PRIVILEGED = {"lab"}


class ComposeStack:
    """The running compose project, and how long its steps took."""

    def __init__(self, running: DockerEngine) -> None:
        self.engine = running
        self.started = time.monotonic()

    def compose(self, *words: str, within: float = 300.0) -> str:
        return self.engine.run("docker", "compose", *words, variables=VARIABLES, within=within)

    def containers(self) -> dict[str, dict[str, Any]]:
        ids = self.compose("ps", "--all", "--quiet").split()
        found = json.loads(self.engine.run("docker", "inspect", *ids)) if ids else []
        return {c["Config"]["Labels"]["com.docker.compose.service"]: c for c in found}

    def json(self, url: str) -> Any:
        return json.loads(self.engine.fetch(url))

    def until(self, what: str, condition: Callable[[], Any], within: float = 90.0) -> Any:
        """The first true value of it. Errors of a service that is starting count as not yet."""
        deadline = time.monotonic() + within
        last: object = None
        while time.monotonic() < deadline:
            try:
                if value := condition():
                    return value
                last = value
            except (OSError, ValueError, KeyError, IndexError) as error:
                last = error
            time.sleep(1.0)
        pytest.fail(f"not within {within:g} s: {what} (last: {last!r})")

    def targets(self) -> dict[str, str]:
        active = self.json(f"{PROMETHEUS}/api/v1/targets?state=active")["data"]["activeTargets"]
        return {f"{t['labels']['job']} {t['scrapeUrl']}": t["health"] for t in active}

    def query(self, expr: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json(f"{PROMETHEUS}/api/v1/query?query={quote(expr)}")[
            "data"
        ]["result"]
        return found

    def lines(self, selector: str) -> int:
        expr = quote(f"sum(count_over_time({selector}[1h]))")
        found = self.json(f"{LOKI}/loki/api/v1/query?query={expr}")["data"]["result"]
        return int(found[0]["value"][1]) if found else 0

    def alerts(self) -> list[dict[str, Any]]:
        text = self.compose(
            *("exec", "-T", "webhook", "/usr/bin/python3", "-c"),
            "print(open('/var/lib/cephqos/alerts/alerts.jsonl').read())",
        )
        return [json.loads(line) for line in text.splitlines() if line]

    def healthy(self) -> bool:
        states = {
            n: c["State"].get("Health", {}).get("Status") for n, c in self.containers().items()
        }
        bad = {name: state for name, state in states.items() if state != "healthy"}
        if bad:
            raise ValueError(str(bad))
        return True


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeStack]:
    if os.geteuid() != 0:
        pytest.fail("a Docker engine needs root")
    started = time.monotonic()
    tree, archive = images.prepare()
    _say("images", started)
    # A short path: the kernel allows a socket's path 107 characters.
    folder = tmp_path_factory.mktemp("engine")
    with engine(tree, folder) as running:
        started = time.monotonic()
        load = archive.open("rb")
        with load:
            running.run("docker", "load", "--quiet", stdin=load.fileno(), within=300)
        _say("loading them", started)
        up = ComposeStack(running)
        up.compose("up", "--detach", "--wait", "--wait-timeout=280", within=300)
        _say("up, all healthy", up.started)
        yield up
        up.compose("down", "--volumes", "--timeout=20")


def _say(what: str, started: float) -> None:
    print(f"{what}: {time.monotonic() - started:.1f} s", flush=True)


def test_all_services_are_healthy_and_every_target_is_up(stack: ComposeStack) -> None:
    assert stack.healthy()
    services = yaml.safe_load((STACK / "compose.yml").read_text())["services"]
    shared = yaml.safe_load((STACK / "monitoring.yml").read_text())["services"]
    assert set(stack.containers()) == {*services, *shared} - {"grafana"}
    # The load's own target is there while a run goes on.
    stack.until("every target is up", lambda: set(stack.targets().values()) == {"up"}, 150)
    assert len(stack.targets()) == 7, stack.targets()
    assert stack.until("OSDs", lambda: stack.query("sum(cephqos_daemon_up)"))


def test_prometheus_and_loki_have_loaded_the_rules_of_the_repository(stack: ComposeStack) -> None:
    wanted = {
        rule.get("alert") or rule["record"]
        for file in (STACK.parents[1] / "alerts/rules").glob("*.yml")
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
    }
    groups = stack.json(f"{PROMETHEUS}/api/v1/rules")["data"]["groups"]
    loaded = {rule["name"] for group in groups for rule in group["rules"]}
    assert loaded == wanted and len(wanted) > 50
    logs = yaml.safe_load((STACK.parents[1] / "alerts/loki/fake/logs.yml").read_text())
    named = {rule["alert"] for group in logs["groups"] for rule in group["rules"]}
    rules = stack.engine.fetch(f"{LOKI}/loki/api/v1/rules").decode()
    assert named == set(re.findall(r"alert: (\w+)", rules))


def test_an_alert_travels_to_the_webhook(stack: ComposeStack) -> None:
    first = stack.until("an alert at the webhook", stack.alerts, 120)[0]
    seconds = first["received"] - time.time() + time.monotonic() - stack.started
    print(f"from `up` to the first alert ({first['labels']['alertname']}): {seconds:.1f} s")
    said = stack.compose("logs", "webhook")
    assert first["labels"]["alertname"] in said


def test_log_lines_of_daemons_and_runs_arrive_in_loki(stack: ComposeStack) -> None:
    fsid = stack.query("cephqos_cluster_up")[0]["metric"]["cluster"]
    for log in ("osd", "mon", "cluster", "run"):
        selector = f'{{log="{log}", cluster="{fsid}"}}'
        stack.until(f"lines {selector}", partial(stack.lines, selector))


def test_nothing_listens_beyond_loopback(stack: ComposeStack) -> None:
    listening = stack.engine.run("ss", "-Hltun")
    addresses = {line.split()[4].rpartition(":")[0] for line in listening.splitlines()}
    assert addresses and addresses <= {"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"}, listening


def test_containers_have_no_more_rights_than_they_say(stack: ComposeStack) -> None:
    for name, container in stack.containers().items():
        host = container["HostConfig"]
        assert host["RestartPolicy"]["Name"] == "unless-stopped", name
        assert host["Memory"] > 0 and host["NanoCpus"] > 0 and host["PidsLimit"] > 0, name
        if name in PRIVILEGED:
            continue
        assert not host["Privileged"] and host["CapDrop"] == ["ALL"] and not host["CapAdd"], name
        assert host["ReadonlyRootfs"], name
        assert "no-new-privileges:true" in host["SecurityOpt"], name
        assert int(container["Config"]["User"].partition(":")[0] or _image_user(stack, container))


def _image_user(stack: ComposeStack, container: dict[str, Any]) -> str:
    """The user that the image sets, as a number; 0 if it sets none."""
    image = json.loads(stack.engine.run("docker", "inspect", container["Image"]))[0]
    return str(image["Config"]["User"]).partition(":")[0] or "0"


KILLED = (
    *("webhook", "alertmanager", "loki", "prometheus", "collector", "hosts", "cluster", "probe"),
    *("load", "lab"),
)


def test_each_service_comes_back_with_its_data_after_a_kill(stack: ComposeStack) -> None:
    alerts = len(stack.alerts())
    samples = stack.query("count_over_time(prometheus_build_info[1h])")[0]["value"][1]
    lines = stack.lines('{log="osd"}')
    silence = _silence(stack)
    before = stack.containers()
    for name in KILLED:
        # Not `docker kill`: an engine does not restart what it was asked to end.
        pid = before[name]["State"]["Pid"]
        stack.engine.run("kill", "-9", str(pid))
    for name in KILLED:
        stack.until(f"{name} is restarted", partial(_restarted, stack, name, before[name]), 60)
    stack.until("all are healthy again", stack.healthy, 200)
    assert len(stack.alerts()) >= alerts
    kept = stack.query("count_over_time(prometheus_build_info[1h])")[0]["value"][1]
    assert int(kept) >= int(samples)
    assert stack.lines('{log="osd"}') >= lines
    found = stack.json(f"{ALERTMANAGER}/api/v2/silences")
    assert [s["comment"] for s in found if s["id"] == silence] == ["kept"]
    stack.until("every target is up again", lambda: set(stack.targets().values()) == {"up"}, 150)


def _restarted(stack: ComposeStack, name: str, before: dict[str, Any]) -> bool:
    state = stack.containers()[name]
    return bool(state["State"]["Running"]) and state["State"]["Pid"] != before["State"]["Pid"]


def _silence(stack: ComposeStack) -> str:
    said = stack.compose(
        *("exec", "-T", "alertmanager", "amtool", f"--alertmanager.url={ALERTMANAGER}"),
        *("silence", "add", "alertname=Nothing", "--comment=kept", "--author=test"),
    )
    return said.strip()


def test_down_with_volumes_leaves_nothing(stack: ComposeStack) -> None:
    stack.compose("down", "--volumes", "--timeout=20", within=120)
    for listing in (("ps", "--all"), ("volume", "ls"), ("network", "ls", "--filter=type=custom")):
        assert not stack.engine.run("docker", *listing, "--quiet").split(), listing
    mounts = Path(f"/proc/{stack.engine.pid}/mounts").read_text()
    assert "/volumes/" not in mounts
    left = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    assert str(stack.engine.folder) not in left
