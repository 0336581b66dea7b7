"""deploy/compose with a real Docker engine: `make test-compose`.

The compose file is the repository's, unchanged. Variables give it equivalents of the public images,
which no machine without a registry could pull.
"""

import json
import re
import subprocess
import time
import urllib.error
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from . import images
from .engine import STACK, DockerEngine
from .stack import ALERTMANAGER, LOKI, PROMETHEUS, ComposeStack

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]

VARIABLES = {**images.variables(), "LOAD_SCALE": "tiny"}
GRAFANA = "http://127.0.0.1:3000"
# What a container may be given beyond nothing, and why compose.yml says it.
PRIVILEGED = {"lab"}


@pytest.fixture(scope="module")
def stack(docker: DockerEngine) -> Iterator[ComposeStack]:
    up = ComposeStack(docker, VARIABLES)
    with up.brought_up():
        yield up


@pytest.fixture(scope="module")
def silence(stack: ComposeStack) -> str:
    """The id of a silence that nothing needs."""
    said = stack.compose(
        *("exec", "-T", "alertmanager", "amtool", f"--alertmanager.url={ALERTMANAGER}"),
        *("silence", "add", "alertname=Nothing", "--comment=kept", "--author=test"),
    )
    return said.strip()


def test_all_services_are_healthy_and_every_target_is_up(stack: ComposeStack) -> None:
    assert stack.healthy()
    services = yaml.safe_load((STACK / "compose.yml").read_text())["services"]
    shared = yaml.safe_load((STACK / "monitoring.yml").read_text())["services"]
    assert set(stack.containers()) - {"grafana"} == {*services, *shared} - {"grafana"}
    # The load's own target is there while a run goes on.
    stack.until("every target is up", stack.all_targets_up, 150)
    assert len(stack.targets()) == 7, stack.targets()
    up = stack.until("all OSDs answer", partial(stack.query, "sum(cephqos_daemon_up) == 5"))
    assert up[0]["value"][1] == "5"  # three OSDs, a monitor, a manager
    # The exporter sees the OSDs' threads through the PID namespace of the host.
    assert stack.until("threads", partial(stack.query, "cephqos_threads_cpu_seconds_total"))
    assert stack.until("the probe", partial(stack.query, "cephqos_probe_up"))


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


def test_an_alert_travels_to_the_webhook(stack: ComposeStack, silence: str) -> None:
    first = stack.until("an alert at the webhook", stack.alerts, 120)[0]
    name = first["labels"]["alertname"]
    print(f"from `up` to the first alert ({name}): {first['received'] - stack.started:.1f} s")
    frozen = time.time()
    fault = ("exec", "-T", "lab", "cephqos", "lab", "fault")
    stack.compose(*fault, "stop", "--osd=1")
    try:
        page = partial(stack.alerts, alertname="CephQosDaemonNotAnswering", ceph_daemon="osd.1")
        # Two minutes of the rule, 30 s of the group, or 2 minutes if the group is there already.
        received = stack.until("the page for a frozen OSD", page, 400)[0]["received"]
    finally:
        stack.compose(*fault, "continue", "--osd=1")
    print(f"from a frozen OSD to its page: {received - frozen:.1f} s")
    said = stack.compose("logs", "webhook")
    assert "firing CephQosDaemonNotAnswering to critical: osd.1 does not answer" in said


def test_log_lines_of_daemons_and_runs_arrive_in_loki(stack: ComposeStack) -> None:
    fsid = stack.query("cephqos_cluster_up")[0]["metric"]["cluster"]
    for log in ("osd", "mon", "cluster", "run"):
        selector = f'{{log="{log}", cluster="{fsid}"}}'
        stack.until(f"lines {selector}", partial(stack.lines, selector))


