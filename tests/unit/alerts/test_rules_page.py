"""What the page about the rules says of them."""

from pathlib import Path
from typing import Final

from cephqos_alerts.output.build import FILES, LOGS
from cephqos_alerts.rules.rule import Alert
from cephqos_alerts.slo.groups import SLO_ALERT

_PAGE: Final = Path("docs/internals/rules.md").read_text(encoding="utf-8")
_RULES: Final = [rule for groups in FILES.values() for group in groups for rule in group.rules]


def test_the_page_names_every_alert() -> None:
    names = {rule.name for rule in (*_RULES, *LOGS.rules) if isinstance(rule, Alert)} | {SLO_ALERT}
    assert sorted(name for name in names if f"`{name}`" not in _PAGE) == []
