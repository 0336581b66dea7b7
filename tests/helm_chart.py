"""The Helm chart, rendered: what its tests share."""

import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cephqos_base.version import __version__
from cephqos_stack.tools import find_tool

ROOT: Final = Path(__file__).parents[1]
HELM: Final = ROOT / "deploy" / "helm"
CHART: Final = HELM / "cephqos"
GOLDEN: Final = ROOT / "tests" / "golden" / "helm"
Document = dict[str, Any]

_FILE: Final = "file "
# The one in C is ten times as fast.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def value_sets() -> dict[str, Any]:
    """Each set of values by its name."""
    sets: dict[str, Any] = yaml.safe_load((GOLDEN / "sets.yaml").read_text(encoding="utf-8"))
    files = {name: HELM / "values" / f"{name[len(_FILE) :]}.yaml" for name in sets if _FILE in name}
    return sets | {name: yaml.safe_load(file.read_text()) for name, file in files.items()}


def run_helm(*words: str, values: object = None) -> subprocess.CompletedProcess[str]:
    tool = find_tool("helm")
    if tool is None:
        pytest.skip("helm is missing: make tools")
    given = [] if values is None else ["--values", "-"]
    return subprocess.run(
        [str(tool), *words, *given],
        input=yaml.safe_dump(values),
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )


def helm(*words: str, values: object = None) -> str:
    done = run_helm(*words, values=values)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


_WHERE: Final = ("--namespace", "rook-ceph", "--kube-version", "1.33.0")


def template(*words: str, values: object = None, chart: Path = CHART) -> str:
    return _template(words, yaml.safe_dump(values or {}), chart)


@cache
def _template(words: tuple[str, ...], values: str, chart: Path) -> str:
    given = yaml.safe_load(values)
    return helm("template", "qos", str(chart), *_WHERE, *words, values=given)


def refusal(*words: str, values: object = None, chart: Path = CHART) -> str:
    """What helm says instead of rendering."""
    done = run_helm("template", "qos", str(chart), *_WHERE, *words, values=values)
    assert done.returncode != 0
    return done.stderr


def documents(rendered: str) -> list[Document]:
    return [document for document in yaml.load_all(rendered, _LOADER) if document]


def of_kind(found: list[Document], kind: str) -> list[Document]:
    return [one for one in found if one["kind"] == kind]


def pods(found: list[Document]) -> Iterator[tuple[str, Document]]:
    for kind in ("DaemonSet", "Deployment"):
        for one in of_kind(found, kind):
            component = one["metadata"]["labels"]["app.kubernetes.io/component"]
            yield component, one["spec"]["template"]["spec"]


def flat(found: list[Document]) -> dict[tuple[str, str], str]:
    """(resource, path) to value, of everything in it. Resources are known by their last word."""
    lines: dict[tuple[str, str], str] = {}

    def walk(resource: str, path: str, value: object) -> None:
        if isinstance(value, Mapping) and value:
            for key, below in value.items():
                walk(resource, f"{path}.{key}", below)
        elif isinstance(value, list) and value:
            for number, below in enumerate(value):
                name = below.get("name", number) if isinstance(below, Mapping) else number
                walk(resource, f"{path}[{name}]", below)
        else:
            lines[resource, path] = str(value).replace(__version__, "VERSION").strip()

    for one in found:
        walk(f"{one['kind']} {one['metadata']['name'].rpartition('-')[2]}", "", one)
    return lines


Flat = Mapping[tuple[str, str], str]


def changes(default: Flat, known: Flat, after: Flat) -> Iterator[str]:
    """What is left out and added, a line each; the same in many resources is one line.

    A resource that is not there by default is compared with the first of that name.
    """
    here, usual, ever = ({resource for resource, _ in one} for one in (after, default, known))
    for sign, resources in (("-", usual - here), ("+", here - usual)):
        if resources:
            yield f"{sign} {', '.join(sorted(resources))}"
    where: dict[str, list[str]] = defaultdict(list)
    for key in sorted({*known, *after}):
        resource, path = key
        if resource not in here or known.get(key) == after.get(key):
            continue
        if resource in ever and key in known:
            where[f"- {path}: {known[key]}"].append(resource)
        if key in after:
            where[f"+ {path}: {after[key]}"].append(resource)
    for line, found in where.items():
        many = f"{len(found)} resources" if len(found) > 3 else ", ".join(found)
        yield f"{line}  ({many})"
