"""Dashboards are written in the schema of Grafana 10.4. Newer ones know all that is in them.

The foundation SDK is Grafana's own description of its dashboards. `--no-deps`, and by its sum.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from cephqos_dashboards.cli import GENERATED

# The last that is made for Grafana 11, and the newest, for 12 and 13: release, sum, schema.
ELEVEN: Final = (
    "1769699379!11.6.0",
    "92d7a8144eba0fa802e728fb70e63d74b056fb1195ff116d812ad7a4ccfa5eca",
)
NEWEST: Final = ("0.0.21", "838b8cf35574d6bb2c3173b068e9461df4dc891aecd0f6674fefe244c2eba738")
# Reads what we ship as that SDK understands it, and writes it again.
AGAIN: Final = """
import json, sys
from importlib import import_module
from pathlib import Path
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard
register_default_plugins()
for file in Path(sys.argv[1]).glob("*.json"):
    board = json.loads(file.read_text())
    for panel in board["panels"]:
        for each in (panel, *panel.get("panels", ())):
            if each["type"] != "row":
                kind = each["type"].lower().replace("-", "")
                import_module("grafana_foundation_sdk.builders." + kind)
    read = dashboard.Dashboard.from_json(board)
    Path(sys.argv[2], file.name).write_text(json.dumps(read, cls=JSONEncoder))
print(dashboard.Dashboard().schema_version)
"""
pytestmark = pytest.mark.full


def run(folder: Path, release: tuple[str, str], *argv: str) -> str:
    """A Python that has this SDK before the one that writes our dashboards."""
    lock, target = folder / "lock.txt", folder / "sdk"
    lock.write_text(f"grafana-foundation-sdk=={release[0]} --hash=sha256:{release[1]}\n")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    pip += ["--disable-pip-version-check", f"--target={target}", f"--requirement={lock}"]
    subprocess.run(pip, check=True, timeout=540)
    done = subprocess.run(
        [sys.executable, *argv], env=os.environ | {"PYTHONPATH": str(target)},
        capture_output=True, text=True, timeout=540, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def missing(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """What is in ours and not in theirs. What they add are defaults."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from missing(value, theirs.get(key), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, value in enumerate(ours):
            yield from missing(value, theirs[index], f"{path}[{index}]")
    elif ours != theirs:
        yield f"{path}: {ours!r} became {theirs!r}"


def compared(folder: Path, lacks: str = "") -> list[str]:
    """Of every dashboard, what that SDK's lacks, apart from this key."""
    found = []
    for file in sorted(GENERATED.glob("*.json")):
        ours = json.loads(file.read_text()) | {"schemaVersion": None}
        ours.pop(lacks, None)
        theirs = json.loads((folder / file.name).read_text()) | {"schemaVersion": None}
        found += [f"{file.name}{it}" for it in missing(ours, theirs)]
    return found


def test_the_sources_give_the_same_dashboards_in_grafana_11s_schema(tmp_path: Path) -> None:
    run(tmp_path, ELEVEN, "-m", "cephqos_base", "dashboards", "build", "--out", str(tmp_path))
    assert compared(tmp_path / "generated") == []
    board = json.loads((tmp_path / "generated" / "cephqos-osd.json").read_text())
    assert board["schemaVersion"] == 41


def test_the_newest_schema_knows_every_panel_and_setting(tmp_path: Path) -> None:
    assert run(tmp_path, NEWEST, "-c", AGAIN, str(GENERATED), str(tmp_path)).strip() == "42"
    # Only exported dashboards have `__requires`. Grafana drops it before it stores one
    # (pkg/services/dashboardimport/service/service.go), so the schema does not have it.
    assert compared(tmp_path, lacks="__requires") == []
