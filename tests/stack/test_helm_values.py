"""Sets of values as platform teams give them: rendered, compared, linted, checked by schemas."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from tests import kube_schemas
from tests.helm_chart import (
    CHART,
    GOLDEN,
    changes,
    documents,
    flat,
    helm,
    pods,
    template,
    value_sets,
)

from cephqos_exporter.cli import build_parser, every_option, read_settings
from cephqos_stack.tools import find_tool

pytestmark = pytest.mark.full

SETS = value_sets()


@pytest.fixture(scope="module")
def rendered() -> dict[str, str]:
    """What helm makes of each set; two at a time."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        found = pool.map(lambda values: template(values=values), [{}, *SETS.values()])
    return dict(zip(["default", *SETS], found, strict=True))


def _shown(text: str) -> dict[tuple[str, str], str]:
    """Of rules, routes and dashboards, which other tests compare, what values can change."""
    found = documents(text)
    for one in found:
        if one["kind"] == "PrometheusRule":
            one["spec"] = _of_alerts(one["spec"])
        elif one["kind"] == "AlertmanagerConfig":
            one["spec"] = {"receivers": [it for it in one["spec"]["receivers"] if len(it) > 1]}
        elif any(key.endswith(".json") for key in one.get("data", {})):
            one["data"] = "a dashboard"
    return flat(found)


def _of_alerts(spec: Any) -> dict[str, Any]:
    alerts = [rule for group in spec["groups"] for rule in group["rules"] if "alert" in rule]
    if not alerts:
        return {}
    return {
        part: {
            key: value if part == "labels" else value.partition("#")[0].partition("?")[0]
            for key, value in alerts[0][part].items()
            if all(key in alert[part] for alert in alerts) and key not in ("summary", "description")
        }
        for part in ("labels", "annotations")
    }


def test_each_set_changes_what_was_looked_at(
    rendered: dict[str, str], request: pytest.FixtureRequest
) -> None:
    default = _shown(rendered["default"])
    known: dict[tuple[str, str], str] = {}
    parts = []
    for name in rendered:
        after = _shown(rendered[name])
        found = list(changes(default if known else {}, known, after))
        assert found, f"{name} changes nothing"
        parts.append("\n".join([f"## {name}", *found]))
        resources = {resource for resource, _ in known}
        known = known | {key: text for key, text in after.items() if key[0] not in resources}
    text = "\n\n".join(parts) + "\n"
    golden = GOLDEN / "changes.txt"
    if request.config.getoption("--regenerate"):
        golden.write_text(text)
    assert text == golden.read_text(), f"look at it, then pytest {__file__} --regenerate"


def test_every_value_is_in_a_set() -> None:
    """What roles have in common, in one of them."""
    assert len(SETS) > 30  # as docs/install/rook.md says
    given = {path for values in SETS.values() for path in _paths(values, {})}
    known = yaml.safe_load((CHART / "values.yaml").read_text())
    assert _paths(known, known) - given == set()


_ROLE = re.compile(r"^(?:pods|osd|cluster|probe|logs)\.")
_WHOLE = ("resources", "labels", "updateStrategy")  # described elsewhere, or of any keys


def _paths(values: Any, defaults: Any, above: str = "") -> set[str]:
    """Paths of all values that have none below; with defaults, of maps as well."""
    found = set()
    for key, value in values.items():
        path = _ROLE.sub("role.", f"{above}{key}")
        if isinstance(value, dict) and value and key not in _WHOLE:
            found |= _paths(value, defaults, f"{above}{key}.") | (set() if defaults else {path})
        else:
            found.add(path)
    return found


def test_lint_has_nothing_to_say() -> None:
    with ThreadPoolExecutor(max_workers=2) as pool:
        said = list(
            pool.map(
                lambda values: helm("lint", "--strict", str(CHART), values=values), SETS.values()
            )
        )
    assert all("0 chart(s) failed" in one for one in said)
    assert not any("[INFO]" in one or "[WARNING]" in one for one in said)


@pytest.fixture(scope="module")
def schemas(rendered: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where kubeconform finds them."""
    kinds = {one["kind"] for text in rendered.values() for one in documents(text)}
    try:
        return kube_schemas.write(tmp_path_factory.mktemp("schemas"), kinds)
    except kube_schemas.ModuleMissing as missing:
        pytest.skip(str(missing))


def judged(schemas: str, text: str) -> Any:
    tool = find_tool("kubeconform")
    if tool is None:
        pytest.skip("kubeconform is missing: make tools")
    argv = [str(tool), "-strict", "-summary", "-output", "json", "-schema-location", schemas, "-"]
    done = subprocess.run(
        argv, input=text, capture_output=True, text=True, check=False, timeout=540
    )
    return json.loads(done.stdout)


def test_everything_fits_the_schemas_of_kubernetes_the_operator_rook_and_openshift(
    rendered: dict[str, str], schemas: str
) -> None:
    # Once what all sets have in common, which is most of it.
    every = {json.dumps(one) for text in rendered.values() for one in documents(text)}
    told = judged(schemas, "\n---\n".join(sorted(every)))
    assert told["summary"]["valid"] == len(every), told["resources"][:3]
    # It can fail: of a core kind, and of a custom one.
    text = rendered["default"]
    for right, wrong in (("containerPort:", "containerPrt:"), ("podSelector:", "podSelectr:")):
        assert judged(schemas, text.replace(right, wrong))["summary"]["invalid"] > 0


def test_names_are_given_once_and_every_argument_is_one_of_the_exporter(
    rendered: dict[str, str],
) -> None:
    for name, text in rendered.items():
        found = documents(text)
        named = [
            (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
            for one in found
        ]
        assert sorted(set(named), key=str) == sorted(named, key=str), name
        for component, pod in pods(found):
            if component == "logs":  # another program
                continue
            parsed = vars(build_parser(every_option()).parse_args(pod["containers"][0]["args"]))
            assert read_settings(parsed, {}), name
            volumes = {volume["name"] for volume in pod["volumes"]}
            every = [*pod.get("initContainers", []), *pod["containers"]]
            mounted = {m["name"] for one in every for m in one.get("volumeMounts", [])}
            assert mounted <= volumes, name
