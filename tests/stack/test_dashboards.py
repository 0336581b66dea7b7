"""Every query of every dashboard, answered with data by a real Prometheus that watches real OSDs.

The golden file has a line per query: dashboard, panel, query, how many series, their labels. To
rewrite it after a wanted change: pytest tests/stack/test_dashboards.py --regenerate
"""

import asyncio
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.board_panels import ShownQuery, fill, other_promql, promql, queries
from tests.board_story import Told, story, story_lab
from tests.lab.conftest import LabPool, lab_name
from tests.recorded import RELEASES
from tests.release_tools import run, tool
from tests.waiting import until

from .log_files import need_tools

GOLDEN: Final = Path("tests/golden/dashboard_shapes.tsv")
MOST_SERIES: Final = 50
# What this cluster cannot show, and why.
_CRIMSON: Final = "the lab has classic OSDs"
_UNLIMITED: Final = "the lab has no such limit"
_HEALTHY: Final = "every daemon answers and every collector works"
ABSENT: Final[Mapping[str, str]] = {
    "cephqos-cpu: Reactor utilisation A": _CRIMSON,
    "cephqos-cpu: Reactors: time stolen A": _CRIMSON,
    "cephqos-cpu: Reactors that share a CPU A": _CRIMSON,
    "cephqos-cpu: Hosts: CPUs taken from OSDs A": "its host may have room",
    "cephqos-cpu: Hosts: use of links A": "a virtual interface says no speed",
    "cephqos-cpu: Hosts: packets lost by links A": "it may have no interface with hardware",
    "cephqos-cpu: OSDs stopped by a CPU limit A": _UNLIMITED,
    "cephqos-cpu: Memory used of the limit A": _UNLIMITED,
    "cephqos-cpu: OSDs: pressure A": "PSI of cgroups needs version 2",
    "cephqos-exporter: Daemons that do not answer A": _HEALTHY,
    "cephqos-exporter: Collectors that fail A": _HEALTHY,
    "cephqos-background: Copies left to recover, by pool B": "backfill may be over between polls",
    "cephqos-background: The fullest OSDs, and their placement groups B": "it is not a day old",
    "cephqos-background: Deleted snapshots left to trim, by pool A": "it has no snapshots",
    "cephqos-latency: OSDs with blocked operations A": "no operation takes 30 s",
    "cephqos-latency: The probe's failures A": "no operation of the probe fails",
}


# What has other series in each run, and why.
VARYING: Final[Mapping[str, str]] = {
    "cephqos-overview: Firing alerts A": "any\tthose of the alerts that happen to fire",
    "cephqos-overview: Capacity set too low A": "any\tceph_daemon",
    # Whether recovery is short beside clients differs from run to run.
    **{f"cephqos-overview: Worst hosts {ref}": "any\tclass instance" for ref in "ABCDE"},
}
# One series or more is a matter of the moment: how many limits hold, and in how many shards, and
# whether recovery wants more besides clients.
MOMENTARY: Final = {
    "cephqos-osd: Each class gets A",
    "cephqos-osd: Reservation lag and limit wait, by class and shard B",
}
_SAID: Final = re.compile(
    r'"(?:class|ceph_daemon|cpus|device|flag|phase|point|pool|profile(?=", "none))",'
    r' "([^"]+)", "", ""\)'
)


