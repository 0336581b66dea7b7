"""Recording rules in the order in which they can be evaluated over the past.

promtool evaluates each rule over the whole time at once, from what Prometheus has: a rule that
reads another rule's series needs that one's blocks first. Rules of one layer read only series of
earlier layers and of the exporters.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from cephqos_base import yamlfile

_WORD: Final = re.compile(r"[a-zA-Z_][\w:]*")
Rule = Mapping[str, Any]


def recording_rules(files: Iterable[str]) -> list[Rule]:
    """The recording rules of rule files; alerts are left out."""
    return [
        rule
        for file in files
        for group in yamlfile.parse(file, "rules").plain()["groups"]
        for rule in group["rules"]
        if "record" in rule
    ]


def layers(rules: Iterable[Rule]) -> list[list[Rule]]:
    """Rules by layer, in order. A rule that reads its own past, or that of a rule after it which
    reads it in turn, is evaluated without it."""
    by_name, needs = _by_name(rules)
    found: list[list[Rule]] = []
    done: set[str] = set()
    while needs:
        ready = [name for name, needed in needs.items() if needed <= done]
        if not ready:  # all that is left is in a circle, or behind one
            ready = [next(name for name in needs if name in _leading_to(name, needs))]
        found.append([rule for name in ready for rule in by_name[name]])
        done.update(ready)
        needs = {name: needed for name, needed in needs.items() if name not in done}
    return found


def leading_to(rules: Iterable[Rule], wanted: Iterable[str]) -> list[Rule]:
    """The rules that record these names, and all that those read."""
    by_name, needs = _by_name(rules)
    kept = {name for name in wanted if name in by_name}
    kept |= {read for name in kept for read in _leading_to(name, needs)}
    return [rule for name, same in by_name.items() if name in kept for rule in same]


def _leading_to(name: str, needs: Mapping[str, set[str]]) -> set[str]:
    """All that it reads, and that those read; itself only in a circle."""
    needed: set[str] = set()
    todo = set(needs[name])
    while todo:
        needed |= todo
        todo = {read for one in todo for read in needs.get(one, ())} - needed
    return needed


def _by_name(rules: Iterable[Rule]) -> tuple[dict[str, list[Rule]], dict[str, set[str]]]:
    """The rules, and the names of others that they read."""
    by_name: dict[str, list[Rule]] = {}
    for rule in rules:
        by_name.setdefault(rule["record"], []).append(rule)
    needs = {}
    for name, same in by_name.items():
        words = {word for rule in same for word in _WORD.findall(rule["expr"])}
        needs[name] = (words & by_name.keys()) - {name}
    return by_name, needs


def rule_file(layer: Iterable[Rule]) -> str:
    """A file of one layer. It has no interval: promtool gets one for all.

    `a or b` would be two series for promtool, and where b comes first, a's samples are out of
    order. A sum has no name, so it is one series.
    """
    rules = [{**rule, "expr": f"({rule['expr']}\n) + 0"} for rule in layer]
    group = {"name": "replay", "rules": rules}
    return yaml.safe_dump({"groups": [group]}, sort_keys=False)
