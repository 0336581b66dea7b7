"""Every key of every YAML file that a user writes, as its reader asks for it.

`keys/*.yaml` holds one sentence for each key, and samples that use all of them. The readers read
the samples, and what they allow is recorded. A key without a sentence, or a sentence without a
key, is an error. What is found are keys that readers ask for with `Value.table`.
"""

import contextlib
import functools
import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from tests.reference.tables import code, page, table

from cephqos_alerts.output.alertmanager import parse_receivers
from cephqos_alerts.rules.changes import parse_changes
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_alerts.slo.spec import parse_slos
from cephqos_base import yamlfile
from cephqos_base.errors import ConfigError
from cephqos_base.yamlfile import Value
from cephqos_exporter.qos.policy import parse_policy
from cephqos_exporter.web.config import _Reader
from cephqos_loadgen.engines.fio_options import OPTIONS
from cephqos_loadgen.plan.words import size
from cephqos_loadgen.scenario.parse import parse

_KEYS: Final = Path(__file__).parent / "keys"
READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "scenario": lambda text: parse(text, "sample"),
    "policy": lambda text: parse_policy(yamlfile.parse(text, "sample")),
    "slo": lambda text: parse_slos(yamlfile.parse(text, "sample")),
    "web": lambda text: _Reader(_KEYS).web(yamlfile.parse(text, "sample")),
    "changes": lambda text: parse_changes(yamlfile.parse(text, "sample"), RuleSettings()),
    "receivers": lambda text: parse_receivers(yamlfile.parse(text, "sample")),
}
# How a value is read, and what its type is called.
_TYPES: Final = {
    "table": "mapping",
    "entries": "mapping",
    "sequence": "list",
    "items": "list",
    "choice": "word",
    "integer": "whole number",
    "number": "number",
    "boolean": "boolean",
    "size": "size",
    "seconds": "time",
    "string": "text",
    "text": "text",
    "known": "mapping",
    "one_of": "word",
}
_HEAD: Final = ("key", "type", "default", "allowed", "what it is")
# What is allowed here depends on other values of the file: the sentence says it.
_DEPENDING: Final = frozenset((
    "phases.start.after", "phases.start.with", "phases.against", "find.axis", "find.phase",
    "capacity.total", "phases.osd_bench.total", "phases.rados_bench.in_flight", "slos.threshold",
))  # fmt: skip


