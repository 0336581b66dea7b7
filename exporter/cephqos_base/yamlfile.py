"""The YAML reader for every file of ours: each value knows its file, line and key.

A file is first read as a whole (`read`, `parse`), within limits, so that a deep or huge file,
or one whose aliases multiply, does no harm. Then each value is asked for what it should be;
whatever is wrong raises ConfigError, one line.

    top = read(path).table(allowed=("version", "targets"), required=("version",))
    version = top["version"].integer(1, 1)
"""

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn, Self, TypeVar

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import Resolver
from yaml.scanner import Scanner

from cephqos_base import textfile, units
from cephqos_base.errors import MISSING, UNKNOWN_KEY, ConfigError, Described, NoSuchFile, UsageError
from cephqos_base.hints import nearest

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 32
# An alias counts as all values that it stands for. To read so many takes 0.1 s.
MAX_VALUES: Final = 20_000
MAX_KEY: Final = 1024  # characters: YAML's own limit, which it does not apply to keys after `? `
MAX_SIZE: Final = 1 << 60
MAX_SECONDS: Final = 365 * units.DAY
_MAX_SHOWN: Final = 100  # values of a list in an error

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_PLAIN_TAGS: Final = frozenset(
    _TAG + kind
    for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value", "map", "seq")
)
_TRUE: Final = frozenset(("true", "yes", "on"))
_FALSE: Final = frozenset(("false", "no", "off"))
Word = TypeVar("Word", bound=str)
_INTEGER: Final = re.compile(r"[-+]?\d[\d_]*", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?(\d[\d_]*(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)


def read(path: Path) -> "Value":
    """The document of a file; ConfigError if it cannot be read or is not YAML."""
    try:
        with textfile.regular_file(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError as exc:
        raise NoSuchFile(path) from exc
    except OSError as exc:
        found = Described(textfile.found_instead(exc))
        raise ConfigError(where=path, key="", found=found, allowed="a readable file") from exc
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        if len(raw) <= MAX_BYTES:
            line = raw[: exc.start].count(b"\n") + 1
            found = Described(f"a byte that is no UTF-8, 0x{raw[exc.start]:02x}")
            allowed = "YAML in UTF-8"
            raise ConfigError(where=path, line=line, key="", found=found, allowed=allowed) from exc
        text = " " * (MAX_BYTES + 1)  # cut inside of a character: `parse` refuses the length
    return parse(text, str(path))


def parse(text: str, file: str) -> "Value":
    """The document of a text; `file` is what errors call it. An empty text is an empty value."""
    if len(text) > MAX_BYTES:
        found = Described(f"more than {MAX_BYTES >> 10} KiB")
        raise ConfigError(where=file, key="", found=found, allowed="a smaller file")
    return Value(file=file, raw=compose(text, file), key="")


def compose(text: str, file: str) -> yaml.Node:
    """The bare nodes of a text, within the limits."""
    # Checked before parsing, as libyaml and PyYAML's own parser disagree about its line.
    unprintable = Reader.NON_PRINTABLE.search(text)
    if unprintable is not None:
        line = text.count("\n", 0, unprintable.start()) + 1
        raise _invalid(file, line, Described(f"the character U+{ord(unprintable[0]):04X}"))
    try:
        loader = _BoundedLoader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        last = text.count("\n") + 1  # libyaml's end of the file is one line further
        line = min(mark.line + 1, last) if mark else 1
        raise _invalid(file, line, Described(_problem(exc))) from None
    if node is None:
        return yaml.ScalarNode(f"{_TAG}null", "")
    _check_nodes(file, node, "", set())
    return node


def _check_nodes(file: str, node: yaml.Node, path: str, seen: set[int]) -> None:
    """Refuse repeated keys, long keys and NUL in the whole file, not only in what is read."""
    if isinstance(node, yaml.ScalarNode):
        if "\0" in node.value:  # written as an escape
            raise _invalid(file, node.start_mark.line + 1, Described("the character U+0000"))
        return
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            _check_nodes(file, item, f"{path}[{i}]", seen)
    elif isinstance(node, yaml.MappingNode):
        names = set()
        for key, value in node.value:
            name = str(key.value)
            if len(name) > MAX_KEY:
                found, line = Described(f"a key of {len(name)} characters"), key.start_mark.line + 1
                allowed = f"keys of up to {MAX_KEY}"
                raise ConfigError(where=file, line=line, key=path, found=found, allowed=allowed)
            full = f"{path}.{name}" if path else name
            if name in names and key.tag != _MERGE:
                found, line = Described("the key twice"), key.start_mark.line + 1
                raise ConfigError(where=file, line=line, key=full, found=found, allowed="it once")
            names.add(name)
            _check_nodes(file, value, full, seen)


def _problem(error: yaml.MarkedYAMLError) -> str:
    words = " ".join(str(error.problem or error.context or "a mistake").split())
    words = words.removeprefix("but ").removeprefix("found ")
    return re.sub("^(could|did) not find (the )?(expected )?", "no ", words)


def _invalid(file: str, line: int, found: Described) -> ConfigError:
    return ConfigError(where=file, line=line, key="", found=found, allowed="valid YAML")


class _PythonParser(Reader, Scanner, Parser):
    """PyYAML's own parser, thirty times slower."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


_Events: Any = _PythonParser
with contextlib.suppress(ImportError):  # PyYAML may have been built without libyaml
    from yaml.cyaml import CParser as _Events  # type: ignore[attr-defined]


class _BoundedLoader(Composer, _Events, Resolver):  # type: ignore[misc]
    """Composes nodes and measures them, so that a limit is met before it hurts."""

    def __init__(self, text: str) -> None:
        _Events.__init__(self, text)
        Composer.__init__(self)
        Resolver.__init__(self)
        self._composed = 0
        self._open = 0
        self._measures: dict[int, tuple[int, int]] = {}  # by node: values in it, levels in it

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        mark = self.peek_event().start_mark
        self._composed += 1
        self._check(self._composed <= MAX_VALUES, f"more than {MAX_VALUES} values", mark)
        self._open += 1
        self._check(self._open <= MAX_DEPTH, f"more than {MAX_DEPTH} levels", mark)
        node = super().compose_node(parent, index)
        self._open -= 1
        if node is None or id(node) in self._measures:
            return node
        if isinstance(node, yaml.CollectionNode) and node.end_mark is None:
            self._check(False, "an alias inside of what it stands for", mark)
        self._check(node.tag in _PLAIN_TAGS, f"the tag {node.tag!r}", mark)
        inside = [self._measures[id(child)] for child in _children(node)]
        values = 1 + sum(count for count, _ in inside)
        levels = 1 + max((depth for _, depth in inside), default=0)
        self._check(values <= MAX_VALUES, f"more than {MAX_VALUES} values", mark)
        self._check(levels <= MAX_DEPTH, f"more than {MAX_DEPTH} levels", mark)
        self._measures[id(node)] = (values, levels)
        return node

    @staticmethod
    def _check(fine: bool, found: str, mark: Any) -> None:
        if not fine:
            raise yaml.MarkedYAMLError(problem=found, problem_mark=mark)


def _children(node: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return (child for pair in node.value for child in pair)
    return node.value if isinstance(node, yaml.SequenceNode) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value and its place. Each method returns what its name says, or raises ConfigError.

    `allowed` is what the error says instead of the value: "a number from 0 to 1".
    """

    file: str
    raw: yaml.Node  # as the file has it
    key: str  # the path to it: `targets[0].class`

    # -- places and errors ----------------------------------------------------------------------

    @property
    def line(self) -> int:
        mark = self.raw.start_mark
        return mark.line + 1 if mark else 1

    @property
    def node(self) -> yaml.Node:
        """The node to read. In scenarios a subclass fills in variables here."""
        return self.raw

    def fail(self, allowed: str, found: str | Described | None = None) -> NoReturn:
        """Refuse this value; the message says `found` instead of the value."""
        shown = Described(found) if isinstance(found, str) else found or self.shown()
        raise self.error(shown, allowed)

    def error(self, found: object, allowed: str, *, key: str = "") -> ConfigError:
        return ConfigError(
            where=self.file, line=self.line, key=key or self.key, found=found, allowed=allowed
        )

    def shown(self) -> object:
        """What an error says was found."""
        node = self.node
        if isinstance(node, yaml.MappingNode):
            return Described("a mapping")
        if isinstance(node, yaml.SequenceNode):
            items = [self.child(item, "").node for item in node.value[: _MAX_SHOWN + 1]]
            scalars = all(isinstance(item, yaml.ScalarNode) for item in items)
            short = scalars and len(items) <= _MAX_SHOWN
            return self.plain() if short else Described("a list")
        if self.is_null:
            return MISSING
        text = str(node.value)
        return text if node.tag == f"{_TAG}str" else Described(text)

    def child(self, node: yaml.Node, key: str) -> Self:
        return replace(self, raw=node, key=key)

    # -- collections ----------------------------------------------------------------------------

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_null(self) -> bool:
        return self.node.tag == f"{_TAG}null"

    @property
    def is_string(self) -> bool:
        """Whether YAML takes the value as text: `7`, `true` and an empty value are not text."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == f"{_TAG}str"

    def entries(self, allowed: str = "a mapping") -> dict[str, Self]:
        """A mapping with any keys. `<<: *anchor` adds the keys that the mapping does not have."""
        node = self.node
        if not isinstance(node, yaml.MappingNode):
            self.fail(allowed)
        entries: dict[str, Self] = {}
        merged: dict[str, Self] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                for source in self.child(value_node, self.key).items():
                    merged = source.entries() | merged
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self.child(key_node, self.key).fail("a key that is one word")
            name = str(key_node.value)
            entries[name] = self.child(value_node, f"{self.key}.{name}" if self.key else name)
        return merged | entries

    def table(
        self, allowed: Sequence[str], required: Sequence[str] = (), mapping: str = "a mapping"
    ) -> dict[str, Self]:
        """A mapping with keys of this list only."""
        entries = self.known(allowed, mapping)
        for name in required:
            if name not in entries:
                raise self.missing(name, "a value: this key is required")
        return entries

    def known(self, allowed: Sequence[str], mapping: str = "a mapping") -> dict[str, Self]:
        """A mapping whose keys are names from this list, such as names of thresholds."""
        entries = self.entries(mapping)
        for name, value in entries.items():
            if name not in allowed:
                near, names = nearest(name, allowed), ", ".join(allowed)
                raise value.error(UNKNOWN_KEY, f"{near} (one of {names})" if near else names)
        return entries

    def missing(self, name: str, allowed: str) -> ConfigError:
        """The error of a mapping that lacks a key."""
        return self.error(MISSING, allowed, key=f"{self.key}.{name}" if self.key else name)

    def items(self) -> list[Self]:
        """A list; one value alone is a list of one."""
        node = self.node
        if not isinstance(node, yaml.SequenceNode):
            return [self]
        return [self.child(item, f"{self.key}[{i}]") for i, item in enumerate(node.value)]

    def sequence(self, allowed: str = "a list", least: int = 0) -> list[Self]:
        """A list that is written as one."""
        if not self.is_list or len(self.node.value) < least:
            self.fail(allowed)
        return self.items()

    # -- scalars --------------------------------------------------------------------------------

    def text(self, pattern: str = "", allowed: str = "a word or number") -> str:
        node = self.node
        if not isinstance(node, yaml.ScalarNode):
            self.fail(allowed)
        value = str(node.value)
        if pattern and not re.fullmatch(pattern, value):
            self.fail(allowed)
        return value

    def string(self, allowed: str = "text") -> str:
        """Text that YAML takes as text, unlike `7` or `true`."""
        if not self.is_string:
            self.fail(allowed)
        return str(self.node.value)

    def choice(self, allowed: Sequence[Word]) -> Word:
        value = self.text(allowed=f"one of {', '.join(allowed)}")
        for word in allowed:
            if word == value:
                return word
        self.fail(f"one of {', '.join(allowed)}")

    def one_of(self, allowed: Sequence[str], what: str) -> str:
        """A word of a long list: the error names `what` it is and the nearest word, not all."""
        value = self.text(allowed=what)
        if value not in allowed:
            self.fail(f"{what}, such as {nearest(value, allowed) or allowed[0]}")
        return value

    def integer(self, least: int = 0, most: int = 1 << 40, allowed: str = "") -> int:
        allowed = allowed or f"a whole number from {least} to {most}"
        text = self.text(allowed=allowed)
        if len(text) > 30 or not _INTEGER.fullmatch(text) or not least <= int(text) <= most:
            self.fail(allowed)
        return int(text)

    def number(self, least: float, most: float, allowed: str = "") -> float:
        allowed = allowed or f"a number from {least:g} to {most:g}"
        text = self.text(allowed=allowed)
        if not _NUMBER.fullmatch(text) or not least <= float(text) <= most:
            self.fail(allowed)
        return float(text)

    def boolean(self) -> bool:
        word = self.text(allowed="true or false").lower()
        if word not in _TRUE | _FALSE:
            self.fail("true or false")
        return word in _TRUE

    def size(self, least: int = 1, most: int = MAX_SIZE) -> int:
        """Bytes: 4096, 4K, 1M, 10G."""
        text = self.text(allowed=units.SIZE_HELP)
        try:
            size = units.parse_size(text)
        except UsageError:
            self.fail(units.SIZE_HELP)
        if not least <= size <= most:
            bound = f"at least {least}" if size < least else f"at most {most}"
            self.fail(f"{units.SIZE_HELP}, {bound}")
        return size

    def seconds(self, *, above_zero: bool = False) -> float:
        """A length of time: 90, 90s, 1.5m, 200ms; a year at most."""
        text = self.text(allowed=units.SECONDS_HELP)
        try:
            seconds = units.parse_seconds(text)
        except UsageError:
            self.fail(units.SECONDS_HELP)
        if seconds > MAX_SECONDS or (above_zero and not seconds):
            self.fail(f"a time {'above 0, ' if above_zero else ''}of at most a year")
        return seconds

    # -- everything -----------------------------------------------------------------------------

    def plain(self) -> Any:
        """The value as Python has it, for what is passed on and not checked here."""
        if self.is_mapping:
            return {name: value.plain() for name, value in self.entries().items()}
        if self.is_list:
            return [item.plain() for item in self.items()]
        return _scalar(self.node.tag.removeprefix(_TAG), str(self.node.value))


def _scalar(kind: str, text: str) -> Any:
    """A scalar by its YAML tag (`int`, `bool`, ...). YAML's other numbers, as 0x1f, stay text."""
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in _TRUE
    if kind == "int" and len(text) <= 30 and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "float" and _NUMBER.fullmatch(text):
        return float(text)
    return text
