"""What goes into the packages: manual, completion, units, configuration."""

import ast
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from cephqos_exporter.ceph import monclient
from cephqos_exporter.cli import every_option, read_settings
from cephqos_exporter.cluster.cluster_options import CONF
from cephqos_exporter.probe import child

from .programs import DEPLOY, program

ROOT = DEPLOY.parent
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COLLECTOR = DEPLOY / "collector" / "cephqos-collector.service"
# What systemd-analyze calls the exposure of a service: 10 is a service without any restriction.
MOST_EXPOSED = 2.5
manual = program("packages/manual.py")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the manual and the completion."""
    folder = tmp_path_factory.mktemp("manual")
    assert len(manual.write(folder)) == 6
    return folder


def test_making_the_manual_leaves_the_width_of_terminals_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture drawn at 100,000 columns fills a terminal that is not read, and waits for ever."""
    for before in (None, "77"):
        monkeypatch.delenv("COLUMNS", raising=False)
        if before:
            monkeypatch.setenv("COLUMNS", before)
        manual.write(tmp_path)
        assert os.environ.get("COLUMNS") == before


def test_the_manual_has_every_option_of_the_exporter(made: Path) -> None:
    page = (made / "cephqos-exporter.1").read_text().replace("\\-", "-")
    for option in every_option():
        assert f"--{option.name}" in page
        assert option.default_text.replace(" ", ",") in page, "no default is cut"


def test_the_manual_leaves_out_what_is_not_packaged(made: Path) -> None:
    page = (made / "cephqos.1").read_text().replace("\\-", "-")
    assert "cephqos doctor host" in page
    assert "--try-powers" in page
    assert "cephqos lab" not in page


def test_no_text_is_taken_for_a_request_of_troff(made: Path) -> None:
    for page in made.glob("*.1"):
        lines = page.read_text().splitlines()
        begins = {line.split()[0] for line in lines if line.startswith((".", "'"))}
        assert begins <= {".TH", ".SH", ".SS", ".TP", ".B", ".RS", ".RE"}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["cephqos", ""], {"rules", "dashboards", "doctor"}),
        (["cephqos", "-"], {"--version", "--help"}),
        (["cephqos", "doctor", ""], {"host", "cluster", "prometheus"}),
        (["cephqos", "doctor", "prometheus", "--gra"], {"--grafana", "--grafana-header"}),
        (["cephqos-exporter", "--discovery.s"], {"--discovery.sockets"}),
        (["cephqos", "rules", "build", "--sl"], {"--slo"}),
        (["cephqos", "rules", "build", "--config", "/etc/host"], {"/etc/hostname", "/etc/hosts"}),
    ],
)
def test_completion_in_bash_offers_the_next_words(
    made: Path, typed: list[str], offered: set[str]
) -> None:
    program = typed[0]
    function = f"_shtab_{program.replace('-', '_')}"
    code = f"source {made / program}.bash; complete -p {program} >/dev/null; "
    code += f'COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); {function} {program} "${{@: -1}}"; '
    code += "echo ${COMPREPLY[*]}"
    done = subprocess.run(
        ["bash", "-c", code, "bash", *typed], capture_output=True, text=True, check=True
    )
    assert offered <= set(done.stdout.split())
    assert all(word.startswith(typed[-1]) for word in done.stdout.split())


def test_completion_in_zsh_has_each_option_with_its_help(made: Path) -> None:
    text = (made / "_cephqos").read_text()
    assert text.startswith("#compdef cephqos\n")
    assert '"--try-powers[' in text
    if zsh := shutil.which("zsh"):
        subprocess.run([zsh, "-n", made / "_cephqos"], check=True, timeout=30)


@pytest.mark.parametrize("unit", [*UNITS, COLLECTOR], ids=lambda unit: unit.stem)
def test_a_unit_leaves_the_service_little_to_harm(unit: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    argv = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done.stderr
    assert float(found[1]) <= MOST_EXPOSED
    page = Path("docs/install/packages.md").read_text()
    name = unit.stem.removeprefix("cephqos-")
    name = name if name in ("exporter", "collector") else "others"
    [written] = re.findall(rf"([\d.]+) for the {name}\b", page)
    # systemd of another version counts a little differently.
    assert abs(float(found[1]) - float(written)) <= 0.2


@pytest.mark.parametrize("unit", [*UNITS, COLLECTOR], ids=lambda unit: unit.stem)
def test_the_end_of_a_unit_touches_nothing_of_ceph(unit: Path) -> None:
    """RemoveIPC takes shared memory and semaphores from the user, whoever of his made them."""
    settings = dict(re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE))
    assert (settings.get("RemoveIPC") == "yes") == (settings["User"] == "cephqos")


