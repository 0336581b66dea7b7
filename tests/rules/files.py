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
    state,
    stores,
    understated,
)
from .cases import ALERTING_SLOS, RULES, RULES_OF_CHECKOUT, RuleCase, promtool_document

# Few enough that two processes end at about the same time.
_CASES_PER_FILE = 24


def _files(name: str, cases: Sequence[RuleCase]) -> list[RuleCase]:
    """The cases in files of their own: name-1, name-2, …"""
    return [
        replace(case, group=f"{name}-{number // _CASES_PER_FILE + 1}")
        for number, case in enumerate(cases)
    ]


CASES: list[RuleCase] = [
    *_files("qos", qos.CASES),
    *_files("reservations", reservations.CASES),
    *_files("understated", understated.CASES),
    *_files("across", across.CASES),
    *_files("recovering", recovering.CASES),
    *_files("devices", devices.CASES),
    *_files("lossy", hosts.LOSSY),
    *hosts.CASES,
    *_files("stores", stores.CASES),
    *_files("nights", nights.CASES),
    *_files("mixed", mixed.CASES),
    *_files("flaps", flaps.CASES),
    *_files("blind", blind.CASES),
    *_files("containers", containers.CASES),
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