def test_grafana_has_sources_dashboards_folder_and_home_page_or_is_off(
    stack: ComposeStack,
) -> None:
    if images.grafana_home() is None:
        assert "grafana" not in stack.containers()
        return
    own = STACK.parents[1] / "dashboards/cephqos_dashboards/generated"
    wanted = {json.loads(file.read_text())["uid"] for file in own.glob("*.json")}
    found = stack.json(f"{GRAFANA}/api/search?type=dash-db&limit=1000")
    assert {each["uid"] for each in found} == wanted
    assert {each["folderTitle"] for each in found} == {"cephqos"}
    home = stack.json(f"{GRAFANA}/api/dashboards/home")
    assert home["dashboard"]["uid"] == "cephqos-overview"
    # Who looks has no password: the sources answer through Grafana.
    for uid, path in (
        ("cephqos-prometheus", "api/v1/query?query=cephqos_cluster_up"),
        ("cephqos-loki", "loki/api/v1/labels"),
    ):
        reply = stack.json(f"{GRAFANA}/api/datasources/proxy/uid/{uid}/{path}")
        assert reply["status"] == "success" and reply["data"], uid


def test_grafana_listens_wider_only_with_the_password_of_a_file(stack: ComposeStack) -> None:
    if images.grafana_home() is None:
        return
    file = stack.engine.folder / "password"
    file.write_text("of-this-test")
    wider = ComposeStack(stack.engine, {**VARIABLES, "GRAFANA_PASSWORD_FILE": str(file)})
    try:
        wider.compose("up", "--detach", "--wait", "grafana")
        assert re.search(r"(\*|0\.0\.0\.0):3000 ", wider.engine.run("ss", "-Hltn"))
        users = ("", "admin:admin", "admin:of-this-test")
        assert [_status(wider, user) for user in users] == [401, 401, 200]
    finally:
        stack.compose("up", "--detach", "--wait", "grafana")


def _status(stack: ComposeStack, user: str) -> int:
    """What Grafana answers that user."""
    try:
        stack.engine.fetch(f"{GRAFANA}/api/search", user=user)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    return 200


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
    *(("grafana",) if images.grafana_home() else ()),
    *("webhook", "alertmanager", "loki", "prometheus", "collector", "hosts", "cluster", "probe"),
    *("load", "lab"),
)


def test_each_service_comes_back_with_its_data_after_a_kill(
    stack: ComposeStack, silence: str
) -> None:
    # Alertmanager writes silences once a minute.
    written = ("exec", "-T", "alertmanager", "grep", "--count", "kept", "/alertmanager/silences")
    stack.until("the silence is on disk", lambda: int(stack.compose(*written, check=False)), 90)
    alerts, runs = len(stack.alerts()), stack.runs()
    samples = stack.query("count_over_time(prometheus_build_info[1h])")[0]["value"][1]
    lines = stack.lines('{log="osd"}')
    before = stack.containers()
    for name in KILLED:
        # Not `docker kill`: an engine does not restart what it was asked to end.
        pid = before[name]["State"]["Pid"]
        stack.engine.run("kill", "-9", str(pid))
    for name in KILLED:
        stack.until(f"{name} is restarted", partial(_restarted, stack, name, before[name]), 60)
    stack.until("all are healthy again", stack.healthy, 200)
    assert len(stack.alerts()) >= alerts
    assert runs and stack.runs() >= runs
    kept = stack.query("count_over_time(prometheus_build_info[1h])")[0]["value"][1]
    assert int(kept) >= int(samples)
    assert stack.lines('{log="osd"}') >= lines > 0
    found = stack.json(f"{ALERTMANAGER}/api/v2/silences")
    assert [s["comment"] for s in found if s["id"] == silence] == ["kept"]
    stack.until("every target is up again", stack.all_targets_up, 200)


def _restarted(stack: ComposeStack, name: str, before: dict[str, Any]) -> bool:
    state = stack.containers()[name]
    return bool(state["State"]["Running"]) and state["State"]["Pid"] != before["State"]["Pid"]


def test_down_with_volumes_leaves_nothing(stack: ComposeStack) -> None:
    stack.compose("down", "--volumes", "--timeout=20", within=120)
    for listing in (("ps", "--all"), ("volume", "ls"), ("network", "ls", "--filter=type=custom")):
        assert not stack.engine.run("docker", *listing, "--quiet").split(), listing
    mounts = Path(f"/proc/{stack.engine.pid}/mounts").read_text()
    assert "/volumes/" not in mounts
    left = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    assert str(stack.engine.folder) not in left
