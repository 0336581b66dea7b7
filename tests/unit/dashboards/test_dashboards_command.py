"""`cephqos dashboards install`, with and without the SDK."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.board_panels import UIDS, committed_files

from cephqos_base import dashboards, other_logs
from cephqos_dashboards import cli
from cephqos_dashboards.provisioning import Sources, provisioning


def test_what_is_installed_is_what_is_committed_and_provisioning_names_the_place(
    tmp_path: Path,
) -> None:
    files = cli.installed(
        tmp_path, Sources(prometheus="http://p:1", loki="http://l:2", scrape_interval=1.0)
    )
    names = {str(file.relative_to(tmp_path)) for file in files}
    assert {f"dashboards/{uid}.json" for uid in UIDS} < names
    sources = yaml.safe_load(files[tmp_path / "provisioning/datasources/cephqos.yml"])
    assert [(each["type"], each["url"]) for each in sources["datasources"]] == [
        ("prometheus", "http://p:1"),
        ("loki", "http://l:2"),
    ]
    assert sources["datasources"][0]["jsonData"]["timeInterval"] == "1s"
    provider = yaml.safe_load(files[tmp_path / "provisioning/dashboards/cephqos.yml"])
    assert provider["providers"][0]["options"]["path"] == str(tmp_path / "dashboards")


def test_the_log_of_an_osd_can_be_that_of_another_collector(tmp_path: Path) -> None:
    logs = other_logs.parse('{cluster="$cluster"}', "pod", dashboards=True)
    ours = cli.installed(tmp_path, Sources())
    theirs = cli.installed(tmp_path, Sources(logs=logs))
    [changed] = [file for file in ours if ours[file] != theirs[file]]
    assert changed.stem == dashboards.OSD
    lines = zip(ours[changed].splitlines(), theirs[changed].splitlines(), strict=True)
    [(_, line)] = [(old, new) for old, new in lines if old != new]
    expr = json.loads(line.strip().removesuffix(","))["expr"]
    assert expr.startswith('{cluster="$cluster"} | pod=~"')
    pattern = expr.partition('pod=~"')[2].removesuffix('"').replace("${osd:raw}", "osd.3")
    for pod, shown in (("rook-ceph-osd-3-76f-b2s", True), ("rook-ceph-osd-33-76f-b2s", False)):
        assert bool(re.fullmatch(pattern.replace("$cluster", "f51d"), pod)) is shown


def test_without_loki_no_data_source_of_it_is_provisioned() -> None:
    text = provisioning(Sources())["datasources/cephqos.yml"]
    assert [each["type"] for each in yaml.safe_load(text)["datasources"]] == ["prometheus"]


def command(*argv: str, without: str = "") -> subprocess.CompletedProcess[str]:
    """`cephqos dashboards`, in a process that lacks a module."""
    code = (
        "import sys; sys.modules.update({name: None for name in sys.argv.pop(1).split()});"
        " from cephqos_base.command import main; sys.exit(main(sys.argv[1:]))"
    )
    call = [sys.executable, "-c", code, without, "dashboards", *argv]
    return subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)


def test_build_writes_nothing_before_it_is_told_where(tmp_path: Path) -> None:
    done = command("build")
    assert done.returncode == 2
    assert "dashboards build: expected --out DIR (directory to write generated" in done.stderr
    assert "`make generate`" in done.stderr
    (tmp_path / "file").touch()
    done = command("build", "--out", str(tmp_path / "file"))
    assert (done.returncode, done.stderr) == (
        2,
        f"cephqos: --out {tmp_path}/file: expected a directory\n",
    )


def test_build_gives_what_is_committed(tmp_path: Path) -> None:
    done = command("build", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    written = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert written == {str(file.relative_to(cli.PACKAGE)) for file in cli.built()}
    for name in written:
        assert (tmp_path / name).read_bytes() == (cli.PACKAGE / name).read_bytes()


SDK = "grafana_foundation_sdk grafana_foundation_sdk.cog grafana_foundation_sdk.cog.encoder"


def test_installing_needs_no_sdk_and_building_says_that_it_does(tmp_path: Path) -> None:
    done = command("install", str(tmp_path), "--prometheus", "http://p:9090", without=SDK)
    assert done.returncode == 0, done.stderr
    for file in committed_files():
        assert (tmp_path / "dashboards" / file.name).read_bytes() == file.read_bytes()
    done = command("check", without=SDK)
    assert done.returncode == 2
    assert "pip install '.[dashboards]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--prometheus", "p:9090"], "--prometheus p:9090: expected a URL such as http://"),
        (["--prometheus", ""], "--prometheus : expected a URL such as http://"),
        (["--loki", "ftp://l"], "--loki ftp://l: expected a URL such as http://"),
        (["--loki", "http://me:sec/ret@l:3100"], "--loki: found a user or password"),
        (["--prometheus", "https://me@p"], "basicAuthUser and secureJsonData to the data source"),
        (["--scrape-interval", "0"], "--scrape-interval 0.0: expected 0.1 to 300"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    tmp_path: Path, options: list[str], said: str
) -> None:
    done = command("install", str(tmp_path / "new"), *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "sec" not in done.stderr.replace("secureJsonData", "")
    assert not (tmp_path / "new").exists()


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = command("install", str(tmp_path / "file" / "below"))
    assert done.returncode == 2
    assert f"{tmp_path}/file/below/dashboards" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_url_is_no_directory(tmp_path: Path) -> None:
    done = command("install", "https://grafana.example")
    assert done.returncode == 2
    assert "expected a directory of Grafana's host, no URL" in done.stderr
