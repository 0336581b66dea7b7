"""The units of the roles cluster and probe, started by systemd in a fresh Debian with the package.

There is no cluster. In the place of a monitor somebody listens: whoever gets that far has read its
configuration and its key, has loaded Ceph's module in a child, and may open connections.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .booted_root import Booted, booted
from .fresh_packages import PACKAGES, VERSIONS, exporter_packages, root_with
from .fresh_root import FreshRoot

pytestmark = pytest.mark.full


UNITS: Final = {"cephqos-cluster": 10131, "cephqos-probe": 10132}
CONF: Final = "[global]\nmon_host = [v2:127.0.0.1:3300]\n"
HEARD: Final = "/run/heard"
MONITOR: Final = f"""
import socket
server = socket.create_server(('127.0.0.1', 3300))
while True:
    client, _ = server.accept()
    with open('{HEARD}', 'ab') as file:
        file.write(client.recv(7))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    [deb] = exporter_packages(tmp_path_factory.mktemp("packages"), "*.deb", VERSIONS[:1])
    return deb


@pytest.fixture(scope="module")
def root(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshRoot]:
    """With Ceph's packages, as a host has them that is to run these roles."""
    with root_with("reef", tmp_path_factory.mktemp("root"), package.parent) as fresh:
        yield fresh


async def installed(root: FreshRoot, package: Path) -> None:
    """With a key for each role, where its configuration says."""
    await root.run("apt-get", "update")
    await root.run("apt-get", "install", "--yes", "--no-install-recommends", str(package))
    await root.run("mkdir", "-p", "/etc/ceph")
    await root.run("sh", "-c", f"printf '{CONF}' >/etc/ceph/ceph.conf")
    for unit in UNITS:
        text = (PACKAGES / "conf" / f"{unit.partition('-')[2]}.yml").read_text()
        [name] = re.findall(r"^  name: (\S+)$", text, re.MULTILINE)
        [keyring] = re.findall(r"^  keyring: (\S+)$", text, re.MULTILINE)
        await root.run("ceph-authtool", "-C", keyring, "--gen-key", "-n", name)
        await root.run("chown", "cephqos", keyring)
        await root.run("chmod", "600", keyring)


async def children(inside: Booted, pid: str) -> list[str]:
    _, said = await inside.run("cat", f"/proc/{pid}/task/{pid}/children")
    return said.split()


async def shut_in(inside: Booted, pid: str, user: str) -> None:
    """By systemd itself, and so is what it starts."""
    _, status = await inside.run("cat", f"/proc/{pid}/status")
    for expected in (r"CapBnd:\s+0+$", r"NoNewPrivs:\s+1$", r"Seccomp:\s+2$", rf"Uid:\s+{user}\s"):
        assert re.search(f"^{expected}", status, re.MULTILINE), status
    its = ["nsenter", f"--target={pid}", "--mount"]
    _, said = await inside.run(*its, "touch", "/etc/cephqos/mine", check=False)
    assert "Read-only file system" in said


async def test_each_role_gets_to_a_monitor_in_what_its_unit_leaves_it(
    root: FreshRoot, package: Path
) -> None:
    await installed(root, package)
    async with booted(root) as inside:
        user = (await inside.run("id", "-u", "cephqos"))[1].strip()
        await inside.run("systemd-run", "--quiet", "python3", "-c", MONITOR)
        for unit, port in UNITS.items():
            await inside.run("rm", "-f", HEARD)
            await inside.run("systemctl", "start", unit)
            url = f"http://127.0.0.1:{port}/metrics"
            asked = f"from urllib.request import *; urlopen('{url}', timeout=20)"
            await inside.until("python3", "-c", asked)
            await inside.until("grep", "--quiet", "ceph v2", HEARD)
            pid = await inside.show(unit, "MainPID")
            [child] = await children(inside, pid)
            await inside.run("grep", "--quiet", "librados", f"/proc/{child}/maps")
            for one in (pid, child):
                await shut_in(inside, one, user)
            await inside.run("systemctl", "stop", unit)
            assert await inside.show(unit, "Result") == "success"


async def test_on_proxmox_systemd_hands_the_role_cluster_a_copy_of_what_it_may_not_read(
    root: FreshRoot, package: Path
) -> None:
    """There `/etc/ceph/ceph.conf` is a link to a file of root and the group www-data, which names
    keys that only root can read."""
    await installed(root, package)
    for line in (
        "mkdir -p /etc/pve/priv && chmod 700 /etc/pve/priv && mv /etc/ceph/ceph.conf /etc/pve",
        "printf '[client]\nkeyring = /etc/pve/priv/$cluster.$name.keyring\n' >>/etc/pve/ceph.conf",
        "chown root:www-data /etc/pve/ceph.conf && chmod 640 /etc/pve/ceph.conf",
        "ln -s /etc/pve/ceph.conf /etc/ceph/ceph.conf",
        proxmox_command(),
    ):
        await root.run("sh", "-c", line)
    async with booted(root) as inside:
        status, _ = await inside.run(
            *("runuser", "-u", "cephqos", "--", "cat", "/etc/ceph/ceph.conf"), check=False
        )
        assert status != 0
        await inside.run("systemd-run", "--quiet", "python3", "-c", MONITOR)
        await inside.run("rm", "-f", HEARD)
        await inside.run("systemctl", "start", "cephqos-cluster")
        await inside.until("grep", "--quiet", "ceph v2", HEARD)


def proxmox_command() -> str:
    """The page's command that puts the drop-in in its place."""
    page = (PACKAGES.parents[1] / "docs/install/proxmox.md").read_text()
    [command] = re.findall(r"^install -D .*proxmox\.conf$", page, re.MULTILINE)
    return str(command)
