"""Who waits for whom, from the rates of the account."""

import json
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from tests.unit.doctor.test_doctor_http import serving

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_doctor.blame import BlameFailed, Sample, add_options, edges, roots, table

Handler = Callable[[web.Request], Awaitable[web.Response]]


def sample(osd: str, state: str, rate: float, by: str = "") -> Sample:
    return {"cluster": "c", "ceph_daemon": osd, "state": state, "by": by}, rate


ACCOUNT = [
    sample("osd.0", "queue", 1.0, "client"),
    sample("osd.0", "replica", 4.0, "osd.1"),
    sample("osd.0", "replica", 0.5, "unknown"),
    sample("osd.1", "store_device", 2.0),
    sample("osd.1", "cpu", 0.0),
]
REPLICAS = [sample("osd.1", "store_device", 6.0), sample("osd.1", "queue", 2.0)]


def test_time_on_a_replica_is_followed_to_what_the_replica_waits_for() -> None:
    found = {(e.waiter, e.osd, e.state, e.by): e.seconds for e in edges(ACCOUNT, REPLICAS)}
    assert found == {
        ("osd.0", "osd.1", "store_device", ""): 3.0,
        ("osd.1", "osd.1", "store_device", ""): 2.0,
        ("osd.0", "osd.0", "queue", "client"): 1.0,
        ("osd.0", "osd.1", "queue", ""): 1.0,
        ("osd.0", "unknown", "unknown", ""): 0.5,
    }


def test_no_second_is_lost_on_the_way_and_none_is_made_up() -> None:
    for replicas in (REPLICAS, []):
        assert sum(e.seconds for e in edges(ACCOUNT, replicas)) == sum(r for _, r in ACCOUNT)


def test_a_replica_without_an_account_of_its_own_is_where_the_evidence_ends() -> None:
    found = {(e.waiter, e.osd, e.state): e.seconds for e in edges(ACCOUNT, [])}
    assert found["osd.0", "osd.1", "unknown"] == 4.0


def test_the_table_names_the_worst_place_first_and_its_waiters() -> None:
    worst = roots(edges(ACCOUNT, REPLICAS))
    lines = table(worst, 2).splitlines()
    assert lines[0] == "Clients wait 7.50 seconds per second."
    first = " ".join(lines[2].split())
    assert first == "5.00 67 % osd.1 store_device osd.0 3.00, osd.1 2.00"
    assert " ".join(lines[-1].split()) == "1.50 20 % 2 other places"
    assert table([], 5) == "No client operation was completed."


def test_osds_of_two_clusters_are_two() -> None:
    other = [({**labels, "cluster": "d"}, rate) for labels, rate in ACCOUNT]
    worst = roots(edges([*ACCOUNT, *other], REPLICAS))
    assert [root.seconds for root in worst[:2]] == [5.0, 4.0]


async def run(answer: Handler, *options: str) -> int:
    parser = Parser(prog="cephqos blame")
    add_options(parser)
    async with serving(answer) as url:
        arguments = parser.parse_args(["--prometheus", url, *options])
        status: int = await arguments.run(arguments)
        return status


async def prometheus(request: web.Request) -> web.Response:
    query = str((await request.post())["query"])
    assert "[300s]" in query
    samples = REPLICAS if "account_replica_seconds" in query else ACCOUNT
    result = [{"metric": labels, "value": [1.0, str(rate)]} for labels, rate in samples]
    return web.json_response({"status": "success", "data": {"result": result}})


async def test_the_command_asks_prometheus_once_for_each_account(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await run(prometheus) == 0
    assert "osd.1 store_device" in capsys.readouterr().out
    assert await run(prometheus, "--json") == 0
    assert [edge["seconds"] for edge in json.loads(capsys.readouterr().out)][:2] == [3.0, 2.0]


@pytest.mark.parametrize("body", [{"data": {"result": []}}, {"data": {}}, [], {"data": 1}])
async def test_a_prometheus_without_an_account_is_no_cluster_that_waits_for_nothing(
    body: object,
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(body)

    with pytest.raises(BlameFailed):
        await run(answer)
    with pytest.raises(UsageError, match="at least a minute"):
        await run(answer, "--since", "10s")
