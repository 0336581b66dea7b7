"""What a killed run has left is found, and the command that gives it back is printed."""

import json
import time
from typing import Any

import pytest

from cephqos_doctor import leftovers
from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import diagnose
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_loadgen.cluster import run_keys
from cephqos_loadgen.cluster.this_host import ThisProcess
from cephqos_loadgen.plan.reading import CLUSTER_FLAGS

from .doctor_facts import found
from .test_doctor_cluster import a_minimal_key, looked_at, osds

QUIET: dict[str, Any] = {"flags": "sortbitwise", "osds": [], "pools": []}


def keys(age: float = 600.0, steps: int = 2, token: str = "0" * 16) -> dict[str, Any]:
    holder = run_keys.Holder("a-run", "0" * 16, "host-a", ThisProcess.now(), 1000.0)
    beat = json.dumps({"token": token, "time": time.time() - age})
    found = {run_keys.KEY: holder.to_text(), run_keys.HEARTBEAT: beat}
    return found | {run_keys.step_key(n): "{}" for n in range(1, steps + 1)}


def found_in(run: Any, osd_map: dict[str, Any] = QUIET) -> list[tuple[str, str]]:
    facts = ClusterFacts(name="client.admin", run_keys=run, osd_map=osd_map)
    diagnosis = diagnose("it", leftovers.CHECKS, facts)
    return [(f"{f.subject}: {f.problem}", f.mend) for _, f in diagnosis.findings]


def test_the_names_of_the_keys_and_flags_are_those_that_a_run_writes() -> None:
    assert (leftovers.KEY, leftovers.HEARTBEAT) == (run_keys.KEY, run_keys.HEARTBEAT)
    assert leftovers.STEPS == run_keys.STEPS
    others = {"nodown", "noup", "pauserd", "pausewr"}  # no run sets these
    assert set(CLUSTER_FLAGS) == leftovers._FLAGS - others


def test_a_pause_ends_by_the_name_that_ceph_knows() -> None:
    paused = found_in({}, QUIET | {"flags": "pauserd,pausewr,sortbitwise"})
    assert [mend.partition("   #")[0] for _, mend in paused] == ["ceph osd unset pause"] * 2


def test_a_cluster_without_a_run_or_with_one_that_lives_has_nothing_left() -> None:
    assert found_in({}) == []
    assert found_in(keys(age=5), QUIET | {"flags": "noscrub"}) == []


