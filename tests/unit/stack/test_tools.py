"""The tools that `make tools` builds: where they are, which Go will do, what a failure says."""

from pathlib import Path

import pytest

from cephqos_base.errors import UsageError
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.progress import Silent
from cephqos_stack import tools


@pytest.fixture
def no_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a PATH on which there is nothing but what a test puts there."""
    monkeypatch.setenv("CEPHQOS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("setpriv", "env", "nice"):
        (path / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(path))
    return path


def fake_go(folder: Path, script: str, version: str = "go1.99.0") -> None:
    go = folder / "go"
    answer = f'case "$*" in "env "*) echo {version}; echo local; exit;; *list*) exit;; esac\n'
    go.write_text(f"#!/bin/bash\n{answer}{script}\n")
    go.chmod(0o755)


def test_a_tool_that_was_never_built_is_looked_for_on_the_path(no_tools: Path) -> None:
    assert tools.find_tool("loki") is None
    (no_tools / "loki").write_text("#!/bin/sh\n")
    (no_tools / "loki").chmod(0o755)
    assert tools.find_tool("loki") == no_tools / "loki"


async def test_without_go_the_message_names_the_version_and_the_packages(no_tools: Path) -> None:
    with pytest.raises(UsageError, match=r"Go not found.*needs Go 1\.26.*golang-go.*trixie"):
        await tools.ensure_tool("loki", Silent())


async def test_a_go_that_is_too_old_is_refused_with_its_version(no_tools: Path) -> None:
    fake_go(no_tools, "", version="go1.19.8")
    with pytest.raises(UsageError, match=r"go is go1\.19\.8\. Building it"):
        await tools.ensure_tool("cephqos-collector", Silent())


@pytest.mark.parametrize(
    ("version", "toolchain", "enough"),
    [
        ("go1.26.5", "local", True),
        ("go1.27", "local", True),
        ("go1.26.4", "local", False),
        ("go1.24.2", "auto", True),
        ("go1.24.2", "local", False),
        ("go1.20.9", "auto", False),
        ("go1.19.8", "", False),
    ],
)
def test_go_must_be_new_enough_or_able_to_download_one(
    version: str, toolchain: str, enough: bool
) -> None:
    assert tools.go_will_do(version, toolchain, "1.26.5") is enough


async def test_a_built_tool_is_found_and_not_built_again(no_tools: Path) -> None:
    # The last two words are `-o FILE PACKAGE`, with FILE before the package.
    fake_go(no_tools, 'while [ "$1" != -o ]; do shift; done; echo built > "$2"')
    first = await tools.ensure_tool("loki", Silent())
    assert first.read_text() == "built\n"
    assert tools.find_tool("loki") == first
    (no_tools / "go").unlink()
    assert await tools.ensure_tool("loki", Silent()) == first


async def test_a_failed_build_says_why_keeps_its_log_and_leaves_no_tool(no_tools: Path) -> None:
    fake_go(no_tools, "echo 'main.go:3: no such thing' >&2; exit 3")
    with pytest.raises(LabError, match=r"building loki ended with status 3(?s:.*)no such thing"):
        await tools.ensure_tool("loki", Silent())
    assert tools.find_tool("loki") is None
    assert "no such thing" in tools.log_of(tools.TOOLS["loki"]).read_text()


def test_an_unknown_tool_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tools.main(["promtail"]) == 2
    assert "unknown tool promtail: there are cephqos-collector, loki" in capsys.readouterr().err
