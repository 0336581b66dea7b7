"""Arguments of commands, perhaps passwords, are sent to Loki only if somebody asks for it."""

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

_CONFIG: Final = Path("deploy/collector/collector.yaml")
# What each deployment gives to the collector, if nothing else is chosen.
_GIVEN: Final = {
    "deploy/collector/collector.env": r"#COLLECTOR_AUDIT=(\w+)",
    "deploy/compose/common.yml": r"COLLECTOR_AUDIT: \$\{COLLECTOR_AUDIT:-(\w+)\}",
    "deploy/cephadm/collector.yml": r"- COLLECTOR_AUDIT=(\w+)",
    "deploy/helm/cephqos/values.yaml": r"^  audit: (\w+)",
    "docs/install/compose.md": r"\| `COLLECTOR_AUDIT` \| `(\w+)`",
}


@pytest.mark.parametrize("file", _GIVEN)
def test_no_deployment_sends_them_by_itself(file: str) -> None:
    found = re.findall(_GIVEN[file], Path(file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found and set(found) <= {"no", "false"}


def test_the_collector_sends_them_only_for_the_word_yes() -> None:
    """Also with another word, such as false, or a mistyped one."""
    text = _CONFIG.read_text(encoding="utf-8")
    conditions = re.findall(r"'(\"\$\{env:COLLECTOR_AUDIT[^']*?) and ", text)
    assert conditions == ['"${env:COLLECTOR_AUDIT:-no}" != "yes"'] * 2


def test_loki_listens_on_loopback_and_no_command_of_the_documentation_changes_that() -> None:
    loki = yaml.safe_load(Path("deploy/loki/loki.yaml").read_text(encoding="utf-8"))["server"]
    for key in ("http_listen_address", "grpc_listen_address"):
        assert loki[key] == "${LOKI_LISTEN:-127.0.0.1}"
    for page in Path("docs").rglob("*.md"):
        assert "LOKI_LISTEN=0.0.0.0" not in page.read_text(encoding="utf-8"), page
