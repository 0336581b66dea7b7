"""`cephqos advise` against a small Prometheus that answers its questions, and an archive."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.fake_server import serving
from tests.unit.insight.test_capacity_command import END, SmallPrometheus
from tests.unit.insight.test_capacity_estimate import busy
from tests.unit.insight.test_capacity_estimate import osd as capacity_record

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_insight.advise import cli
from cephqos_insight.advise.from_prometheus import _advised_osd, now_queries, range_queries
from cephqos_insight.capacity.estimate import judge
from cephqos_loadgen.advise.facts import NoAdvice, saturated_range
from cephqos_loadgen.report.figures.analysis import ReportSettings
from cephqos_loadgen.report.runs import read_runs
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables import of_advice
from cephqos_loadgen.report.tables.of_advice import advice_table
from cephqos_loadgen.report.tables.of_reservations import LoadStep

ARCHIVE = next(Path("tests/recordings/archive/format-1").iterdir())
HOUR = 3600.0
STEP = 60.0
PIECES = 60
OSDS = ("osd.0", "osd.1")


class Recorded(SmallPrometheus):
    """Two OSDs that recover beside clients, and what their rules recorded in an hour."""

    def __init__(self, profiles: tuple[str, str] = ("balanced", "balanced"), rules: bool = True):
        info = {"media": "ssd", "capacity_origin": "mon", "in_force": "mclock_scheduler"}
        now = {
            "capacity": [({}, 100.0)],
            "reservations": [
                ({"class": "client"}, 0.5),
                ({"class": "background_recovery"}, 0.5),
                ({"class": "background_best_effort"}, 0.0),
            ],
            "limits": [({"class": "background_best_effort"}, 0.9)],
            "info": [(info, 1.0)],
            "host": [({"instance": "ceph1:10130"}, 1.0)],
        }
        super().__init__({osd: {"now": now, "pieces": {}} for osd in OSDS}, rules=rules)
        from cephqos_insight.capacity.from_prometheus import range_queries as of_capacity

        self._ranges = {query: name for name, query in of_capacity(STEP, rules).items()}
        self.profiles = dict(zip(OSDS, profiles, strict=True))
        self._own_ranges = {query: name for name, query in range_queries(STEP).items()}
        self._own_now = {query: name for name, query in now_queries(HOUR).items()}

    async def answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        query = str(form["query"])
        if name := self._own_now.get(query):
            return _reply(list(self._now_of(name)))
        if name := self._own_ranges.get(query):
            start, end = (float(str(form[it])) for it in ("start", "end"))
            return _reply(list(self._pieces(name, start, end)))
        return await super().answer(request)

    def _now_of(self, name: str) -> Any:
        whole = {"degraded": 1000.0, "misplaced": 0.0, "recovered": 100.0}
        if name in whole:
            yield {"metric": {"cluster": "c1"}, "value": [END, str(whole[name])]}
            return
        for osd in OSDS:
            labels: Mapping[str, str] = {"cluster": "c1", "ceph_daemon": osd}
            about = {"profile": self.profiles[osd], "model": "bandwidth"}
            more, value = (about, 1.0) if name == "about" else ({}, 100.0)
            yield {"metric": {**labels, **more}, "value": [END, str(value)]}

    def _pieces(self, name: str, start: float, end: float) -> Any:
        figures = {
            "attained": {"client": 30.0, "background_recovery": 20.0},
            "demand": {"client": 1.0, "background_recovery": 0.0},
            "violated": {"client": 0.5, "background_recovery": 0.0},
            "delivered": {"": 60.0},
        }[name]
        first = END - (PIECES - 1) * STEP
        times = [t for i in range(PIECES) if start <= (t := first + i * STEP) <= end]
        for osd in OSDS:
            for cls, value in figures.items():
                labels = {"cluster": "c1", "ceph_daemon": osd, **({"class": cls} if cls else {})}
                yield {"metric": labels, "values": [[at, str(value)] for at in times]}


def _reply(result: Any) -> web.Response:
    return web.json_response({"status": "success", "data": {"result": result}})


async def run(small: SmallPrometheus | None, *options: str) -> int:
    parser = Parser(prog="cephqos advise")
    cli.add_options(parser)
    if small is None:
        arguments = parser.parse_args(options)
        return int(await arguments.run(arguments))
    async with serving(small.answer) as url:
        arguments = parser.parse_args(["--prometheus", url, *options])
        return int(await arguments.run(arguments))


async def test_a_prometheus_gives_a_row_for_each_candidate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await run(Recorded(), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    its = {it["name"]: it for it in found["candidates"]}
    assert list(its) == ["balanced", "high_client_ops", "high_recovery_ops", "wpq"]
    assert its["balanced"]["reserved"]["client"] == 100
    # The judge found it violated, and nobody was seen saturated: what another gives is unknown.
    assert set(its["balanced"]["osds"].values()) == {"violated"}
    assert set(its["high_recovery_ops"]["osds"].values()) == {"unknown"}
    assert await run(Recorded()) == 0
    shown = capsys.readouterr().out
    assert "balanced (now)" in shown
    # Half of each hour of two OSDs.
    assert "violated for 1 h, summed over OSDs" in shown
    assert "ceph config set osd osd_mclock_profile high_client_ops" in shown


async def test_a_goal_that_is_not_known_is_refused_with_status_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await run(Recorded(), "--for", "client p99 < 20 ms") == 1
    shown = capsys.readouterr().out
    assert "latencies are not predicted" in shown
    assert "    cephqos trial --conf /etc/ceph/ceph.conf --i-know-this-cluster c1 --try=" in shown
    assert await run(Recorded(), "--for", "client at least 1 ops/s", "--json") == 1
    assert json.loads(capsys.readouterr().out)["answer"]["unknown"]


async def test_what_a_prometheus_lacks_is_named() -> None:
    with pytest.raises(NoAdvice, match="several profiles"):
        await run(Recorded(("balanced", "high_client_ops")))
    with pytest.raises(NoAdvice, match="recording rules"):
        await run(Recorded(rules=False))
    with pytest.raises(UsageError, match="--repeat needs --archive"):
        await run(Recorded(), "--repeat", "a r1")
    with pytest.raises(UsageError, match="--at needs --archive"):
        await run(Recorded(), "--at", "1")
    with pytest.raises(UsageError, match="expected --prometheus"):
        await run(None)


async def test_one_repeat_of_an_archive_is_advised(capsys: pytest.CaptureFixture[str]) -> None:
    archive = ("--archive", str(ARCHIVE), "--since", "1d")
    found = "2 repeats in this time: only r1, only r2; expected one, such as --repeat 'only r1'"
    with pytest.raises(UsageError, match=found):
        await run(None, *archive)
    with pytest.raises(UsageError, match="found no repeat 'r3'; expected one of only r1, only r2"):
        await run(None, *archive, "--repeat", "r3")
    assert await run(None, *archive, "--repeat", "only r2") == 0
    assert "(now)" in capsys.readouterr().out
    for since in ("1m", "12s"):
        at = ("--since", since, "--at", "1795306683")
        assert await run(None, "--archive", str(ARCHIVE), *at) == 0
        assert "(now)" in capsys.readouterr().out


def test_a_report_says_what_another_profile_would_have_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subject = Subject(read_runs([ARCHIVE]), ReportSettings())
    assert advice_table(subject).rows == ()  # three seconds are too few
    whole = [LoadStep("only", "client", None, 1795306671, 1795306683)]
    monkeypatch.setattr(of_advice, "load_steps", lambda _: whole)
    (row,) = advice_table(subject).rows
    said = [cell.text.partition(",")[0] for cell in row[2:]]
    assert said == ["now", "client 378", "client 189", "–"]


def test_a_prometheus_and_an_archive_estimate_alike() -> None:
    """The least of all pieces in which it was saturated is certain, not of the best quarter."""
    pieces = [busy(i, 1000 + 10 * i) for i in range(8)]
    (judged,) = judge([capacity_record(*pieces)])
    advised = _advised_osd(judged, {}, ())
    assert advised.saturated_ops == saturated_range([1000 + 10 * i for i in range(8)], 1070.0)
    assert advised.proven_ops == 1000 and advised.ceiling_ops == 1070
