"""What scenarios can say so that they repeat the studies: values of axes that are run by default,
labs and pools as they were for every repeat, several jobs on a volume, CPUs for fio alone."""

import json
from functools import partial
from itertools import groupby

import pytest

from cephqos_base.errors import ConfigError, UsageError
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_loadgen.phase_kinds.fio import Fio
from cephqos_loadgen.plan.place import ProgramPaths
from cephqos_loadgen.plan.planned import Plan
from cephqos_loadgen.run.runner import _cluster_of
from cephqos_loadgen.scenario.parse import Choices, parse

TEXT = """\
scenario: s
scales:
  small: {loads: [read]}
  large: {loads: [read, write]}
only: {load: "${loads}"}
matrix:
  load:
    read: {variables: {rw: read}}
    write: {variables: {rw: write}}
    both: {variables: {rw: rw}}
phases:
  - {name: load, fio: {engine: libaio, path: /dev/x, rw: "${rw}", bs: 4K}, until: {duration: 1s}}
"""


def labels(plan: Plan) -> list[str]:
    return [label for point in plan.points for _, label in point.axes]


def test_a_scale_says_which_values_of_an_axis_are_run_and_the_command_line_overrides_it() -> None:
    assert labels(parse(TEXT, "s", Choices(scale="small"))) == ["read"]
    assert labels(parse(TEXT, "s", Choices(scale="large"))) == ["read", "write"]
    assert labels(parse(TEXT, "s", Choices(scale="small", only={"load": ("both",)}))) == ["both"]


def test_a_default_value_that_the_axis_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"s:\d+: .*found load=wrong; allowed: one of read, w"):
        parse(TEXT.replace("[read]", "[wrong]"), "s", Choices(scale="small"))


LABS = """\
scenario: s
repeats: 2
lab: {fresh: FRESH}
matrix: {n: {one: {flags: [noin]}, two: {flags: [noout]}}}
phases: [{name: rest, wait: {}, until: {duration: 1s}}]
"""


@pytest.mark.parametrize(("fresh", "clusters"), [("true", 4), ("false", 1)])
def test_a_fresh_lab_serves_one_repeat_of_one_point(fresh: str, clusters: int) -> None:
    plan = parse(LABS.replace("FRESH", fresh), "s")
    for given, count in ((False, clusters), (True, 1)):
        key = partial(_cluster_of, existing_cluster=given)
        found = [list(runs) for _, runs in groupby(plan.runs, key=key)]
        assert len(found) == count
    assert sum(map(len, found)) == 4


@pytest.mark.parametrize(
    "pool",
    ["{name: p, emptied: true, fresh: true}", "{name: p, emptied: true, images: {size: 8M}}"],
)
def test_only_a_pool_that_lasts_and_that_phases_fill_can_be_emptied(pool: str) -> None:
    text = f"scenario: s\npools: [{pool}]\nphases: [{{name: s, scrub: {{pool: p}}}}]\n"
    with pytest.raises(ConfigError, match="a pool that phases fill, and that is not fresh"):
        parse(text, "s")


def test_an_emptied_pool_is_kept_only_if_it_says_so() -> None:
    fill = "phases: [{name: s, prefill: {pool: p, objects: {count: 1, size: 4K}}}]\n"
    for own, kept in (("", False), (", keep: true", True)):
        text = f"scenario: s\npools: [{{name: p, emptied: true{own}}}]\n{fill}"
        (pool,) = parse(text, "s", Choices(keep=True)).points[0].pools
        assert (pool.emptied, pool.keep) == (True, kept)


FIO = """\
scenario: s
pools: [{name: p, images: {count: 2, size: 8M}}]
phases:
  - name: load
    fio: {engine: rbd, pool: p, volumes: 2, rw: read, bs: 4K, jobs: 3, rate_iops: 600, cpus: CPUS}
    until: {duration: 1s}
"""


def argv(cpus: str) -> list[str]:
    action = parse(FIO.replace("CPUS", cpus), "s").points[0].phases[0].action
    assert isinstance(action, Fio)
    return action.argv(action.processes()[0], ProgramPaths(), phase="load", seconds=1.0)


def test_several_jobs_on_a_volume_have_names_of_their_own_and_share_the_rate() -> None:
    """fio adds equal names up, and its result would be of one of them."""
    command = argv('""')
    names = [part for part in command if part.startswith("--name=")]
    assert names == [f"--name=volume.{v}.job.{j}" for v in (0, 1) for j in (0, 1, 2)]
    assert command.count("--rbdname=volume.1") == 3
    assert command.count("--rate_iops=100") == 6


@pytest.mark.parametrize(("cpus", "start"), [('"2-3"', "taskset"), ('""', "fio"), ('","', "fio")])
def test_fio_keeps_to_its_cpus_where_it_has_any(cpus: str, start: str) -> None:
    assert argv(cpus)[0] == start


FILESTORE = """\
scenario: s
lab: {backing: loop, objectstore: filestore, fs: xfs, mkfs: "-i size=2048", mount: noatime}
phases: [{name: rest, wait: {}, until: {duration: 1s}}]
"""


def test_options_of_mkfs_and_mount_reach_the_lab() -> None:
    pacific = Choices(release="pacific")
    (point,) = parse(FILESTORE, "s", pacific).points
    spec = point.lab
    spec.validate()
    assert (spec.fs, spec.mkfs, spec.mount) == ("xfs", "-i size=2048", "noatime")
    assert LabSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    (other,) = parse(
        FILESTORE.replace("objectstore: filestore, fs: xfs, ", ""), "s", pacific
    ).points
    with pytest.raises(UsageError, match="mkfs and mount are of FileStore's filesystem"):
        other.lab.validate()
