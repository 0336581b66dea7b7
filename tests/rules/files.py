"""The committed files of promtool tests, from the cases."""

from dataclasses import replace
from pathlib import Path

from . import across, blind, coverage, promises, qos, slo, state
from .cases import TESTS, Case, promtool_file

CASES: list[Case] = [
    *qos.CASES,
    # Files of their own, since promtool evaluates all rules for each case and files run beside
    # one another.
    *(replace(case, group="promises") for case in promises.CASES),
    *(replace(case, group="across") for case in across.CASES),
    *(replace(case, group="blind") for case in blind.CASES),
    *state.CASES,
    *coverage.CASES,
    *slo.CASES,
]


def built() -> dict[Path, str]:
    """Path to content."""
    groups = sorted({case.group for case in CASES})
    return {
        TESTS / f"{group}.yml": promtool_file(
            group, [case for case in CASES if case.group == group]
        )
        for group in groups
    }
