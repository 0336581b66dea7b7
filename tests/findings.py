"""All findings: alerts that count OSDs, as their source has them."""

from collections.abc import Iterator
from typing import Final

from cephqos_alerts.output.build import SHARED
from cephqos_alerts.rules.findings import OsdFinding
from cephqos_alerts.rules.names import SOURCES
from cephqos_alerts.rules.source import named_expressions, read_finding
from cephqos_base import yamlfile


def _findings() -> Iterator[OsdFinding]:
    top = yamlfile.read(SOURCES / "osds.yml").entries()
    names = named_expressions(top)
    for group in top["groups"].items():
        for rule in group.entries()["rules"].items():
            yield read_finding(rule, names, SHARED)


EVERY_FINDING: Final = tuple(_findings())
