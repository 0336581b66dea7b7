"""`cephqos rules build|check`: what they write, where, and what they say when they cannot."""

from pathlib import Path

import pytest
import yaml

from cephqos_alerts import cli
from cephqos_base import textfile
from cephqos_base.command import main

ROOT = Path.cwd()
SLO = """
version: 1
slos:
  - {name: mine, source: osd, op: write, threshold: 0.0512, objective: 0.99}
"""

NAMES = (
    *("recording.yml", "qos.yml", "osds.yml", "state.yml", "hosts.yml"),
    *("coverage.yml", "blind.yml", "helpers.yml", "slo.yml"),
)


@pytest.fixture
def slos(tmp_path: Path) -> Path:
    directory = tmp_path / "slo"
    directory.mkdir()
    (directory / "mine.yaml").write_text(SLO)
    return directory


def rules(*argv: str | Path) -> int:
    return main(["rules", *map(str, argv)])


def test_rules_are_written_wherever_one_is(
    tmp_path: Path, slos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    out = tmp_path / "some/where"
    assert rules("build", "--slo", slos, "--out", out) == 0
    assert {file.name for file in out.iterdir()} == set(NAMES)
    groups = yaml.safe_load((out / "slo.yml").read_text())["groups"]
    assert [group["name"] for group in groups] == ["cephqos-slo-mine"]
    assert rules("check", "--slo", slos, "--out", out) == 0


def test_without_slos_of_ones_own_those_that_come_with_it_are_taken(tmp_path: Path) -> None:
    assert rules("build", "--out", tmp_path) == 0
    for name in NAMES:
        assert (tmp_path / name).read_text() == (ROOT / "alerts/rules" / name).read_text()


def test_the_slos_that_come_with_it_are_those_of_the_checkout_and_no_copy() -> None:
    assert cli.DEFAULT_SLOS.is_symlink()
    assert cli.DEFAULT_SLOS.resolve() == ROOT / "alerts/slo"


def test_alertmanagers_configuration_is_written_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, config = tmp_path / "rules", tmp_path / "am/alertmanager.yml"
    argv = ("--out", out, "--alertmanager", config, "--webhook", "http://example.com:1")
    assert rules("build", *argv) == 0
    assert "http://example.com:1/critical" in config.read_text()
    assert rules("check", *argv) == 0
    assert str(config) in capsys.readouterr().out


def test_in_a_checkout_the_committed_files_are_looked_at_wherever_one_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir("/")
    assert rules("check") == 0
    said = capsys.readouterr().out
    assert str(ROOT / "alerts/rules/qos.yml") in said
    assert str(ROOT / "alerts/alertmanager/alertmanager.yml") in said


def test_what_is_missing_or_was_changed_is_named_and_the_status_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rules("build", "--out", tmp_path) == 0
    (tmp_path / "qos.yml").unlink()
    with (tmp_path / "state.yml").open("a") as file:
        file.write("# by hand\n")
    assert rules("check", "--out", tmp_path) == 1
    said = capsys.readouterr().err
    assert said.startswith("cephqos: not what cephqos and the SLOs give: ")
    assert str(tmp_path / "qos.yml") in said
    assert str(tmp_path / "state.yml") in said
    assert "recording.yml" not in said
    assert said.count("\n") == 1


def test_a_file_that_nothing_gives_any_more_is_out_of_date_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prometheus reads `*.yml`. Rules and a configuration of someone else stay."""
    assert rules("build", "--out", tmp_path) == 0
    own, other = tmp_path / "own.yml", tmp_path / "alertmanager.yml"
    own.write_text("groups: []\n")
    assert rules("build", "--out", tmp_path, "--alertmanager", other) == 0
    (tmp_path / "binary.yml").write_bytes(b"\xff\xfe")
    capsys.readouterr()
    argv = ("--no-slo", "--out", tmp_path)
    assert rules("check", *argv) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"cephqos: not what cephqos and the SLOs give: {tmp_path}/slo.yml (")
    assert rules("build", *argv) == 0
    assert f"  {tmp_path}/slo.yml\n" in capsys.readouterr().out
    assert not (tmp_path / "slo.yml").exists()
    assert rules("check", *argv) == 0
    assert own.exists()
    assert other.exists()


def test_the_rules_for_loki_of_an_earlier_build_stay(tmp_path: Path) -> None:
    logs = tmp_path / "logs.yml"
    assert rules("build", "--out", tmp_path, "--loki", logs) == 0
    assert rules("build", "--out", tmp_path) == 0
    assert logs.exists()
    assert rules("check", "--out", tmp_path) == 0


def test_rules_that_are_evaluated_more_often_say_the_same(tmp_path: Path, slos: Path) -> None:
    once, often = tmp_path / "once", tmp_path / "often"
    assert rules("build", "--slo", slos, "--out", once) == 0
    argv = ("--slo", slos, "--out", often, "--evaluations-per-scrape", "5")
    assert rules("build", *argv) == 0
    for file in once.iterdir():
        text = (often / file.name).read_text().replace("interval: 3s\n", "interval: 15s\n")
        assert text == file.read_text()
    assert rules("check", *argv) == 0


def test_rules_of_other_slos_are_out_of_date(tmp_path: Path, slos: Path) -> None:
    assert rules("build", "--slo", slos, "--out", tmp_path) == 0
    assert rules("check", "--out", tmp_path) == 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--slo", "{tmp}/none"), "no such file: {tmp}/none"),
        (("--slo", "{tmp}/empty"), "{tmp}/empty: no *.yaml or *.yml in this directory"),
        (
            ("--slo", "{tmp}/bad.yaml"),
            "{tmp}/bad.yaml:4: slos[0].threshold: found 0.05",
        ),
        (("--out", "{tmp}/bad.yaml/below"), "{tmp}/bad.yaml/below/recording.yml: cannot be "),
        (("--time-scale", "0"), "--time-scale 0.0: expected more than 0, at most 1"),
        (("--time-scale", "nan"), "--time-scale nan: expected more than 0, at most 1"),
        (("--scrape-interval", "0.01"), "--scrape-interval 0.01: expected 0.1 to 300"),
        (("--evaluations-per-scrape", "0"), "--evaluations-per-scrape 0: expected 1 to 10"),
        (("--job", "a("), "--job a(: not a regular expression: "),
        (("--job", 'a"b'), '--job a"b: expected no quotes'),
        (("--dashboard-url", "grafana.example"), "--dashboard-url grafana.example: expected http"),
        (("--runbook-url", "javascript:alert(1)"), "--runbook-url javascript:alert(1): expected"),
        (("--webhook", "http://h:1"), "--webhook and --receivers go into the file that"),
        (("--webhook", "h:1", "--alertmanager", "{tmp}/am"), "--webhook h:1: expected a URL"),
        (("--webhook", "ftp://h", "--alertmanager", "{tmp}/am"), "--webhook ftp://h: expected"),
        (
            ("--webhook", "http://me:pw@h", "--alertmanager", "{tmp}/am"),
            "--webhook: found a user or password before @; put the receiver into the file",
        ),
    ],
)
@pytest.mark.parametrize("action", ["build", "check"])
def test_what_cannot_be_used_is_said_in_one_line_with_status_2(
    action: str,
    argv: tuple[str, ...],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.yaml").write_text(SLO.replace("0.0512", "0.05"))
    where = () if argv[0] == "--out" else ("--out", tmp_path / "out")
    assert rules(action, *(text.format(tmp=tmp_path) for text in argv), *where) == 2
    error = capsys.readouterr().err
    assert error.startswith("cephqos: " + said.format(tmp=tmp_path))
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_configuration_with_secrets_is_as_readable_as_the_file_they_came_from(
    tmp_path: Path,
) -> None:
    receivers, out = tmp_path / "receivers.yml", tmp_path / "alertmanager.yml"
    names = ("nobody", "watchdog", "critical", "warning", "info")
    receivers.write_text(yaml.safe_dump({"receivers": [{"name": name} for name in names]}))
    receivers.chmod(0o600)
    files = ("--out", tmp_path / "rules", "--alertmanager", out)
    assert rules("build", *files, "--receivers", receivers) == 0
    assert out.stat().st_mode & 0o777 == 0o600
    out.chmod(0o640)  # for Alertmanager's group: that stays
    assert rules("build", *files, "--receivers", receivers) == 0
    assert out.stat().st_mode & 0o777 == 0o640
    others = {file.stat().st_mode & 0o777 for file in (tmp_path / "rules").iterdir()}
    (tmp_path / "ordinary").write_text("")
    assert others == {(tmp_path / "ordinary").stat().st_mode & 0o777}
    assert not [file for file in tmp_path.rglob("*") if file.name.startswith((".", "tmp"))]


def test_a_folder_named_rules_beside_the_package_makes_no_checkout(tmp_path: Path) -> None:
    """As where another package of that name is installed."""
    (tmp_path / "alerts/rules").mkdir(parents=True)
    assert cli._checkout(tmp_path / "alerts") is None
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\nname = "another"\n')
    assert cli._checkout(tmp_path / "alerts") is None
    project.write_text('[project]\nname = "cephqos"\n')
    assert cli._checkout(tmp_path / "alerts") == tmp_path / "alerts"
    assert cli._checkout(ROOT / "alerts") == ROOT / "alerts"


def test_outside_of_a_checkout_a_directory_has_to_be_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "_CHECKOUT", None)
    assert rules("check") == 2
    assert capsys.readouterr().err.startswith("cephqos: --out DIR: needed")


def test_build_asks_where_to_write_in_a_checkout_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(textfile, "write", pytest.fail)
    with pytest.raises(SystemExit, match=r"^2$"):
        rules("build", "--no-slo")
    said = capsys.readouterr().err
    assert said.startswith("cephqos rules build: expected --out DIR (directory to write the rules")
    assert "`make generate`" in said


def test_what_is_out_of_date_in_a_checkout_is_renewed_by_make_generate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert rules("check", "--no-slo") == 1
    assert "slo.yml (`make generate` writes or removes them)" in capsys.readouterr().err


def test_make_generate_writes_every_file_that_check_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typed as the Makefile has it, into another folder."""
    line = next(it for it in Path("Makefile").read_text().splitlines() if "rules build" in it)
    words = [word.replace("alerts/", f"{tmp_path}/", 1) for word in line.split()[2:]]
    assert rules(*words) == 0
    assert rules("check") == 0
    compared = capsys.readouterr().out.partition("up to date\n")[2].split()
    written = {str(ROOT / "alerts" / it.relative_to(tmp_path)) for it in tmp_path.rglob("*.yml")}
    assert written == set(compared)


@pytest.mark.parametrize("url", ["https://grafana.example/d", "/d", "docs/runbooks/{page}.md"])
def test_links_may_be_urls_or_paths(url: str, tmp_path: Path) -> None:
    assert rules("build", "--dashboard-url", url, "--runbook-url", url, "--out", tmp_path) == 0
