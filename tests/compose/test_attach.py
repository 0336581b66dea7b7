"""compose.attach.yml and a cluster outside of the engine: only what the README says is copied."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from . import images
from .engine import CHECKOUT, DockerEngine
from .stack import ComposeStack

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]

_CEPH = 64045
_EXPORTER = "127.0.0.1:10130"
_SERVICES = {"prometheus", "alertmanager", "webhook", "loki", "cluster", "probe", "collector"}


class ForeignCluster:
    """A lab of this host, on the engine's network, and its operator's files in `folder`."""

    def __init__(self, docker: DockerEngine) -> None:
        self._docker = docker
        self._labs = docker.folder / "labs"
        self.logs = self._labs / "attach/log"
        self.folder = docker.folder / "attach"
        self.folder.mkdir(exist_ok=True)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """One of our own programs, in the background."""
        argv = self._docker.beside(sys.executable, "-m", *words)
        environment = {**os.environ, "CEPHQOS_LABS": str(self._labs)}
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=environment)

    def ready(self) -> bool:
        return bool(json.loads((self._labs / "attach/lab.json").read_text())["ready"])

    def ceph(self, *words: str) -> str:
        return self._lab("exec", "--name=attach", "--", "ceph", *words)

    def end(self) -> None:
        """`lab up` ended when the lab was up; another process keeps it."""
        self._lab("down", "--name=attach")

    def _lab(self, *words: str) -> str:
        argv = self._docker.beside(sys.executable, "-m", "cephqos_base", "lab", *words)
        environment = {**os.environ, "CEPHQOS_LABS": str(self._labs)}
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    def write_key(self, entity: str) -> None:
        """The key that the documentation says, readable by the exporters' user only."""
        text = (CHECKOUT / "docs/install/security.md").read_text()
        start = f"ceph auth get-or-create {entity} "
        command = next(line for line in text.splitlines() if line.startswith(start))
        words = shlex.split(command.replace("POOL", "probe"))
        keyring = self.folder / Path(words[-1]).name
        keyring.write_text(self.ceph(*words[1:-2]))
        keyring.chmod(0o600)
        os.chown(keyring, _CEPH, _CEPH)

    def write_targets(self, *hosts: str) -> None:
        """As an editor does it: a new file, which takes the place of the old one."""
        targets = [{"targets": [each]} for each in ("127.0.0.1:10131", "127.0.0.1:10132", *hosts)]
        folder = self.folder / "targets"
        folder.mkdir(exist_ok=True)
        (folder / "new").write_text(yaml.safe_dump(targets))
        (folder / "new").rename(folder / "targets.yml")

    def variables(self) -> dict[str, str]:
        keyring = "ceph.client.cephqos"
        return {
            **images.variables(),
            "COMPOSE_PROFILES": ",".join(filter(None, (images.profile(), "probe", "logs"))),
            "TARGETS": str(self.folder / "targets"),
            "CEPH_CONF": str(self.folder / "ceph.conf"),
            "CEPH_KEYRING": str(self.folder / f"{keyring}.keyring"),
            "PROBE_KEYRING": str(self.folder / f"{keyring}-probe.keyring"),
            "PROBE_POOLS": "probe",
            "CEPH_LOGS": str(self.logs),
            "CEPH_FSID": self.ceph("fsid").strip(),
        }


@pytest.fixture(scope="module")
def foreign(docker: DockerEngine) -> Iterator[ForeignCluster]:
    cluster = ForeignCluster(docker)
    started = []
    try:
        up = ("--name=attach", "--osds=1", "--auth=cephx", "--setuser=ceph")
        started.append(cluster.start("cephqos_base", "lab", "up", *up))
        ComposeStack(docker, {}).until("the foreign cluster", cluster.ready, 150)
        cluster.ceph("osd", "pool", "create", "probe", "8")
        cluster.ceph("osd", "pool", "application", "enable", "probe", "cephqos")
        (cluster.folder / "ceph.conf").write_text(cluster.ceph("config", "generate-minimal-conf"))
        cluster.write_key("client.cephqos")
        cluster.write_key("client.cephqos-probe")
        cluster.write_targets(_EXPORTER)
        sockets = f"--discovery.sockets={cluster.logs.with_name('run')}"
        listen = f"--web.listen-address={_EXPORTER}"
        started.append(cluster.start("cephqos_exporter.cli", listen, sockets))
        yield cluster
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(60)
        cluster.end()
        shutil.rmtree(cluster.folder)


@pytest.fixture(scope="module")
def attached(docker: DockerEngine, foreign: ForeignCluster) -> Iterator[ComposeStack]:
    stack = ComposeStack(docker, foreign.variables(), "compose.attach.yml")
    with stack.brought_up():
        yield stack


def test_a_target_list_and_keyrings_attach_the_stack_to_a_cluster(
    attached: ComposeStack, foreign: ForeignCluster
) -> None:
    fsid = attached.variables["CEPH_FSID"]
    assert set(attached.containers()) - {"grafana"} == _SERVICES
    attached.until("every target is up", attached.all_targets_up, 90)
    assert len(attached.targets()) == 6
    for expr in ("cephqos_cluster_up", "cephqos_probe_up", "sum by (cluster) (cephqos_daemon_up)"):
        found = attached.until(expr, partial(attached.query, f"{expr} == 1"), 60)
        assert [each["metric"]["cluster"] for each in found] == [fsid]
    for log in ("osd", "mon", "cluster"):
        selector = f'{{log="{log}", cluster="{fsid}"}}'
        attached.until(f"lines of {log}", partial(attached.lines, selector))
    first = attached.until("an alert at the webhook", attached.alerts, 120)[0]
    print(f"from `up` to the first alert: {first['received'] - attached.started:.1f} s")


def test_no_container_of_the_attached_stack_is_privileged(attached: ComposeStack) -> None:
    for name, container in attached.containers().items():
        host = container["HostConfig"]
        assert not host["Privileged"] and host["CapDrop"] == ["ALL"], name
        assert host["ReadonlyRootfs"] and not host["PidMode"], name


def test_an_edited_target_list_is_seen(attached: ComposeStack, foreign: ForeignCluster) -> None:
    foreign.write_targets(_EXPORTER, "127.0.0.1:10999")
    added = "cephqos http://127.0.0.1:10999/metrics"
    attached.until("the new target", lambda: added in attached.targets(), 60)
    foreign.write_targets(_EXPORTER)
    attached.until("it is gone again", lambda: added not in attached.targets(), 60)


def test_a_keyring_that_is_missing_is_an_error_and_becomes_no_folder(
    attached: ComposeStack, foreign: ForeignCluster
) -> None:
    missing = foreign.folder / "missing.keyring"
    variables = {**attached.variables, "CEPH_KEYRING": str(missing)}
    other = ComposeStack(attached.engine, variables, attached.file)
    with pytest.raises(AssertionError, match="bind source path does not exist"):
        other.compose("up", "--detach", "cluster")
    assert not missing.exists()


def test_down_leaves_nothing_of_the_attached_stack(attached: ComposeStack) -> None:
    attached.compose("down", "--volumes", "--timeout=20")
    for listing in (("ps", "--all"), ("volume", "ls")):
        assert not attached.engine.run("docker", *listing, "--quiet").split(), listing
