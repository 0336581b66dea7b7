"""Settings: precedence, and that everything wrong is refused in one line that says where."""

import os
import ssl
from pathlib import Path

import pytest

from cephqos_base.errors import ConfigError
from cephqos_exporter import core_options
from cephqos_exporter.checks import check
from cephqos_exporter.cli import every_option, main, read_settings, small_web_library
from cephqos_exporter.collectors.base import DaemonCollector
from cephqos_exporter.collectors.ops import OpsCollector
from cephqos_exporter.config import Settings


def settings(
    tmp_path: Path,
    *,
    file: str | None = None,
    flags: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
) -> Settings:
    arguments: dict[str, object] = dict(flags or {})
    if file is not None:
        path = tmp_path / "exporter.yml"
        path.write_text(file)
        arguments["config.file"] = str(path)
    return read_settings(arguments, environment or {})


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(
    tmp_path: Path,
) -> None:
    file = "scrape: {timeout: 3}"
    variable = {"CEPHQOS_EXPORTER_SCRAPE_TIMEOUT": "4"}
    flag = {"scrape.timeout": "5"}
    assert settings(tmp_path)[core_options.TIMEOUT] == 10
    assert settings(tmp_path, file=file)[core_options.TIMEOUT] == 3
    assert settings(tmp_path, file=file, environment=variable)[core_options.TIMEOUT] == 4
    assert (
        settings(tmp_path, file=file, environment=variable, flags=flag)[core_options.TIMEOUT] == 5
    )


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text("log: {level: debug}")
    found = read_settings({}, {"CEPHQOS_EXPORTER_CONFIG_FILE": str(path)})
    assert found[core_options.LOG_LEVEL] == "debug"


def test_keys_may_be_nested_or_dotted_and_lists_may_be_lists(tmp_path: Path) -> None:
    file = "web.telemetry-path: /m\ndiscovery:\n  sockets: [/a, /b]\ncollector.perf.min-priority: 0"
    found = settings(tmp_path, file=file)
    assert found[core_options.TELEMETRY_PATH] == "/m"
    assert found[core_options.SOCKETS] == ("/a", "/b")


@pytest.mark.parametrize(
    "file", ["collector: {ops: false}", "collector: {ops: {enabled: false, list-at-most: 3}}"]
)
def test_a_collector_is_switched_off_by_its_name_or_by_enabled(tmp_path: Path, file: str) -> None:
    assert not settings(tmp_path, file=file)[OpsCollector.switch()]
    assert settings(tmp_path)[OpsCollector.switch()]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("scrape: {timeout: soon}", "scrape.timeout: found 'soon'; allowed: seconds, 0.05"),
        ("scrape: {timeout: 0}", "scrape.timeout: found 0; allowed: seconds, 0.05 to 600"),
        ("scrape: {timeout: true}", "scrape.timeout: found true; allowed: seconds"),
        ("scrape: {timeout: }", "scrape.timeout: found nothing; allowed: seconds"),
        ("scrape: {timeouts: 3}", "scrape.timeouts: found an unknown key; allowed: such as scrape"),
        ("colectors: {perf: true}", "colectors: found an unknown key; allowed: "),
        ("log: {level: loud}", "log.level: found 'loud'; allowed: debug, info, warn, error"),
        ("role: [osd, mon]", "role: found ['osd', 'mon']; allowed: one or more of osd, cluster"),
        ("role: []", "role: found []; allowed: one or more of"),
        ("collector: {perf: {min-priority: 2.5}}", "min-priority: found 2.5; allowed: a whole"),
        ("web: {telemetry-path: 7}", "web.telemetry-path: found 7; allowed: text"),
        ("discovery: {sockets: {a: 1}}", "discovery.sockets.a: found an unknown key"),
        ("collector: {perf: maybe}", "collector.perf: found 'maybe'; allowed: true or false"),
        ("- a", "found ['a']; allowed: a mapping of keys"),
        ("a: [", "allowed: valid YAML"),
        ("log: {level: info}\nlog: {format: json}", ":2: log: found the key twice; allowed: it"),
    ],
)
def test_a_bad_file_is_told_in_one_line_with_file_key_found_and_allowed(
    tmp_path: Path, file: str, line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(tmp_path, file=file)
    message = str(caught.value)
    assert line in message
    assert message.startswith(str(tmp_path / "exporter.yml"))
    assert "\n" not in message


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file: .*nowhere.yml"):
        read_settings({"config.file": str(tmp_path / "nowhere.yml")}, {})


def test_a_bad_variable_is_told_by_its_own_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="environment: CEPHQOS_EXPORTER_SCRAPE_TIMEOUT: found"):
        settings(tmp_path, environment={"CEPHQOS_EXPORTER_SCRAPE_TIMEOUT": "x"})
    with pytest.raises(ConfigError, match="CEPHQOS_EXPORTER_SCRAPE_TIMOUT: found an unknown"):
        settings(tmp_path, environment={"CEPHQOS_EXPORTER_SCRAPE_TIMOUT": "3"})
    settings(tmp_path, environment={"CEPHQOS_LAB": "not ours", "PATH": "/bin"})


