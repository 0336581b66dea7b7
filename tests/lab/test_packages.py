"""The packages in a fresh Debian: installed, upgraded, removed, and its services on a cluster.

On the cluster systemd is not the first process: a unit's command is run as its user, with the
restrictions of the unit that can be had without it, and its system calls are compared with the
unit's filter. For the upgrade it is.
"""

import asyncio
import platform
import re
import shlex
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.waiting import until

from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec

from .booted_root import Booted, booted
from .conftest import LabPool, lab_name
from .fresh_packages import ARCH, PACKAGES, VERSIONS, exporter_packages, root_with
from .fresh_root import FreshRoot
from .live_exporter import LivePage
from .traced import called_in, lines_of, syscalls

pytestmark = pytest.mark.full


DEPLOY = PACKAGES.parent
VERSION, NEXT = VERSIONS
BOTH = "build build_top"
# A machine of another name.
ELSEWHERE = ("unshare", "--uts", "sh", "-c", 'echo x >/proc/sys/kernel/hostname; exec "$@"', "sh")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both packages of two versions."""
    out = tmp_path_factory.mktemp("packages")
    exporter_packages(out, "*", makes=BOTH)
    return out


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[RunningLab]:
    """18.2 with keys and unprivileged daemons, as packages make it."""
    spec = LabSpec(name=lab_name("packages"), release="reef", osds=2, auth="cephx", setuser="ceph")
    lab = labs.start(spec)
    yield lab
    labs.end(lab)


@pytest.fixture(scope="module")
def root(
    lab: RunningLab, packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FreshRoot]:
    """A Debian with Ceph's packages; of the cluster it sees the sockets, as an OSD host does."""
    directory = tmp_path_factory.mktemp("root")
    with root_with("reef", directory, packages, lab.paths.sockets) as fresh:
        yield fresh


def unit(name: str) -> Mapping[str, str]:
    """The settings of a unit's service; the last of each name."""
    text = (DEPLOY / "systemd" / f"{name}.service").read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def as_unit(name: str, port: int, *more: str) -> tuple[list[str], list[str]]:
    """How systemd would start it: rights taken away, and the command itself."""
    settings = unit(name)
    user = settings["User"]
    assert settings["CapabilityBoundingSet"] == ""
    assert settings["NoNewPrivileges"] == "yes"
    rights = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
    rights += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    flags = [f"--web.listen-address=127.0.0.1:{port}", *more]
    return rights, [*settings["ExecStart"].split(), *flags]


async def page_of(port: int, process: asyncio.subprocess.Process) -> LivePage:
    url, refused = f"http://127.0.0.1:{port}/metrics", ""

    async def answered() -> LivePage | None:
        nonlocal refused
        if process.returncode is not None:
            said = await process.stderr.read() if process.stderr else b""
            raise AssertionError(f"it has ended: {said.decode()}")
        try:
            reply = await asyncio.to_thread(urllib.request.urlopen, url, None, 30)
            return LivePage(reply.read().decode())
        except OSError as exc:
            refused = str(exc)
            return None

    return await until(answered, lambda: f"a page: {refused}")


def free_port() -> int:
    from cephqos_loadgen.programs import free_ports

    return free_ports(1)[0]


def test_0_the_same_sources_give_the_same_bytes(packages: Path, tmp_path: Path) -> None:
    made = exporter_packages(tmp_path, "*", [VERSION], makes=BOTH, where=ELSEWHERE)
    assert [path.suffix for path in made] == [".rpm", ".deb"] * 2
    for path in made:
        assert path.read_bytes() == (packages / path.name).read_bytes()


async def test_1_it_installs_with_what_it_needs_and_its_commands_work(
    root: FreshRoot, packages: Path
) -> None:
    await root.run("apt-get", "update")
    deb = str(packages / f"cephqos-exporter_{VERSION}_{ARCH}.deb")
    await root.run("apt-get", "install", "--yes", "--no-install-recommends", deb)
    _, said = await root.run("cephqos-exporter", "--version")
    assert said == f"cephqos-exporter {VERSION}\n"
    _, said = await root.run("cephqos", "--help")
    assert "doctor" in said
    status, said = await root.run("cephqos", "lab", "list", check=False)
    assert (status, said.count("\n")) == (2, 1)
    assert "cephqos_loadgen, not installed here; install the package cephqos-top" in said
    _, said = await root.run("cephqos", "rules", "check", "--out", "/usr/share/cephqos/rules")
    assert "up to date" in said
    _, said = await root.run("getent", "passwd", "cephqos")
    assert said.rstrip().endswith("nologin")
    _, said = await root.run("stat", "-c", "%A %U:%G", "/etc/cephqos/keys")
    assert said == "drwxr-x--- root:cephqos\n"
    _, said = await root.run(
        "cephqos-exporter", "--config.file=/etc/cephqos/exporter.yml", "--config.check"
    )
    assert "valid" in said


