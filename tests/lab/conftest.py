"""Labs for tests: one shared per release, kept by this process, gone with it however it ends.

A lab's keeper has to hold its lifeline for as long as tests run, and pytest gives each test an
event loop of its own; so the keepers live in one background thread with one loop.
"""

import asyncio
import secrets
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import pytest
from tests.recorded import RELEASES

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

    def close(self) -> None:
        for lab in list(self._labs.values()):
            self.end(lab)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


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
