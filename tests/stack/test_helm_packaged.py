"""How the chart reaches a cluster: as a package, from a path of the repository, through Flux."""

import runpy
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.helm_chart import CHART, ROOT, documents, helm, of_kind, refusal, template

pytestmark = pytest.mark.full

LINKS = sorted((CHART / "files").iterdir())


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    package = runpy.run_path(str(ROOT / "deploy/helm/package.py"))["package"]
    file: Path = package(tmp_path_factory.mktemp("dist"))
    return file


def test_the_package_has_files_for_links_and_renders_the_same(packaged: Path) -> None:
    with tarfile.open(packaged) as archive:
        assert all(entry.isfile() for entry in archive)
    assert template(chart=packaged) == template()
    helm("lint", "--strict", str(packaged))
    assert "mclock" in helm("show", "chart", str(packaged))
    assert "| value |" in helm("show", "readme", str(packaged))


def test_argo_renders_a_path_of_the_repository(tmp_path: Path) -> None:
    """It refuses a repository with a link that is absolute or leads out of it."""
    for link in LINKS:
        target = link.readlink()
        assert not target.is_absolute()
        assert (link.parent / target).resolve().is_relative_to(ROOT)
        below = link.resolve().relative_to(ROOT)
        copy = shutil.copytree if link.is_dir() else shutil.copyfile
        (tmp_path / below).parent.mkdir(parents=True, exist_ok=True)
        copy(link, tmp_path / below)
    chart = tmp_path / CHART.relative_to(ROOT)
    shutil.copytree(CHART, chart, symlinks=True)
    assert template(chart=chart) == template()


def links_left_out(folder: str, names: Iterable[str]) -> list[str]:
    """Flux makes an archive of regular files and directories of the repository."""
    return [name for name in names if Path(folder, name).is_symlink()]


@pytest.mark.parametrize("how", ["left out", "as text"])
def test_where_links_are_lost_the_chart_says_so_instead_of_installing_no_rules(
    how: str, tmp_path: Path
) -> None:
    chart = tmp_path / "cephqos"
    shutil.copytree(CHART, chart, ignore=links_left_out)
    if how == "as text":  # git on a file system without links
        for link in LINKS:
            (chart / "files" / link.name).write_text(str(link.readlink()))
    off = ["--set", "dashboards.enabled=false"]
    assert "has no files/rules" in refusal(*off, chart=chart)
    off = ["--set", "rules.enabled=false"]
    said = refusal(*off, chart=chart)
    assert "has no files/dashboards" in said
    assert "make chart" in said
    assert "dashboards.enabled=false" in said
    off += ["--set", "dashboards.enabled=false"]
    assert of_kind(documents(template(*off, chart=chart)), "DaemonSet")
    routes = {"alertmanagerConfig": {"enabled": True}}
    assert "has no files/alertmanager.yml" in refusal(*off, values=routes, chart=chart)