async def test_2_the_exporter_runs_as_its_user_in_what_its_unit_leaves_it(
    root: FreshRoot, lab: RunningLab, packages: Path
) -> None:
    port = free_port()
    sockets = f"--discovery.sockets={lab.paths.sockets}/*.asok"
    rights, command = as_unit("cephqos-exporter", port, sockets)
    async with root.service(command, rights) as process:
        page = await page_of(port, process)
        assert page.values("cephqos_daemon_up") == [1, 1]
        assert page.values("cephqos_qos_capacity_normalised_ops_per_second")
        assert min(page.values("cephqos_collector_success")) == 1
        # Every wrapper becomes the next by exec, so the exporter is the child itself.
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(r"^CapBnd:\s+0+$", status, re.MULTILINE)
        assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
        assert not re.search(r"^Uid:\s+0\s", status, re.MULTILINE)
        await root.run(
            "apt-get", "install", "--yes", str(packages / f"cephqos-top_{VERSION}_all.deb")
        )
        _, said = await root.run(
            "cephqos", "top", "--once", "--exporter", f"http://127.0.0.1:{port}"
        )
        assert "osd.0" in said and "osd.1" in said
    # The live screen's library finds all that it needs.
    start = (
        "import sys; python = 'python%d.%d' % sys.version_info[:2]\n"
        "sys.path[:0] = ['/usr/lib/cephqos/' + name for name in ('lib', python, 'top')]"
    )
    await root.run(
        "/usr/lib/cephqos/python", "-c", f"{start}; import cephqos_loadgen.top.screen.app"
    )
    await root.run("apt-get", "purge", "--yes", "cephqos-top")
    gone, _ = await root.run("test", "-e", "/usr/lib/cephqos/top", check=False)
    assert gone == 1


async def test_3_the_role_cluster_needs_the_conf_and_the_documented_key_only(
    root: FreshRoot, lab: RunningLab
) -> None:
    await give_key(root, lab, "client.cephqos", "cluster.yml")
    port = free_port()
    rights, command = as_unit("cephqos-cluster", port)
    async with root.service(command, rights) as process:

        async def up() -> LivePage | None:
            page = await page_of(port, process)
            return page if page.values("cephqos_cluster_up") == [1] else None

        page = await until(up, "it asks the cluster")
        assert page.values("cephqos_cluster_osd_up") == [1, 1]


async def give_key(root: FreshRoot, lab: RunningLab, entity: str, conf: str) -> None:
    """What an operator copies over: ceph.conf, and the keyring of the command in the file."""
    text = (DEPLOY / "packages" / "conf" / conf).read_text()
    commented = " ".join(re.findall(r"^#   (.*?)\\?$", text, re.MULTILINE))
    argv = shlex.split(commented.split(" chown ")[0])
    keyring = argv[argv.index("-o") + 1]
    argv[argv.index("-o") + 1] = "/dev/stdout"
    made = await lab.exec(argv)
    for path, content in ((keyring, made.stdout), ("/etc/ceph/ceph.conf", conf_of(lab))):
        root.path(path).parent.mkdir(parents=True, exist_ok=True)
        root.path(path).write_text(content)
    await root.run("chown", "cephqos", keyring)
    await root.run("chmod", "0600", keyring)


def conf_of(lab: RunningLab) -> str:
    """Addresses and nothing else: as `ceph config generate-minimal-conf` gives it."""
    text = lab.paths.conf.read_text()
    kept = re.findall(r"^\s*((?:fsid|mon[_ ]host|auth_\w+_required)\s*=.*)$", text, re.MULTILINE)
    return "\n".join(["[global]", *kept, ""])


async def test_4_no_system_call_is_outside_of_the_units_filter(
    root: FreshRoot, lab: RunningLab
) -> None:
    await root.run("apt-get", "install", "--yes", "--no-install-recommends", "strace")
    allowed = await syscalls("@system-service") - await syscalls("@privileged", "@resources")
    port = free_port()
    sockets = f"--discovery.sockets={lab.paths.sockets}/*.asok"
    rights, command = as_unit("cephqos-exporter", port, sockets)
    traced = [*rights, "strace", "-f", "-qq", "-e", "signal=none"]
    async with root.service(command, traced) as process:
        reading = asyncio.create_task(lines_of(process))
        page = await page_of(port, process)
        assert page.values("cephqos_daemon_up") == [1, 1]
        await page_of(port, process)
    lines = await reading
    called = called_in(lines)
    assert "epoll_wait" in called or "epoll_pwait" in called
    # The exec that starts it is systemd's own.
    assert called - allowed == set()
    writable = [x for x in lines if "PROT_EXEC" in x and "PROT_WRITE" in x]
    assert not writable, "MemoryDenyWriteExecute would end it"
    assert not [line for line in lines if "CLONE_NEW" in line or " unshare(" in line]


