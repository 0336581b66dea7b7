"""Scenarios as plans: matrix, layers, phases; the shipped ones; plans as text."""

import re

import pytest
from tests.shipped_plans import shipped_plan

from cephqos_base.errors import ConfigError
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.check import plan_text
from cephqos_loadgen.cluster.capacity_bench import capacity_option
from cephqos_loadgen.phase_kinds.fio import Fio
from cephqos_loadgen.plan import planned
from cephqos_loadgen.plan.estimate import point_seconds, run_seconds
from cephqos_loadgen.plan.parts import Capacity
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.scenario import library
from cephqos_loadgen.scenario.parse import Choices, parse
from cephqos_loadgen.scenario.variables import variable_from_text

BASE = """\
scenario: one
variables: {depth: 4}
settings: {osd: {osd_max_backfills: 1, osd_scrub_sleep: 0}}
pools:
  - {name: data, images: {size: 64M}}
matrix:
  queue:
    wpq: {settings: {osd: {osd_op_queue: wpq}}}
    mclock: {settings: {osd: {osd_op_queue: mclock_scheduler, osd_max_backfills: 9}}}
  depth: [1, 8]
phases:
  - name: load
    fio: {engine: rbd, pool: data, rw: randread, bs: 4K, depth: "${depth}"}
    until: {duration: 30s}
"""


def plan(text: str, **choices: object) -> planned.Plan:
    return parse(text, "s.yaml", Choices(**choices))  # type: ignore[arg-type]


def with_phases(phases: str) -> str:
    return BASE[: BASE.index("phases:")] + "phases:\n" + phases


def test_a_matrix_gives_every_combination_with_its_own_phases_and_settings() -> None:
    found = plan(BASE)
    assert [point.name for point in found.points] == [
        "queue=wpq,depth=1",
        "queue=wpq,depth=8",
        "queue=mclock,depth=1",
        "queue=mclock,depth=8",
    ]
    depths = [p.phases[0].action.depth for p in found.points if isinstance(p.phases[0].action, Fio)]
    assert depths == [1, 8, 1, 8]


def test_a_setting_of_the_matrix_beats_the_common_one() -> None:
    mclock = plan(BASE).points[2]
    assert {(o.name, o.value) for o in mclock.settings} == {
        ("osd_max_backfills", "9"),
        ("osd_scrub_sleep", "0"),
        ("osd_op_queue", "mclock_scheduler"),
    }


def test_an_axis_can_be_an_option_itself() -> None:
    text = BASE.replace("  depth: [1, 8]", "  osd:osd_max_scrubs: [1, 5]")
    points = plan(text).points
    assert points[1].axes == (("queue", "wpq"), ("osd_max_scrubs", "5"))
    assert CephOption("osd", "osd_max_scrubs", "5") in points[1].settings


def test_only_keeps_the_values_that_were_named() -> None:
    found = plan(BASE, only={"queue": ("mclock",), "depth": ("8",)})
    assert [point.name for point in found.points] == ["queue=mclock,depth=8"]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (
            {"nothing": ("1",)},
            "^--only nothing: expected an axis of the scenario's matrix: q",
        ),
        ({"depth": ("3",)}, "^--only depth=3: expected one of 1, 8"),
    ],
)
def test_only_with_a_value_that_is_not_there_is_refused(
    only: dict[str, tuple[str, ...]], message: str
) -> None:
    with pytest.raises(match=message):
        plan(BASE, only=only)


def test_a_variable_of_the_command_line_must_be_one_of_the_scenarios() -> None:
    with pytest.raises(match=r"^--var dept: expected a variable of the scenario: depth"):
        plan(BASE, variables={"dept": variable_from_text("3")})


def order_of(**choices: object) -> list[tuple[str, int]]:
    return [(point.name, n) for point, n in plan(BASE, repeats=2, **choices).runs]


def test_repeats_run_point_by_point_where_that_is_asked_for() -> None:
    assert order_of(order="grouped")[:3] == [
        ("queue=wpq,depth=1", 1),
        ("queue=wpq,depth=1", 2),
        ("queue=wpq,depth=8", 1),
    ]


