"""What goes into the packages: manual, completion, units, configuration."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cephqos_exporter.cli import every_option, read_settings

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy" / "packages"
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
# What systemd-analyze calls the exposure of a service: 10 is a service without any restriction.
MOST_EXPOSED = 2.5


def script(name: str) -> Any:
    """A script of deploy/packages as a module."""
    spec = importlib.util.spec_from_file_location(name, DEPLOY / f"{name}.py")
    assert spec
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


manual = script("manual")


def test_manual_and_completion_are_what_the_commands_give(request: pytest.FixtureRequest) -> None:
    for file, text in manual.generated().items():
        if request.config.getoption("--regenerate"):
            file.write_text(text)
        assert file.read_text() == text, f"{file}: run deploy/packages/manual.py"


def test_the_manual_has_every_option_of_the_exporter() -> None:
    page = (manual.GENERATED / "cephqos-exporter.1").read_text().replace("\\-", "-")
    for option in every_option():
        assert f".B --{option.name}" in page


def test_the_manual_leaves_out_what_is_not_packaged() -> None:
    page = (manual.GENERATED / "cephqos.1").read_text()
    assert "cephqos doctor host" in page
    assert "cephqos lab" not in page


def test_a_text_cannot_become_a_request_of_troff() -> None:
    page = manual.ManualPage(("x",), "a\\b", (("--a-b", ".so /etc/passwd"), ("'c", "d")))
    manual._SEE["x"] = "y(1)"
    lines = manual.troff(page).splitlines()
    assert "\\&.so /etc/passwd" in lines
    assert ".B \\-\\-a\\-b" in lines
    assert any("a\\eb" in line for line in lines)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["cephqos", ""], {"rules", "dashboards", "doctor", "--version"}),
        (["cephqos", "doctor", ""], {"host", "cluster", "prometheus"}),
        (["cephqos", "doctor", "prometheus", "--gra"], {"--grafana", "--grafana-header"}),
        (["cephqos-exporter", "--discovery.s"], {"--discovery.sockets"}),
        (["/usr/bin/cephqos", "rules", "build", "--sl"], {"--slo"}),
    ],
)
def test_completion_offers_the_next_words(typed: list[str], offered: set[str]) -> None:
    code = f"source {manual.GENERATED / 'cephqos.bash'}; "
    code += 'COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _cephqos; echo ${COMPREPLY[*]}'
    done = subprocess.run(
        ["bash", "-c", code, "bash", *typed], capture_output=True, text=True, check=True
    )
    assert offered <= set(done.stdout.split())
    assert all(word.startswith(typed[-1]) for word in done.stdout.split())


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_leaves_the_service_little_to_harm(unit: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    argv = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done.stderr
    assert float(found[1]) <= MOST_EXPOSED


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_understood_by_systemd(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    copy = tmp_path / unit.name
    # Neither the command nor its manual are installed here.
    text = unit.read_text().replace("/usr/bin/cephqos-exporter", "/bin/true")
    copy.write_text(re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_the_configuration_of_a_unit_is_one_that_the_exporter_reads(unit: Path) -> None:
    found = re.search(r"--config.file=/etc/cephqos/(\S+)", unit.read_text())
    assert found
    file = ROOT / "deploy" / "packages" / "conf" / found[1]
    settings = read_settings({"config.file": str(file)}, {})
    assert settings.origin(every_option()[0]).startswith(str(file))


def test_keys_in_the_configuration_are_the_documented_ones() -> None:
    documented = (ROOT / "exporter" / "SECURITY.md").read_text()
    for name in ("cluster.yml", "probe.yml"):
        text = (ROOT / "deploy" / "packages" / "conf" / name).read_text()
        caps = re.findall(r"'(allow [^']*)'", text)
        assert caps
        assert all(f"'{cap}'" in documented for cap in caps)


def test_every_dependency_of_the_project_is_one_of_both_packages() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    wanted = re.findall(r'^    "([A-Za-z_]+)>=(\d[\d.]*)', project.split("[project.opt")[0], re.M)
    description = (ROOT / "deploy" / "packages" / "nfpm.yaml").read_text()
    assert len(wanted) >= 6
    for name, version in wanted:
        short = name.lower().removeprefix("py").replace("_", "[-_]")
        assert len(re.findall(rf"python3-(?:py)?{short} \(?>= {version}", description)) == 2, name
