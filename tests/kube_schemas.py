"""JSON schemas of Kubernetes, Prometheus operator, Rook, OpenShift, from the Go modules of each.

kubeconform would fetch schemas from the web. The modules have the originals, and Go checks their
hashes: the API's own description, and the definitions of custom resources.
"""

import json
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

KUBERNETES: Final = "k8s.io/kubernetes@v1.33.1"
OPERATOR: Final = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
ROOK: Final = "github.com/rook/rook@v1.15.0"
OPENSHIFT: Final = "github.com/openshift/api@v0.0.0-20240301093301-ce10821dc999"
OPERATOR_CRDS: Final = "example/prometheus-operator-crd"
ROOK_CRDS: Final = "deploy/examples/crds.yaml"
OPENSHIFT_CRDS: Final = "security/v1/0000_03_security-openshift_01_scc.crd.yaml"

# What the API takes besides what its description says.
_LOOSE: Final = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
}


# The one in C is ten times as fast.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Takes `=` as the text that it is (an operator of selectors)."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: str(node.value))


class ModuleMissing(Exception):
    """The module cannot be had here."""


def module(name: str) -> Path:
    """The folder of a Go module in Go's cache."""
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            ["go", "mod", "download", "-json", name],
            cwd=empty,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    found = json.loads(done.stdout or "{}")
    if done.returncode or "Dir" not in found:
        raise ModuleMissing(f"{name}: {found.get('Error') or done.stderr.strip()}")
    return Path(found["Dir"])


def write(directory: Path, kinds: Collection[str]) -> str:
    """Write the schemas of these kinds; where kubeconform finds them."""
    wanted = {kind.lower() for kind in kinds}
    for name, schema in (*_kubernetes(wanted), *_custom(wanted)):
        if name.split("-")[0] not in wanted:
            continue
        (directory / f"{name}.json").write_text(json.dumps(schema))
    return (
        f"{directory}/{{{{ .ResourceKind }}}}-{{{{ .Group }}}}-{{{{ .ResourceAPIVersion }}}}.json"
    )


def _kubernetes(wanted: Collection[str]) -> Iterator[tuple[str, Any]]:
    path = module(KUBERNETES) / "api" / "openapi-spec" / "swagger.json"
    definitions = json.loads(path.read_text())["definitions"] | _LOOSE
    strict = {name: _strict(schema) for name, schema in definitions.items()}
    for name, schema in definitions.items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            # kubeconform calls the core group by its version.
            group = kind["group"] or kind["version"]
            key = f"{kind['kind'].lower()}-{group}-{kind['version']}"
            if kind["kind"].lower() in wanted:
                yield key, {"definitions": strict, "$ref": f"#/definitions/{name}"}


def _custom(wanted: Collection[str]) -> Iterator[tuple[str, Any]]:
    files = [
        *sorted((module(OPERATOR) / OPERATOR_CRDS).glob("*.yaml")),
        module(ROOK) / ROOK_CRDS,
        module(OPENSHIFT) / OPENSHIFT_CRDS,
    ]
    for file in files:
        for document in yaml.load_all(file.read_text(), _Loader):
            if not document or document.get("kind") != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            if spec["names"]["kind"].lower() not in wanted:
                continue
            for version in spec["versions"]:
                schema = _strict(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                yield f"{spec['names']['kind'].lower()}-{spec['group']}-{version['name']}", schema


def _strict(schema: Any) -> Any:
    """No other keys than those that are described, unless it says that they are kept."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _strict(value) for key, value in schema.items()}
    if found.get("x-kubernetes-int-or-string") is True:
        return {"type": ["string", "integer"]}
    if found.get("nullable") is True and isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
    if isinstance(found.get("properties"), dict) and found.get("type", "object") == "object":
        kept = found.get("x-kubernetes-preserve-unknown-fields")
        if not kept and "additionalProperties" not in found:
            found["additionalProperties"] = False
    return found
