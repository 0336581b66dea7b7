"""The log collector's packages in a fresh Debian: installed, upgraded under systemd, removed.

No cluster is needed: it gets recorded logs, with the owner and the rights that Ceph gives them.
"""

import asyncio
import gzip
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest
from tests.waiting import wait_until

from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.trees import tree_path, tree_ready
from cephqos_loadgen.programs import free_ports
from cephqos_stack.tools import find_tool

from .booted_root import Booted, booted
from .fresh_root import FreshRoot
from .traced import called_in, lines_of, syscalls

pytestmark = pytest.mark.full


ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
UNIT: Final = (DEPLOY / "collector" / "cephqos-collector.service").read_text()
RECORDED: Final = ROOT / "tests" / "recordings" / "logs" / "reef"
OLD: Final = (RECORDED / "ceph-mon.a.log").read_bytes().splitlines()[-1]
FSID: Final = "01234567-89ab-cdef-0123-456789abcdef"
VERSIONS: Final = ("0.1.0", "0.1.1")
NAME: Final = "cephqos-collector"
CONF: Final = f"/etc/{NAME}"
STATE: Final = f"/var/lib/{NAME}"
MAKE: Final = (
    "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import build\n"
    "build.ROOT = Path(sys.argv[2])\n"
    "build.build_collector(*map(Path, sys.argv[3:6]), version=sys.argv[6])"
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both kinds in two versions; the configuration of the second has another last line."""
    nfpm, collector = find_tool("nfpm"), find_tool(NAME)
    if nfpm is None or collector is None or shutil.which("go") is None:
        pytest.skip("nfpm, cephqos-collector or go is missing: make tools")
    out = tmp_path_factory.mktemp("packages")
    sources = tmp_path_factory.mktemp("sources")
    shutil.copytree(DEPLOY, sources / "deploy")
    shutil.copy(ROOT / "LICENSE", sources)
    for version in VERSIONS:
        argv: list[str | Path] = [sys.executable, "-c", MAKE, DEPLOY / "packages", sources]
        subprocess.run([*argv, nfpm, collector, out, version], check=True, timeout=300)
        for name in ("collector.yaml", "collector.env"):
            with (sources / "deploy" / "collector" / name).open("a") as file:
                file.write("# newer\n")
    assert len(list(out.iterdir())) == 4
    return out


@pytest.fixture(scope="module")
def root(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshRoot]:
    """With Ceph's packages, and so with its user."""
    release = find_release("reef")
    if not tree_ready(release):
        pytest.skip("no release tree of reef: run `cephqos lab trees`")
    directory = tmp_path_factory.mktemp("root")
    # Not below /tmp, of which a sealed root has its own.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as host:
        Path(host).chmod(0o755)
        yield FreshRoot(tree_path(release), directory, (packages, Path(host)))
    shutil.rmtree(directory / "work", ignore_errors=True)


class Loki:
    """Takes what is pushed to it, and keeps it unpacked."""

    def __init__(self) -> None:
        self.received = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.path == "/otlp/v1/logs"
                outer.received += gzip.decompress(body)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def file_of(packages: Path, kind: str, version: str) -> str:
    [file] = packages.glob(f"{NAME}[_-]{version}[_-]*.{kind}")
    return str(file)


@pytest.fixture
def loki() -> Iterator[Loki]:
    server = Loki()
    yield server
    server.close()


async def as_unit(root: FreshRoot, **settings: str) -> tuple[list[str], list[str]]:
    """How systemd would start it: variables, rights taken away, and the command itself."""
    unit = dict(re.findall(r"^(\w+)=(.*)$", UNIT, re.MULTILINE))
    _, file = await root.run("cat", unit["EnvironmentFile"])
    given = dict(re.findall(r"^(\w+)=(.*)$", file, re.MULTILINE)) | settings
    given |= {"COLLECTOR_HOST": "here"}
    assert (unit["User"], unit["CapabilityBoundingSet"]) == ("ceph", "")
    rights = ["env", *(f"{name}={value}" for name, value in given.items())]
    rights += ["setpriv", f"--reuid={unit['User']}", f"--regid={unit['User']}", "--init-groups"]
    rights += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    return rights, shlex.split(unit["ExecStart"])


async def test_1_it_installs_and_its_configuration_is_valid(
    root: FreshRoot, packages: Path
) -> None:
    await root.run("dpkg", "--install", file_of(packages, "deb", VERSIONS[0]))
    config = "--config=/etc/cephqos-collector/collector.yaml"
    _, said = await root.run("cephqos-collector", "validate", config)
    assert "rror" not in said
    _, said = await root.run("stat", "-c", "%a %U", "/etc/cephqos-collector/collector.env")
    assert said == "600 root\n"
    licences = gzip.decompress(
        root.path("/usr/share/doc/cephqos-collector/licences.gz").read_bytes()
    )
    assert b"==== go.opentelemetry.io/collector/component v" in licences
    assert b"Permission is hereby granted, free of charge" in licences


async def recorded_logs(root: FreshRoot, name: str) -> tuple[Path, dict[str, str]]:
    """A folder with logs, and what the collector has to be told of it."""
    host = root.shared[1] / name
    logs = host / "log" / FSID
    shutil.copytree(RECORDED, logs)
    whole = (logs / "ceph.log").read_text().splitlines(keepends=True)
    audited = [line for line in whole if "audit [" in line]
    (logs / "ceph.audit.log").write_text("".join(audited))
    (host / "state").mkdir()
    host.chmod(0o755)
    _, number = await root.run("id", "-u", "ceph")
    for path in (*logs.iterdir(), logs, host / "state"):
        shutil.chown(path, int(number))
        path.chmod(0o700 if path.is_dir() else 0o600)
    [port] = free_ports(1)
    state, health = str(host / "state"), f"127.0.0.1:{port}"
    told = {"CEPH_LOGS": str(logs.parent), "COLLECTOR_STATE": state, "COLLECTOR_HEALTH": health}
    return logs, told


async def all_sent(logs: Path, loki: Loki) -> None:
    for name in ("ceph.log", "ceph-mon.a.log"):
        last = (logs / name).read_bytes().splitlines()[-1]
        assert b"audit [" not in last
        await asyncio.to_thread(wait_until, lambda last=last: last in loki.received, name, 60)


@pytest.mark.parametrize("audit", ["yes", "no"])
async def test_2_as_cephs_user_it_ships_what_nobody_else_may_read(
    root: FreshRoot, loki: Loki, audit: str
) -> None:
    """And with the label of the cluster that the path names, as on a host of cephadm."""
    logs, told = await recorded_logs(root, audit)
    rights, command = await as_unit(root, LOKI_URL=loki.url, COLLECTOR_AUDIT=audit, **told)
    async with root.service(command, rights) as process:
        await all_sent(logs, loki)
        # Every wrapper becomes the next by exec, so the collector is the child itself.
        status = Path(f"/proc/{process.pid}/status").read_text()
    assert re.search(r"^CapBnd:\s+0+$", status, re.MULTILINE)
    assert re.search(rf"^Uid:\s+{logs.stat().st_uid}\s", status, re.MULTILINE)
    for words in (FSID.encode(), b"osd.0", b"here", b"ceph_daemon"):
        assert words in loki.received
    assert list(Path(told["COLLECTOR_STATE"]).iterdir())
    assert (b"log_channel(audit)" in loki.received) == (audit == "yes")
    assert (b'"prefix"' in loki.received) == (audit == "yes")


async def tool(root: FreshRoot, name: str) -> None:
    if (await root.run("which", name, check=False))[0] != 0:
        await root.run("apt-get", "update")
        await root.run("apt-get", "install", "--yes", "--no-install-recommends", name)


async def test_3_no_system_call_and_no_socket_is_outside_of_what_the_unit_leaves_it(
    root: FreshRoot, loki: Loki
) -> None:
    await tool(root, "strace")
    allowed = await syscalls("@system-service") - await syscalls("@privileged", "@resources")
    logs, told = await recorded_logs(root, "traced")
    rights, command = await as_unit(root, LOKI_URL=loki.url, **told)
    traced = [*rights, "strace", "-f", "-qq", "-e", "signal=none"]
    async with root.service(command, traced) as process:
        reading = asyncio.create_task(lines_of(process))
        await all_sent(logs, loki)
    lines = await reading
    called = called_in(lines)
    assert {"openat", "socket"} <= called
    assert called - allowed == set()
    [families] = re.findall(r"^RestrictAddressFamilies=(.*)$", UNIT, re.MULTILINE)
    assert set(re.findall(r"\bsocket\((\w+)", "\n".join(lines))) <= set(families.split())
    writable = [line for line in lines if "PROT_EXEC" in line and "PROT_WRITE" in line]
    assert not writable, "MemoryDenyWriteExecute would end it"


async def everything(root: FreshRoot | Booted) -> set[str]:
    """All files named after it, but for those that the test shares with it."""
    aside = [word for path in ("/tmp", "/var/tmp") for word in ("-path", path, "-prune", "-o")]  # noqa: S108
    return set(
        (await root.run("find", "/", "-xdev", *aside, "-name", f"*{NAME}*", "-print"))[1].split()
    )


async def test_4_removal_keeps_the_configuration_and_purge_nothing(root: FreshRoot) -> None:
    """In a chroot, as when an image is built: systemd does not run, but a unit can be enabled."""
    await root.run("systemctl", "enable", NAME)
    await root.run("mkdir", "-p", STATE)
    await root.run("dpkg", "--remove", NAME)
    await root.run("test", "-e", f"{CONF}/collector.env")
    assert STATE in await everything(root)
    await root.run("dpkg", "--purge", NAME)
    assert await everything(root) == set()


@dataclass(frozen=True)
class Kind:
    """What the page of the packages says to type for one kind, and what it says that is left."""

    install: str
    upgrade: str
    remove: str
    purge: str
    newer: str
    kept: str


KINDS: Final = {
    "deb": Kind(
        install="dpkg --install",
        upgrade="apt-get install --yes --option Dpkg::Options::=--force-confold",
        remove=f"dpkg --remove {NAME}",
        purge=f"dpkg --purge {NAME}",
        newer="collector.env.dpkg-dist",
        kept="collector.env",
    ),
    "rpm": Kind(
        install="rpm --install",
        upgrade="rpm --upgrade",
        remove=f"rpm --erase {NAME}",
        purge=f"rm -r {CONF} {STATE}",
        newer="collector.env.rpmnew",
        kept="collector.env.rpmsave",
    ),
}


# What Loki is inside: it adds what it gets to a file.
SERVER: Final = """
import gzip, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = gzip.decompress(self.rfile.read(int(self.headers['Content-Length'])))
        with open(sys.argv[1], 'ab') as file:
            file.write(body)
        self.send_response(204)
        self.end_headers()
HTTPServer(('', 3100), Handler).serve_forever()
"""
MINE: Final = "LOKI_URL=http://127.0.0.2:3100"


async def sending(inside: Booted, logs: Path) -> Path:
    """Gives it logs where it looks for them, and a Loki: what that has got is in a file."""
    got = logs.parents[1] / "got"
    got.touch()
    await inside.run("rm", "-r", "/var/log/ceph")
    await inside.run("cp", "-a", str(logs.parent), "/var/log/ceph")
    await inside.run("systemd-run", "--quiet", "python3", "-c", SERVER, str(got))
    return got


async def goes_on(inside: Booted, got: Path) -> None:
    """A new line is sent, and no old one again."""
    got.write_bytes(b"")
    line = "2026-11-22T00:00:00.000+0000 7f0000000000  0 osd.0 later"
    await inside.run("sh", "-c", f"echo '{line}' >>/var/log/ceph/{FSID}/ceph-osd.0.log")
    await asyncio.to_thread(wait_until, lambda: b"osd.0 later" in got.read_bytes(), "line", 60)
    assert OLD not in got.read_bytes()


async def states(inside: Booted) -> list[str]:
    return [await inside.show(NAME, what) for what in ("UnitFileState", "ActiveState")]


async def answering(inside: Booted) -> str:
    """The number of the process that says it is well."""
    asked = "from urllib.request import *; urlopen('http://127.0.0.1:13133', timeout=5)"
    await inside.until("python3", "-c", asked)
    return await inside.show(NAME, "MainPID")


async def shut_in(inside: Booted, pid: str) -> None:
    """By systemd itself, and not as the test thinks that systemd would do it."""
    _, status = await inside.run("cat", f"/proc/{pid}/status")
    for expected in (r"CapBnd:\s+0+$", r"NoNewPrivs:\s+1$", r"Seccomp:\s+2$"):
        assert re.search(f"^{expected}", status, re.MULTILINE)
    its = ["nsenter", f"--target={pid}", "--mount"]
    for path in ("/etc/mine", "/var/log/ceph/mine"):
        _, said = await inside.run(*its, "touch", path, check=False)
        assert "Read-only file system" in said
    _, said = await inside.run(*its, "stat", "-c", "%a", "/etc/ceph", "/var/lib/ceph")
    assert said == "0\n0\n"


async def owned(inside: Booted) -> str:
    """The folder of the offsets and a file of it: that it is the same, and whose."""
    argv = ["stat", "-c", "%n %i %a %U", STATE, f"{STATE}/receiver_filelog_daemons"]
    return (await inside.run(*argv))[1]


async def kept(inside: Booted, name: str) -> None:
    """What the operator set, and who may read it."""
    _, said = await inside.run("stat", "-c", "%a %U:%G", f"{CONF}/{name}")
    assert said == "640 root:ceph\n"
    await inside.run("grep", f"^{MINE}$", f"{CONF}/{name}")


@pytest.mark.parametrize("kind", KINDS)
async def test_5_under_systemd_an_upgrade_goes_on_with_what_ran_and_what_was_set(
    root: FreshRoot, packages: Path, kind: str
) -> None:
    way = KINDS[kind]
    old, new = (file_of(packages, kind, version) for version in VERSIONS)
    if kind == "rpm":
        await tool(root, "rpm")
    logs, _ = await recorded_logs(root, kind)
    async with booted(root) as inside:
        await inside.run(*way.install.split(), old)
        assert await states(inside) == ["disabled", "inactive"]
        got = await sending(inside, logs)
        await inside.run("systemctl", "enable", "--now", NAME)
        before = await answering(inside)
        await shut_in(inside, before)
        await asyncio.to_thread(wait_until, lambda: OLD in got.read_bytes(), "old lines", 60)
        await inside.run("sh", "-c", f"echo {MINE} >>{CONF}/collector.env")
        await inside.run("chgrp", "ceph", f"{CONF}/collector.env")
        await inside.run("chmod", "640", f"{CONF}/collector.env")
        offsets = await owned(inside)

        await inside.run(*way.upgrade.split(), new)
        assert await answering(inside) != before
        assert await states(inside) == ["enabled", "active"]
        assert offsets == await owned(inside)
        await goes_on(inside, got)
        await kept(inside, "collector.env")
        _, said = await inside.run("tail", "-qn1", f"{CONF}/collector.yaml", f"{CONF}/{way.newer}")
        assert said == "# newer\n# newer\n"

        await inside.run(*way.remove.split())
        assert (await states(inside))[1] == "inactive"
        assert await everything(inside) >= {CONF, STATE}
        await kept(inside, way.kept)
        await inside.run(*way.purge.split())
        assert await everything(inside) == set()
