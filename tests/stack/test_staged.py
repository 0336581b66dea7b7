"""A dozen situations of `make truth`: the right OSD with the right cause, or silence.

They run one after the other on one cluster before one Prometheus, each from quiet to quiet, which
takes a third of the time that `make truth` takes for them.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from tests.lab.conftest import LabPool
from tests.truth import fault_at, load_all
from tests.truth.run import delivered_at_its_end, play, watching
from tests.truth.runbook import not_as_said, shown
from tests.waiting import until

from cephqos_base.units import GIB
from cephqos_stack.staged.faults import prepare, unset
from cephqos_stack.staged.judge import Heard, judge
from cephqos_stack.staged.situation import Situation
from cephqos_stack.staged.stage import Stage, clean

from .conftest import Watched, lab_spec

pytestmark = pytest.mark.full


# Long enough for a state to be sustained and for a violation to last its hold.
CALM_SECONDS = 17.0
CALM = (
    "calm-one-client",
    "calm-writes-deep",
    "calm-writes-64k",
    "calm-reads",
    "calm-deep-scrub",
    "calm-deletes",
)
FAULTS = (
    "device-size2",
    "device-deep",
    "device-replicas-only",
    "cpu-busy-core",
    "stopped-osd",
    "limit-small",
)


@dataclass
class Theatre:
    """One cluster, watched, with a pool of each size, and what its OSDs deliver at their end."""

    on: Watched
    delivered: float = 0.0
    pools: dict[int, str] = field(default_factory=dict)

    async def open(self) -> None:
        for size in (1, 2, 3):
            self.pools[size] = await self.on.pool(f"size{size}", size)
        self.delivered = await delivered_at_its_end(
            self.stage(_situation("calm-writes-deep")), self.on
        )

    def stage(self, situation: Situation) -> Stage:
        return Stage(self.on, situation, 0, self.pools[situation.size])

    async def show(self, situation: Situation) -> tuple[list[Heard], dict[str, str]]:
        """What reached the receiver, and what the runbooks' queries showed meanwhile."""
        stage = self.stage(situation)
        await until(lambda: clean(self.on), "all placement groups clean", 60)
        await self.on.quiet()
        try:
            await prepare(stage, self.delivered)
            heard = await play(stage, self.on, random.Random(0))  # noqa: S311 - a jitter, no secret
            # Commands would show operations of the situation before, too.
            return heard, await shown(self.on, heard, commands=False)
        finally:
            await stage.close()
            await unset(stage)


def _situation(name: str) -> Situation:
    """Its seconds cut to what shows a false alert; how fast is for `make truth` to say."""
    (situation,) = load_all(f"^{name}$")
    if situation.healthy:
        return replace(situation, seconds=fault_at(situation) + CALM_SECONDS)
    patient = tuple(replace(finding, within=60.0) for finding in situation.expect)
    return replace(situation, expect=patient)


@pytest.fixture(scope="module")
def theatre(labs: LabPool) -> Iterator[Theatre]:
    lab = labs.start(lab_spec("staged", osd_size=8 * GIB))
    watch = watching(lab, "staged")
    try:
        on = labs.call(watch.__aenter__())
        try:
            found = Theatre(on)
            labs.call(found.open())
            yield found
        finally:
            labs.call(watch.__aexit__(None, None, None))
    finally:
        labs.end(lab)


@pytest.mark.parametrize("name", [*CALM, *FAULTS])
async def test_the_alerts_of_a_staged_situation_are_those_that_it_expects(
    theatre: Theatre, name: str
) -> None:
    situation = _situation(name)
    heard, showed = await theatre.show(situation)
    verdict, _, others = judge(situation, heard, 0)
    assert (verdict, [str(it) for it in others]) == ("right", []), [str(it) for it in heard]
    assert not_as_said(showed) == []
