"""What is built once for the cache: by one at a time, and with its last words if it fails."""

import asyncio
from pathlib import Path

import pytest

from cephqos_base.errors import UsageError
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab import builds, trees
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.processes import in_background


async def built(folder: Path, script: str, within: float = 20.0) -> list[str]:
    """What was told of a build."""
    log, told = folder / "log", list[str]()

    def tell() -> None:
        told.append(log.read_text())

    async with in_background(["sh", "-c", script], log) as process:
        await builds.to_its_end("building it", process, log, within, tell)
    return told


async def test_a_build_that_goes_well_is_followed_to_its_end(tmp_path: Path) -> None:
    assert (await built(tmp_path, "echo ready"))[-1] == "ready\n"


async def test_a_build_that_fails_says_its_status_and_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(LabError) as failed:
        await built(tmp_path, "seq 100; exit 3")
    first, *lines = str(failed.value).splitlines()
    assert first == f"building it ended with status 3 ({tmp_path / 'log'}):"
    assert lines == [str(number) for number in range(89, 101)]


async def test_a_build_that_takes_too_long_is_said_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"building it did not finish within 0 s; see .*/log"):
        await built(tmp_path, "sleep 60", within=0.2)


async def test_a_second_build_of_the_same_waits_and_says_so(tmp_path: Path) -> None:
    lock, said = tmp_path / "lock", list[str]()
    second = builds.alone(lock, said.append)
    async with builds.alone(lock, said.append):
        waiting = asyncio.create_task(second.__aenter__())
        while not said:
            await asyncio.sleep(0.01)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 5)
    await second.__aexit__(None, None, None)
    assert said == ["waiting for another build of it"]


async def test_a_tree_is_built_over_no_folder_that_carries_no_mark_of_an_unfinished_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends(*_: object) -> None:
        raise LabError("so far and no further")

    monkeypatch.setattr(trees, "_run", ends)
    for name in ("reef-1.building", "reef-photos.building"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "photo").touch()
    with pytest.raises(UsageError, match=r"reef-1.building has no mark of cephqos"):
        await trees._build(find_release("reef"), tmp_path / "reef-1", (), print)
    for _ in range(2):  # the second time in the place of what the first left
        with pytest.raises(LabError, match="so far"):
            await trees._build(find_release("reef"), tmp_path / "reef-2", (), print)
    assert all((tmp_path / f"reef-{name}.building/photo").exists() for name in ("1", "photos"))
