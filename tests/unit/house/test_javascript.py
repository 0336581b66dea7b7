"""The report's script never makes markup or code from a text: names in an archive are others'."""

import re
from pathlib import Path

UNSAFE = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\("


def test_no_text_becomes_markup_or_code() -> None:
    scripts = sorted(Path("loadgen/cephqos_loadgen").rglob("*.js"))
    assert scripts
    assert [file for file in scripts if re.search(UNSAFE, file.read_text(encoding="utf-8"))] == []
