"""Recording rules in the order in which they can be evaluated over the past.

promtool evaluates each rule over the whole time at once, from what Prometheus has: a rule that
reads another rule's series needs that one's blocks first. Rules of one layer read only series of
earlier layers and of the exporters.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from cephqos_alerts.rules.rule import series_read
from cephqos_base import yamlfile

Rule = Mapping[str, Any]
_Needs = dict[int, set[int]]  # by place: the places of the other rules whose series a rule reads


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
    rules = list(rules)
    needs = _needs(rules)
    in_order: list[list[Rule]] = []
    done: set[int] = set()
    while needs:
        ready = [place for place, needed in needs.items() if needed <= done]
        if not ready:  # all that is left is in a circle, or behind one
            ready = [next(place for place in needs if place in _leading_to(place, needs))]
        in_order.append([rules[place] for place in ready])
        done.update(ready)
        needs = {place: needed for place, needed in needs.items() if place not in done}
    return in_order


def leading_to(rules: Iterable[Rule], wanted: Iterable[str]) -> list[Rule]:
    """The rules that record these names, and all that those read."""
    rules, names = list(rules), set(wanted)
    needs = _needs(rules)
    kept = {place for place, rule in enumerate(rules) if rule["record"] in names}
    kept |= {read for place in kept for read in _leading_to(place, needs)}
    return [rules[place] for place in sorted(kept)]


def _leading_to(place: int, needs: _Needs) -> set[int]:
    """All that it reads, and that those read; itself only in a circle."""
    needed: set[int] = set()
    todo = set(needs[place])
    while todo:
        needed |= todo
        todo = {read for one in todo for read in needs.get(one, ())} - needed
    return needed


def _needs(rules: Sequence[Rule]) -> _Needs:
    """Rules of one name differ in their labels: who reads one of them does not need them all."""
    needs = {}
    for place, rule in enumerate(rules):
        read = {
            other
            for series in series_read(rule["expr"])
            for other, it in enumerate(rules)
            if series.may_be(it["record"], it.get("labels", {}))
        }
        needs[place] = read - {place}
    return needs


def rule_file(layer: Iterable[Rule]) -> str:
    """A file of one layer. It has no interval: promtool gets one for all.

    `a or b` would be two series for promtool, and where b comes first, a's samples are out of
    order. A sum has no name, so it is one series.
    """
    rules = [{**rule, "expr": f"({rule['expr']}\n) + 0"} for rule in layer]
    group = {"name": "replay", "rules": rules}
    return yaml.safe_dump({"groups": [group]}, sort_keys=False)
