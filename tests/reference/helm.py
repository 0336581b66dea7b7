"""The values of the Helm chart and its README, from the comments of its values.yaml."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from tests.reference.tables import code, page, table

CHART: Final = Path("deploy/helm/cephqos")
README: Final = CHART / "README.md"
_KEY: Final = re.compile(r"(?P<indent> *)(?P<key>[\w.]+):(?P<rest>.*)")
_TRAILING: Final = re.compile(r"\s#\s(?P<said>.*)$")
_HEAD: Final = ("value", "default", "what it is")
# Maps that are a default as a whole.
_WHOLE: Final = ("resources", "updateStrategy", "labels")


@dataclass(frozen=True, slots=True)
class Value:
    """One value, or a map that is described as a whole."""

    path: str
    default: Any
    said: str


def values() -> Iterator[Value]:
    """Each value in the order of the file, with the comment above it or behind it."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    above: list[str] = []
    inside: list[tuple[int, str]] = []
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            above.append(line.strip().removeprefix("#").strip())
            continue
        if found := _KEY.fullmatch(line):
            indent = len(found["indent"])
            inside = [(at, key) for at, key in inside if at < indent] + [(indent, found["key"])]
            path = [key for _, key in inside]
            trailing = _TRAILING.search(found["rest"])
            said = " ".join([*above, *([trailing["said"]] if trailing else [])])
            yield Value(".".join(path), _at(document, path), said)
        above = []


def _at(document: Any, path: list[str]) -> Any:
    for key in path:
        document = document[key] if isinstance(document, dict) else None
    return document


def _rows() -> Iterator[tuple[str, str, str]]:
    whole: str | None = None
    for value in values():
        if whole and value.path.startswith(f"{whole}."):
            continue
        whole = value.path if value.path.rpartition(".")[2] in _WHOLE else None
        if whole or not value.default or not isinstance(value.default, dict):
            yield code(value.path), _default(value.default), value.said
        elif value.said:
            yield code(value.path), "", value.said


def _default(value: Any) -> str:
    if isinstance(value, str):
        return code(value)
    return "" if value is None else code(json.dumps(value))


_SAID: Final = """
Other keys are refused. If a value has no text here, Kubernetes or the Prometheus operator has one
of that name and explains it.
"""


_HOW: Final = r"""
Values below `pods` are for the pods of all roles.

- **Alerts.** `rules.config`: names of severities, labels, alerts to leave out. First commands of
    alerts are for Rook's toolbox.
- **Alertmanager of the operator.** `alertmanagerConfig`, with a receiver `critical` and one
    `warning`. Alerts then have the label `namespace`.
- **Argo CD** takes the path `deploy/helm/cephqos`.
- **Flux** drops symbolic links, so it needs the packaged chart: `make chart`, then `helm push` to
    your registry.

**TLS and passwords.** Put the [web configuration](../install/exporter.md#http) and its certificates
into secrets:

```sh
kubectl -n rook-ceph create secret generic qos-web \
  --from-file=web-config.yml --from-file=tls.crt --from-file=tls.key
helm upgrade cephqos deploy/helm/cephqos --namespace rook-ceph --reset-then-reuse-values \
  --set 'web.secrets={qos-web}' --set monitors.tlsConfig.insecureSkipVerify=true
```

`ca` and `serverName` in `monitors.tlsConfig` are better. With passwords or client certificates also
set `web.authentication=true` and `monitors.basicAuth` or `monitors.tlsConfig`.
"""


def chart_values() -> str:
    said = f"\nWhat the chart of [Rook](../install/rook.md) takes. {_SAID.strip()}\n"
    return page("Values of the Helm chart", said, _HOW, table(_HEAD, _rows()))


def readme() -> str:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    version = about["kubeVersion"].removesuffix("-0")
    return page(
        f"{about['name']} {about['version']}",
        f"""
{about["description"]}. It needs Kubernetes {version}.

The documentation of cephqos has the installation on its page *Rook*. `make chart` in the repository
writes this chart to `dist/` as one file. Of the chart's folder in the repository, a copy without
symbolic links has no rules and no dashboards, and refuses to be installed with them.

## Values
{_SAID}""",
        table(_HEAD, _rows()),
    )
