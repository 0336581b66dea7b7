"""What all tests share: how a missing component is reported, and where labs come from."""

import difflib
import os
import random
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import settings

if TYPE_CHECKING:
    from tests.lab.conftest import LabPool

CI = bool(os.environ.get("CI"))
SILENT_OSD = "an OSD was silent"

# libyaml reads all rules in 12 ms, PyYAML in 220 ms. Many tests read them with `yaml.safe_load`.
yaml.SafeLoader = yaml.CSafeLoader  # type: ignore[assignment,misc]

# How long one example takes depends on what else the machine does.
settings.register_profile("cephqos", deadline=None)
settings.load_profile("cephqos")


# Where several processes share the tests, each takes a file at a time: the longest first, so that
# none is left at the end.
LONGEST = (
    *("test_packages.py", "test_attach.py"),
    *("test_scenarios.py", "test_rules_tools.py", "test_scenarios_faults.py", "test_lab.py"),
    *("test_exporter_cluster.py", "test_scenarios_interrupted.py", "test_logs_counted.py"),
    *("test_dashboards.py", "test_scenarios_devices.py", "test_demo.py", "test_faults.py"),
    *("test_replay.py", "test_runbooks.py", "test_top.py", "test_restarts.py"),
)


def pytest_sessionstart() -> None:
    """Tests name files by their path in the checkout. Started elsewhere, loops over files that are
    not found would be empty, and pass."""
    root = Path(__file__).parents[1]
    if (root / "pyproject.toml").is_file():  # tests/unit/house/test_skips.py copies this file
        os.chdir(root)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--shuffle")
    if seed is not None:  # a file's tests stay together, with the fixtures that they share
        order = random.Random(seed)  # noqa: S311
        places = {path: order.random() for path in sorted({item.path for item in items})}
        items.sort(key=lambda item: (places[item.path], order.random()))
        return

    def rank(item: pytest.Item) -> int:
        name = item.path.name
        return LONGEST.index(name) if name in LONGEST else len(LONGEST)

    items.sort(key=rank)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate", action="store_true", help="rewrite golden files from what comes"
    )
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run in a random order")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI nothing is skipped in silence: a skip is a failure with the same reason."""
    report = yield
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.longrepr = f"in CI a skipped test is a failed test: {reason}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why a test was tried again, which the plugin that tries keeps to itself."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"failed at first: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
    for report in terminalreporter.getreports("passed"):
        for title, said in report.sections:
            if SILENT_OSD in title:
                terminalreporter.section(f"{SILENT_OSD}: {report.nodeid}")
                terminalreporter.write_line(said)


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Callable[[str, Path], None]:
    """Compares what came with a committed file, which --regenerate rewrites."""

    def with_committed(came: str, committed: Path) -> None:
        if request.config.getoption("--regenerate"):
            committed.write_text(came, encoding="utf-8")
        expected = committed.read_text(encoding="utf-8")
        if came != expected:
            old, new = expected.splitlines(), came.splitlines()
            lines = difflib.unified_diff(old, new, str(committed), "came", lineterm="", n=0)
            pytest.fail("\n".join(list(lines)[:60]), pytrace=False)

    return with_committed


@pytest.fixture(scope="session")
def real_ceph() -> None:
    """Skip, saying why, where no lab can be made."""
    if os.geteuid() != 0:
        pytest.skip("real Ceph needs root: run the tests with sudo")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is missing: apt-get install debootstrap")


@pytest.fixture(scope="session")
def labs(real_ceph: None) -> Iterator["LabPool"]:
    """The labs of a session; at its end none is left."""
    from tests.lab.conftest import LabPool  # which tests without a lab need not load

    pool = LabPool()
    try:
        yield pool
    finally:
        pool.close()
