"""YAML that remembers where each value stands, so that an error can name its line.

A value may hold variables, `${objects}`. One that is nothing but a variable takes whatever the
variable is, a list too; inside other text the variable's text is put in.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import yaml

from cephqos_loadgen.errors import UsageError

Variables = Mapping[str, yaml.Node]

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
# Deeper than any sensible chain of variables; a chain that is longer goes round in circles.
_MAX_CHAIN = 10


class ScenarioError(UsageError):
    """A scenario that cannot be taken: file, line, key, what was found, what is allowed."""

    def __init__(self, file: str, line: int, key: str, found: str, allowed: str) -> None:
        where = f"{file}:{line}" + (f": {key}" if key else "")
        super().__init__(f"{where}: found {found}, expected {allowed}")
        self.line = line
        self.key = key


def load(text: str, file: str) -> "Value":
    """The document of a scenario file; ScenarioError if it is no YAML."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        found = f"what cannot be read as YAML: {error.problem}"
        expected = "`key: value` or `- item`, in line with what it belongs to"
        raise ScenarioError(file, line, "", found, expected) from None
    except yaml.YAMLError as error:
        raise ScenarioError(file, 1, "", f"no YAML ({error})", "YAML") from None
    if node is None:
        raise ScenarioError(file, 1, "", "an empty file", "a scenario")
    return Value(file, node, "", {})


def variable_from_text(text: str) -> yaml.Node:
    """The value of `--var NAME=TEXT`: a scalar or a list, as YAML writes them."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        node = None
    return node or scalar(text)


def scalar(text: str) -> yaml.Node:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text)


@dataclass(frozen=True, slots=True)
class Value:
    """A value in its place. Every reader either returns what was asked for or raises."""

    file: str
    raw: yaml.Node
    key: str
    variables: Variables

    # -- places and errors ----------------------------------------------------------------------

    @property
    def line(self) -> int:
        mark = self.raw.start_mark
        return mark.line + 1 if mark else 1

    def fail(self, allowed: str, found: str | None = None) -> NoReturn:
        raise ScenarioError(self.file, self.line, self.key, found or self.shown(), allowed)

    def shown(self) -> str:
        node = self.node
        if isinstance(node, yaml.MappingNode):
            return "a mapping"
        if isinstance(node, yaml.SequenceNode):
            return "a list"
        return repr(str(node.value))

    def having(self, variables: Variables) -> "Value":
        """The same value, with these variables to fill in."""
        return Value(self.file, self.raw, self.key, variables)

    def _child(self, node: yaml.Node, key: str) -> "Value":
        return Value(self.file, node, key, self.variables)

    # -- variables ------------------------------------------------------------------------------

    @property
    def node(self) -> yaml.Node:
        """The node with its variables filled in."""
        node = self.raw
        for _ in range(_MAX_CHAIN):
            if not isinstance(node, yaml.ScalarNode) or "${" not in node.value:
                return node
            alone = _VARIABLE.fullmatch(node.value)
            if alone:
                node = self._variable(alone[1])
            else:
                filled = _VARIABLE.sub(lambda m: self._variable_text(m[1]), node.value)
                if filled == node.value:
                    return node
                node = yaml.ScalarNode(node.tag, filled, node.start_mark, node.end_mark)
        raise ScenarioError(
            self.file, self.line, self.key, "variables that need each other", "an end to them"
        )

    def _variable(self, name: str) -> yaml.Node:
        try:
            return self.variables[name]
        except KeyError:
            known = ", ".join(sorted(self.variables)) or "none"
            raise ScenarioError(
                self.file, self.line, self.key, f"${{{name}}}", f"a variable that is set ({known})"
            ) from None

    def _variable_text(self, name: str) -> str:
        node = self._variable(name)
        if not isinstance(node, yaml.ScalarNode):
            self.fail("a variable that is one word or number", f"${{{name}}}, which is a list")
        return str(node.value)

    # -- collections ----------------------------------------------------------------------------

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    def entries(self) -> dict[str, "Value"]:
        """A mapping with keys of any name."""
        node = self.node
        if not isinstance(node, yaml.MappingNode):
            self.fail("a mapping")
        found: dict[str, Value] = {}
        for key_node, value_node in node.value:
            name = str(key_node.value)
            path = f"{self.key}.{name}" if self.key else name
            if name in found:
                line = key_node.start_mark.line + 1 if key_node.start_mark else 1
                raise ScenarioError(self.file, line, path, "the key twice", "it once")
            found[name] = self._child(value_node, path)
        return found

    def table(self, allowed: Sequence[str], required: Sequence[str] = ()) -> dict[str, "Value"]:
        """A mapping with keys of this list only."""
        found = self.entries()
        for name, value in found.items():
            if name not in allowed:
                near = difflib.get_close_matches(name, allowed, 1)
                hint = f"{near[0]} (one of {', '.join(allowed)})" if near else ", ".join(allowed)
                raise ScenarioError(self.file, value.line, value.key, f"key {name!r}", hint)
        for name in required:
            if name not in found:
                self.fail(f"the key {name!r}", f"keys {', '.join(found) or 'none'}")
        return found

    def items(self) -> list["Value"]:
        """A list; one value alone is a list of one."""
        node = self.node
        if not isinstance(node, yaml.SequenceNode):
            return [self]
        return [self._child(item, f"{self.key}[{i}]") for i, item in enumerate(node.value)]

    # -- scalars --------------------------------------------------------------------------------

    def text(self, pattern: str = "", allowed: str = "a word or number") -> str:
        node = self.node
        if not isinstance(node, yaml.ScalarNode):
            self.fail(allowed)
        value = str(node.value)
        if pattern and not re.fullmatch(pattern, value):
            self.fail(allowed)
        return value

    def choice(self, allowed: Sequence[str]) -> str:
        value = self.text(allowed=f"one of {', '.join(allowed)}")
        if value not in allowed:
            self.fail(f"one of {', '.join(allowed)}")
        return value

    def integer(self, least: int = 0, most: int = 1 << 40) -> int:
        allowed = f"a whole number from {least} to {most}"
        text = self.text(allowed=allowed)
        if not re.fullmatch(r"-?\d[\d_]*", text) or not least <= int(text) <= most:
            self.fail(allowed)
        return int(text)

    def number(self, least: float, most: float) -> float:
        allowed = f"a number from {least:g} to {most:g}"
        text = self.text(allowed=allowed)
        if not re.fullmatch(r"-?\d+(\.\d*)?", text) or not least <= float(text) <= most:
            self.fail(allowed)
        return float(text)

    def boolean(self) -> bool:
        return self.choice(("true", "false")) == "true"

    def size(self, least: int = 1) -> int:
        """Bytes: 4096, 4K, 1M, 10G."""
        allowed = "a size such as 4096, 4K, 1M or 10G"
        match = re.fullmatch(r"(\d+) ?([KMGT]?)(i?B)?", self.text(allowed=allowed), re.IGNORECASE)
        if not match:
            self.fail(allowed)
        size = int(match[1]) * _UNITS[match[2].upper()]
        if size < least:
            self.fail(f"{allowed}, at least {least}")
        return size

    def seconds(self) -> float:
        """A length of time: 90, 90s, 1.5m, 200ms."""
        allowed = "a time such as 200ms, 30s, 5m or 1h"
        match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(ms|s|m|h|)", self.text(allowed=allowed))
        if not match:
            self.fail(allowed)
        return float(match[1]) * _SECONDS[match[2]]