async def test_an_option_that_only_some_osds_have_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one of 20 on one OSD, and the default elsewhere: groups peered for ever (#43534)."""

    def entry(osd: int, name: str, value: str) -> dict[str, str]:
        return {"section": f"osd.{osd}", "name": name, "value": value, "mask": ""}

    stored = [
        entry(1, "osd_async_recovery_min_cost", "20"),
        *(entry(osd, "osd_max_scrubs", "3") for osd in (0, 1, 2)),
        entry(1, "osd_mclock_max_capacity_iops_ssd", "21000"),
        {"section": "osd", "name": "osd_max_backfills", "value": "2", "mask": ""},
        entry(1, "osd_max_backfills", "1") | {"mask": "class:hdd"},
    ]

    def answer(target: str, prefix: str) -> Any:
        if prefix == "config dump":
            return stored
        return a_minimal_key(target, prefix, dump=osds(0, 1, 2))

    facts, _ = await looked_at(monkeypatch, answer, try_powers=False)
    [finding] = found(leftovers.CHECKS, facts)["set-for-all"]
    assert finding.subject == "osd_async_recovery_min_cost"
    assert finding.problem == "it is set for osd.1 (20), and not for the other OSDs"
    assert "ceph config rm osd.1 osd_async_recovery_min_cost   #" in finding.mend


def test_options_of_the_store_from_an_older_release_are_found() -> None:
    stored = [
        {"section": "osd", "mask": "class:hdd", "name": "bluestore_cache_size_hdd", "value": "9"},
        {"section": "global", "mask": "", "name": "bluestore_allocator", "value": "bitmap"},
        {"section": "osd", "mask": "", "name": "bluestore_throttle_bytes", "value": "9"},
        {"section": "osd.1", "mask": "", "name": "bluestore_allocator", "value": "bitmap"},
    ]
    facts = ClusterFacts(name="x", osd_map=QUIET | {"osds": [{}, {}]}, stored=stored)
    findings = found(leftovers.CHECKS, facts)["store-as-released"]
    assert [one.mend.partition("   #")[0] for one in findings] == [
        "ceph config rm osd/class:hdd bluestore_cache_size_hdd",
        "ceph config rm global bluestore_allocator",
    ]


@pytest.mark.parametrize(
    ("steps", "words"), [(2, "left 2 changes that are not undone"), (0, "left its key, and no")]
)
def test_a_run_that_died_is_named_with_the_command_that_gives_everything_back(
    steps: int, words: str
) -> None:
    ((text, mend),) = found_in(keys(steps=steps))
    assert text.startswith("cephqos/run: run a-run on host-a has died or was ended: it " + words)
    assert mend == "cephqos run --restore-only --conf /etc/ceph/ceph.conf"


def test_steps_whose_key_was_removed_and_keys_of_others_are_said_too() -> None:
    ((text, _),) = found_in({run_keys.step_key(1): "{}"})
    assert "a run has died or was ended: it left 1 changes" in text
    for strange in ("{", "[]", "7", "[" * 5000):
        assert len(found_in({run_keys.KEY: strange})) == 1


def test_a_heartbeat_of_another_run_says_nothing_about_this_one() -> None:
    assert len(found_in(keys(age=1, token="f" * 16))) == 1


def test_flags_are_told_while_no_run_lives() -> None:
    osd_map = QUIET | {
        "flags": "sortbitwise,noout,noscrub",
        "osds": [{"osd": 3, "state": ["exists", "noup"]}, {"osd": 4, "state": ["exists"]}],
        "crush_node_flags": {"host-a": ["noout"]},
    }
    assert [mend.partition("   #")[0] for _, mend in found_in({}, osd_map)] == [
        "ceph osd unset noout",
        "ceph osd unset noscrub",
        "ceph osd unset-group noup osd.3",
        "ceph osd unset-group noout host-a",
    ]
    assert "if no run is under way" in found_in(None, osd_map)[0][0]


def test_a_pool_that_a_run_did_not_finish_is_told_and_kept_or_other_pools_are_not() -> None:
    pools = [
        {"pool_name": "rbd", "application_metadata": {"rbd": {}}},
        {"pool_name": "kept", "application_metadata": {"cephqos": {"run": "r", "spec": "x"}}},
        {"pool_name": "half", "application_metadata": {"cephqos": {"run": "r"}}},
        {"pool_name": "cephqos.0123456789abcdef.new", "application_metadata": {}},
    ]
    subjects = [text.partition(":")[0] for text, _ in found_in({}, QUIET | {"pools": pools})]
    assert subjects == ["pool half", "pool cephqos.0123456789abcdef.new"]


def test_overrides_of_weights_are_named_with_how_many_there_are() -> None:
    weights = (1.0, 0.95, 0, 0.5, None)
    osds = [{"osd": n, "weight": weight} for n, weight in enumerate(weights)]
    ((text, mend),) = found_in({}, QUIET | {"osds": osds})
    assert text.startswith("osd.1, osd.3: 2 OSDs are reweighted")
    assert mend.startswith("ceph osd reweight osd.1 1   #")
    ((text, _),) = found_in({}, QUIET | {"osds": osds[:2]})
    assert text.startswith("osd.1: 1 OSD is reweighted")


@pytest.mark.parametrize(
    ("required", "versions", "mend"),
    [
        ("quincy", ["ceph version 18.2.7 (6b0e98) reef (stable)"], "reef"),
        ("pacific", ["ceph version 18.2.7", "ceph version 18.2.1"], "NAME"),
        ("reef", ["ceph version 18.2.7 (6b0e98) reef (stable)"], ""),
        ("quincy", ["ceph version 17.2.7", "ceph version 18.2.7"], ""),  # under way
        ("quincy", ["?"], ""),
        ("", ["ceph version 18.2.7"], ""),
    ],
)
def test_an_upgrade_without_its_last_step_is_found(
    required: str, versions: list[str], mend: str
) -> None:
    osd_map = QUIET | {"require_osd_release": required}
    facts = ClusterFacts(name="client.admin", osd_map=osd_map, versions={"osd": versions})
    said = [found.mend for found in leftovers._upgrade(facts)]
    wanted = f"ceph osd require-osd-release {mend}   # cannot be taken back"
    assert said == ([wanted] if mend else [])


async def test_only_an_admins_key_is_used_to_read_what_runs_keep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for powers, known in ((False, False), (True, True)):
        facts, cluster = await looked_at(monkeypatch, a_minimal_key, try_powers=powers)
        assert (("mon", "config-key dump") in cluster.asked) == powers
        assert (facts.run_keys is not None) == known

    def denied(target: str, prefix: str) -> Any:
        if prefix == "config-key dump":
            raise CommandFailed(prefix, -13, "access denied")
        return a_minimal_key(target, prefix)

    facts, _ = await looked_at(monkeypatch, denied)
    skipped = dict(diagnose("it", leftovers.CHECKS, facts).skipped)
    assert skipped.pop("no-run-left") == "needs client.admin, or --try-powers"
    assert set(skipped) <= {"upgrade-finished", "set-for-all", "store-as-released"}