@pytest.mark.parametrize("unit", [*UNITS, COLLECTOR], ids=lambda unit: unit.stem)
def test_a_unit_is_understood_by_systemd(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    copy = tmp_path / unit.name
    # Neither the command nor its manual are installed here.
    text = re.sub(r"/usr/bin/cephqos-(exporter|collector)", "/bin/true", unit.read_text())
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
    file = DEPLOY / "packages" / "conf" / found[1]
    settings = read_settings({"config.file": str(file)}, {})
    assert settings.origin(every_option()[0]).startswith(str(file))


def test_keys_in_the_configuration_are_the_documented_ones() -> None:
    documented = (ROOT / "docs/install/security.md").read_text()
    for name in ("cluster.yml", "probe.yml"):
        text = (DEPLOY / "packages" / "conf" / name).read_text()
        caps = re.findall(r"'(allow [^']*)'", text)
        assert caps
        assert all(f"'{cap}'" in documented for cap in caps)


def test_a_package_needs_of_a_distribution_a_python_for_which_it_has_libraries() -> None:
    description = yaml.safe_load((DEPLOY / "packages" / "nfpm.yaml").read_text())["overrides"]
    launcher = (DEPLOY / "packages" / "python").read_text()
    tried = re.findall(r"3\.\d+", launcher.split("for version in")[1].split(";")[0])
    assert sorted(tried) == sorted(program("packages/wheels.py").PYTHONS)
    least = re.search(r'requires-python = ">=(.*)"', (ROOT / "pyproject.toml").read_text())
    assert least and min(tried) == least[1]
    for kind in ("deb", "rpm"):
        [python, systemd] = description[kind]["depends"]
        assert systemd == "systemd"
        assert f">= {least[1]}" in python
        assert set(re.findall(r"python(3\.\d+)", python)) < set(tried)


def test_what_is_the_same_for_every_python_is_in_a_package_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = program("packages/wheels.py")
    for python in wheels.PYTHONS:
        short = python.replace(".", "")
        folder = tmp_path / "cache" / python
        folder.mkdir(parents=True)
        for name in ("a-1-py3-none-any", "b-1-cp39-abi3-x_86", f"c-1-cp{short}-cp{short}-x_86"):
            with zipfile.ZipFile(folder / f"{name}.whl", "w") as archive:
                archive.writestr(f"{name[0]}/x.py", python if name[0] == "c" else "")
    monkeypatch.setattr(wheels, "fetched", lambda _, python: tmp_path / "cache" / python)
    wheels.unpack(tmp_path / "out", "amd64")
    found = files(tmp_path / "out")
    assert found == {"lib/a/x.py", "lib/b/x.py", *(f"python{it}/c/x.py" for it in wheels.PYTHONS)}


@pytest.mark.parametrize(
    ("there", "chosen"), [(["3.9", "3.11"], "3.11"), (["3.12", "3.13"], "3.13"), (["3.9"], "")]
)
def test_the_newest_known_python_is_started_and_a_missing_one_is_said(
    there: list[str], chosen: str, tmp_path: Path
) -> None:
    for version in there:
        (tmp_path / f"python{version}").write_text(f"#!/bin/sh\necho {version} $*\n")
        (tmp_path / f"python{version}").chmod(0o755)
    text = (DEPLOY / "packages" / "python").read_text().replace("/usr/bin/", f"{tmp_path}/")
    argv = ["sh", "-c", text, "python", "x"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    if chosen:
        assert (done.returncode, done.stdout) == (0, f"{chosen} -I x\n")
    else:
        assert done.returncode == 2
        assert "install python3.11" in done.stderr


def test_proxmox_gets_ceph_conf_as_a_credential_that_the_role_cluster_reads(
    tmp_path: Path,
) -> None:
    text = (DEPLOY / "systemd" / "proxmox.conf").read_text()
    assert "SupplementaryGroups" not in text
    [copy] = re.findall(r"^LoadCredential=(\S+):/etc/pve/ceph\.conf$", text, re.MULTILINE)
    [(name, value)] = re.findall(r"^Environment=(\w+)=(\S+)$", text, re.MULTILINE)
    conf = str(DEPLOY / "packages" / "conf" / "cluster.yml")
    settings = read_settings({"config.file": conf}, {name: value})
    assert settings[CONF] == value == f"%d/{copy}"
    page = (ROOT / "docs/install/proxmox.md").read_text()
    [source] = re.findall(r"^install -D -m 644 (\S+) \S+/cephqos-cluster", page, re.MULTILINE)
    assert source in (DEPLOY / "packages" / "nfpm.yaml").read_text()


def test_what_makes_the_user_comes_with_the_package() -> None:
    """A Debian without systemd-sysusers ended the installation half-way."""
    script = (DEPLOY / "packages" / "scripts" / "postinstall.sh").read_text()
    assert "\nsystemd-sysusers " in script
    kinds = yaml.safe_load((DEPLOY / "packages" / "nfpm.yaml").read_text())["overrides"]
    assert ["systemd" in kinds[kind]["depends"] for kind in ("deb", "rpm")] == [True, True]


@pytest.mark.parametrize("name", ["nfpm.yaml", "nfpm-top.yaml", "nfpm-collector.yaml"])
def test_each_folder_of_ours_belongs_to_a_package_and_no_machine_is_named(name: str) -> None:
    description = yaml.safe_load((DEPLOY / "packages" / name).read_text())
    assert description["rpm"]["buildhost"] == "localhost"
    contents = description["contents"]
    owned = {one["dst"] for one in contents if one.get("type") in ("dir", "tree")}
    used = {str(Path(one["dst"]).parent) for one in contents if not one["dst"].endswith("/")}
    assert {path for path in used if "cephqos" in path} <= owned


@pytest.mark.parametrize("name", ["nfpm.yaml", "nfpm-collector.yaml"])
def test_the_mode_of_a_file_is_that_of_the_description_and_not_of_the_checkout(name: str) -> None:
    """With `umask 077` a checkout has files that the exporter's user could not read."""
    contents = yaml.safe_load((DEPLOY / "packages" / name).read_text())["contents"]
    taken = [one for one in contents if str(one.get("src", "/")).startswith(("deploy/", "LICENSE"))]
    assert len(taken) >= 4
    assert [one["dst"] for one in taken if "mode" not in one.get("file_info", {})] == []


@pytest.mark.parametrize(
    ("said", "left"),
    [("upgrade", False), ("remove", False), ("0", False), ("1", True)],
)
def test_compiled_files_go_with_the_version_that_made_them(
    said: str, left: bool, tmp_path: Path
) -> None:
    """RPM removes the old version when the new one is installed and compiled, and says `1`."""
    compiled = tmp_path / "lib" / "cephqos_base" / "__pycache__"
    compiled.mkdir(parents=True)
    text = (DEPLOY / "packages" / "scripts" / "preremove.sh").read_text()
    text = text.replace("/usr/lib/cephqos", str(tmp_path / "lib")).replace("/run/systemd", "/none")
    subprocess.run(["sh", "-c", text, "preremove", said], check=True, timeout=30)
    assert compiled.exists() == left


@pytest.mark.parametrize("folder", ["scripts", "collector-scripts"])
@pytest.mark.parametrize("script", ["preremove", "postremove", "postinstall"])
@pytest.mark.parametrize("said", ["remove", "0", "upgrade", "1", "configure"])
def test_a_systemd_that_refuses_keeps_no_package_from_being_installed_or_removed(
    folder: str, script: str, said: str, tmp_path: Path
) -> None:
    """Nor may that be silent. In a chroot that sees the host's /run it refuses all there is."""
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho refused >&2\nexit 1\n")
    program.chmod(0o755)
    for other in ("systemd-sysusers", "systemd-tmpfiles"):
        (program.parent / other).symlink_to("/bin/true")
    text = (DEPLOY / "packages" / folder / f"{script}.sh").read_text()
    text = text.replace("/run/systemd/system", str(tmp_path))
    text = text.replace("/usr/lib/cephqos", str(tmp_path / "lib"))
    (tmp_path / "lib").mkdir()
    done = subprocess.run(
        ["sh", "-c", text, script, said],
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    if "refused" in done.stderr:
        assert re.search(r"^cephqos: .*: systemctl ", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("unit", [*UNITS, COLLECTOR], ids=lambda unit: unit.stem)
def test_a_unit_cannot_write_to_disks_even_as_the_user_to_whom_they_belong(unit: Path) -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE))
    assert settings.get("PrivateDevices") == "yes" or settings.get("DevicePolicy") == "closed"
    assert "DeviceAllow" not in settings


def commands(heading: str) -> str:
    """The first block of commands after a heading of the page."""
    page = Path("docs/install/packages.md").read_text()
    [block] = re.findall(r"```sh\n(.*?)```", page.split(heading)[1], re.DOTALL)[:1]
    return str(block)


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}


def test_the_user_of_a_unit_is_made_before_a_unit_needs_it() -> None:
    """systemd ends a unit with 217/USER if its User= is a number that no user has."""
    text = commands("**Hosts of cephadm.**")
    assert text.index("useradd --system --uid 167 ") < text.index("User=167")
    subprocess.run(["bash", "-n", "-c", text], check=True, timeout=30)


@pytest.mark.parametrize("source", [monclient.CHILD_SOURCE, child.SOURCE])
def test_what_runs_in_the_python_of_cephs_module_is_understood_by_old_ones(source: str) -> None:
    """Enterprise Linux 9 has Ceph's module for Python 3.9, and 8 for 3.6."""
    ast.parse(monclient.SAFE_START + monclient.CHILD_START + source, feature_version=(3, 6))
