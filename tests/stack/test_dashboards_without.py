"""Dashboards where something is missing: no rules, no mClock, an exporter that shows less.

Nothing may be an error: a panel has data or says why it has none.
"""

import asyncio
from collections.abc import Iterator

import pytest
from tests.board_panels import boards, panels, promql
from tests.board_story import story_lab
from tests.lab.conftest import LabPool, lab_name
from tests.waiting import until

from cephqos_loadgen.lab.lab import RunningLab
from cephqos_stack.stack import Stack, StackSpec

from .test_dashboards import ask

# What an exporter before these collectors existed showed.
LESS = tuple(f"--no-collector.{name}" for name in ("placement", "threads", "disks", "ops"))


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[RunningLab]:
    """16.2, which runs WPQ and reserves nothing."""
    running = labs.start(story_lab(lab_name("without"), "pacific", op_queue="wpq"))
    yield running
    labs.end(running)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(StackSpec(name="wpq"), id="WPQ"),
        pytest.param(StackSpec(name="bare", rules=False), id="no rules"),
        pytest.param(
            StackSpec(name="less", exporter_options=LESS, cluster_role=False), id="less is shown"
        ),
    ],
)
def test_no_query_is_an_error_and_what_is_empty_says_why(
    labs: LabPool, lab: RunningLab, spec: StackSpec
) -> None:
    labs.call(_look(lab, spec))


async def _look(lab: RunningLab, spec: StackSpec) -> None:
    reasons = {
        (uid, panel["title"]): panel["fieldConfig"]["defaults"]["noValue"]
        for uid, board in boards().items()
        for panel in panels(board)
    }
    fsid = lab.state.fsid
    values = {
        "cluster": fsid,
        "detail": fsid,
        "osd": "osd.0",
        "host": ".+",
        "run": "",
        "second": "(none)",
        "load": "client",
    }
    async with Stack(lab, spec) as stack:

        async def many_answer() -> bool:
            answered = 0
            for query in promql():
                filled = query.filled(values | {"shift": "1"})
                if await asyncio.to_thread(ask, stack.prometheus_url, "query", query=filled):
                    answered += 1
                else:
                    assert reasons[query.uid, query.panel]
            return answered > 20

        await asyncio.sleep(8)  # rules of rules have something then
        await until(many_answer, "more than 20 queries are answered")
