"""Made-up series and what is expected of them, given to promtool."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.release_tools import tool


def agrees(release: str, document: Mapping[str, Any], folder: Path) -> None:
    """Fails with what promtool says."""
    (folder / "test.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    argv = [*tool(release, "promtool"), "test", "rules", "test.yml"]
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
