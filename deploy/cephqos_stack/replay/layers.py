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
# By the index of a rule: the indexes of the other rules whose series it reads.
_Needs = dict[int, set[int]]


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
    """Rules by layer, in order.

    Of rules that read one another in a circle, the first is evaluated without the others. A rule
    that reads its own past is evaluated without that too.
    """
    rules = list(rules)
    needs = _needs(rules)
    in_order: list[list[Rule]] = []
    done: set[int] = set()  # indexes of rules that are in a layer already
    while needs:
        ready = [index for index, needed in needs.items() if needed <= done]
        if not ready:  # all rules that are left are in a circle or read from one: break it
            ready = [next(index for index in needs if index in _leading_to(index, needs))]
        in_order.append([rules[index] for index in ready])
        done.update(ready)
        needs = {index: needed for index, needed in needs.items() if index not in done}
    return in_order


def leading_to(rules: Iterable[Rule], wanted: Iterable[str]) -> list[Rule]:
    """The rules that record these names, and all rules whose series those read, at any depth."""
    rules, names = list(rules), set(wanted)
    needs = _needs(rules)
    kept = {index for index, rule in enumerate(rules) if rule["record"] in names}
    kept |= {read for index in kept for read in _leading_to(index, needs)}
    return [rules[index] for index in sorted(kept)]


def _leading_to(index: int, needs: _Needs) -> set[int]:
    """All rules that this one reads, at any depth; itself only in a circle."""
    needed: set[int] = set()
    to_visit = set(needs[index])
    while to_visit:
        needed |= to_visit
        to_visit = {read for other in to_visit for read in needs.get(other, ())} - needed
    return needed


def _needs(rules: Sequence[Rule]) -> _Needs:
    """The rules that each rule reads, found by name and labels: a name may have several rules."""
    needs = {}
    for index, rule in enumerate(rules):
        read = {
            other
            for series in series_read(rule["expr"])
            for other, recorded in enumerate(rules)
            if series.may_be(recorded["record"], recorded.get("labels", {}))
        }
        needs[index] = read - {index}
    return needs


def rule_file(layer: Iterable[Rule]) -> str:
    """A file of one layer. It has no interval: promtool gets one for all.

    `+ 0` removes the names of series. Otherwise promtool takes the parts of `a or b` for two
    series, and writes them one after the other, out of order.
    """
    rules = [{**rule, "expr": f"({rule['expr']}\n) + 0"} for rule in layer]
    group = {"name": "replay", "rules": rules}
    return yaml.safe_dump({"groups": [group]}, sort_keys=False)
