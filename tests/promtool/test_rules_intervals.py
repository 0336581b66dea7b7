"""Rules made for other scrape intervals find the same: a failed device, too much, healthy load."""

from pathlib import Path

import pytest
import yaml
from tests.release_tools import run, tool
from tests.rules.files import CASES
from tests.rules.intervals import document_every

from cephqos_alerts.cli import DEFAULT_SLOS, load_slos
from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.settings import RuleSettings

# Rates look back four minutes where a scrape comes every 60 s: clients that wanted more until the
# moment in which an OSD became slow seem to want more for minutes after it.
NOT_AT_60 = "who waits for a slower OSD and gets its reservation wakes nobody"
NAMES = (
    "OSDs that wait for a slow one are warnings that name it, beside its critical alert",
    "a slow OSD is critical though no queue of those that wait for it shows their waiting",
    NOT_AT_60,
    "three OSDs at their end, one of them twice as slow as the others, are no finding",
    "recovery that takes more than its share is named and is critical",
    "a class at its limit on a busy OSD is what limits are for",
)


@pytest.mark.timeout(1000)
# Clusters of tests evaluate them more than once a second.
@pytest.mark.parametrize(
    "seconds", [*(pytest.param(it, marks=pytest.mark.full) for it in (5, 30)), 60]
)
def test_the_same_is_found_at_another_scrape_interval(seconds: int, tmp_path: Path) -> None:
    names = [name for name in NAMES if seconds < 60 or name != NOT_AT_60]
    cases = [case for case in CASES if case.name in names]
    assert len(cases) == len(names)
    settings = RuleSettings(scrape_interval=seconds)
    for name, text in build_rules(settings, load_slos(DEFAULT_SLOS)).items():
        (tmp_path / Path(name).name).write_text(text, encoding="utf-8")
    document = document_every(cases, tmp_path, seconds)
    file = tmp_path / "cases.yml"
    file.write_text(yaml.safe_dump(document, width=1000), encoding="utf-8")
    assert "SUCCESS" in run([*tool("reef", "promtool"), "test", "rules", str(file)], within=900)