def test_every_option_has_a_name_of_its_own_and_a_valid_default() -> None:
    known = every_option()
    assert len({option.name for option in known}) == len(known)
    assert len({option.environment for option in known}) == len(known)
    for option in known:
        assert option.parse(option.default) == option.default, option.name


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--scrape.timeout=x"], "flags: --scrape.timeout: found 'x'; allowed: seconds"),
        (
            ["--collector.perf=false"],
            "; allowed: --collector.perf or --no-collector.perf, no value",
        ),
        (["--nonsense"], "unrecognized arguments: --nonsense (see cephqos-exporter --help)"),
        (["--role=probe"], "probe.pools: found nothing; allowed: at least one pool"),
        (["--web.listen-address=9100"], "flags: --web.listen-address: found '9100'; allowed: addr"),
        (["--web.listen-address=:1", "--web.listen-address=a:99999"], "found 'a:99999'; allowed"),
        (["--web.listen-address=[::1:9100"], "--web.listen-address: found '[::1:9100'"),
        (["--web.listen-address="], "--web.listen-address: found nothing; allowed: addresses"),
        (["--web.listen-address=192.0.2.1:9100"], "found '192.0.2.1:9100'; allowed: an address of"),
        (["--web.listen-address=no-such.invalid:1"], "found 'no-such.invalid:1'; allowed: an addr"),
        (["--web.listen-address=a..b:9100"], "found 'a..b:9100'; allowed: an address of this mach"),
        (
            ["--web.telemetry-path=metrics"],
            "--web.telemetry-path: found 'metrics'; allowed: a path",
        ),
        (["--web.telemetry-path=/"], "found '/'; allowed: a path that starts with /"),
        (["--web.telemetry-path=/sd"], "found '/sd'; allowed: a path that starts with /"),
        (["--web.telemetry-path=/-/ready"], "not /, /-/healthy, /-/ready, /-/record, /sd"),
        (["--web.telemetry-path=/me trics"], "found '/me trics'; allowed: a path"),
        (["--web.telemetry-path=/metrics?x=1"], "found '/metrics?x=1'; allowed: a path"),
        (["--path.procfs=/nowhere"], "--path.procfs: found '/nowhere'; allowed: a directory with"),
        (["--path.procfs=/usr"], "--path.procfs: found '/usr'; allowed: a directory with a procfs"),
        (["--path.sysfs=/usr"], "--path.sysfs: found '/usr'; allowed: a directory with a sysfs"),
        ([f"--path.procfs=/{'p' * 300}"], "allowed: a directory with a procfs"),  # OSError
        (["--path.dev=/etc/passwd"], "--path.dev: found '/etc/passwd'; allowed: a directory"),
        (
            ["--collector.placement.excluded-cpus=first"],
            "--collector.placement.excluded-cpus: found 'first'; allowed: CPUs such as 0-1,56-57",
        ),
        (["--discovery.sockets=run/*.asok"], "discovery.sockets: found"),
        (["--qos.policy=/nonexistent.yml"], "/nonexistent.yml"),
        (["--web.config.file=/nonexistent.yml"], "no such file: /nonexistent.yml"),
        (["--colector.perf"], "did you mean --collector.perf?"),
        (
            ["--role=cluster", "--cluster.conf=/nowhere"],
            "cephqos-exporter: no such file: /nowhere (cluster.conf)",
        ),
    ],
)
def test_bad_input_ends_the_command_with_status_2_and_one_line(
    flags: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["--config.check", *flags])
    except SystemExit as exc:  # argparse's way
        status = exc.code  # type: ignore[assignment]
    assert status == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1


def test_a_value_that_only_turns_out_wrong_when_used_is_told_by_where_it_stands(
    tmp_path: Path,
) -> None:
    file = settings(tmp_path, file="web: {telemetry-path: /sd}")
    with pytest.raises(ConfigError, match=r"exporter.yml:1: web.telemetry-path: found '/sd'"):
        check(file)
    variable = settings(tmp_path, environment={"CEPHQOS_EXPORTER_WEB_TELEMETRY_PATH": "/sd"})
    with pytest.raises(ConfigError, match="environment: CEPHQOS_EXPORTER_WEB_TELEMETRY_PATH: fou"):
        check(variable)


def test_roots_that_only_the_osds_role_reads_are_not_asked_of_the_others(tmp_path: Path) -> None:
    conf = tmp_path / "ceph.conf"
    conf.touch()
    flags = {"role": "cluster", "path.procfs": "/nowhere", "cluster.conf": str(conf)}
    check(settings(tmp_path, flags=flags))


def test_a_good_configuration_passes_the_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config.check", "--scrape.timeout=3", "--no-collector.disks"]) == 0
    assert "valid" in capsys.readouterr().out


README = Path(__file__).parents[3] / "docs/install/exporter.md"


def test_the_default_port_is_where_the_documentation_says() -> None:
    assert f"port {core_options.DEFAULT_PORT}" in README.read_text()


def test_a_collector_without_help_is_a_type_error_and_no_class() -> None:
    with pytest.raises(TypeError, match="'help'"):

        class Silent(DaemonCollector[None], name="silent"):  # type: ignore[call-arg]
            """Its switch would have no help."""


@pytest.mark.parametrize("given", [{}, {"SSL_CERT_FILE": "/a/ca.pem"}])
def test_while_the_web_library_loads_it_finds_no_authorities(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with small_web_library():
        assert not ssl.create_default_context().get_ca_certs()
    assert dict(os.environ) == before
