"""A scenario that cannot mean what it says is refused in one line, before anything runs."""

import time

import pytest

from cephqos_base.errors import ConfigError
from cephqos_loadgen.scenario import library
from cephqos_loadgen.scenario.parse import Choices, parse

LOAD = "{engine: rbd, pool: p, rw: read, bs: 4K, depth: 4}"
DEEP = LOAD.replace("4}", '"${depth}"}')
SWEEP = "{engine: rbd, pool: p, rw: read, bs: 4K, sweep: {depths: [1, 2], dwell: 2s}}"


def scenario(matrix: str = "", phases: str = "", pools: str = "") -> str:
    return f"""\
scenario: s
variables: {{depth: 1}}
pools: [{pools or "{name: p, images: {size: 16M}}"}]
{f"matrix: {matrix}" if matrix else ""}
phases:
{phases or phase(DEEP)}
"""


def phase(fio: str = LOAD, until: str = "{duration: 5s}", rest: str = "") -> str:
    return f"  - {{name: load, fio: {fio}, until: {until}}}\n{rest}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (scenario("{deph: [1, 16]}"), r"s.yaml:4: matrix.deph: found deph, which nothing uses"),
        (scenario("{depth: []}"), r"matrix.depth: found none; allowed: at least one value"),
        (scenario("{depth: [1, 1]}"), r"matrix.depth: found 1, 1; allowed: values that are diff"),
        (
            scenario(phases=phase(SWEEP.replace("[1, 2]", "[]"), "done")),
            "depths that are different",
        ),
        (scenario(phases=phase(SWEEP.replace("[1, 2]", "[2, 2]"), "done")), "depths that are diff"),
        (scenario(phases=phase(SWEEP)), "no 'until': a sweep, a search and"),
        (scenario(phases=phase(until="{duration: 0}")), r"until.duration: found 0; .*above 0"),
        (scenario(phases=phase(until="{phase: load}")), "load, which waits for its own end"),
        (
            scenario(
                phases=phase(
                    until="{phase: late}",
                    rest="  - {name: late, wait: {}, until: {duration: 1s}}\n",
                )
            ),
            "load, which waits for its own end",
        ),
        (
            scenario(pools="{name: p, images: {size: 16M}}, {name: p, images: {size: 16M}}"),
            "found two pools p",
        ),
        (
            scenario(
                phases="  - {name: load, fio: {engine: rbd, pool: p, rw: read, bs: 4K,"
                " search: {target: 5ms, least: 8, most: 4, dwell: 2s}}}\n"
            ),
            r"search.most: found 4; allowed: at least 8",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        parse(text, "s.yaml")
    assert "\n" not in str(refused.value)


def test_a_matrix_of_a_million_points_is_refused_before_it_is_expanded() -> None:
    hundred = ", ".join(str(n) for n in range(1, 101))
    axes = ", ".join(f"osd:osd_option_{n}: [{hundred}]" for n in range(3))
    begun = time.process_time()
    with pytest.raises(ConfigError, match="found 1,000,000; allowed: at most 10,000 points"):
        parse(scenario(f"{{{axes}}}"), "s.yaml")
    assert time.process_time() - begun < 1.0


def test_a_scrub_may_say_that_it_ends_when_scrubs_are_done() -> None:
    text = scenario(phases="  - {name: scrub, scrub: {pool: p}, until: scrub_done}\n")
    assert parse(text, "s.yaml").points[0].phases[0].until.kind == "scrub_done"


@pytest.mark.parametrize("scale", ["tiny", "lab", "study"])
def test_every_shipped_scenario_is_taken(scale: str) -> None:
    for name, text in library.shipped().items():
        assert parse(text, f"{name}.yaml", Choices(scale=scale)).points
