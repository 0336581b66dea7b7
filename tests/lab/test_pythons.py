"""One package for all: on Debian 12 and on one newer than 13, with the Python that each has."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .fresh_packages import ARCH, VERSIONS, exporter_packages, root_with
from .fresh_root import FreshRoot

pytestmark = pytest.mark.full

# It answers with its own page: every compiled library is loaded by then.
SERVES: Final = """
cephqos-exporter --web.listen-address=127.0.0.1:0 --config.check && cephqos-exporter --version
/usr/lib/cephqos/python /usr/lib/cephqos/start.py cephqos rules check --out /usr/share/cephqos/rules
"""


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return exporter_packages(tmp_path_factory.mktemp("packages"), f"*_{ARCH}.deb")


# The release trees of Ceph 16.2 and 20.2 are Debian 12 and the one after 13.
@pytest.fixture(params=["pacific", "tentacle"])
def root(request: pytest.FixtureRequest, debs: list[Path], tmp_path: Path) -> Iterator[FreshRoot]:
    with root_with(request.param, tmp_path, debs[0].parent) as fresh:
        yield fresh


async def test_it_needs_nothing_but_a_python_and_leaves_nothing(
    root: FreshRoot, debs: list[Path]
) -> None:
    # Of a Debian that is not released yet the list may be too old: what is needed is there.
    await root.run("apt-get", "update", check=False)
    for deb, version in zip(debs, VERSIONS, strict=True):
        install = ("apt-get", "install", "--yes", "--no-install-recommends")
        await root.run(*install, str(deb))
        _, said = await root.run("sh", "-ec", SERVES)
        assert "up to date" in said
        _, said = await root.run("dpkg-query", "-W", "cephqos-exporter")
        assert said.split()[1] == version
    used = "import aiohttp, bcrypt, orjson, psutil, yaml; print(aiohttp.__file__, yaml.__file__)"
    paths = "import sys; sys.path[:0] = [sys.argv[1], sys.argv[2] % sys.version_info[:2]]; "
    _, said = await root.run(
        *("/usr/lib/cephqos/python", "-c", paths + used),
        *("/usr/lib/cephqos/lib", "/usr/lib/cephqos/python%d.%d"),
    )
    assert said.count("/usr/lib/cephqos/python3.") == 2
    await root.run("dpkg", "--purge", "cephqos-exporter")
    for gone in ("/etc/cephqos", "/usr/lib/cephqos", "/usr/share/cephqos"):
        status, _ = await root.run("test", "-e", gone, check=False)
        assert status == 1, gone
