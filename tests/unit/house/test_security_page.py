"""What docs/internals/threats.md says of ports, options and secrets is what the programs do."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from cephqos_base.command import Parser, build_parser, load
from cephqos_exporter.cli import build_parser as exporter_parser
from cephqos_exporter.cli import every_option
from cephqos_exporter.core_options import LISTEN_ADDRESS
from cephqos_loadgen.live.endpoint import DEFAULT_LISTEN

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/internals/threats.md").read_text()
TEMPLATES = ROOT / "deploy" / "helm" / "cephqos" / "templates"
# Options with such a word take a file or the name of a secret's place.
_SECRET = re.compile(r"passw|secret|token|credential|(?<!exclude-)\bkey\b", re.IGNORECASE)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its commands, which get their options when they are first used."""
    command = getattr(parser, "command", None)
    if command is not None and isinstance(parser, Parser):
        load(command)(parser)
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


def options() -> set[str]:
    words: set[str] = set()
    for parser in (*parsers(build_parser()), exporter_parser(every_option())):
        for action in parser._actions:
            words |= {word for word in action.option_strings if word.startswith("--")}
    return words


def test_no_option_takes_a_secret() -> None:
    found = options()
    assert {"--grafana-header", "--receivers", "--web.config.file", "--listen"} <= found
    assert {word for word in found if _SECRET.search(word)} == set()


def test_tokens_come_from_the_variables_that_are_named() -> None:
    sources = [
        file
        for top in ("exporter", "loadgen", "alerts", "dashboards", "deploy")
        for file in (ROOT / top).rglob("*.py")
    ]
    used = {name for file in sources for name in re.findall(r'"([A-Z_]*TOKEN)"', file.read_text())}
    assert used == set(re.findall(r"`([A-Z_]*TOKEN)`", PAGE))


def test_what_listens_listens_where_the_table_says() -> None:
    rows = {
        row.split("|")[1].strip(): row.split("|")[2]
        for row in PAGE.splitlines()
        if row.startswith("| ")
    }
    assert LISTEN_ADDRESS.default == (":10130",)
    assert "port 10130, all addresses" in rows["the exporter"]
    assert DEFAULT_LISTEN in rows["`cephqos run`: its live metrics"]
    for script in (ROOT / "deploy" / "scale").glob("*.sh"):
        [address] = re.findall(r"address=\$\{ADDRESS:-(\S+)\}", script.read_text())
        assert f" {address} (`ADDRESS`)" in rows["`deploy/scale`: Thanos, VictoriaMetrics"]
    health = re.search(r'COLLECTOR_HEALTH, value: ":(\d+)"', (TEMPLATES / "logs.yaml").read_text())
    assert health and f"port {health[1]} of its pod" in rows["the log collector of the chart"]
    compose = [
        ROOT / "deploy" / "compose" / f"{name}.yml"
        for name in ("compose", "compose.attach", "monitoring", "common")
    ]
    text = "".join(file.read_text() for file in compose)
    assert re.findall(r"listen-address=(?!127\.0\.0\.1:)\S+", text) == []
    assert "ports:" not in text


def test_the_statement_of_what_was_not_tried_is_there_for_every_setting() -> None:
    """Neither the systemd of a host nor Kubernetes nor cephadm runs in a test."""
    for page, words in {
        "docs/install/packages.md": ("systemd of a host was not tried", "no Enterprise Linux"),
        "docs/install/rook.md": ("A real Kubernetes was not tried",),
        "docs/install/cephadm.md": ("A real cephadm was not tried",),
        "docs/install/compose.md": ("Not tried:",),
        "docs/install/scale.md": ("Mimir was not tried",),
        "docs/internals/threats.md": ("were not tried there",),
    }.items():
        text = (ROOT / page).read_text().replace("\n", " ")
        assert all(word in text for word in words), page
