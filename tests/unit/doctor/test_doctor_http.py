"""`cephqos doctor prometheus` against servers that answer in odd ways."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.fake_server import serving

import cephqos_dashboards
from cephqos_base import dashboards, servers, yamlfile
from cephqos_base.prometheus import JsonApi
from cephqos_base.servers import Address, HttpServer
from cephqos_doctor import boards, prometheus_facts, targets
from cephqos_doctor.cli import PROMETHEUS_CHECKS
from cephqos_doctor.finding import diagnose
from cephqos_doctor.prometheus_facts import PrometheusFacts, gather

GENERATED = Path(cephqos_dashboards.__file__).parent / "generated"


async def grafana(request: web.Request) -> web.Response:
    """Dashboards as Grafana keeps them: with an id, a version, and one missing."""
    if request.headers.get("Authorization") != "Bearer right":
        return web.json_response({"message": "Unauthorized"}, status=401)
    uid = request.path.rpartition("/")[2]
    if uid == dashboards.RUN:
        return web.json_response({"message": "not found"}, status=404)
    found = json.loads((GENERATED / f"{uid}.json").read_text()) | {"id": 7, "version": 3}
    if uid == dashboards.CPU:
        found["panels"] = found["panels"][2:]
    return web.json_response({"dashboard": found, "meta": {"slug": uid}})


async def looked_at(url: str, **more: Any) -> PrometheusFacts:
    return await gather(url, **({"headers": {}, "grafana_headers": {}} | more))


def problems(facts: PrometheusFacts, name: str) -> list[str]:
    checks = [
        check
        for check in (targets.REACHABLE, *targets.CHECKS, *boards.CHECKS)
        if check.name == name
    ]
    return [finding.problem for check in checks for finding in check.find(facts)]


async def test_dashboards_are_compared_with_what_grafana_keeps() -> None:
    async with serving(grafana) as url:
        right = {"Authorization": "Bearer right"}
        facts = await looked_at("http://127.0.0.1:1", grafana=url, grafana_headers=right)
        assert problems(facts, "dashboards-of-this-version") == [
            f"dashboards are missing: {dashboards.RUN}",
            f"dashboards differ from this version's: {dashboards.CPU}",
        ]
        refused = await looked_at("http://127.0.0.1:1", grafana=url)
        assert problems(refused, "dashboards-of-this-version") == []
        assert "HTTP 401" in problems(refused, "grafana-reachable")[0]


@pytest.mark.parametrize(
    ("for_all", "of_job", "converting"),
    [
        ({}, {}, ()),
        ({}, {"convert_classic_histograms_to_nhcb": True}, ("cephqos",)),
        ({"convert_classic_histograms_to_nhcb": True}, {}, ("cephqos",)),
        (
            {"convert_classic_histograms_to_nhcb": True},
            {"convert_classic_histograms_to_nhcb": False},
            (),
        ),
        (
            {"always_scrape_classic_histograms": True},
            {"convert_classic_histograms_to_nhcb": True},
            (),
        ),
    ],
)
async def test_a_job_that_drops_buckets_is_known_from_prometheus_configuration(
    for_all: dict[str, Any], of_job: dict[str, Any], converting: tuple[str, ...]
) -> None:
    other = {"job_name": "node", "convert_classic_histograms_to_nhcb": True}
    config = {"global": for_all, "scrape_configs": [{"job_name": "cephqos", **of_job}, other]}

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"data": {"yaml": json.dumps(config)}})

    async with serving(answer) as url, HttpServer(Address(url)) as server:
        assert await prometheus_facts._converting(JsonApi(server)) == converting


async def test_a_configuration_of_too_many_values_is_not_looked_at() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"data": {"yaml": json.dumps([0] * yamlfile.MAX_VALUES)}})

    async with serving(answer) as url, HttpServer(Address(url)) as server:
        assert await prometheus_facts._converting(JsonApi(server)) == ()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"original": "receivers: [{url: 'http://osd1:10130/-/record'}]"}, True),
        ({"original": "receivers: [{name: nobody}]"}, False),
        ({"original": "receivers:\n- webhook_configs:\n  - url: <secret>"}, None),
        (None, None),
    ],
)
async def test_alertmanager_is_asked_whether_it_calls_the_recorders(
    config: object, told: bool | None
) -> None:
    async def answer(request: web.Request) -> web.Response:
        url = f"http://{request.host}/prefix/api/v2/alerts"
        bodies: dict[str, object] = {
            "/api/v1/alertmanagers": {"data": {"activeAlertmanagers": [{"url": url}]}},
            "/prefix/api/v2/status": {"config": config},
        }
        assert "Authorization" not in request.headers or request.path.startswith("/api/v1")
        return web.json_response(bodies[request.path])

    secret = {"Authorization": "Bearer x"}
    async with serving(answer) as url, HttpServer(Address(url), headers=secret) as server:
        assert await prometheus_facts._recorders_told(JsonApi(server)) is told


async def test_an_answer_that_unpacks_to_too_much_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(servers, "MAX_BYTES", 1 << 20)

    async def bomb(_: web.Request) -> web.Response:
        body = gzip.compress(b'{"data": "' + bytes(4 << 20))
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    async with serving(bomb) as url:
        (said,) = problems(await looked_at(url), "prometheus-reachable")
    assert "the answer is larger than 1 MiB" in said


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>a proxy</html>",
        b"[]",
        b'{"status": "success"}',
        b'{"status": "success", "data": null}',
        b'{"data": {"activeTargets": 3}}',
        b'{"data": []}',
    ],
)
async def test_what_is_no_prometheus_is_a_finding_and_no_crash(answer: bytes) -> None:
    async def odd(_: web.Request) -> web.Response:
        return web.Response(body=answer, content_type="application/json")

    async with serving(odd) as url:
        facts = await looked_at(url)
        assert problems(facts, "prometheus-reachable")


_ODD_LEAVES: dict[str, Any] = {
    "/api/v1/status/buildinfo": {"data": {"version": 3}},
    "/api/v1/query": {"data": {"result": [{"metric": {"job": 5, "version": None, "x": []}}]}},
    "/api/v1/rules": {
        "data": {
            "groups": [
                {
                    "name": "cephqos-work",
                    "file": None,
                    "interval": 15,
                    "rules": [{"name": 7, "query": 8, "lastError": 9}],
                }
            ]
        }
    },
    "/api/v1/targets": {
        "data": {"activeTargets": [{"labels": {"job": 7}, "health": "down", "lastError": 5}]}
    },
    "/api/v1/format_query": {"data": "up"},
    "/api/dashboards": {"dashboard": 3},
}


@pytest.mark.parametrize("odd", _ODD_LEAVES)
async def test_an_answer_of_the_right_shape_with_odd_values_in_it_is_no_crash(odd: str) -> None:
    """The others answer as little as they may."""
    little: dict[str, Any] = {
        "/api/v1/query": {"data": {"result": []}},
        "/api/v1/rules": {"data": {"groups": []}},
        "/api/v1/targets": {"data": {"activeTargets": []}},
        "/api/v1/format_query": {"data": "up"},
    }

    async def answer(request: web.Request) -> web.Response:
        path = next((p for p in _ODD_LEAVES if request.path.startswith(p)), "")
        return web.json_response((little | {odd: _ODD_LEAVES[odd]}).get(path, {}))

    async with serving(answer) as url:
        facts = await looked_at(url, grafana=url)
    assert diagnose("prometheus", PROMETHEUS_CHECKS, facts).text()
