"""Who waits for whom, from the rates of the account."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from aiohttp import web
from tests.fake_server import serving
from tests.unit.insight.test_who import VM_17, stand_in

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.prometheus import Sample
from cephqos_base.servers import NoAnswer
from cephqos_insight.blame import (
    BlameFailed,
    Edge,
    Tenants,
    add_options,
    before_of,
    edges,
    error_queries,
    roots,
    table,
    tenants_of,
    waits,
)
from cephqos_insight.shared import QUERIES as TRAITS
from cephqos_insight.who import queries

Handler = Callable[[web.Request], Awaitable[web.Response]]


def sample(osd: str, state: str, rate: float, by: str = "") -> Sample:
    return {"cluster": "c", "ceph_daemon": osd, "state": state, "by": by}, rate


ACCOUNT = [
    sample("osd.0", "queue", 1.0, "client"),
    sample("osd.0", "replica", 4.0, "osd.1"),
    sample("osd.0", "replica", 0.5, "other"),
    sample("osd.1", "store_device", 2.0),
    sample("osd.1", "cpu", 0.0),
]
REPLICAS = [sample("osd.1", "store_device", 6.0), sample("osd.1", "queue", 2.0)]


def tenant(osd: str, name: str, state: str, seconds: float) -> Sample:
    who = {"kind": "image", "pool_id": "3", "tenant": name} if name else {"kind": "other"}
    return {"cluster": "c", "ceph_daemon": osd, "state": state, **who}, seconds


ANSWERS: Mapping[str, Sequence[Sample]] = {
    "account": ACCOUNT,
    "replicas": REPLICAS,
    "seconds": [
        tenant("osd.0", "17af", "waiting", 30.0),
        tenant("osd.0", "02bc", "waiting", 8.0),
        tenant("osd.0", "", "waiting", 2.0),
        tenant("osd.0", "02bc", "working", 50.0),
    ],
    "squares": [({"cluster": "c", "ceph_daemon": "osd.0", "state": "waiting"}, 40.0)],
    "counted": [],
    "counted_for_others": [],
    "shortfall": [],
    "pools": [({"cluster": "c", "pool_id": "3", "pool": "rbd"}, 1.0)],
}
TENANTS = tenants_of(ANSWERS)


def test_time_on_a_replica_is_followed_to_what_the_replica_waits_for() -> None:
    found = {(e.waiter, e.osd, e.state, e.by): e.seconds for e in waits(ACCOUNT, REPLICAS)}
    assert found == {
        ("osd.0", "osd.1", "store_device", ""): 3.0,
        ("osd.1", "osd.1", "store_device", ""): 2.0,
        ("osd.0", "osd.0", "queue", "client"): 1.0,
        ("osd.0", "osd.1", "queue", ""): 1.0,
        ("osd.0", "other OSDs", "unknown", ""): 0.5,
    }


def test_osds_without_a_name_are_not_taken_for_tenants_without_a_name() -> None:
    found = edges(roots(waits(ACCOUNT, REPLICAS)), TENANTS)
    from_other = {e.waits_for: e.seconds for e in found if e.waiter == "other"}
    assert from_other == {"osd.0": pytest.approx(5.5 * 2 / 40)}
    from_others = {e.waits_for: e.seconds for e in found if e.waiter == "other OSDs"}
    assert from_others == {"other OSDs unknown": 0.5}


def test_no_second_is_lost_on_the_way_and_none_is_made_up() -> None:
    for replicas in (REPLICAS, []):
        assert sum(e.seconds for e in waits(ACCOUNT, replicas)) == sum(r for _, r in ACCOUNT)


def test_a_replica_without_an_account_of_its_own_is_where_the_evidence_ends() -> None:
    found = {(e.waiter, e.osd, e.state): e.seconds for e in waits(ACCOUNT, [])}
    assert found["osd.0", "osd.1", "unknown"] == 4.0


def test_the_table_names_the_worst_place_first_and_its_waiters() -> None:
    worst = roots(waits(ACCOUNT, REPLICAS))
    lines = table(worst, {}, 2).splitlines()
    assert lines[0] == "Clients wait 7.50 seconds per second."
    assert lines[2].split()[:4] == ["s", "per", "s", "share"]
    first = " ".join(lines[3].split())
    assert first == "5.00 67 % osd.1 store_device osd.0 3.00, osd.1 2.00"
    assert " ".join(lines[-1].split()) == "1.50 20 % 2 other places"
    assert table([], {}, 5) == "No client operation was completed."
    first = " ".join(table(worst, TENANTS, 2).splitlines()[3].split())
    assert first.endswith("osd.1 2.00 for image rbd/17af 2.25, image rbd/02bc 0.60, other 0.15")


def test_the_graph_goes_from_a_tenant_to_the_root_and_no_second_is_lost() -> None:
    worst = roots(waits(ACCOUNT, REPLICAS))
    found = {(e.waiter, e.waits_for): e for e in edges(worst, TENANTS)}
    assert found["image rbd/17af", "osd.0"].seconds == pytest.approx(5.5 * 30 / 40)
    assert found["osd.0", "osd.1"] == Edge("c", "osd.0", "osd.1", 4.0)
    assert found["osd.1", "osd.1 store_device"] == Edge(
        "c", "osd.1", "osd.1 store_device", 5.0, True
    )
    assert sum(e.seconds for e in found.values() if e.root) == pytest.approx(7.5)
    assert sum(e.seconds for e in found.values() if e.low is not None) == pytest.approx(5.5)
    victim = found["image rbd/02bc", "osd.0"]
    assert victim.low is not None and victim.high is not None
    assert 0 < victim.low < victim.seconds < victim.high
    # Work is no waiting; an OSD without samples has no tenants.
    assert ("image rbd/02bc", "osd.1") not in found
    assert all(e.low is None for e in edges(worst, {}))


def test_of_a_thousand_osds_only_the_worst_few_are_listed() -> None:
    account = [sample(f"osd.{osd}", "store_device", 0.1) for osd in range(1000)]
    account += [sample(f"osd.{osd}", "replica", 0.2, f"osd.{osd % 7}") for osd in range(1000)]
    replicas = [sample(f"osd.{osd}", "store_device", 5.0) for osd in range(1000)]
    tenants: Tenants = {("c", f"osd.{osd}"): TENANTS["c", "osd.0"] for osd in range(1000)}
    worst = roots(waits(account, replicas))
    lines = table(worst, tenants, 20).splitlines()
    assert len(lines) == 3 + 20 + 1
    assert max(map(len, lines)) < 200
    assert "980 other places" in lines[-1]
    assert {line.split()[3] for line in lines[3:10]} == {f"osd.{osd}" for osd in range(7)}


def test_osds_of_two_clusters_are_two() -> None:
    other = [({**labels, "cluster": "d"}, rate) for labels, rate in ACCOUNT]
    worst = roots(waits([*ACCOUNT, *other], REPLICAS))
    assert [root.seconds for root in worst[:2]] == [5.0, 4.0]
    first, second = (" ".join(line.split()) for line in table(worst, {}, 2).splitlines()[3:5])
    assert first == "5.00 33 % c osd.1 store_device osd.0 3.00, osd.1 2.00"
    assert second == "4.00 27 % d osd.1 unknown osd.0 4.00"
    assert "cluster" not in table(roots(waits(ACCOUNT, REPLICAS)), {}, 2)


async def run(answer: Handler, *options: str) -> int:
    parser = Parser(prog="cephqos blame")
    add_options(parser)
    async with serving(answer) as url:
        arguments = parser.parse_args(["--prometheus", url, *options])
        status: int = await arguments.run(arguments)
        return status


HOUR_BEFORE = 1769825000.0
BEFORE: Mapping[str, Sequence[Sample]] = {
    "account": [sample("osd.1", "store_device", 0.5), sample("osd.1", "cpu", 1.0)],
    "replicas": [],
}


async def prometheus(request: web.Request) -> web.Response:
    asked = await request.post()
    query, then = str(asked["query"]), asked.get("time") == f"{HOUR_BEFORE:.3f}"
    found = {**ANSWERS, **(BEFORE if then else {})}
    for name, rates in (("counted", "account"), ("counted_for_others", "replicas")):
        found = {**found, name: [(labels, rate * 300) for labels, rate in found[rates]]}
    name = {text: name for name, text in {**queries(300), **TRAITS, **error_queries(300)}.items()}[
        query
    ]
    samples = found.get(name, ()) if name in (*TRAITS, *error_queries(300)) else found[name]
    result = [{"metric": labels, "value": [1.0, str(rate)]} for labels, rate in samples]
    return web.json_response({"status": "success", "data": {"result": result}})


async def test_the_command_asks_prometheus_once_for_each_account(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await run(prometheus) == 0
    assert "osd.1 store_device" in capsys.readouterr().out
    assert await run(prometheus, "--json") == 0
    first, *_ = json.loads(capsys.readouterr().out)
    assert first["waits_for"] == "osd.1 store_device" and first["root"] and first["low"] is None


async def test_the_error_of_shares_is_larger_beside_recovery_and_with_erasure_coded_pools(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for objects, coded in ((None, 2.0), (0.0, None), (5.0, None), (5.0, 2.0)):
        for name, value in (("recovered", objects), ("erasure_coded", coded)):
            monkeypatch.setitem(
                ANSWERS, name, [({"cluster": "c"}, value)] if value is not None else []
            )
        assert await run(prometheus, "--json") == 0
        roots_only = [edge for edge in json.loads(capsys.readouterr().out) if edge["root"]]
        assert await run(prometheus) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        said.append((roots_only[0]["share_error_points"], last))
    assert said == [
        (
            None,
            "Each share is right within 3 points, beside recovery within 13, and with erasure-coded"
            " pools within 14. No exporter of the role cluster says if there was any.",
        ),
        (3, "Each share is right within 3 points."),
        (13, "Each share is right within 13 points, as there was recovery."),
        (14, "Each share is right within 14 points, as there are erasure-coded pools."),
    ]


async def test_what_slow_osds_share_is_the_last_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"osd.{number}" for number in range(12)]
    slow = names[:3]
    account = [sample(name, "store_device", 10 if name in slow else 0.5) for name in names]
    disks = [
        ({"cluster": "c", "ceph_daemon": name, "model": "B" if name in slow else "A"}, 1.0)
        for name in names
    ]
    monkeypatch.setitem(ANSWERS, "account", account)
    monkeypatch.setitem(ANSWERS, "disks", disks)
    assert await run(prometheus) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "The slow OSDs share: model B (3 of 3 slow OSDs; 0 of 9 others)."


async def test_each_place_is_compared_with_what_clients_waited_there_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--at", str(HOUR_BEFORE + 3600), "--against", "1h")
    assert await run(prometheus, *options) == 0
    first, _, _, *rows = (" ".join(it.split()) for it in capsys.readouterr().out.splitlines())
    assert first == "Clients wait 7.50 seconds per second. 1 h before: 1.50 (+6.00)."
    assert rows[0].startswith("5.00 67 % 0.50 +4.50 osd.1 store_device osd.0 3.00")
    # osd.0 had no account then: what its clients waited is not known.
    assert "1.00 13 % unknown osd.0 queue client osd.0 1.00" in rows[1]
    assert await run(prometheus, *options, "--json") == 0
    changes = {
        edge["waits_for"]: (edge["seconds_before"], edge["change"])
        for edge in json.loads(capsys.readouterr().out)
        if edge["root"]
    }
    assert changes["osd.1 store_device"] == (0.5, 4.5)
    assert changes["osd.0 queue client"] == (None, None)


def test_a_place_where_nobody_waited_before_has_all_its_seconds_as_its_change() -> None:
    place = next(it for it in roots(waits(ACCOUNT, REPLICAS)) if it.name == "osd.0 queue client")
    account = [sample("osd.0", "cpu", 1.0)]
    assert before_of({"account": account, "replicas": []}, 3600).change(place) == (0.0, 1.0)


async def test_a_time_to_compare_with_that_is_none_or_has_no_account_is_refused() -> None:
    for against in ("0", "1m", "soon"):
        with pytest.raises(UsageError, match=r"--since\) or more|expected a time"):
            await run(prometheus, "--against", against)

    async def only_now(request: web.Request) -> web.Response:
        if "time" in await request.post():
            return web.json_response({"data": {"result": []}})
        return await prometheus(request)

    with pytest.raises(BlameFailed, match="1 d before"):
        await run(only_now, "--against", "1d")


@pytest.mark.parametrize(
    ("reply", "named"), [(VM_17, "image rbd/vm-17"), ("no such key", "image rbd/17af")]
)
async def test_the_cluster_says_what_images_are_called(
    reply: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    access = stand_in(tmp_path, reply, fsid="c")
    assert await run(prometheus, *access) == 0
    shown = capsys.readouterr()
    assert f"for {named} 2.25, image rbd/02bc 0.60" in shown.out
    assert ("does not say the names of images" in shown.err) == (reply != VM_17)
    assert await run(prometheus, *access, "--json") == 0
    assert named in {edge["waiter"] for edge in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize("body", [{"data": {"result": []}}, {"data": {}}, [], {"data": 1}])
async def test_a_prometheus_without_an_account_is_no_cluster_that_waits_for_nothing(
    body: object,
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(body)

    with pytest.raises((BlameFailed, NoAnswer)):
        await run(answer)
    with pytest.raises(UsageError, match="expected 60s or more"):
        await run(answer, "--since", "10s")
