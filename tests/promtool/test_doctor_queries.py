"""What the doctor asks a Prometheus, evaluated by its own tool over made-up series."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.recorded import RELEASES
from tests.release_tools import tool

from cephqos_doctor import prometheus_queries as queries

A, B = "aaaaaaaa-1111-2222-3333-444444444444", "bbbbbbbb-1111-2222-3333-444444444444"
STEPS = 260  # of 15 s: more than the hour that intervals are taken from
ON = {"job": "cephqos", "instance": "a:10130"}
ALSO = {"job": "cephqos", "instance": "b:10130"}
CEPHS = {"job": "ceph", "instance": "a:9926"}
Series = list[tuple[str, dict[str, str], str]]
Answers = dict[str, list[tuple[dict[str, str], float]]]


def steady(name: str, labels: dict[str, str]) -> tuple[str, dict[str, str], str]:
    return name, labels, f"1x{STEPS}"


def osd(target: dict[str, str], cluster: str = A, **more: str) -> tuple[str, dict[str, str], str]:
    labels = {"ceph_daemon": "osd.1", "cluster": cluster}
    return steady("cephqos_daemon_up", labels | target | more)


def counter(target: dict[str, str], **more: str) -> tuple[str, dict[str, str], str]:
    return steady("ceph_osd_op_w", {"ceph_daemon": "osd.1"} | target | more)


UNKNOWN = {"ceph_daemon": "osd.1", "cluster": A, "collector": "mclock", "what": "class"}
INFO = steady("cephqos_exporter_build_info", ON)
THEIR_OWN = counter(CEPHS)
EVERY = {"DOWN": queries.DOWN, "INTERVALS": queries.INTERVALS}
EVERY |= {name.upper(): text for name, text in queries.FACTS.items()}
# What is there, and the queries with an answer: each subject's labels, and its value.
CASES: dict[str, tuple[Series, Answers]] = {
    "all is well": ([osd(ON), steady("up", ON)], {"INTERVALS": [({"job": "cephqos"}, 15)]}),
    "an exporter is down": (
        [("up", ON, f"0x{STEPS}")],
        {"DOWN": [(ON, 0)], "INTERVALS": [({"job": "cephqos"}, 15)]},
    ),
    "two targets": (
        [osd(ON), osd(ALSO)],
        {"DOUBLED_OSDS": [({"ceph_daemon": "osd.1", "cluster": A}, 2)]},
    ),
    "a pair that was not merged": (
        [osd(ON, replica="a"), osd(ON, replica="b")],
        {"REPLICAS": [({"ceph_daemon": "osd.1", "cluster": A} | ON, 2)]},
    ),
    "two clusters with an OSD of the same number": ([osd(ON), osd(ALSO, B)], {}),
    "two exporters of the role cluster": (
        [
            steady("cephqos_cluster_up", {"cluster": A} | ON),
            steady("cephqos_cluster_up", {"cluster": A} | ALSO),
        ],
        {"DOUBLED_CLUSTERS": [({"cluster": A}, 2)]},
    ),
    "the role cluster by a pair": (
        [
            steady("cephqos_cluster_up", {"cluster": A, "replica": "a"} | ON),
            steady("cephqos_cluster_up", {"cluster": A, "replica": "b"} | ON),
        ],
        {},
    ),
    "Ceph's counters twice": (
        [INFO, counter(ON, cluster=A), THEIR_OWN],
        {"DOUBLED_COUNTERS": [({"ceph_daemon": "osd.1", "cluster": A}, 1)]},
    ),
    "Ceph's counters twice, the others with the cluster": (
        [INFO, counter(ON, cluster=A), counter(CEPHS, cluster=A)],
        {"DOUBLED_COUNTERS": [({"ceph_daemon": "osd.1", "cluster": A}, 1)]},
    ),
    "Ceph's counters of another cluster": (
        [INFO, counter(ON, cluster=A), counter(CEPHS, cluster=B)],
        {},
    ),
    "Ceph's counters from others alone": ([INFO, THEIR_OWN], {}),
    "a label that hides another": (
        [osd(ON, exported_ceph_daemon="osd.1"), osd(ALSO, B, exported_cluster=B)],
        {"LABEL_TAKEN": [(ON, 1), (ALSO, 1)]},
    ),
    "replies that are not understood": (
        [("cephqos_collector_not_understood_total", UNKNOWN | ON, f"0+1x{STEPS}")],
        {"NOT_UNDERSTOOD": [(UNKNOWN | {"instance": ON["instance"]}, 40)]},
    ),
    "a recorder that keeps no more": (
        [
            steady("cephqos_recorder_pages_total", ON),
            ("cephqos_recorder_lost_total", ON | {"reason": "full"}, f"_x{STEPS - 10} 2x10"),
        ],
        {
            "RECORDERS": [({"instance": ON["instance"]}, 1)],
            "RECORDER_LOST": [({"instance": ON["instance"], "reason": "full"}, 2)],
        },
    ),
    "replies that were not understood yesterday": (
        [("cephqos_collector_not_understood_total", UNKNOWN | ON, f"7x{STEPS}")],
        {},
    ),
    "an exporter that was scraped once a minute": (
        [("up", ON, " ".join(["1", *(["_ _ _ 1"] * (STEPS // 4))]))],
        {"INTERVALS": [({"job": "cephqos"}, 60)]},
    ),
    "a gap of five minutes": (
        [("up", ON, f"1x{STEPS - 40} _x20 1x20")],
        {"INTERVALS": [({"job": "cephqos"}, 15)]},
    ),
    "a target that is new": ([("up", ON, f"_x{STEPS - 10} 1x10")], {"INTERVALS": []}),
}
IGNORED = {"EXPORTERS", "INTERVALS"}  # where a case does not name them


def series(name: str, labels: dict[str, str], values: str) -> dict[str, str]:
    inner = ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
    return {"series": f"{name}{{{inner}}}", "values": values}


def group(given: Series, answers: Answers) -> dict[str, Any]:
    """A case as promtool takes it: what is not named has no answer."""
    expected: Answers = {name: [] for name in EVERY if name not in IGNORED} | answers
    return {
        "interval": "15s",
        "input_series": [series(*one) for one in given],
        "promql_expr_test": [
            {
                "expr": EVERY[name],
                "eval_time": f"{15 * STEPS}s",
                "exp_samples": [series_of(name, labels, value) for labels, value in samples],
            }
            for name, samples in expected.items()
        ],
    }


@pytest.mark.parametrize("release", RELEASES)
def test_a_query_of_the_doctor_answers_when_it_should_and_only_then(
    release: str, tmp_path: Path
) -> None:
    for number, case in enumerate(CASES):
        document = {"evaluation_interval": "15s", "tests": [group(*CASES[case])]}
        (tmp_path / f"{number}.yml").write_text(yaml.safe_dump(document, sort_keys=False))
    files = [f"{number}.yml" for number in range(len(CASES))]
    argv = [*tool(release, "promtool"), "test", "rules", *files]
    done = subprocess.run(
        argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, "\n".join(
        [f"{n}: {case}" for n, case in enumerate(CASES)] + [said]
    )
    assert said.count("SUCCESS") == len(CASES)


def series_of(name: str, labels: dict[str, str], value: float) -> dict[str, object]:
    metric = "up" if name == "DOWN" else ""
    return {"labels": series(metric, labels, "")["series"], "value": value}


def test_every_query_is_tried() -> None:
    tried = {name for _, answers in CASES.values() for name, samples in answers.items() if samples}
    assert tried == set(EVERY) - {"EXPORTERS"}