def test_repeats_of_points_are_interleaved_so_that_drift_meets_all_alike() -> None:
    found = order_of()
    names = [name for name, n in found if n == 1]
    assert found == [(name, n) for n in (1, 2) for name in names]
    assert len(set(names)) == 4


def test_a_random_order_is_that_of_its_seed_and_keeps_the_rounds() -> None:
    found = order_of(order="random", seed=7)
    assert found == order_of(order="random", seed=7)
    assert found != order_of(order="random", seed=8) or found != order_of(order="random", seed=9)
    assert sorted(found) == sorted(order_of())
    assert [n for _, n in found] == [1] * 4 + [2] * 4


def test_points_that_need_pools_or_labs_of_their_own_are_not_interleaved() -> None:
    text = """\
scenario: s
repeats: 2
pools: [{name: p, images: {size: "${size}"}}]
matrix: {size: [16M, 32M]}
phases: [{name: load, fio: {engine: rbd, pool: p, rw: read, bs: 4K}, until: {duration: 1s}}]
"""
    assert [(point.name, n) for point, n in plan(text).runs] == [
        *(("size=16M", 1), ("size=16M", 2)),
        *(("size=32M", 1), ("size=32M", 2)),
    ]


def test_an_unknown_scale_is_refused_with_those_there_are() -> None:
    with pytest.raises(match=r"^--scale huge: expected one of tiny, lab, study"):
        plan(library.shipped()["baseline"], scale="huge")


def test_rbd_caches_are_off_unless_a_scenario_says_otherwise() -> None:
    assert plan(BASE).points[0].client == (("rbd_cache", "false"),)
    assert ("rbd_cache", "true") in plan(BASE + "client: {rbd_cache: true}\n").points[0].client


def test_a_name_that_ends_in_a_question_mark_is_an_optional_setting() -> None:
    text = BASE.replace("osd_scrub_sleep: 0", '"osd_new_thing?": 0')
    assert CephOption("osd", "osd_new_thing", "0", True) in plan(text).points[0].settings


def test_pools_are_kept_where_the_scenario_or_the_command_line_says_so() -> None:
    text = BASE.replace("images: {size: 64M}", "images: {size: 64M}, keep: true")
    assert plan(text).points[0].pools[0].keep
    assert not plan(BASE).points[0].pools[0].keep
    assert plan(BASE, keep=True).points[0].pools[0].keep
    fresh = BASE.replace("images: {size: 64M}", "images: {size: 64M}, fresh: true")
    assert not plan(fresh, keep=True).points[0].pools[0].keep, "it is made again for every repeat"
    with pytest.raises(match=r"s.yaml:5: .*fresh .*or keep, not both"):
        plan(fresh.replace("fresh: true", "fresh: true, keep: true"))
    assert "# kept at the end" in "\n".join(
        plan_text.lines(plan(text), ProgramPaths(), commands=False)
    )


def test_the_plan_says_what_will_be_off_for_the_whole_run() -> None:
    def shown(text: str) -> str:
        return "\n".join(plan_text.lines(plan(text), ProgramPaths(), commands=False))

    assert "ceph balancer off" in shown(BASE)
    assert "ceph osd set nodeep-scrub" in shown(BASE)
    only = shown(BASE + "quiet: [autoscaler]\n")
    assert "balancer" not in only
    assert "pg_autoscale_mode off" in only
    assert "for the whole run" not in shown(BASE + "quiet: []\n")
    with pytest.raises(match="allowed: one of balancer, autoscaler, scrubs"):
        plan(BASE + "quiet: [everything]\n")