async def test_5_under_systemd_an_upgrade_restarts_it_and_keeps_what_the_operator_changed(
    root: FreshRoot, packages: Path
) -> None:
    conf, unit = "/etc/cephqos/exporter.yml", "cephqos-exporter"
    async with booted(root) as inside:
        assert await inside.show(unit, "UnitFileState") == "disabled"
        await inside.run("systemctl", "enable", "--now", unit)
        before = await scraped(inside)
        await inside.run("sh", "-c", f"echo '# mine' >> {conf}")
        deb = str(packages / f"cephqos-exporter_{NEXT}_{ARCH}.deb")
        await inside.run("apt-get", "install", "--yes", deb)
        assert await scraped(inside) != before
        assert await inside.show(unit, "UnitFileState") == "enabled"
        assert await inside.show("cephqos-cluster", "ActiveState") == "inactive"
    _, said = await root.run("dpkg-query", "-W", "-f", "${Version}", "cephqos-exporter")
    assert said == NEXT
    _, said = await root.run("tail", "-1", conf)
    assert said == "# mine\n"
    await root.run("cephqos", "doctor", "--help")


async def scraped(inside: Booted) -> str:
    """The number of the process that answers: systemd started it, with all that its unit says."""
    asked = "from urllib.request import *; urlopen('http://127.0.0.1:10130/metrics', timeout=20)"
    await inside.until("python3", "-c", asked)
    pid = await inside.show("cephqos-exporter", "MainPID")
    _, status = await inside.run("cat", f"/proc/{pid}/status")
    for expected in (r"CapBnd:\s+0+$", r"NoNewPrivs:\s+1$", r"Seccomp:\s+2$"):
        assert re.search(f"^{expected}", status, re.MULTILINE)
    return pid


async def test_6_removal_leaves_the_configuration_and_purge_nothing(root: FreshRoot) -> None:
    await root.run("apt-get", "remove", "--yes", "cephqos-exporter")
    _, said = await root.run("sh", "-c", "ls -A /usr/lib/cephqos /usr/bin/cephqos* || true")
    assert "/usr/bin/cephqos" not in said.replace("access '/usr/bin/cephqos", "")
    assert "cephqos_base" not in said
    await root.run("grep", "mine", "/etc/cephqos/exporter.yml")
    await root.run("test", "-d", "/var/lib/cephqos-exporter")
    await root.run("apt-get", "purge", "--yes", "cephqos-exporter")
    state = "/var/lib/cephqos-exporter"
    for gone in ("/etc/cephqos", "/usr/lib/cephqos", "/usr/share/cephqos", state):
        status, _ = await root.run("test", "-e", gone, check=False)
        assert status == 1, gone


async def test_7_the_rpm_has_the_same_files_and_keeps_the_same_configuration(
    root: FreshRoot, packages: Path
) -> None:
    await root.run("apt-get", "install", "--yes", "--no-install-recommends", "rpm")
    rpm = str(packages / f"cephqos-exporter-{VERSION}-1.{platform.machine()}.rpm")
    deb = str(packages / f"cephqos-exporter_{VERSION}_{ARCH}.deb")
    _, listed = await root.run("rpm", "-qpl", rpm)
    _, told = await root.run("dpkg-deb", "-c", deb)
    in_deb = {
        line.split()[5].removeprefix(".").rstrip("/")
        for line in told.splitlines()
        if not line.startswith("d")
    }
    assert in_deb <= set(listed.splitlines())
    _, conf = await root.run("rpm", "-qpc", rpm)
    assert set(conf.split()) == {f"/etc/cephqos/{n}.yml" for n in ("exporter", "cluster", "probe")}
    await root.run("rpm", "--install", "--nodeps", rpm)
    _, said = await root.run("cephqos-exporter", "--version")
    assert said == f"cephqos-exporter {VERSION}\n"
    await root.run("rpm", "--erase", "cephqos-exporter")
    for gone in ("/usr/lib/cephqos", "/usr/share/cephqos", "/usr/share/doc/cephqos-exporter"):
        status, _ = await root.run("test", "-e", gone, check=False)
        assert status == 1, gone
