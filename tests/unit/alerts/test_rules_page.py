"""The size of the rules, and what the page about them says of it."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Final

from cephqos_alerts.alerts.logs import LOGS
from cephqos_alerts.output.build import FILES
from cephqos_alerts.rules.rule import Alert, RecordedSeries
from cephqos_alerts.slo.groups import SLO_ALERT
from cephqos_base.thresholds import Thresholds

_PAGE: Final = Path("docs/internals/rules.md").read_text(encoding="utf-8")
_SOURCES: Final = Path("alerts/cephqos_alerts")
_SAYS_HOW: Final = _SOURCES / "rules/settings.py"  # its text has a threshold as an example
_RULES: Final = [rule for groups in FILES.values() for group in groups for rule in group.rules]


def test_series_thresholds_and_words_are_few_and_the_page_says_how_many() -> None:
    recorded = [rule.record for rule in _RULES if isinstance(rule, RecordedSeries)]
    thresholds = {field.name for field in fields(Thresholds)}
    used = [
        name
        for file in _SOURCES.rglob("*.py")
        if file != _SAYS_HOW
        for name in re.findall(r"@(\w+)@", file.read_text(encoding="utf-8"))
        if name in thresholds
    ]
    assert len(set(recorded)) <= 60
    assert len(thresholds) <= 28
    assert len(_PAGE.split()) <= 1500
    assert f"[{len(set(recorded))} names]" in _PAGE
    assert f"recorded by {len(recorded)} rules" in _PAGE
    assert f"{len(thresholds)} names, used in over {len(used) // 10 * 10} places" in _PAGE


def test_the_page_names_every_alert() -> None:
    names = {rule.name for rule in (*_RULES, *LOGS.rules) if isinstance(rule, Alert)} | {SLO_ALERT}
    assert sorted(name for name in names if f"`{name}`" not in _PAGE) == []
