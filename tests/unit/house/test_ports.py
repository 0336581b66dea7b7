"""Every default port stands once in a table of the pages, and each way to install uses it."""

import re
from pathlib import Path

import pytest
import yaml

from cephqos_exporter.core_options import DEFAULT_PORT
from cephqos_loadgen.live.endpoint import DEFAULT_LISTEN

_ROW = re.compile(r"^\| (\d{5}) \| (.+?) \|", re.MULTILINE)
_RUN = int(DEFAULT_LISTEN.rpartition(":")[2])


def _table() -> dict[int, str]:
    return {int(port): what for port, what in _ROW.findall(Path("docs/start/faq.md").read_text())}


def test_the_table_has_the_ports_of_the_code() -> None:
    table = _table()
    assert min(table) == DEFAULT_PORT
    assert "`cephqos run`" in table[_RUN]
    assert len(table) == 4


@pytest.mark.parametrize("role", ["exporter", "cluster", "probe"])
def test_packages_chart_and_compose_use_them(role: str) -> None:
    word = {"exporter": "OSD host", "cluster": "`cluster`", "probe": "`probe`"}[role]
    (port,) = [port for port, what in _table().items() if word in what]
    packaged = Path(f"deploy/packages/conf/{role}.yml").read_text()
    assert re.search(rf"^ *listen-address: \[\":{port}\"\]", packaged, re.MULTILINE)
    chart = yaml.safe_load(Path("deploy/helm/cephqos/values.yaml").read_text())
    assert chart["osd" if role == "exporter" else role]["port"] == port
    services = yaml.safe_load(Path("deploy/compose/compose.yml").read_text())["services"]
    command = services["hosts" if role == "exporter" else role]["command"]
    assert f"--web.listen-address=127.0.0.1:{port}" in command