class Asked:
    """What readers asked of values: the keys that they allow, and the forms of each."""

    def __init__(self, same: Mapping[str, str] | None = None) -> None:
        self.keys: dict[str, bool] = {}  # whether it is required
        self.forms: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
        self._same = same or {}
        self._depth = 0

    def path(self, key: str) -> str:
        path = re.sub(r"\[\d+\]", "", key)
        for here, there in self._same.items():
            if path.startswith(f"{here}."):
                path = there + path.removeprefix(here)
        return path

    def note(self, method: str, value: Value, given: Mapping[str, Any]) -> None:
        path = self.path(value.key)
        if method == "table" and path not in self._same:
            for name in given["allowed"]:
                full = f"{path}.{name}" if path else name
                self.keys[full] = self.keys.get(full, False) or name in given["required"]
        if method == "items" and not value.is_list:
            return
        words, allowed = _TYPES[method], _allowed(method, given)
        if value.key.endswith("]"):
            words = f"list of {words}"
        self.forms[path].setdefault((words, "" if path in _DEPENDING else allowed))

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        before = {name: getattr(Value, name) for name in _TYPES}
        for name, method in before.items():
            setattr(Value, name, self._noting(name, method))
        try:
            yield
        finally:
            for name, method in before.items():
                setattr(Value, name, method)

    def _noting(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(method)

        @functools.wraps(method)
        def noting(value: Value, *args: Any, **kwargs: Any) -> Any:
            given = signature.bind(value, *args, **kwargs)
            given.apply_defaults()
            self._depth += 1
            try:
                found = method(value, *args, **kwargs)
            finally:
                self._depth -= 1
            if not self._depth:  # `choice` calls `text`: the outer one says more
                self.note(name, value, given.arguments)
            return found

        return noting


def _allowed(method: str, given: Mapping[str, Any]) -> str:
    allowed = given.get("allowed", "")
    if method == "one_of":
        return str(given["what"])
    if method == "choice":
        return ", ".join(map(str, allowed))
    if _TYPES[method] in ("mapping", "list") or allowed in ("a word or number", "text"):
        return ""
    if method == "boolean":
        return "true or false"
    if method == "seconds":
        return "above 0" if given["above_zero"] else ""
    if method == "size":
        return f"at least {size(given['least'])}" if given["least"] > 1 else ""
    if allowed or method not in ("integer", "number"):
        return str(allowed)
    if given["most"] == 1 << 40:
        return f"{given['least']} or more"
    form = "g" if method == "number" else "d"
    return f"{given['least']:{form}} to {given['most']:{form}}"


def _forms(forms: Mapping[tuple[str, str], None]) -> tuple[str, str]:
    """Types and allowed values. A reader may first look at the bare text, or at the whole list."""
    words = dict.fromkeys(words for words, _ in forms)
    for bare in ("text", "list of text", "list"):
        told = any(it == bare and allowed for it, allowed in forms)
        others = [it for it in words if it != bare and (bare != "list" or it.startswith(bare))]
        if others and not told:
            words.pop(bare, None)
    every = dict.fromkeys(allowed for _, allowed in forms if allowed)
    return " or ".join(words), "; ".join(every)


def written(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((_KEYS / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def ask(name: str, about: Mapping[str, Any]) -> Asked:
    asked = Asked(about.get("same"))
    with asked.recording():
        for sample in about["samples"]:
            READERS[name](yaml.safe_dump(sample, sort_keys=False))
    return asked


def faults(name: str, about: Mapping[str, Any]) -> list[str]:
    """What keys/NAME.yaml lacks, has too much, or has otherwise than the reader."""
    keys, asked = about["keys"], ask(name, about)
    found = [f"{key}: has no sentence" for key in asked.keys.keys() - keys.keys()]
    found += [f"{key}: no reader allows it" for key in keys.keys() - asked.keys.keys()]
    found += [f"{key}: no sample uses it" for key in asked.keys.keys() - asked.forms.keys()]
    found += [
        f"{key}: is required, and has a default"
        for key, required in asked.keys.items()
        if required and isinstance(keys.get(key), list)
    ]
    return sorted(found)


def _rows(name: str, about: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    asked = ask(name, about)
    for key, entry in about["keys"].items():
        default, sentence = entry if isinstance(entry, list) else ("", entry)
        default = "required" if asked.keys.get(key) else str(default)
        words, allowed = _forms(asked.forms[key])
        yield code(key), words, default, allowed, sentence


def _fio_rows() -> Iterator[tuple[str, str]]:
    """What each reader refuses tells what it allows: none of them takes a mapping."""
    for name, read in OPTIONS.items():
        try:
            read(yamlfile.parse("{}", "sample"))
        except ConfigError as exc:
            yield code(name), str(exc).partition("; allowed: ")[2]


_INTRODUCTION: Final = """
Every key of every YAML file that you write. [Helm values](helm.md) have a page of their own. A dot
is one level: `lab.osds` is `osds` below `lab`. Of a list, the keys are those of its entries.
"""


def files() -> str:
    parts = [_INTRODUCTION]
    for name in READERS:
        about = written(name)
        head = f"## {about['title']}\n\n{about['about']}\n"
        parts.append(head + table(_HEAD, _rows(name, about)))
        if name == "scenario":
            parts.append(
                "### Options of fio\n\nKeys of `options` of `fio`. They mean what they mean in fio,"
                " which has the defaults too.\n" + table(("key", "allowed"), _fio_rows())
            )
    parts.append(
        "## Configuration of the exporter\n\n`cephqos-exporter --config.file FILE`. Its keys are"
        " the [options](exporter.md).\n"
    )
    return page("Files and their keys", *parts)
