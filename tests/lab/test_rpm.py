"""The exporter's RPM under systemd, in a Debian with its libraries: upgraded and removed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .booted_root import Booted, booted
from .fresh_packages import VERSIONS, exporter_packages, root_with
from .fresh_root import FreshRoot

pytestmark = pytest.mark.full

NAME: Final = "cephqos-exporter"
CONF: Final = "/etc/cephqos/exporter.yml"
KEY: Final = "/etc/cephqos/keys/client.cephqos.keyring"
ASKED: Final = "from urllib.request import *; urlopen('http://127.0.0.1:10130/metrics', timeout=20)"


@pytest.fixture(scope="module")
def rpms(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return exporter_packages(tmp_path_factory.mktemp("packages"), "*.rpm")


@pytest.fixture(scope="module")
def root(rpms: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshRoot]:
    with root_with("reef", tmp_path_factory.mktemp("root"), rpms[0].parent) as fresh:
        yield fresh


async def answering(inside: Booted) -> str:
    """The number of the process that answers."""
    await inside.until("python3", "-c", ASKED)
    return await inside.show(NAME, "MainPID")


async def test_an_upgrade_restarts_what_ran_and_removal_keeps_what_is_the_operators(
    root: FreshRoot, rpms: list[Path]
) -> None:
    await root.run("apt-get", "update")
    await root.run("apt-get", "install", "--yes", "--no-install-recommends", "rpm", "systemd")
    old, new = map(str, rpms)
    async with booted(root) as inside:
        await inside.run("rpm", "--install", "--nodeps", old)
        assert await inside.show(NAME, "UnitFileState") == "disabled"
        assert await inside.show(NAME, "ActiveState") == "inactive"
        await inside.run("systemctl", "enable", "--now", NAME)
        before = await answering(inside)
        await inside.run("sh", "-c", f"echo '# mine' >>{CONF}; echo key >{KEY}")

        await inside.run("rpm", "--upgrade", "--nodeps", new)
        assert await answering(inside) != before
        assert await inside.show(NAME, "UnitFileState") == "enabled"
        _, said = await inside.run("rpm", "--query", NAME)
        assert said.startswith(f"{NAME}-{VERSIONS[1]}-")
        await inside.run("grep", "^# mine$", CONF)
        _, compiled = await inside.run("find", "/usr/lib/cephqos", "-name", "*.pyc")
        assert compiled

        await inside.run("rpm", "--erase", NAME)
        assert await inside.show(NAME, "ActiveState") == "inactive"
        await inside.run("grep", "^# mine$", f"{CONF}.rpmsave")
        await inside.run("grep", "^key$", KEY)
        _, left = await inside.run("find", "/usr", "-name", "*cephqos*")
        assert left == ""
