"""The cases in files that `promtool test rules` reads."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.settings import RuleSettings

from . import (
    across,
    balance,
    blind,
    containers,
    coverage,
    devices,
    flaps,
    health,
    hosts,
    mixed,
    nights,
    osds,
    qos,
    recovering,
    reservations,
    slo,
    slow,
    state,
    stores,
    understated,
)
from .cases import ALERTING_SLOS, RULES, RULES_OF_CHECKOUT, RuleCase, promtool_document

# Every series of a file is evaluated until its last case ends.
_MOST_MINUTES = 45


def _file(name: str, cases: Sequence[RuleCase]) -> list[RuleCase]:
    """The cases in a file of their own; those that take long are in one together."""
    return [
        replace(case, group=name if case.minutes <= _MOST_MINUTES else "long") for case in cases
    ]


CASES: list[RuleCase] = [
    *_file("qos", qos.CASES),
    *_file("reservations", reservations.CASES),
    *_file("understated", understated.CASES),
    *_file("across", across.CASES),
    *_file("recovering", recovering.CASES),
    *_file("devices", devices.CASES),
    *_file("lossy", hosts.LOSSY),
    *hosts.CASES,
    *_file("stores", stores.CASES),
    *_file("slow", slow.CASES),
    *_file("nights", nights.CASES),
    *_file("mixed", mixed.CASES),
    *_file("flaps", flaps.CASES),
    *_file("blind", blind.CASES),
    *_file("containers", containers.CASES),
    *state.CASES,
    *health.CASES,
    *balance.CASES,
    *coverage.CASES,
    *slo.CASES,
    *osds.CASES,
]


GROUPS = sorted({case.group for case in CASES})


def write(group: str, folder: Path, site_label: str = "") -> Path:
    """The cases of a group as a file in a folder; with a label, each at a site of its own."""
    rules = RULES_OF_CHECKOUT
    if site_label or "slo.yml" in RULES.get(group, ()):
        rules = folder / "rules"
        rules.mkdir()
        settings = RuleSettings(site_labels=[site_label] if site_label else ())
        for name, text in build_rules(settings, ALERTING_SLOS).items():
            (rules / name).write_text(text, encoding="utf-8")
    cases = [case for case in CASES if case.group == group]
    document = promtool_document(group, cases, rules, site_label)
    path = folder / f"{group}.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, width=200), encoding="utf-8")
    return path
