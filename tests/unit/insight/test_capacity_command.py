"""`cephqos capacity` against a small Prometheus that answers its questions, and no others."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.fake_server import serving

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_base.prometheus import Prometheus
from cephqos_base.servers import Address, HttpServer, NoAnswer
from cephqos_exporter.ceph.monclient import CommandFailed
from cephqos_insight.capacity import cli, from_prometheus, measure
from cephqos_insight.capacity.estimate import judge
from cephqos_insight.capacity.from_prometheus import (
    NOW,
    gather,
    model_of,
    range_queries,
    with_cluster_facts,
)

END = 1_700_000_000.0
STEP = 3600.0
PIECES = 48
GOLDEN = Path("tests/golden/capacity.txt")


class SmallPrometheus:
    """Some OSDs in time. `rules`: whether it has what our rules record."""

    def __init__(self, osds: Mapping[str, Mapping[str, Any]], *, rules: bool = True) -> None:
        self.osds = osds
        self.rules = rules
        self.asked: list[str] = []
        self._ranges = {query: name for name, query in range_queries(STEP, rules).items()}
        self._now = {query: name for name, query in NOW.items()}

    async def answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        query = str(form["query"])
        self.asked.append(query)
        if request.path.endswith("query_range"):
            return _reply(self._range(self._ranges[query], form))
        if query == "time()":
            return _reply([END, str(END)])
        if query.startswith("group("):
            return _reply([{"metric": {}, "value": [END, "1"]}] if self.rules else [])
        return _reply(list(self._instant(self._now[query])))

    def _range(self, name: str, form: Any) -> list[dict[str, Any]]:
        start, end, step = (float(form[key]) for key in ("start", "end", "step"))
        assert (end - start) / step < 25, "more than an engine has to answer at once"
        found = []
        for osd, about in self.osds.items():
            values = about.get("pieces", {}).get(name, [])
            first = END - (PIECES - 1) * STEP
            shown = [
                [first + i * STEP, str(value)]
                for i, value in enumerate(values)
                if value is not None and start <= first + i * STEP <= end
            ]
            if shown:
                found.append({"metric": {"cluster": "c1", "ceph_daemon": osd}, "values": shown})
        return found

    def _instant(self, name: str) -> Any:
        for osd, about in self.osds.items():
            labels = {"cluster": "c1", "ceph_daemon": osd}
            for more, value in about.get("now", {}).get(name, ()):
                yield {"metric": labels | more, "value": [END, str(value)]}


def _reply(result: Any) -> web.Response:
    return web.json_response({"status": "success", "data": {"result": result}})


def settings(
    capacity: float, *, media: str = "ssd", host: str = "ceph1:10130", origin: str = "mon"
) -> dict[str, Any]:
    info = {"media": media, "capacity_origin": origin, "in_force": "mclock_scheduler"}
    return {
        "capacity": [({}, capacity)],
        "info": [(info, 1)],
        "host": [({"instance": host}, 1)],
        "reservations": [({"class": "client"}, 0.5), ({"class": "background_recovery"}, 0.5)],
        "limits": [({"class": "background_best_effort"}, 0.9)],
    }


def saturated(ops: float) -> dict[str, Sequence[float | None]]:
    quiet: list[float | None] = [None] * (PIECES - 8)
    return {
        "delivered": [20.0] * (PIECES - 8) + [ops + 10 * i for i in range(8)],
        "requests": [90.0] * (PIECES - 8) + [2.5 * ops] * 8,
        "saturated_ops": [*quiet, *(ops + 10 * i for i in range(8))],
        "saturated_samples": [*quiet, *[100.0] * 8],
        "depth": [0.1] * (PIECES - 8) + [5.0] * 8,
    }


CALM: Mapping[str, Sequence[float]] = {
    "delivered": [20.0] * (PIECES - 1) + [90.0],
    "requests": [400.0] * PIECES,
}
FLEET: Mapping[str, Mapping[str, Any]] = {
    **{f"osd.{i}": {"now": settings(2000), "pieces": saturated(1900)} for i in range(4)},
    "osd.4": {"now": settings(21500, origin="default"), "pieces": saturated(1900)},
    "osd.5": {"now": settings(2000, host="ceph2:10130"), "pieces": saturated(500)},
    "osd.6": {"now": settings(300, host="ceph2:10130"), "pieces": saturated(1900)},
    "osd.7": {"now": settings(2000, host="ceph2:10130"), "pieces": CALM},
}


async def run(url: str, *options: str) -> int:
    parser = Parser(prog="cephqos capacity")
    cli.add_options(parser)
    argv = ["--prometheus", url, "--since", "2d", "--piece", "1h", *options]
    arguments: argparse.Namespace = parser.parse_args(argv)
    return int(await arguments.run(arguments))


async def test_the_table_and_the_commands_are_these(
    capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    async with serving(SmallPrometheus(FLEET).answer) as url:
        assert await run(url) == 1
    said = capsys.readouterr().out
    if request.config.getoption("--regenerate"):
        GOLDEN.write_text(said, encoding="utf-8")
    assert said == GOLDEN.read_text(encoding="utf-8")


async def test_json_has_all_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    async with serving(SmallPrometheus(FLEET).answer) as url:
        assert await run(url, "--json", "--osd", "osd.4") == 1
    told = json.loads(capsys.readouterr().out)
    (osd,) = told["osds"]
    assert told["rules"] is True
    assert (osd["configured"], osd["origin"], osd["verdict"]) == (21500, "default", "too_high")
    assert osd["estimate"]["kind"] == "measured"
    assert osd["command"] == "ceph config set osd.4 osd_mclock_max_capacity_iops_ssd 1960"
    assert osd["classes"]["client"]["reservation_then"] == 980


async def test_status_0_if_no_capacity_is_known_to_be_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serving(SmallPrometheus({"osd.7": FLEET["osd.7"]}).answer) as url:
        assert await run(url) == 0
    assert "at least 90, unknown above" in capsys.readouterr().out


async def test_without_rules_it_says_so_and_gives_the_least_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serving(SmallPrometheus(FLEET, rules=False).answer) as url:
        await run(url)
    said = capsys.readouterr().out
    assert said.startswith("The series of the rules are missing (cephqos rules build)")
    assert "±" not in said


async def test_a_prometheus_without_osds_is_told_and_no_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serving(SmallPrometheus({}).answer) as url:
        await run(url)
    assert "No OSD is shown" in capsys.readouterr().out


async def test_an_osd_without_any_setting_is_shown_as_far_as_it_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serving(SmallPrometheus({"osd.1": {"pieces": CALM}}).answer) as url:
        assert await run(url) == 0
    assert "1 without mClock" in capsys.readouterr().out


async def test_a_thousand_osds_are_asked_for_in_parts_and_twenty_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    prometheus = SmallPrometheus(
        {f"osd.{i}": {"now": settings(100), "pieces": CALM} for i in range(1000)}
    )
    async with serving(prometheus.answer) as url:
        await run(url)
    said = capsys.readouterr().out
    assert "… and 980 more OSDs (--all)" in said
    assert len(prometheus.asked) == 2 + len(NOW) + 2 * len(range_queries(STEP, True))


@pytest.mark.parametrize(
    "odd",
    [
        {"data": {"result": [{"metric": {}}]}},
        {"data": {"result": [{"metric": {}, "value": 3, "values": 3}]}},
        {"data": []},
        [],
    ],
)
async def test_an_odd_answer_is_one_line(odd: Any) -> None:
    async def answer(request: web.Request) -> web.Response:
        form = await request.post()
        return _reply([END, "1"]) if form["query"] == "time()" else web.json_response(odd)

    async with serving(answer) as url:
        with pytest.raises(NoAnswer, match=r"Prometheus|shape"):
            await run(url)


@pytest.mark.parametrize(
    "options",
    [
        ["--since", "0"],
        ["--piece", "3d"],
        ["--prometheus", "nonsense"],
        ["--prometheus", "http://user:secret@host"],
        ["--measure", "osd.*", "--conf", "/etc/hosts"],
        ["--measure", "osd.1"],
        ["--measure", "osd.1", "--conf", "/nope", "--yes"],
    ],
)
async def test_a_mistake_in_the_command_is_refused(options: list[str]) -> None:
    with pytest.raises(UsageError):
        await run("http://127.0.0.1:1", *options)


async def test_nothing_is_measured_without_yes() -> None:
    with pytest.raises(UsageError, match=r"clients of osd.1 wait .* add --yes"):
        await run("http://127.0.0.1:1", "--measure", "osd.1", "--conf", "/etc/hosts")


async def test_the_cluster_says_models_hosts_and_origins() -> None:
    async with serving(SmallPrometheus(FLEET).answer) as url:
        history = await _gathered(url)
    metadata = [
        {"id": i, "hostname": f"h{i % 2}", "device_ids": f"sd{i}=ACME_M1_S{i}", "cpu": "X"}
        for i in range(8)
    ]
    option = "osd_mclock_max_capacity_iops_ssd"
    dump = [
        {"section": "osd.0", "name": option, "value": "2000.123456", "mask": ""},
        {"section": "osd.1", "name": option, "value": "2000", "mask": ""},
        {"section": "osd", "name": option, "value": "2000", "mask": ""},
    ]
    told = with_cluster_facts(history, metadata, dump).records
    assert {record.model for record in told} == {"ACME_M1"}
    assert [record.origin for record in told[:3]] == ["boot benchmark", "set for it", "set for all"]
    assert told[1].host == "h1"
    assert any(one.outlier for one in judge(told))


def test_a_db_device_is_part_of_the_model() -> None:
    assert model_of({"device_ids": "sda=HDD_A_1,nvme0n1=SSD_B_2"}) == "HDD_A + SSD_B"
    assert model_of({}) == ""


async def _gathered(url: str) -> from_prometheus.History:
    async with HttpServer(Address(url)) as server:
        return await gather(Prometheus(server), 2 * 86400, STEP)


class Interrupted(Exception):
    """As a cancellation goes through, but for pytest."""


class Cluster:
    """Answers as a monitor and an OSD do; keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []

    async def command(self, prefix: str, *, target: str = "mon", **arguments: Any) -> Any:
        self.asked.append((prefix, target))
        if prefix == "osd dump":
            return {"osds": [{"osd": 1, "up": 1}, {"osd": 2, "up": 0}]}
        if prefix == "cache drop":
            return {}
        assert arguments["count"] <= 3000 * 4096  # Ceph refuses more
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_slices_are_measured_one_after_the_other_with_cold_caches() -> None:
    cluster = Cluster({"iops": 100.0}, {"iops": 300.0}, {"iops": 120.0})
    notes: list[str] = []
    found = await measure.measure(cluster, "osd.1", notes.append, slices=3)  # type: ignore[arg-type]
    assert (found.median, len(notes)) == (120, 3)
    assert cluster.asked[1:3] == [("cache drop", "osd.1"), ("bench", "osd.1")]
    assert {target for prefix, target in cluster.asked if prefix == "bench"} == {"osd.1"}
    assert "An upper bound" in found.text()


@pytest.mark.parametrize("osd", ["osd.2", "osd.7"])
async def test_an_osd_that_is_down_is_not_measured(osd: str) -> None:
    with pytest.raises(measure.MeasureFailed, match="is not an OSD of this cluster that is up"):
        await measure.measure(Cluster(), osd, lambda _: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [{"x": 1}, "text", CommandFailed("bench", -22, "no")])
async def test_an_odd_reply_ends_it(answer: Any) -> None:
    with pytest.raises(measure.MeasureFailed):
        await measure.measure(Cluster(answer), "osd.1", lambda _: None)  # type: ignore[arg-type]


async def test_an_interrupt_ends_it_and_asks_the_osd_nothing_more() -> None:
    interrupted = Cluster({"iops": 1.0}, Interrupted())
    with pytest.raises(Interrupted):
        await measure.measure(interrupted, "osd.1", lambda _: None)  # type: ignore[arg-type]
    assert [prefix for prefix, _ in interrupted.asked].count("bench") == 2


async def test_a_prometheus_that_is_away_is_one_line() -> None:
    with pytest.raises(NoAnswer, match="refused"):
        await run("http://127.0.0.1:1")
