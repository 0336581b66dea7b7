"""What a release publishes: workflows that GitHub takes, and a repository that apt and rpm take."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.trees import tree_path, tree_ready
from cephqos_stack.tools import find_tool

from .fresh_root import FreshRoot

pytestmark = pytest.mark.full

ROOT: Final = Path(__file__).parents[2]
# A package and an RPM with nothing in them are enough for an index.
NFPM: Final = """name: cephqos-nothing
arch: amd64
version: 0.1.0
maintainer: cephqos <cephqos@localhost>
description: nothing
"""
PROGRAMS: Final = ("apt-utils", "createrepo-c", "gpg", "gpg-agent", "rpm")
KEY: Final = ("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "cephqos test")
SOURCE: Final = "deb [signed-by=/site/cephqos.asc] file:/site/apt ./"


def test_actionlint_finds_nothing_in_the_workflows() -> None:
    linter = find_tool("actionlint")
    if linter is None:
        pytest.skip("actionlint is missing: python -m cephqos_stack.tools actionlint")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def root(tmp_path: Path) -> Iterator[FreshRoot]:
    nfpm, release = find_tool("nfpm"), find_release("reef")
    if nfpm is None or not tree_ready(release):
        pytest.skip("nfpm or the release tree of reef is missing: make tools, cephqos lab trees")
    packages = tmp_path / "release"
    packages.mkdir()
    (tmp_path / "nfpm.yaml").write_text(NFPM)
    for kind in ("deb", "rpm"):
        argv = [str(nfpm), "package", f"--config={tmp_path}/nfpm.yaml", f"--packager={kind}"]
        subprocess.run([*argv, f"--target={packages}"], check=True, timeout=60)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    yield FreshRoot(tree_path(release), fresh, (packages, ROOT / "deploy/release"))
    shutil.rmtree(fresh / "work", ignore_errors=True)


async def test_apt_installs_from_the_signed_repository(root: FreshRoot) -> None:
    packages, script = root.shared[0], root.shared[1] / "repository.sh"
    await root.run("apt-get", "update")
    await root.run("apt-get", "install", "--yes", "--no-install-recommends", *PROGRAMS)
    await root.run(*KEY)
    await root.run("mkdir", "/site")
    await root.run("bash", str(script), str(packages), "/site")
    await root.run("sh", "-c", f"echo '{SOURCE}' >/etc/apt/sources.list.d/cephqos.list")
    await root.run("apt-get", "update")
    await root.run("apt-get", "install", "--yes", "cephqos-nothing")
    _, said = await root.run("dpkg-query", "-W", "cephqos-nothing")
    assert said.split() == ["cephqos-nothing", "0.1.0"]
    signature = ("/site/rpm/repodata/repomd.xml.asc", "/site/rpm/repodata/repomd.xml")
    await root.run("gpg", "--batch", "--verify", *signature)
    await root.run("rpm", "--import", "/site/cephqos.asc")
    _, said = await root.run("sh", "-c", "rpm --checksig /site/rpm/*.rpm")
    assert said.strip().endswith("digests signatures OK")
    # One that was changed on the way is refused.
    await root.run("sh", "-c", "echo 'Label: other' >>/site/apt/InRelease")
    status, said = await root.run("apt-get", "update", check=False)
    assert status != 0 or "W: " in said or "E: " in said
