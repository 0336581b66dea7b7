"""The Helm chart without Helm: its values, its schema, its package. tests/stack renders it."""

import json
import re
import runpy
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tests.reference.helm import values

from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules import changes
from cephqos_alerts.rules.rule import Alert
from cephqos_alerts.rules.runbooks import ALERTS
from cephqos_base.version import __version__

from .programs import DEPLOY

CHART = DEPLOY / "helm" / "cephqos"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def parts(schema: Any) -> Iterator[Any]:
    """A schema and those that it refers to."""
    yield schema
    for below in [*schema.get("allOf", []), *([schema] if "$ref" in schema else [])]:
        if "$ref" in below:
            yield from parts(SCHEMA["definitions"][below["$ref"].rpartition("/")[2]])


def unknown(given: Any, schema: Any, above: str = "") -> Iterator[str]:
    """Keys that the schema does not describe, and maps that take any key."""
    described: dict[str, Any] = {}
    for part in parts(schema):
        described |= part.get("properties", {})
    if not described:
        return
    if not any(part.get("additionalProperties") is False for part in parts(schema)):
        yield f"{above} takes any key"
    for key, value in given.items():
        if key not in described:
            yield f"{above}.{key}"
        elif isinstance(value, dict):
            yield from unknown(value, described[key], f"{above}.{key}")


def test_the_schema_knows_every_value_and_no_other() -> None:
    # Helm gives `global` to every chart; others put theirs into it.
    assert list(unknown(VALUES, SCHEMA)) == [".global takes any key"]
    pod = set(SCHEMA["definitions"]["pod"]["properties"])
    assert set(VALUES["pods"]) == pod
    for role in ("pods", "osd", "cluster", "probe", "logs"):
        [allowed] = SCHEMA["properties"][role]["patternProperties"]
        assert set(re.sub(r"[^\w|]", "", allowed).split("|")) == pod
        own = set(SCHEMA["properties"][role].get("properties", {}))
        assert own - pod <= set(VALUES[role])


def test_templates_read_every_value() -> None:
    texts = "".join(file.read_text() for file in (CHART / "templates").iterdir())
    names = {value.path.rpartition(".")[2] for value in values()}
    # What Kubernetes reads, and what is passed on as a whole.
    names -= {"requests", "limits", "type", "rollingUpdate", "grafana_dashboard"}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", texts)] == []


def test_the_version_is_that_of_the_program() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["version"] == about["appVersion"] == __version__


def test_the_package_has_real_files_and_is_the_same_each_time(tmp_path: Path) -> None:
    package = runpy.run_path(str(DEPLOY / "helm" / "package.py"))["package"]
    made = package(tmp_path)
    assert made.name == f"cephqos-{__version__}.tgz"
    assert package(tmp_path / "again").read_bytes() == made.read_bytes()
    with tarfile.open(made) as archive:
        entries = {entry.name: entry for entry in archive}
    assert all(entry.isfile() and entry.mtime == 0 for entry in entries.values())
    for folder, source, ending in (
        ("rules", "alerts/rules", "yml"),
        ("dashboards", "dashboards/cephqos_dashboards/generated", "json"),
    ):
        originals = {file.name for file in (DEPLOY.parent / source).glob(f"*.{ending}")}
        packed = {path.rpartition("/")[2] for path in entries if f"/files/{folder}/" in path}
        assert packed == originals
        assert originals
    assert {"cephqos/LICENSE", "cephqos/README.md", "cephqos/files/alertmanager.yml"} <= set(
        entries
    )


def test_the_chart_refuses_the_labels_that_rules_build_refuses() -> None:
    template = (CHART / "templates/prometheusrule.yaml").read_text()
    [listed] = re.findall(r'define "cephqos.ownLabels" -}}\n(.+)\n', template)
    assert listed.split() == sorted(changes.LABELS)


def test_the_chart_knows_by_name_the_alerts_that_it_does_not_have() -> None:
    """A file for `rules build` may leave them out."""
    template = (CHART / "templates/prometheusrule.yaml").read_text()
    [listed] = re.findall(r'\$alerts := splitList " " "([^"]+)"', template)
    texts = "".join(file.read_text() for file in Path("alerts/rules").glob("*.yml"))
    here = set(re.findall(r"^ +- alert: (\w+)$", texts, re.MULTILINE))
    assert set(listed.split()) == set(ALERTS) - here


def test_the_chart_leaves_out_the_alerts_that_duplicates_no_leaves_out() -> None:
    template = (CHART / "templates" / "prometheusrule.yaml").read_text()
    [listed] = re.findall(r"\$duplicates := ternary \(list ([^)]+)\)", template)
    rules = (rule for groups in FILES.values() for group in groups for rule in group.rules)
    found = {rule.name for rule in rules if isinstance(rule, Alert) and rule.duplicates}
    assert set(listed.replace('"', "").split()) == found
