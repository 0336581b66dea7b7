"""All findings (rules/findings.py): what can be true of many OSDs at once, and has one alert."""

from typing import Final

from cephqos_alerts.alerts.configuration import (
    EXCEED_WHOLE,
    NEVER_MEASURED,
    OVERSTATED,
    UNDERSTATED,
)
from cephqos_alerts.alerts.coverage import COLLECTOR_FAILING, DOWN, NOT_SCRAPED
from cephqos_alerts.alerts.qos import AT_LIMIT, REPEATED
from cephqos_alerts.alerts.state import DEVICE_SATURATED, REACTOR_SHARED, THREAD_AT_CEILING
from cephqos_alerts.rules.findings import finding_rules
from cephqos_alerts.rules.rule import RuleGroup

_FAST: Final = (OVERSTATED, *UNDERSTATED, AT_LIMIT)
# Settings, and what must last for a quarter of an hour, are looked at once a minute.
_SLOW: Final = (
    *(REPEATED, EXCEED_WHOLE, NEVER_MEASURED),
    *(THREAD_AT_CEILING, DEVICE_SATURATED, REACTOR_SHARED),
    *(DOWN, NOT_SCRAPED, COLLECTOR_FAILING),
)
EVERY_FINDING: Final = (*_FAST, *_SLOW)

OF_OSDS: Final = (
    RuleGroup(name="cephqos-osd-findings", rules=finding_rules(*_FAST)),
    RuleGroup(name="cephqos-slow-osd-findings", rules=finding_rules(*_SLOW), slow=True),
)
