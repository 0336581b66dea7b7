"""One package for all: on Debian 12 and on one newer than 13, with the Python that each has."""

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.trees import tree_path, tree_ready
from cephqos_stack.tools import find_tool

from .fresh_root import FreshRoot

pytestmark = pytest.mark.full

PACKAGES: Final = Path(__file__).parents[2] / "deploy" / "packages"
MAKE: Final = (
    "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import build\n"
    "for version in sys.argv[4:]: build.build(Path(sys.argv[2]), Path(sys.argv[3]), version)"
)
VERSIONS: Final = ("0.1.0", "0.1.1")
ARCH: Final = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
# It answers with its own page: every compiled library is loaded by then.
SERVES: Final = """
cephqos-exporter --web.listen-address=127.0.0.1:0 --config.check && cephqos-exporter --version
/usr/lib/cephqos/python /usr/lib/cephqos/start.py cephqos rules check --out /usr/share/cephqos/rules
"""


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    nfpm = find_tool("nfpm")
    if nfpm is None:
        pytest.skip("nfpm is missing: make tools")
    out = tmp_path_factory.mktemp("packages")
    argv = [sys.executable, "-c", MAKE, str(PACKAGES), str(nfpm), str(out), *VERSIONS]
    subprocess.run(argv, check=True, timeout=540)
    return sorted(out.glob(f"*_{ARCH}.deb"))


# The release trees of Ceph 16.2 and 20.2 are Debian 12 and the one after 13.
@pytest.fixture(params=["pacific", "tentacle"])
def root(request: pytest.FixtureRequest, debs: list[Path], tmp_path: Path) -> Iterator[FreshRoot]:
    release = find_release(request.param)
    if not tree_ready(release):
        pytest.skip(f"no release tree of {request.param}: run `cephqos lab trees`")
    yield FreshRoot(tree_path(release), tmp_path, (debs[0].parent,))
    shutil.rmtree(tmp_path / "work", ignore_errors=True)


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
