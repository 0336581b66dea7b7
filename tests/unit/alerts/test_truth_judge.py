"""How the staged-fault suite judges what came to the receiver."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from tests.truth import load_all
from tests.truth.faults import FAULTS, LOADS
from tests.truth.runbook import queries, shown, waited_at
from tests.truth.table import table

from cephqos_base.errors import UsageError
from cephqos_stack.staged.judge import SEEN_OF_IT, Heard, judge
from cephqos_stack.staged.situation import ExpectedFinding, Situation, StagedCluster, load

VIOLATED = "CephQosReservationViolated"
DEVICE = ExpectedFinding(alert=(VIOLATED,), osd=1, cause="device", severity="critical")


def _situation(*expect: ExpectedFinding, allow: tuple[ExpectedFinding, ...] = ()) -> Situation:
    return Situation(
        name="s", about="a", digest="d", cluster=StagedCluster(), expect=expect, allow=allow
    )


def _heard(osd: int, cause: str, after: float = 10, severity: str = "critical") -> Heard:
    labels = {"alertname": VIOLATED, "ceph_daemon": f"osd.{osd}", "cause": cause}
    return Heard(after, labels | {"severity": severity})


@pytest.mark.parametrize(
    ("heard", "verdict"),
    [
        ([_heard(1, "device")], "right"),
        ([], "missed"),
        ([_heard(1, "device", after=31)], "late"),
        ([_heard(1, "capacity")], "wrong cause"),
        ([_heard(1, "device", severity="warning")], "wrong cause"),
        ([_heard(1, "device"), _heard(0, "unknown")], "wrong OSD"),
        ([_heard(1, "device"), Heard(10, {"alertname": "CephQosThreadAtCeiling"})], "wrong cause"),
    ],
)
def test_a_fault_is_right_only_with_its_osd_and_cause_and_nothing_else(
    heard: list[Heard], verdict: str
) -> None:
    assert judge(_situation(DEVICE), heard, 0)[0] == verdict


def test_an_alert_with_two_ways_of_seeing_it_is_right_with_the_expected_one() -> None:
    wanted = ExpectedFinding(alert=("CephQosCapacityUnderstated",), seen="limit")
    labels = {"alertname": "CephQosCapacityUnderstated", "severity": "warning"}
    verdicts = [
        judge(_situation(wanted), [Heard(9, {**labels, "seen": seen})], 0)[0]
        for seen in ("limit", "delivered")
    ]
    assert verdicts == ["right", "wrong cause"]


def test_an_alert_about_many_osds_is_right_if_it_names_the_osd_that_is_meant() -> None:
    wanted = ExpectedFinding(alert=("CephQosOsdSlow",), osd=1, cause="device")
    labels = {"alertname": "CephQosOsdSlow", "severity": "warning", "cause": "device"}
    verdicts = [
        judge(_situation(wanted), [Heard.of(9, labels, f"Slow. Worst first: {worst}.")], 0)[0]
        for worst in ("osd.2 on host h (1s), osd.1 on host h (90ms)", "osd.12 (1s)", "not known")
    ]
    assert verdicts == ["right", "wrong cause", "wrong cause"]


def test_anything_on_a_healthy_cluster_is_false_unless_it_is_allowed() -> None:
    heard = [_heard(0, "unknown")]
    assert judge(_situation(), [], 0)[0] == "right"
    assert judge(_situation(), heard, 0)[0] == "false"
    allowed = ExpectedFinding(alert=(VIOLATED,), cause="unknown")
    assert judge(_situation(allow=(allowed,)), heard, 0)[0] == "right"


def test_a_fault_that_was_not_found_is_missed_unless_the_watching_failed_before_it() -> None:
    before, after = (
        Heard(at, {"alertname": "CephQosCollectorFailing", "severity": "warning"}) for at in (5, 15)
    )
    assert judge(_situation(DEVICE), [before], 0)[0] == "not run"
    assert judge(_situation(DEVICE), [after], 0)[0] == "missed"
    assert judge(_situation(DEVICE), [after, _heard(1, "device", after=31)], 0)[0] == "late"
    assert judge(_situation(DEVICE), [before, _heard(1, "device")], 0)[0] == "right"
    assert judge(_situation(DEVICE), [before, _heard(1, "capacity")], 0)[0] == "wrong cause"


def test_a_healthy_cluster_that_was_not_watched_proves_nothing() -> None:
    failing = Heard(9, {"alertname": "CephQosTooFewSamples", "severity": "warning"})
    assert judge(_situation(), [failing], 0) == ("not run", None, [])
    assert judge(_situation(), [failing, _heard(0, "unknown")], 0)[0] == "false"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("wait for it.\nIts device is slow or has stopped.\n", "device"),
        ("wait for it. Its threads wait\nfor a CPU.", "cpu"),
        ("Neither its device nor its CPU shows why: look at its log and its network.", "network"),
        ("wait for it.", "not said"),
    ],
)
def test_the_cause_of_replica_slow_is_what_its_description_says(text: str, cause: str) -> None:
    labels = {"alertname": "CephQosReplicaSlow", "ceph_daemon": "osd.1"}
    assert Heard.of(10, labels, text).labels["cause"] == cause


def test_an_osd_that_does_not_answer_has_a_cause_if_its_host_shows_one() -> None:
    labels = {"alertname": "CephQosDaemonNotAnswering", "ceph_daemon": "osd.1"}
    assert Heard.of(10, labels, "Its threads wait for a CPU.").labels["cause"] == "cpu"
    assert "cause" not in Heard.of(10, labels, "the OSD hangs, or its device does.").labels


@pytest.mark.parametrize(
    ("text", "cause", "culprit"),
    [
        ("short. Likely cause: cpu by other_programs. Can it wait", "cpu", "other_programs"),
        (
            "short. Likely cause: network by osd.4 on host ceph4. Also: cpu by osd.2.",
            "network",
            "osd.4",
        ),
        ("short. Likely cause: device. Also: network by osd.1.", "device", None),
        ("short. Can it wait: no.", "unknown", None),
    ],
)
def test_cause_and_culprit_are_what_the_description_says(
    text: str, cause: str, culprit: str | None
) -> None:
    heard = Heard.of(10, {"alertname": VIOLATED, "ceph_daemon": "osd.1"}, text)
    assert (heard.labels["cause"], heard.labels.get("by")) == (cause, culprit)


def test_every_word_that_the_judge_looks_for_is_in_the_alert() -> None:
    rules = " ".join(Path("alerts/rules/qos.yml").read_text(encoding="utf-8").split())
    assert all(words in rules for words in SEEN_OF_IT)


def test_where_an_operation_waited_is_its_longest_gap_between_two_events() -> None:
    def op(*events: tuple[int, str]) -> dict[str, Any]:
        times = [
            {"time": f"2026-11-25T04:00:{second:02}.000000+0000", "event": event}
            for second, event in events
        ]
        begun = {"initiated_at": times[0]["time"], "age": 30.0}
        return {"description": "osd_op(client.1)", **begun, "type_data": {"events": times}}

    done = (10, "done")

    begun = ((0, "initiated"), (1, "queued_for_pg"))
    assert waited_at(op(*begun, (9, "reached_pg"), done)) == "in the scheduler"
    own = ((1, "reached_pg"), (1, "started"), (2, "sub_op_commit_rec from 2"), (9, "op_commit"))
    assert waited_at(op(*begun, *own, done)) == "for its own device or CPU"
    peer = ((1, "reached_pg"), (1, "started"), (2, "op_commit"), (9, "sub_op_commit_rec from 2"))
    assert waited_at(op(*begun, *peer, done)) == "for another OSD"
    assert waited_at(op(*begun)) is None
    assert waited_at(op(*begun, (1, "reached_pg"), (1, "waiting for peered"), done)) is None
    assert waited_at(op(*begun, *own[:3])) == "for its own device or CPU", "it waits now"
    assert waited_at(op(*begun, *peer[:3])) == "for another OSD"


def test_a_runbook_for_one_osd_is_not_tried_for_an_alert_that_counts_osds() -> None:
    labels = {"alertname": "CephQosDaemonNotAnswering", "severity": "warning", "cluster": "c1"}
    assert asyncio.run(shown(cast(Any, None), [Heard(40, labels)])) == {}


def test_a_seed_turns_the_osds() -> None:
    assert judge(_situation(DEVICE), [_heard(2, "device")], 1)[0] == "right"
    assert judge(_situation(DEVICE), [_heard(1, "device")], 1)[0] == "wrong OSD"


def test_every_file_is_a_situation_of_known_loads_and_faults_half_of_them_healthy() -> None:
    found = load_all()
    assert len(found) >= 40
    assert 0.4 <= sum(it.healthy for it in found) / len(found) <= 0.6
    assert {load.kind for it in found for load in it.loads} <= LOADS.keys()
    assert {fault.kind for it in found for fault in it.faults} <= FAULTS.keys()
    for situation in found:
        situation.cluster.spec("truth").validate()


def test_a_setting_that_is_true_is_written_as_ceph_has_it(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("{about: a, cluster: {settings: {x: true, y: 2}}, config: {z: false}}", "utf-8")
    found = load(path)
    assert found.cluster.settings == (("x", "true"), ("y", "2"))
    assert found.config == {"z": "false"}


def test_an_unknown_key_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("about: a\nlods: []\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"s\.yaml.*lods"):
        load(path)


def test_the_table_has_a_line_for_each_situation_and_sums() -> None:
    row = {"seed": 0, "digest": "d", "critical": False, "others": [], "note": "", "seen": {}}
    row["watched"] = 600.0
    rows = [
        {**row, "name": "calm", "healthy": True, "verdict": "right", "seconds": None},
        {
            **row,
            "name": "slow",
            "healthy": False,
            "verdict": "right",
            "seconds": 12.3,
            "stayed": 0.93,
        },
        {
            **row,
            "name": "slow",
            "healthy": False,
            "verdict": "missed",
            "seconds": None,
        },
    ]
    text = table(rows)
    assert "| slow | 2 | 1 right, 1 missed | 12 | 93% |  |" in text
    assert "faults: 2 runs of 1 situations: 1 right, 1 missed; wrong critical alerts in 0;" in text
    *_, watched, rules = text.splitlines()
    assert watched.endswith("watched for 20 minutes")
    assert "recorded series" in rules


def test_the_queries_of_a_runbook_are_those_to_look_at_first_and_those_of_the_cause() -> None:
    device, cpu = (queries(VIOLATED, cause) for cause in ("device", "cpu"))
    first = 'osd_class:cephqos_reserved_ops{ceph_daemon="osd.N"}'
    assert device[0] == cpu[0] == first
    assert 'osd_at:cephqos_seconds:rate{at="device"}' in set(device) - set(cpu)
    limited = set(queries(VIOLATED, "cpu", "cpu_limit"))
    assert any("cephqos_cgroup" in query for query in limited - set(cpu) - set(device))
    assert not any("cephqos_cgroup" in query for query in (*device, *cpu))
    assert queries("CephQosReplicaSlow", "other_osd")
