"""What the alert on replica writes says that clients can have, as a number."""

import re
import subprocess
from dataclasses import replace

import pytest
import yaml
from tests.release_tools import tool
from tests.rules.cases import RULES_OF_CHECKOUT
from tests.rules.qos import RECOVERY_BESIDE, SIZE3, WIDE, osd
from tests.rules.series import IDLE, SimulatedOsd, State, merged

from cephqos_alerts.rules.runbooks import WARNING_SUFFIX

_CAPACITY = 2000.0
_MINUTE = 43  # it tells after half an hour
_TEXT = re.compile(r'Labels:\{([^}]*)\}\s+Annotations:\{description="((?:[^"\\]|\\.)*)"')
_DELIVERED = re.compile(r"deliver ([0-9.]+)% of their capacity")
_FOR_ALL = re.compile(r"Replica writes leave ([0-9.]+)% of it to all classes")
_FOR_CLIENTS = re.compile(r"Clients can have ([0-9.]+)% of it")


def _full(size: int, of_capacity: float, recovery: float = 0, leads: float = 1) -> State:
    """An OSD at its end: each client write that it leads is `size - 1` replica writes elsewhere,
    and as many come to it if it leads as much as others."""
    for_clients = of_capacity * _CAPACITY - recovery
    client = leads * for_clients / size
    return replace(SIZE3, client=client, immediate=for_clients - client, recovery=recovery)


_Timeline = tuple[tuple[float, State], ...]


def _always(state: State) -> _Timeline:
    return ((3, IDLE), (42, state))


# By the name of the cluster: its OSDs, the share of their capacity that they deliver, and the share
# that clients get if nothing but their writes is done: what is delivered / size of the pool.
_CLUSTERS: dict[str, tuple[list[_Timeline], float, float]] = {
    "size-3": ([_always(_full(3, 1.05))], 1.05, 1.05 / 3),
    "size-2": ([_always(_full(2, 0.9))], 0.9, 0.9 / 2),
    "below-its-capacity": ([_always(_full(3, 0.75))] * 2, 0.75, 0.75 / 3),
    # Recovery has no more than its reservation. It is no part of what clients can have.
    "recovery-beside-it": ([_always(_full(3, 1.05, recovery=500))], 1.05, 1.05 / 3),
    # A reservation is for each OSD: what one of them cannot keep, the cluster cannot.
    "one-leads-less": (
        [_always(_full(3, 1.0)), _always(_full(3, 1.0, leads=0.75))],
        1.0,
        0.75 / 3,
    ),
    # One was full and has next to nothing to do now. That its share is small says nothing.
    "one-is-done": (
        [
            _always(_full(3, 1.0)),
            ((3, IDLE), (38, _full(3, 1.0)), (4, replace(IDLE, client=10, immediate=90))),
        ],
        (1.0 + 100 / _CAPACITY) / 2,
        1.0 / 3,
    ),
}


# Clients have all that they want there; recovery does not.
_RECOVERY = "recovery-lacks-something"


def _osds(cluster: str) -> list[SimulatedOsd]:
    timelines = [_always(RECOVERY_BESIDE)] if cluster == _RECOVERY else _CLUSTERS[cluster][0]
    return [replace(osd(*it), id=i, cluster=cluster) for i, it in enumerate(timelines)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The description of the alert of each cluster, by one run of promtool."""
    at = tmp_path_factory.mktemp("figures")
    series = merged(*(one for name in (*_CLUSTERS, _RECOVERY) for one in _osds(name)))
    test = {
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": f"{_MINUTE}m", "alertname": WIDE + WARNING_SUFFIX, "exp_alerts": []},
        ],
    }
    files = [str((RULES_OF_CHECKOUT / name).absolute()) for name in ("recording.yml", "qos.yml")]
    document = {"rule_files": files, "evaluation_interval": "15s", "tests": [test]}
    (at / "test.yml").write_text(yaml.safe_dump(document))
    argv = [*tool("tentacle", "promtool"), "test", "rules", "test.yml"]
    done = subprocess.run(argv, cwd=at, capture_output=True, text=True, timeout=240)
    said = _TEXT.findall(done.stdout + done.stderr)
    return {re.findall(r'cluster="([^"]*)"', labels)[0]: text for labels, text in said}


@pytest.mark.parametrize("cluster", _CLUSTERS)
def test_the_share_that_clients_can_have_is_what_the_size_of_the_pool_leaves(
    cluster: str, texts: dict[str, str]
) -> None:
    _, delivered, for_clients = _CLUSTERS[cluster]
    text = texts[cluster]
    assert [float(it) / 100 for it in _FOR_CLIENTS.findall(text)] == [
        pytest.approx(for_clients, rel=0.01)
    ], text
    assert [float(it) / 100 for it in _DELIVERED.findall(text)] == [
        pytest.approx(delivered, rel=0.01)
    ], text


def test_where_a_background_class_lacks_something_the_share_is_of_all_classes(
    texts: dict[str, str],
) -> None:
    left = (RECOVERY_BESIDE.client + RECOVERY_BESIDE.recovery) / _CAPACITY
    text = texts[_RECOVERY]
    assert [float(it) / 100 for it in _FOR_ALL.findall(text)] == [pytest.approx(left, rel=0.01)], (
        text
    )
    assert not _FOR_CLIENTS.findall(text)
