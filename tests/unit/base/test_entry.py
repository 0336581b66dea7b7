"""How the commands begin: without the extras, and with Ctrl-C while their modules are loaded."""

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

WITHOUT_EXTRAS = """
import sys
sys.modules["rich"] = sys.modules["numpy"] = None  # as if they were not there
from cephqos_base.command import main
sys.exit(main())
"""


def cephqos(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", WITHOUT_EXTRAS, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def test_without_extras_every_command_but_reports_is_there(tmp_path: Path) -> None:
    scenarios = cephqos("scenarios")
    assert (scenarios.returncode, scenarios.stderr) == (0, "")
    assert "qos-demo" in scenarios.stdout
    built = cephqos("rules", "build", "--out", str(tmp_path))
    assert (built.returncode, built.stderr) == (0, "")


def test_without_extras_a_report_says_in_one_line_what_to_install() -> None:
    report = cephqos("report", "x")
    assert report.returncode == 2
    assert "pip install '.[report]'" in report.stderr
    assert report.stderr.count("\n") == 1


ROOT = Path(__file__).parents[3]
# Ctrl-C at the moment when the first module of some weight is loaded.
INTERRUPTED = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "argparse":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
"""


def start_of(script: str) -> str:
    """As pip writes it for a line of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"][script].partition(":")
    return f"import sys; from {module} import {function}; sys.exit({function}())"


def packaged(script: str) -> str:
    """As the package's shell script starts it: with the command as first argument."""
    packages = ROOT / "deploy" / "packages"
    assert f'start.py {script} "$@"' in (packages / script).read_text()
    text = (packages / "start.py").read_text()
    assert "/usr/lib/cephqos" in text
    text = text.replace("/usr/lib/cephqos", str(ROOT / "exporter"))
    return f"import sys\nsys.argv.insert(1, {script!r})\n{text}"


@pytest.mark.parametrize("script", ["cephqos", "cephqos-exporter"])
@pytest.mark.parametrize("written", [start_of, packaged])
def test_ctrl_c_while_modules_are_loaded_is_no_traceback(
    script: str, written: Callable[[str], str]
) -> None:
    argv = [sys.executable, "-c", INTERRUPTED + written(script), "--version"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    argv[2] = written(script)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
