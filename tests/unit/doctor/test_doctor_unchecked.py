"""What the doctor could not look at is not what it found to be well."""

from typing import Any

import pytest

from cephqos_doctor.cli import CLUSTER_CHECKS, HOST_CHECKS, PROMETHEUS_CHECKS
from cephqos_doctor.cluster_facts import ClusterFacts
from cephqos_doctor.finding import diagnose
from cephqos_doctor.prometheus_facts import PrometheusFacts

from .doctor_facts import host

NAME = "client.cephqos"
WITH_MANAGER = {"mgrmap": {"available": True}, "pgmap": {"num_pgs": 1}}


@pytest.mark.parametrize(
    ("checks", "facts", "made"),
    [
        (CLUSTER_CHECKS, ClusterFacts(name=NAME, failure="timed out"), {"cluster-reachable"}),
        (
            PROMETHEUS_CHECKS,
            PrometheusFacts(url="http://x", failure="refused"),
            {"prometheus-reachable"},
        ),
        (
            HOST_CHECKS,
            host(osds=()),
            {
                *("directories-readable", "sockets-found", "sockets-permitted"),
                *("osds-answer", "exporter-user", "clock-synchronised"),
            },
        ),
    ],
)
def test_where_nobody_answers_only_that_is_checked(checks: Any, facts: Any, made: set[str]) -> None:
    told = diagnose("it", checks, facts)
    skipped = dict(told.skipped)
    assert set(told.checks) - skipped.keys() == made
    assert {name for name, _ in told.findings} <= made
    assert f"it: {len(made)} check" in told.text()
    assert told.text().count("not checked: ") == len(set(skipped.values()))


def test_a_key_is_not_called_minimal_where_it_was_not_tried() -> None:
    """The manager hangs: whether it would have started a scrub is not known."""
    facts = ClusterFacts(
        name=NAME,
        unanswered="pg dump",
        unasked=("start scrubs",),
        status=WITH_MANAGER,
        balancing=True,
        osd_map={"osds": []},
        run_keys={},
    )
    skipped = dict(diagnose("cluster", CLUSTER_CHECKS, facts).skipped)
    assert skipped == {
        "caps-sufficient": "the manager does not answer",
        "caps-minimal": "whether the key can start scrubs",
        "upgrade-finished": "the releases of the OSDs, or what the map requires, are not known",
        "addresses-unique": "no OSD that is up shows its addresses",
        "clients-fenced": "the map of the OSDs shows no blocklist",
        "cluster-release-faults": "the daemons' releases, or the OSDs' map, are not known",
        "copies-apart": "pools, rules or the tree of the OSDs are not known",
        "rules-have-osds": "pools, rules or the tree of the OSDs are not known",
        "classes-as-media": "the tree of the OSDs, or what their devices are, is not known",
        "set-for-all": "the options that monitors keep are not known",
        "store-as-released": "the options that monitors keep are not known",
        "down-is-reported": "the tree of the OSDs, or how many must report one, is not known",
        "recovery-slots": "needs client.admin, or --try-powers",
        "settings-kept": "needs client.admin, or --try-powers",
    }


def test_what_a_key_can_do_is_told_whoever_else_does_not_answer() -> None:
    facts = ClusterFacts(
        name=NAME,
        denied=("mon 'allow service osd r'",),
        powers=("read keys",),
        unanswered="pg dump",
        unasked=("start scrubs",),
        status=WITH_MANAGER,
        balancing=True,
        osd_map={"osds": []},
        run_keys={},
    )
    told = diagnose("cluster", CLUSTER_CHECKS, facts)
    assert {name for name, _ in told.skipped} == {
        *("upgrade-finished", "addresses-unique", "recovery-slots", "settings-kept"),
        *("clients-fenced", "cluster-release-faults", "copies-apart", "down-is-reported"),
        *("rules-have-osds", "classes-as-media", "set-for-all", "store-as-released"),
    }
    assert {name for name, _ in told.findings} == {
        *("caps-sufficient", "caps-minimal", "manager-active")
    }
