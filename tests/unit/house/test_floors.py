"""Which package may import which: a lower floor knows nothing of a higher one."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

# What each package may import of ours, besides itself.
MAY_IMPORT = {
    "exporter/cephqos_base": set(),
    "exporter/cephqos_exporter": {"cephqos_base"},
    "alerts/cephqos_alerts": {"cephqos_base"},
    "dashboards/cephqos_dashboards": {"cephqos_base"},
    "loadgen/cephqos_loadgen": {"cephqos_base", "cephqos_exporter"},
    "deploy/cephqos_insight": {
        *("cephqos_base", "cephqos_exporter"),
        "cephqos_loadgen",  # where it is installed: to read an archive
    },
    "deploy/cephqos_doctor": {
        *("cephqos_base", "cephqos_exporter", "cephqos_alerts", "cephqos_dashboards"),
        "cephqos_insight",
    },
    "deploy/cephqos_stack": {
        *("cephqos_base", "cephqos_exporter", "cephqos_alerts", "cephqos_dashboards"),
        "cephqos_loadgen",
    },
}

# Houses whose rooms are floors, lowest first: each room may import those before it, and itself.
ROOMS_IN_ORDER = {
    "loadgen/cephqos_loadgen/report": (
        *("arrays", "figures", "caveats", "tables", "charts", "pages", "compare"),
    ),
    "alerts/cephqos_alerts": ("rules", "texts", "slo", "output"),
}


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_lower_floors(package: str) -> None:
    allowed = MAY_IMPORT[package] | {Path(package).name}
    files = sorted(Path(package).rglob("*.py"))
    assert files
    wrong = [
        f"{file} imports {name}"
        for file in files
        for name in imported(file)
        if name.startswith("cephqos_") and name not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("house", "room"), [(house, room) for house, rooms in ROOMS_IN_ORDER.items() for room in rooms]
)
def test_a_room_imports_only_rooms_before_it(house: str, room: str) -> None:
    rooms = ROOMS_IN_ORDER[house]
    later = rooms[rooms.index(room) + 1 :]
    package = ".".join(Path(house).parts[1:])
    files = sorted(Path(house, room).glob("*.py"))
    assert len(files) > 1
    wrong = [
        f"{file} imports {later_room}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for later_room in later
        if f"{node.module}.".startswith(f"{package}.{later_room}.")
    ]
    assert not wrong


LOADGEN = Path("loadgen/cephqos_loadgen")


def room_of(module: str) -> str:
    """The room of `cephqos_loadgen.room.…`; a module outside of rooms is one of its own."""
    return module.split(".")[1]


def test_the_rooms_of_loadgen_import_one_another_without_a_circle() -> None:
    rooms: dict[str, set[str]] = defaultdict(set)
    for file in sorted(LOADGEN.rglob("*.py")):
        own = file.relative_to(LOADGEN).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cephqos_load"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                rooms[own] |= {room_of(name) for name in names} - {own}
    order = list(TopologicalSorter(rooms).static_order())  # CycleError names a circle
    assert order.index("plan") < order.index("cluster") < order.index("load") < order.index("run")


READS_YAML = re.compile(
    r"\byaml\.(safe_|full_|unsafe_)?(load|load_all|compose|compose_all|parse)\("
)


def test_one_module_reads_yaml() -> None:
    """It refuses keys given twice, bounds depth and size, and says file and line."""
    files = [file for package in MAY_IMPORT for file in sorted(Path(package).rglob("*.py"))]
    assert READS_YAML.search("yaml.safe_load(text)")
    found = [str(f) for f in files if READS_YAML.search(f.read_text(encoding="utf-8"))]
    assert set(found) <= {"exporter/cephqos_base/yamlfile.py"}


STARTS_A_PROCESS = re.compile(
    r"\b(create_subprocess_|subprocess\.(run|Popen|call|check_)|posix_spawn\(|os\.(exec|fork))"
)


def test_one_module_starts_processes() -> None:
    """It gives each a group of its own, and ends the group."""
    files = [file for package in MAY_IMPORT for file in sorted(Path(package).rglob("*.py"))]
    found = {str(f) for f in files if STARTS_A_PROCESS.search(f.read_text(encoding="utf-8"))}
    assert found == {
        "loadgen/cephqos_loadgen/processes.py",
        # Process 1 of a namespace has no event loop, and reaps whatever ends.
        "loadgen/cephqos_loadgen/lab/isolation/process_one.py",
        "loadgen/cephqos_loadgen/lab/cli.py",  # `lab exec` becomes the command
        # Beside OSDs: children that may not be killable, of which there is never a second one.
        "exporter/cephqos_exporter/ceph/cluster.py",
        "exporter/cephqos_exporter/ceph/monclient.py",
        "exporter/cephqos_exporter/cluster/cluster_options.py",  # before anything runs
    }
