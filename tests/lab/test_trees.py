"""Release trees are whole or absent. debootstrap and chroot are stand-ins here, for speed."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import wait_until

from cephqos_base.errors import UsageError
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab import trees
from cephqos_loadgen.lab.releases import RELEASES
from cephqos_loadgen.progress import Silent

REEF = RELEASES["reef"]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH whose debootstrap makes an empty tree and whose chroot only notes what it ran."""
    folder = tmp_path / "tools"
    folder.mkdir()
    calls = tmp_path / "calls"
    # $3 is the target: debootstrap --variant=minbase SUITE TARGET MIRROR SCRIPT
    _script(
        folder / "debootstrap",
        f'echo debootstrap >> {calls}; sleep "${{SLOW:-0}}"; mkdir -p "$3/usr/sbin" "$3/etc"'
        ' "$3/proc"; test -z "${BROKEN:-}"',
    )
    _script(folder / "chroot", f'echo "$2" >> {calls}')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CEPHQOS_CACHE", str(tmp_path / "cache"))
    return calls


def _script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


async def test_two_builds_at_once_make_one_tree(tools: Path) -> None:
    first, second = await asyncio.gather(
        trees.ensure_tree(REEF, Silent()), trees.ensure_tree(REEF, Silent())
    )
    assert first == second
    assert trees.tree_ready(REEF)
    assert tools.read_text().split().count("debootstrap") == 1


async def test_a_build_that_was_killed_is_not_a_tree_and_is_made_anew(tools: Path) -> None:
    program = (
        "import asyncio; from cephqos_loadgen.lab import trees; from cephqos_loadgen.lab.releases"
        " import RELEASES; from cephqos_loadgen.progress import Silent;"
        " asyncio.run(trees.ensure_tree(RELEASES['reef'], Silent()))"
    )
    slow = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "SLOW": "60"})
    await asyncio.to_thread(wait_until, tools.exists, "debootstrap runs")
    slow.send_signal(signal.SIGKILL)
    slow.wait(5)
    assert not trees.tree_ready(REEF)
    tree = await trees.ensure_tree(REEF, Silent())
    assert trees.tree_ready(REEF)
    assert not list(tree.parent.glob("*.building"))
    assert tools.read_text().split().count("debootstrap") == 2


async def test_a_build_that_fails_says_what_failed_and_leaves_no_tree(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(LabError, match="debootstrap ended with status 1"):
        await trees.ensure_tree(REEF, Silent())
    assert not trees.tree_ready(REEF)


async def test_too_little_disk_is_refused_with_the_need(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "TREE_BYTES", 1 << 60)
    with pytest.raises(UsageError, match=r"GiB free; building a release tree needs"):
        await trees.ensure_tree(REEF, Silent())
    assert not tools.exists()