WRONG = [
    ("- {name: a, wait: {}}", "the key 'until'"),
    ("- {name: a, wait: {}, scrub: {pool: data}}", "exactly one of"),
    ("- {name: a}", "exactly one of"),
    ("- {name: A B, settle: {}}", "a name of a-z"),
    ("- {name: a, settle: {}}\n  - {name: a, settle: {}}", "a name that no other phase has"),
    ("- {name: a, scrub: {pool: nowhere}}", "found nowhere; allowed: a pool of this scenario"),
    ("- {name: a, settle: {}, start: {after: b}}", "a phase before this one"),
    ("- {name: a, wait: {}, until: {phase: b}}", "a phase of this scenario: a"),
    ("- {name: a, flags: {set: [noup]}}", "one of norecover"),
    ("- {name: a, fio: {engine: tape, rw: read, bs: 4K}}", "one of rbd, rados"),
    ("- {name: a, fio: {engine: rbd, rw: read, bs: 4K}}", "the key 'pool'"),
    ("- {name: a, fio: {engine: libaio, rw: read, bs: 4K}}", "the key 'path'"),
    (
        "- {name: a, fio: {engine: rbd, pool: data, rw: read, bs: 4K, volumes: 2}, "
        "until: {duration: 1s}}",
        "at most the 1 images of pool data",
    ),
    (
        "- {name: a, fio: {engine: rbd, pool: data, rw: read, bs: 4K, options: {output: x}}, "
        "until: {duration: 1s}}",
        "an option of fio that shapes the load",
    ),
    ("- {name: a, osd_out: {osd: first}}", "an OSD's id, or last"),
    ("[]", "at least one phase"),
]


@pytest.mark.parametrize(("phases", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_phase_is_refused_with_its_line(phases: str, message: str) -> None:
    with pytest.raises(match=message) as error:
        plan(with_phases(f"  {phases}\n"))
    assert re.match(r"s\.yaml:\d+: ", str(error.value))


@pytest.mark.parametrize("name", list(library.shipped()))
@pytest.mark.parametrize("scale", ["tiny", "lab", "study"])
def test_every_shipped_scenario_is_valid_at_every_scale(name: str, scale: str) -> None:
    found = shipped_plan(name, scale)
    assert found.scenario == name
    assert found.about
    lines = list(plan_text.lines(found, ProgramPaths(), commands=True))
    assert not any("${" in line for line in lines), "a variable was not filled in"


def test_a_dry_run_shows_every_command_line() -> None:
    lines = "\n".join(plan_text.lines(plan(BASE), ProgramPaths(conf="/c.conf"), commands=True))
    assert "ceph config set osd osd_op_queue wpq" in lines
    assert "ceph osd pool create data 32" in lines
    assert "env CEPH_CONF=/c.conf fio --output-format=json+ --status-interval=1" in lines
    assert lines.count("--iodepth=8 ") == 2


def test_the_heading_says_how_many_runs_and_how_long() -> None:
    heading = "\n".join(plan_text.heading(plan(BASE, repeats=3)))
    assert "4 points of the matrix x 3 repeats = 12 runs, about 8 min" in heading


def test_the_length_of_a_point_is_that_of_its_phases_laid_out() -> None:
    phases = """\
  - name: load
    fio: {engine: rbd, pool: data, rw: read, bs: 4K, depth: "${depth}"}
    until: {duration: 30s}
  - {name: scrub, scrub: {pool: data}, start: {with: load, delay: 5s}, expect: 40s}
  - {name: rest, wait: {}, start: {after: scrub}, until: {duration: 10s}}
"""
    found = plan(with_phases(phases))
    assert point_seconds(found.points[0]) == 55
    assert run_seconds(found) > 4 * 55


# -- capacity ------------------------------------------------------------------------------------


def test_capacity_is_measured_where_the_scenario_says_so_and_the_plan_shows_it() -> None:
    found = shipped_plan("client-vs-scrub", "study")
    assert found.capacity == Capacity(total=12000 << 10, block_size=4096)
    lines = list(plan_text.lines(found, ProgramPaths(), commands=False))
    assert "  capacity of each OSD: measured (11.7 MiB in writes of 4 KiB), set" in lines
    assert plan(BASE).capacity is None
    assert plan("capacity: measured\n" + BASE).capacity == Capacity()
    with pytest.raises(ConfigError, match="capacity: found 'guessed'"):
        plan("capacity: guessed\n" + BASE)


def test_what_was_measured_is_set_for_the_medium_of_the_osd() -> None:
    assert capacity_option(3, True, 431.5) == CephOption(
        "osd.3", "osd_mclock_max_capacity_iops_hdd", "431.50", optional=True
    )
    assert capacity_option(0, False, 21500).name == "osd_mclock_max_capacity_iops_ssd"
