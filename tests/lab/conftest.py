"""Labs for tests: one shared per release, kept by this process, gone with it however it ends.

A lab's keeper has to hold its lifeline for as long as tests run, and pytest gives each test an
event loop of its own; so the keepers live in one background thread with one loop.
"""

import asyncio
import secrets
import threading
from collections import defaultdict
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.conftest import SILENT_OSD
from tests.recorded import RELEASES

from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.lab.lab import Lab, RunningLab
from cephqos_loadgen.lab.spec import LabSpec

T = TypeVar("T")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/lab/" in item.path.as_posix():
            item.add_marker(pytest.mark.lab)


@pytest.fixture(scope="session", autouse=True)
def on_real_ceph(real_ceph: None) -> None:
    """Every test here needs it, those too that ask for no lab."""


@pytest.fixture(autouse=True)
def asked_again_of_a_sound_lab(request: pytest.FixtureRequest) -> None:
    """Once in thousands of labs an OSD of 18.2 hung from the first pool on. The tests of its file
    failed, when asked again too."""
    if getattr(request.node, "execution_count", 1) > 1:
        for said in request.getfixturevalue("labs").renew_silent():
            request.node.add_report_section("setup", SILENT_OSD, said)


def lab_name(purpose: str) -> str:
    """A name that no other test run has."""
    return f"t-{purpose}-{secrets.token_hex(3)}"


class LabPool:
    """Starts labs in a background thread; the shared ones live until the session ends."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._labs: dict[str, Lab] = {}

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result()

    def start(self, spec: LabSpec) -> Lab:
        lab = Lab(spec)
        self.call(lab.__aenter__())
        self._labs[spec.name] = lab
        return lab

    def end(self, lab: RunningLab) -> None:
        del self._labs[lab.paths.name]
        assert isinstance(lab, Lab)
        self.call(lab.down())

    def shared(self, release: str) -> Lab:
        """The session's lab of that release: 3 OSDs on loop devices, as the release comes."""
        for lab in self._labs.values():
            if lab.paths.name.startswith(f"t-shared-{release}-"):
                return lab
        name = lab_name(f"shared-{release}")
        return self.start(LabSpec(name=name, release=release, osds=3, backing="loop"))

    def renew_silent(self) -> list[str]:
        """Where an OSD answers nothing, a new lab takes the place. Returns what such OSDs did."""
        return [said for lab in list(self._labs.values()) for said in self.call(_renewed(lab))]

    def close(self) -> None:
        for lab in list(self._labs.values()):
            self.end(lab)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _renewed(lab: Lab) -> list[str]:
    spec, pids = lab.spec, await lab.pids()
    silent = [f"osd.{osd}" for osd in range(spec.osds) if not await _answers(lab, f"osd.{osd}")]
    found = [f"{osd} of {spec.name} answered nothing. {_doing(lab, osd, pids)}" for osd in silent]
    if silent:
        await lab.down()
        Lab.__init__(lab, spec)  # in its place: tests of a file hold this one
        await lab.__aenter__()
    return found


async def _answers(lab: Lab, osd: str) -> bool:
    async with lab.client() as client:
        try:
            await client.command("config get", target=osd, var="osd_op_queue", within=10.0)
        except (ClusterUnreachable, CommandFailed):
            return False
    return True


def _doing(lab: Lab, osd: str, pids: dict[str, int]) -> str:
    """Its threads by where they wait in the kernel, and its last words."""
    waits: defaultdict[str, list[str]] = defaultdict(list)
    for task in Path(f"/proc/{pids.get(osd)}/task").glob("*"):
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            waits[f"{state} {(task / 'wchan').read_text()}"].append(
                (task / "comm").read_text()[:-1]
            )
        except OSError:
            continue
    said = lab.paths.log(osd).read_text(errors="replace").splitlines()[-15:]
    return "\n".join([*(f"{wait}: {', '.join(names)}" for wait, names in waits.items()), *said])


# Every night on all of them.
RELEASES_IN_TURN = [
    pytest.param(name, marks=() if name == "reef" else pytest.mark.full) for name in RELEASES
]


@pytest.fixture(params=RELEASES_IN_TURN)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shared_lab(labs: LabPool, release: str) -> RunningLab:
    """A running cluster of each release in turn. Leave it as you found it."""
    return labs.shared(release)