@pytest.fixture(scope="module")
def told(labs: LabPool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    need_tools()
    lab = labs.start(story_lab(lab_name("boards")))
    telling = story(lab, tmp_path_factory.mktemp("story"), climax=60)
    try:
        yield labs.call(telling.__aenter__())
    finally:
        labs.call(telling.__aexit__(None, None, None))
        labs.end(lab)


def ask(url: str, path: str, **parameters: str) -> Any:
    """The result of a query; an error says what Prometheus said."""
    body = urllib.parse.urlencode(parameters).encode()
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}", body, timeout=30) as reply:  # noqa: S310
            return json.load(reply)["data"]["result"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{parameters['query']}: {error.read().decode()}") from None


def over_time(url: str, query: ShownQuery, values: Mapping[str, str], begin: float) -> Any:
    """Its answers from the begin until now. One of now alone depends on the moment."""
    now = time.time()
    window = {"start": f"{begin:.0f}", "end": f"{now:.0f}", "step": "1"}
    filled = query.filled({**values, "__range": f"{now - begin:.0f}s"})
    return ask(url, "query_range", query=filled, **window)


def shape(query: ShownQuery, result: Any) -> str:
    """How many series, and their labels; not the row that says why there is nothing."""
    said = set(_SAID.findall(query.expr))
    data = [it["metric"] for it in result if not said & set(it["metric"].values())]
    # Some causes name a culprit, others do not: which are seen differs from run to run.
    labels = sorted({name for metric in data for name in metric} - {"__name__", "by"})
    if query.where in VARYING:
        return "\t".join([query.uid, query.panel, query.ref, VARYING[query.where]])
    count = "any" if query.where in MOMENTARY else "one" if len(data) == 1 else "some"
    return "\t".join([query.uid, query.panel, query.ref, count, " ".join(labels)])


def test_every_query_has_a_line_or_a_reason_why_it_has_none() -> None:
    lines = [line.split("\t") for line in GOLDEN.read_text(encoding="utf-8").splitlines()[1:]]
    known = sorted(f"{uid}: {panel} {ref}" for uid, panel, ref, *_ in lines)
    every = sorted(query.where for query in promql())
    assert [it for it in known if it not in ABSENT] == [it for it in every if it not in ABSENT]


@pytest.mark.full
async def test_every_query_is_answered_with_the_shape_that_its_panel_expects(
    told: Told, request: pytest.FixtureRequest
) -> None:
    await asyncio.sleep(5)  # rules of the slow groups are evaluated once a minute, scaled
    shapes, empty, many = [], [], []
    for query in promql():
        result = over_time(told.stack.prometheus_url, query, told.variables, told.begin)
        if not result:
            empty.append(query.where)
        else:
            shapes.append(shape(query, result))
        if not query.instant and len(result) > MOST_SERIES:  # others show one moment
            many.append(query.where)
    assert not many
    assert set(empty) - set(ABSENT) == set()
    text = "\n".join(["dashboard\tpanel\tquery\tseries\tlabels", *shapes]) + "\n"
    if request.config.getoption("--regenerate"):
        GOLDEN.write_text(text, encoding="utf-8")
    absent = {where for where in ABSENT if where in empty}
    assert _known(text) == _known(GOLDEN.read_text(encoding="utf-8")), f"absent: {absent}"


def _known(text: str) -> list[str]:
    """Lines that every run has: not those of what is usually absent."""
    lines = [line.split("\t") for line in text.splitlines()]
    return sorted("\t".join(it) for it in lines if f"{it[0]}: {it[1]} {it[2]}" not in ABSENT)


@pytest.mark.full
async def test_variables_and_annotations_are_answered(told: Told) -> None:
    for where, expr in other_promql().items():
        filled = fill(expr, told.variables)
        assert ask(told.stack.prometheus_url, "query", query=filled), where


@pytest.mark.full
async def test_logs_of_the_osd_and_events_of_the_run_are_in_loki(told: Told) -> None:
    logs = [query for query in queries() if query.source == "loki"]
    assert {query.panel for query in logs} == {"Log of this OSD", "Events of the run"}
    for query in logs:
        filled = query.filled(told.variables)

        async def found(expr: str = filled) -> bool:
            return bool(await told.logs.lines(expr))

        await until(found, f"a line of {filled}", 30)


@pytest.mark.full
async def test_what_is_wrong_is_said_at_first_sight(told: Told) -> None:
    """The home page names the class, the OSD and the cause while the alert fires."""
    by_title = {(query.panel, query.ref): query for query in promql()}

    def now(panel: str, ref: str = "A") -> Any:
        query = by_title[panel, ref].filled(told.variables)
        return ask(told.stack.prometheus_url, "query", query=query)

    broken = {it["metric"]["class"]: it["value"][1] for it in now("Violated on")}
    assert broken["client"] != "0"
    # What was to be recovered before may still wait behind them.
    worst = now("The worst class gets")[0]["metric"]["class"]
    assert worst in ("client", "background_recovery")
    assert ("osd.1", "client") in {
        (it["metric"]["ceph_daemon"], it["metric"]["class"]) for it in now("Worst OSDs")
    }
    assert "CephQosReservationViolated" in {
        it["metric"]["alertname"] for it in now("Firing alerts")
    }


@pytest.mark.parametrize("release", RELEASES)
def test_prometheus_own_parser_of_every_release_takes_every_query(
    release: str, tmp_path: Path
) -> None:
    values = dict.fromkeys(("cluster", "detail", "osd", "host", "run", "second", "load"), "x") | {
        "shift": "5"
    }
    exprs = {query.where: query.filled(values) for query in promql()}
    exprs |= {where: fill(expr, values) for where, expr in other_promql().items()}
    rules = [
        {"record": "a:query", "expr": expr, "labels": {"where": where}}
        for where, expr in exprs.items()
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    said = run([*tool(release, "promtool"), "check", "rules", "--lint=none", str(file)])
    assert f"{len(rules)} rules found" in said
