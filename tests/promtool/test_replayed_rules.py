"""Recording rules over the past, with Prometheus' own tools."""

from typing import cast

import pytest

from cephqos_loadgen.archive.reader import Archive
from cephqos_loadgen.archive.run_samples import RecordedRun
from cephqos_stack.replay import gather

BEGIN_MS = 1_795_000_000_000
ARCHIVE = cast(Archive, None)  # nothing is read from it


async def test_a_rule_may_go_on_with_another_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """promtool took `a or b` for two series: of one, samples were lost or out of order."""
    later = {BEGIN_MS + 1000 * n: 1.0 for n in range(30, 60)}
    earlier = {BEGIN_MS + 1000 * n: 2.0 for n in range(40)}
    run = RecordedRun({"a": "gauge", "b": "gauge"}, {'a{osd="1"}': later, 'b{osd="1"}': earlier})
    rule = {"record": "c", "expr": "# of two\na or b"}
    monkeypatch.setattr(gather, "load", lambda _: run)
    monkeypatch.setattr(gather, "scrape_interval", lambda _: 1.0)
    monkeypatch.setattr(gather, "recording_rules", lambda _: [rule])
    found = await gather.evaluated(ARCHIVE, ["c"], lambda _: None)
    ((name, samples),) = found.series.items()
    assert name == 'c{osd="1"}'
    seconds = {(ms - BEGIN_MS) // 1000: value for ms, value in samples.items()}
    assert [seconds[n] for n in (0, 29, 30, 58)] == [2.0, 2.0, 1.0, 1.0]
