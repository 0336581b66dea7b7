"""What JavaScript there is, as a linter would want it. That it runs is tested in a browser
(tests/stack/test_report_page.py), so that nothing here needs node."""

import re
from pathlib import Path

import pytest

SCRIPTS = sorted(
    file
    for folder in ("exporter", "loadgen", "alerts", "dashboards", "deploy")
    for file in Path(folder).glob("*/**/*.js")
)
UNWANTED = {
    "a text becomes HTML": r"innerHTML|outerHTML|insertAdjacentHTML|document\.write",
    "a text becomes code": r"\beval\b|\bFunction\(",
    "var, or a comparison that converts": r"\bvar\b|[^=!]==[^=]|!=[^=]",
    "longer than 100": r".{101}",
    "left over": r"console\.|debugger|[ \t]$",
}


@pytest.mark.parametrize("file", SCRIPTS, ids=str)
def test_scripts_are_strict_and_do_nothing_that_a_linter_refuses(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    code = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    assert code.lstrip().startswith('"use strict";')
    found = {
        why: [line for line in code.splitlines() if re.search(what, line)]
        for why, what in UNWANTED.items()
    }
    assert {why: lines for why, lines in found.items() if lines} == {}


def test_there_is_a_script_and_python_holds_none() -> None:
    assert SCRIPTS
    sources = [f for f in Path("loadgen").glob("*/**/*.py") if "function(" in f.read_text("utf-8")]
    assert sources == []
