"""The parts of `make release`: versions that agree, archives of the same bytes, bills, images."""

import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from .programs import DEPLOY, program

ROOT = DEPLOY.parent


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """With what lies beside it, as if it were started."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(DEPLOY / "release"), str(DEPLOY), *sys.path])
    yield program("release/everything.py")
    for name in {"pack", "versions", "sbom", "docker_images", "stamp", "everything"} - before:
        sys.modules.pop(name, None)


def test_a_release_removes_no_folder_that_it_did_not_make(
    everything: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(everything, "disagreements", lambda **_: [])
    monkeypatch.setattr(everything, "export", lambda *_: pytest.fail("it began to build"))
    (tmp_path / "thesis").touch()
    with pytest.raises(everything.NotReleased, match=r"has no mark of cephqos.*another folder"):
        everything.release(tmp_path, "", tmp_path, again=False)
    assert (tmp_path / "thesis").exists()


def tree(
    root: Path,
    *,
    chart: str = "1.2.3",
    app: str = "1.2.3",
    heading: str = "1.2.3",
    names: str = "1.2.3",
) -> Path:
    for name, text in {
        "exporter/cephqos_base/version.py": '__version__ = "1.2.3"\n',
        "deploy/helm/cephqos/Chart.yaml": f'version: {chart}\nappVersion: "{app}"\n',
        "CHANGELOG.md": f"# Changelog\n\n## {heading}\n\n## 1.0.0\n",
        "deploy/release/names.tsv": f"# {names}\nmetric\ta\t\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_versions_of_this_checkout_agree() -> None:
    assert program("release/versions.py").disagreements() == []


@pytest.mark.parametrize(
    ("given", "tag", "said"),
    [
        ({}, "v1.2.3", []),
        ({"heading": "Unreleased"}, "", []),
        ({"chart": "1.2.2"}, "", ["found 1.2.2, expected 1.2.3 (version)"]),
        ({"app": "1.2.2"}, "", ["found 1.2.2, expected 1.2.3 (appVersion)"]),
        ({"heading": "1.2.2"}, "", ["is 1.2.2, expected Unreleased or 1.2.3"]),
        ({"heading": "Unreleased"}, "v1.2.3", ["is Unreleased, expected 1.2.3"]),
        ({}, "v1.2.4", ["found v1.2.4, expected v1.2.3"]),
        ({"heading": "Unreleased", "names": "1.0.0"}, "v1.2.3-rc1", []),
        ({}, "v1.2.4-rc1", ["found v1.2.4-rc1, expected v1.2.3"]),
        ({"names": "1.0.0"}, "", []),
        ({"names": "1.0.0"}, "v1.2.3", ["found 1.0.0, expected 1.2.3: python -m"]),
    ],
)
def test_a_version_that_differs_is_named_with_what_was_expected(
    given: dict[str, str], tag: str, said: list[str], tmp_path: Path
) -> None:
    found = program("release/versions.py").disagreements(tree(tmp_path, **given), tag)
    assert len(found) == len(said)
    assert all(part in line for part, line in zip(said, found, strict=True))


def test_an_archive_depends_on_nothing_but_names_content_and_the_given_time(
    tmp_path: Path,
) -> None:
    pack = program("release/pack.py").pack
    made = []
    for number, mode in enumerate((0o600, 0o644)):
        folder = tmp_path / str(number)
        (folder / "a").mkdir(parents=True)
        for name, text in (
            (("a/x", "#!/bin/sh\n"), ("b", "plain"))
            if number
            else (
                ("b", "plain"),
                ("a/x", "#!/bin/sh\n"),
            )
        ):
            (folder / name).write_text(text)
            (folder / name).chmod(mode)
            os.utime(folder / name, (number, number))
        made.append(pack(tmp_path / f"{number}.tar.gz", {"top": folder}, 7))
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as archive:
        found = {it.name: (it.mode, it.mtime, it.uid) for it in archive}
    assert found == {"top/a/x": (0o755, 7, 0), "top/b": (0o644, 7, 0)}


def test_an_archive_of_somebody_else_is_written_again_with_the_same_files(tmp_path: Path) -> None:
    file = tmp_path / "x.tar.gz"
    (tmp_path / "run").write_text("data")
    (tmp_path / "run").chmod(0o700)
    with gzip.open(file, "wb") as raw, tarfile.open(fileobj=raw, mode="w") as archive:
        archive.add(tmp_path / "run", "p/run")
    program("release/pack.py").repack(file, 9)
    with tarfile.open(file) as archive:
        [it] = archive
        content = archive.extractfile(it)
        assert content and content.read() == b"data"
        assert (it.name, it.mode, it.mtime, it.uname) == ("p/run", 0o755, 9, "")


def test_files_that_differ_between_two_builds_are_named(everything: ModuleType) -> None:
    first, second = {"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}
    assert everything.different_files(first, first) == []
    assert everything.different_files(first, second) == ["b", "c"]


def test_sums_are_what_sha256sum_reads(everything: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("abc")
    everything.write_sums(tmp_path)
    text = (tmp_path / "SHA256SUMS").read_text()
    assert text.startswith("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n")
    everything.write_sums(tmp_path)
    assert (tmp_path / "SHA256SUMS").read_text() == text


def test_a_bill_has_the_locked_versions_with_licences_where_they_are_known() -> None:
    sbom = program("sbom.py")
    known = {"name": "PyYAML", "version": "6", "licenses": [{"license": {"id": "MIT"}}]}
    old = {"name": "attrs", "version": "1"}
    found = sbom.among({"components": [known, old]}, {"pyyaml": "6", "attrs": "2"})
    assert found[1] == known
    assert found[0]["purl"] == "pkg:pypi/attrs@2"
    bill = sbom.bill_of("x.deb", "1.2.3", "ab", found)
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": "ab"}]
    assert bill["components"] == found


def test_every_line_of_the_exporters_lock_is_in_its_bill() -> None:
    sbom = program("sbom.py")
    lock = DEPLOY / "images/requirements-exporter.txt"
    found = sbom.locked(lock)
    assert len(found) == lock.read_text().count("==")
    assert {"aiohttp", "prometheus-client", "pyyaml"} <= found.keys()


def test_packages_of_an_image_are_debians() -> None:
    [one] = program("sbom.py").debian("libc6 2.41-12 amd64\nlibc6 2.41-12 amd64\n\n")
    assert one["purl"] == "pkg:deb/debian/libc6@2.41-12?arch=amd64"


def test_images_are_left_out_where_no_docker_answers(
    everything: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(everything.docker_images.archives(ROOT, tmp_path, "1.2.3")) == []
    assert "no Docker engine answers" in capsys.readouterr().err


def test_what_docker_says_of_a_build_that_failed_is_shown(
    everything: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\n[ "$1" = version ] && exit 0\necho no space >&2\nexit 1\n')
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(subprocess.CalledProcessError):
        list(everything.docker_images.archives(ROOT, tmp_path, "1.2.3"))
    assert capfd.readouterr().err == "no space\n"


@pytest.fixture(scope="module")
def stamped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as a release of a made-up owner has them."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("helm", "compose", "cephadm", "packages"):
        shutil.copytree(ROOT / "deploy" / name, folder / "deploy" / name, symlinks=True)
    for name in ("docs", ".github"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    made = program("release/stamp.py")
    made.stamp(folder, made.hosting(folder, "example"), "1.2.3")
    return folder


def test_the_chart_of_a_release_pulls_images_of_its_owner(stamped: Path) -> None:
    chart = stamped / "deploy/helm/cephqos"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    for image, name in ((values["image"], "exporter"), (values["logs"]["image"], "collector")):
        assert image["registry"] == "ghcr.io"
        assert image["repository"] == f"example/cephqos-{name}"
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert about["home"] == "https://example.github.io/cephqos/"
    assert about["maintainers"][0]["url"] == "https://github.com/example/cephqos"
    images = yaml.safe_load(about["annotations"]["artifacthub.io/images"])
    assert [it["image"] for it in images] == [
        f"ghcr.io/example/cephqos-{name}:1.2.3" for name in ("exporter", "collector")
    ]


def test_packages_of_a_release_say_whose_they_are(stamped: Path) -> None:
    for path in (stamped / "deploy/packages").glob("nfpm*.yaml"):
        about = yaml.safe_load(path.read_text())
        assert about["homepage"] == "https://github.com/example/cephqos"
        assert "example@" in about["maintainer"]


def test_compose_and_cephadm_of_a_release_name_images_of_its_owner(stamped: Path) -> None:
    compose = yaml.safe_load((stamped / "deploy/compose/common.yml").read_text())["services"]
    for name in ("exporter", "collector", "loki"):
        assert f":-ghcr.io/example/cephqos-{name}:1.2.3}}" in compose[name]["image"]
    for file, name in (("exporter",) * 2, ("cluster", "exporter"), ("collector",) * 2):
        spec = yaml.safe_load((stamped / f"deploy/cephadm/{file}.yml").read_text())["spec"]
        assert spec["image"] == f"ghcr.io/example/cephqos-{name}:1.2.3"


def test_pages_and_metadata_of_a_release_name_its_owner(stamped: Path) -> None:
    left = [
        path.name
        for path in (stamped / "README.md", *(stamped / "docs").rglob("*.md"))
        if re.search(
            r"ghcr\.io/OWNER|OWNER\.github\.io|cephqos-\w+:VERSION|(--version |deploy-)VERSION",
            path.read_text(),
        )
    ]
    assert left == []
    pages = [path.read_text() for path in (stamped / "docs/install").glob("*.md")]
    assert not any("ublished" in page for page in (*pages, (stamped / "README.md").read_text()))
    readme = (stamped / "README.md").read_text()
    assert (
        "](https://github.com/example/cephqos/blob/v1.2.3/docs/install/index.md#platforms)"
        in readme
    )
    assert not re.search(r"\]\((?!https?://|#)", readme), "PyPI shows it without the other files"
    urls = tomllib.loads((stamped / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Homepage"] == "https://github.com/example/cephqos"


def test_the_archive_for_compose_has_all_that_its_files_mount(everything: ModuleType) -> None:
    packed = everything._ARCHIVES["deploy"].values()
    for file in (ROOT / "deploy/compose").glob("*.yml"):
        for mounted in re.findall(r"(?:\.\./)+\w[\w./-]*(?=:|\}|,)", file.read_text()):
            path = os.path.relpath(file.parent / mounted, ROOT)
            assert any(path == it or path.startswith(f"{it}/") for it in packed), path


def test_an_owner_that_no_registry_takes_is_refused() -> None:
    made = program("release/stamp.py")
    with pytest.raises(made.NotStamped, match="found 'Example', expected small letters"):
        made.hosting(ROOT, "Example")


def test_without_an_owner_nothing_is_stamped(tmp_path: Path) -> None:
    """The folder is empty: to write there would fail."""
    made = program("release/stamp.py")
    made.stamp(tmp_path, made.Hosting("", "ghcr.io"), "1.2.3")
    assert list(tmp_path.iterdir()) == []


def test_a_release_says_of_itself_what_the_changelog_says() -> None:
    said = program("release/versions.py").notes(ROOT)
    assert said.startswith("### ") and "\n## " not in said
