"""What an installation gets: our packages with all that their commands read, and nothing else."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cephqos_dashboards.cli import GENERATED

ROOT = Path(__file__).parents[3]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"][
    "find"
]["where"]
PACKAGES = {
    *("cephqos_alerts", "cephqos_base", "cephqos_dashboards", "cephqos_doctor"),
    "cephqos_insight",
    *("cephqos_exporter", "cephqos_loadgen", "cephqos_stack"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sources, the content of their wheel and that of an editable one."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in FOLDERS:
        unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=unwanted)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for what in ("wheel", "editable"):
        code = f"from setuptools.build_meta import build_{what} as build; build({str(folder)!r})"
        run([sys.executable, "-W", "ignore", "-c", code], source)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / what)
        wheel.unlink()
    return folder


def run(argv: list[str], cwd: Path, **variables: str) -> None:
    done = subprocess.run(
        argv,
        cwd=cwd,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def tracked() -> Iterator[str]:
    """The files of our packages, as a wheel calls them."""
    listed = ["git", "ls-files", "--", *(f"{name}/cephqos_*" for name in FOLDERS)]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30)
    for name in map(Path, done.stdout.splitlines()):
        # The default SLOs are a link to where they are edited.
        files = (ROOT / name).iterdir() if (ROOT / name).is_dir() else [ROOT / name]
        yield from (str(file.relative_to(ROOT / name.parts[0])) for file in files)


def test_a_wheel_holds_every_file_of_our_packages_and_nothing_else(built: Path) -> None:
    found = {
        str(file.relative_to(built / "wheel"))
        for file in (built / "wheel").rglob("*")
        if file.is_file() and not file.relative_to(built / "wheel").parts[0].endswith(".dist-info")
    }
    assert {name.partition("/")[0] for name in found} == PACKAGES
    assert found == set(tracked())


def test_an_editable_installation_makes_no_other_name_importable(built: Path) -> None:
    (finder,) = (built / "editable").glob("__editable__*_finder.py")
    found: dict[str, dict[str, str]] = {}
    exec(finder.read_text().partition("class ")[0], found)  # noqa: S102 - setuptools wrote it
    assert found["MAPPING"].keys() == PACKAGES
    assert {name.partition(".")[0] for name in found["NAMESPACES"]} <= PACKAGES


def test_commands_of_a_wheel_find_what_they_read(built: Path, tmp_path: Path) -> None:
    use = (
        "import sys; from cephqos_base import command"
        f"; assert command.__file__.startswith({str(built)!r})"
        "; sys.exit(command.main(sys.argv[1:]))"
    )
    site = str(built / "wheel")
    for argv in (
        ["rules", "build", f"--out={tmp_path / 'rules'}"],
        ["dashboards", "install", str(tmp_path / "grafana")],
        ["scenarios"],
    ):
        run([sys.executable, "-c", use, *argv], Path("/"), PYTHONPATH=site)
    slo = (tmp_path / "rules/slo.yml").read_text()
    assert slo == (ROOT / "alerts/rules/slo.yml").read_text()
    boards = {file.name: file.read_text() for file in (tmp_path / "grafana/dashboards").iterdir()}
    assert boards == {file.name: file.read_text() for file in GENERATED.glob("*.json")}
