"""The `cephqos` command where its extra is not installed."""

import subprocess
import sys
from pathlib import Path

WITHOUT_EXTRAS = """
import sys
sys.modules["rich"] = sys.modules["textual"] = None  # as if they were not there
from cephqos_base.command import main
sys.exit(main())
"""


def cephqos(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", WITHOUT_EXTRAS, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_without_extras_every_command_but_the_demo_is_there(tmp_path: Path) -> None:
    scenarios = cephqos("scenarios")
    assert (scenarios.returncode, scenarios.stderr) == (0, "")
    assert "qos-demo" in scenarios.stdout
    built = cephqos("rules", "build", "--out", str(tmp_path))
    assert (built.returncode, built.stderr) == (0, "")


def test_without_extras_the_demo_says_in_one_line_what_to_install() -> None:
    demo = cephqos("demo", "--once")
    assert demo.returncode == 2
    assert "pip install '.[top]'" in demo.stderr
    assert demo.stderr.count("\n") == 1
