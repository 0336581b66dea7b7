"""One Docker engine for all tests of this folder."""

import os
import shutil
from collections.abc import Iterator

import pytest

from . import images
from .engine import DockerEngine, engine
from .stack import timed


@pytest.fixture(scope="session")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEngine]:
    """An engine that has the images."""
    if os.geteuid() != 0:
        pytest.fail("a Docker engine needs root")
    with timed("images"):
        tree, archive = images.prepare()
    # A short path: the kernel allows a socket's path 107 characters.
    folder = tmp_path_factory.mktemp("engine")
    try:
        with engine(tree, folder) as running:
            with timed("loading them"), archive.open("rb") as load:
                running.run("docker", "load", "--quiet", stdin=load.fileno(), within=300)
            yield running
    finally:
        shutil.rmtree(folder / "data", ignore_errors=True)
