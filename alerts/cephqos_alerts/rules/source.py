"""Rules as their sources have them: YAML that an operator can read, with `@name@` to fill in.

    expressions:                        # named, to be used as `@short@` in this file
      short: osd_class:cephqos_shortfall_ops:rate > 0
    groups:
    - name: cephqos-example
      slow: yes                         # once a minute
      rules:
      - record: osd:cephqos_example:ratio
        labels: {at: commit}
        expr: |-
          # Why the next line. Operators get the comment with the rule.
          @short@ and on (cluster, ceph_daemon) previously(osd:cephqos_own_store:ratio) < @part@

`@part@` is a threshold or a window of settings.py. `previously(…)`: see rule.py. Alerts have the
keys of `_ALERT`, and `alert` or, for an alert that counts OSDs (findings.py), `finding`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

from cephqos_alerts.rules.findings import KEPT, OsdFinding, finding_rules
from cephqos_alerts.rules.names import unknown_series
from cephqos_alerts.rules.rule import (
    URGENCIES,
    Alert,
    FirstCommand,
    Place,
    RecordedSeries,
    Rule,
    RuleGroup,
    Subject,
    Urgency,
    without_comments,
)
from cephqos_alerts.rules.settings import WINDOWS, RuleSettings
from cephqos_base import yamlfile
from cephqos_base.yamlfile import Value

Texts = Mapping[str, str]

_NAME: Final = re.compile(r"@(\w+)@")
_TEXT: Final = (
    *("about", "urgency", "but", "likely", "first", "first_on", "held", "within", "by", "labels"),
    *("summary", "description"),
)
_ALERT: Final = (
    *("alert", "expr", "counts", "where", "for", "keep", "dashboard", "duplicates"),
    *_TEXT,
)
_FINDING: Final = (
    *("finding", "expr", "figure", "window", "counted", "shared", "keep", "duplicates"),
    *_TEXT,
)
_NEEDED: Final = ("expr", "urgency", "summary", "description")


@dataclass(frozen=True)
class Shared:
    """What sources of alerts use and do not have themselves."""

    texts: Texts  # by the name that they are used by
    texts_of_count: Callable[[str], Texts]  # those of an alert that counts what an expression finds
    every_cause: Sequence[RecordedSeries] = ()  # in place of the rule `every_cause`


def insert(text: str, names: Texts) -> str:
    """A text with what the names stand for. Further lines are indented as the line they are in."""
    lines = []
    for line in text.splitlines():
        indent = "\n" + line[: len(line) - len(line.lstrip())]
        lines.append(
            _NAME.sub(lambda it: names.get(it[1], it[0]).replace("\n", indent), line)  # noqa: B023
        )
    return "\n".join(lines)


def one_line(expr: str) -> str:
    """An expression for a query in a text, which has one line."""
    joined = " ".join(without_comments(expr).split())
    return re.sub(r"(?<=\() | (?=\))", "", joined)


def named_expressions(top: Mapping[str, Value]) -> dict[str, str]:
    """The named expressions of a file. Each can use those before it."""
    names: dict[str, str] = {}
    for name, value in top["expressions"].entries().items() if "expressions" in top else ():
        names[name] = insert(value.string(), names)
    return names


def expression(value: Value, names: Texts) -> str:
    """An expression with what it names; ConfigError if it reads what nothing shows or records."""
    expr = _filled(value, value.string(), names)
    if unknown := unknown_series(expr):
        value.fail("series of cephqos_base/series.py or of a rule in sources/", ", ".join(unknown))
    return expr


def _filled(value: Value, text: str, names: Texts) -> str:
    """A text with what it names; ConfigError if something between two @ is no name."""
    filled = insert(text, names)
    try:
        left = RuleSettings().expand(filled)
    except KeyError as exc:
        value.fail("names of thresholds, windows, `expressions` and texts", str(exc.args[0]))
    if "@" in left:
        value.fail("@ only around names", left[left.index("@") :][:40])
    return filled


def read_groups(file: Path, shared: Shared) -> list[RuleGroup]:
    """The groups of a file."""
    top = yamlfile.read(file).table(("expressions", "groups"), ("groups",))
    names = named_expressions(top)
    return [_group(value, names, shared) for value in top["groups"].sequence("groups of rules")]


def _group(value: Value, names: Texts, shared: Shared) -> RuleGroup:
    group = value.table(("name", "slow", "rules"), ("name", "rules"))
    rules = group["rules"].sequence("rules")
    return RuleGroup(
        name=group["name"].string(),
        slow="slow" in group and group["slow"].boolean(),
        rules=[rule for it in rules for rule in _rules(it, names, shared)],
    )


def _rules(value: Value, names: Texts, shared: Shared) -> Sequence[Rule]:
    keys = value.entries("a rule")
    if "every_cause" in keys:
        return shared.every_cause
    if "record" in keys:
        return [_recorded(value, names)]
    if "finding" in keys:
        return finding_rules(read_finding(value, names, shared))
    return [_alert(value, names, shared)]


def _recorded(value: Value, names: Texts) -> RecordedSeries:
    keys = value.table(("record", "labels", "expr"), ("record", "expr"))
    return RecordedSeries(
        record=keys["record"].string(),
        labels=_labels(keys),
        expr=expression(keys["expr"], names),
    )


def _labels(keys: Mapping[str, Value]) -> dict[str, str]:
    entries = keys["labels"].entries() if "labels" in keys else {}
    return {name: value.text() for name, value in entries.items()}


class _AlertKeys:
    """The keys of an alert, and its texts with what they name."""

    def __init__(self, keys: Mapping[str, Value], names: Texts, shared: Shared) -> None:
        self.keys, self.names = keys, names
        counts: Texts = {}
        if "counts" in keys:
            counts = shared.texts_of_count(one_line(expression(keys["counts"], names)))
        self.texts = {**shared.texts, **counts}

    def text(self, key: str) -> str:
        if key not in self.keys:
            return ""
        value = self.keys[key]
        return _filled(value, " ".join(value.string().split()), self.texts)

    def strings(self, key: str) -> list[str]:
        return [it.string() for it in self.keys[key].items()] if key in self.keys else []

    def words(self, key: str, allowed: Sequence[str]) -> list[Any]:
        return [it.choice(allowed) for it in self.keys[key].items()] if key in self.keys else []

    def word(self, key: str, allowed: Sequence[str], otherwise: str = "") -> Any:
        return self.keys[key].choice(allowed) if key in self.keys else otherwise

    def urgency(self) -> Urgency:
        urgency = URGENCIES[self.keys["urgency"].choice(tuple(URGENCIES))]
        return replace(urgency, but=self.text("but"))

    def first(self) -> FirstCommand:
        return FirstCommand(
            line=self.text("first"),
            on=self.word("first_on", ("ceph", "host", "prometheus"), "ceph"),
        )


def _alert(value: Value, names: Texts, shared: Shared) -> Alert:
    keys = value.table(_ALERT, ("alert", *_NEEDED))
    read = _AlertKeys(keys, names, shared)
    return Alert(
        name=keys["alert"].string(),
        about=read.words("about", get_args(Subject)),
        expr=expression(keys["expr"], names),
        urgency=read.urgency(),
        where=read.word("where", get_args(Place), "osd"),
        by=read.strings("by"),
        likely=read.text("likely"),
        first=read.first() if "first" in keys else None,
        hold=keys["for"].seconds() if "for" in keys else 0.0,
        held=read.word("held", tuple(WINDOWS)),
        keep=keys["keep"].seconds() if "keep" in keys else 0.0,
        within=read.text("within"),
        dashboard=read.text("dashboard"),
        labels=_labels(keys),
        duplicates=read.strings("duplicates"),
        summary=read.text("summary"),
        description=read.text("description"),
    )


def read_finding(value: Value, names: Texts, shared: Shared) -> OsdFinding:
    keys = value.table(_FINDING, ("finding", *_NEEDED))
    read = _AlertKeys(keys, names, shared)
    return OsdFinding(
        name=keys["finding"].string(),
        about=read.words("about", get_args(Subject)),
        expr=expression(keys["expr"], names),
        by=read.strings("by"),
        urgency=read.urgency(),
        likely=read.text("likely"),
        first=read.first(),
        figure=read.text("figure"),
        window=read.word("window", tuple(WINDOWS)),
        held=read.word("held", tuple(WINDOWS)),
        within=read.text("within"),
        labels=_labels(keys),
        counted=keys["counted"].boolean() if "counted" in keys else True,
        shared=keys["shared"].boolean() if "shared" in keys else False,
        keep=keys["keep"].seconds() if "keep" in keys else KEPT,
        duplicates=read.strings("duplicates"),
        summary=read.text("summary"),
        description=read.text("description"),
    )
