"""What Go put into the programs that `make tools` has built is in the bill of materials."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from cephqos_stack.tools import TOOLS, find_tool

BILL: Final = json.loads((Path(__file__).parents[2] / "docs" / "sbom.cdx.json").read_text())
# `make tools` builds some only where they are asked for.
BUILT: Final = [name for name, tool in TOOLS.items() if tool.always or find_tool(name)]


@pytest.mark.parametrize("name", BUILT)
def test_every_module_in_a_built_program_is_listed_with_the_same_sum(name: str) -> None:
    built = find_tool(name)
    if built is None or shutil.which("go") is None:
        pytest.skip(f"{name} or go is missing: make tools")
    argv = ["go", "version", "-m", str(built)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    # What takes a module's place stands in the line below it, and only there a sum.
    inside = set(re.findall(r"^\t(?:mod|dep|=>)\t(\S+)\t(v\S+)\t(h1:\S+)$", said, re.MULTILINE))
    assert len(inside) >= said.count("\tdep\t") > 5
    [refs] = [one["dependsOn"] for one in BILL["dependencies"] if one["ref"] == name]
    listed = {
        (one["name"], one["version"], one["properties"][0]["value"])
        for one in BILL["components"]
        if one["bom-ref"] in refs
    }
    assert inside <= listed
