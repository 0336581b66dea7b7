"""The YAML of a scenario, in which a value may hold variables: `${objects}`.

A value that is only a variable becomes whatever the variable is, a list too. Inside other text,
the variable's text is put in.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import yaml

from cephqos_base import yamlfile
from cephqos_base.errors import ConfigError, Described

Variables = Mapping[str, yaml.Node]

_VARIABLE = re.compile(r"\$\{(\w+)\}")
# Variables may hold variables. A longer chain goes round in circles.
_MAX_CHAIN = 10
# Characters of a value with its variables filled in: variables in variables multiply.
MAX_TEXT = 64 << 10


def load(text: str, file: str) -> "ScenarioValue":
    """The document of a scenario file; ConfigError if it is no YAML."""
    document = ScenarioValue(file=file, raw=yamlfile.parse(text, file).raw, key="")
    if document.is_null:
        document.fail("a scenario", "an empty file")
    return document


def variable_from_text(text: str) -> yaml.Node:
    """The value of `--var NAME=TEXT`: a scalar or a list, as YAML writes them."""
    try:
        node = yamlfile.compose(text, "--var")
    except ConfigError:
        return scalar(text)
    return node if text.strip() else scalar(text)


def scalar(text: str) -> yaml.Node:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioValue(yamlfile.Value):
    """A value in its place, with the variables to fill in."""

    variables: Variables = field(default_factory=dict)

    def having(self, variables: Variables) -> Self:
        """The same value, with these variables to fill in."""
        return replace(self, variables=variables)

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
                filled = self._filled(node.value)
                if filled == node.value:
                    return node
                node = yaml.ScalarNode(node.tag, filled, node.start_mark, node.end_mark)
        self.fail("variables that do not need each other", "variables that need each other")

    def _filled(self, text: str) -> str:
        parts = _VARIABLE.split(text)  # text, name, text, name, ...
        parts[1::2] = [self._variable_text(name) for name in parts[1::2]]
        if sum(map(len, parts)) > MAX_TEXT:
            limit = f"{MAX_TEXT >> 10} KiB of text"
            raise self.error(Described(f"more than {limit}"), f"at most {limit}")
        return "".join(parts)

    def _variable(self, name: str) -> yaml.Node:
        try:
            return self.variables[name]
        except KeyError:
            known = ", ".join(sorted(self.variables)) or "none"
            self.fail(f"a variable that is set ({known})", f"${{{name}}}")

    def _variable_text(self, name: str) -> str:
        node = self._variable(name)
        if not isinstance(node, yaml.ScalarNode):
            self.fail("a variable that is one word or number", f"${{{name}}}, which is a list")
        return str(node.value)
