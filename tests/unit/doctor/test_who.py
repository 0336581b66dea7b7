"""`cephqos who` against a small Prometheus that answers its questions, and no others."""

import argparse
import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.unit.doctor.test_doctor_http import serving

from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.tenant_shares import OsdSums, TenantKey, interval
from cephqos_doctor import who

# Answers like the child of MonClient.
CHILD = """#!{python}
import json, sys
def answer(out, **header):
    print(json.dumps(dict(header, length=len(out))), out, sep="\\n", end="", flush=True)
answer("")
for line in sys.stdin:
    asked = json.loads(line)
    if asked["target"] == "mon":
        answer('{{"fsid": "c1"}}', code=0, err="")
    else:
        assert asked["target"] == "pool.3" and "id_17af" in asked["command"]["keys"]
        answer('{omap}', code=0, err="")
"""

Samples = Sequence[tuple[Mapping[str, str], float]]


def tenant(osd: str, image: str, waiting: float, working: float, kind: str = "image") -> Samples:
    labels = {"cluster": "c1", "ceph_daemon": osd, "kind": kind}
    if image:
        labels |= {"pool_id": "3", "tenant": image}
    return [
        (labels | {"state": "waiting"}, waiting),
        (labels | {"state": "working"}, working),
    ]


def sampled(osd: str, waiting: float, working: float) -> Samples:
    labels = {"cluster": "c1", "ceph_daemon": osd}
    return [(labels | {"state": "waiting"}, waiting), (labels | {"state": "working"}, working)]


NOISY: Mapping[str, Samples] = {
    "seconds": [
        *tenant("osd.3", "17af", 500, 710),
        *tenant("osd.3", "02bc", 400, 190),
        *tenant("osd.3", "09de", 80, 50),
        *tenant("osd.3", "", 20, 50, kind="other"),
        *tenant("osd.4", "02bc", 1, 9),
        *tenant("osd.4", "", 0, 0, kind="other"),
        *tenant("osd.5", "02bc", 0, 0),
    ],
    "samples": [*sampled("osd.3", 300, 214), *sampled("osd.4", 2, 18), *sampled("osd.5", 0, 0)],
    "shortfall": [({"cluster": "c1", "ceph_daemon": "osd.3"}, 420.0)],
    "pools": [({"cluster": "c1", "pool_id": "3", "pool": "rbd"}, 1.0)],
}


def answering(found: Mapping[str, Samples], since: float = 600) -> Any:
    asked = {query: name for name, query in who.queries(since).items()}

    async def answer(request: web.Request) -> web.Response:
        name = asked[str((await request.post())["query"])]
        result = [
            {"metric": dict(labels), "value": [1.0, str(value)]} for labels, value in found[name]
        ]
        return web.json_response({"status": "success", "data": {"result": result}})

    return answer


async def run(*options: str) -> int:
    parser = Parser(prog="cephqos who")
    who.add_options(parser)
    arguments: argparse.Namespace = parser.parse_args(options)
    return int(await arguments.run(arguments))


async def asked(found: Mapping[str, Samples], *options: str) -> int:
    async with serving(answering(found)) as url:
        return await run("--prometheus", url, *options)


async def test_the_worst_osd_names_who_has_its_work_and_who_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await asked(NOISY) == 0
    cluster, worst, other, last = capsys.readouterr().out.splitlines()
    assert worst == (
        "osd.3   client is 420 ops/s short   image rbd/17af has 71 % of the work (65–77 %, 214"
        " samples)   waiting: image rbd/02bc 40 %, image rbd/09de 8 % (300 samples)"
    )
    assert cluster.startswith("cluster c1   image rbd/17af has 70 % of the work (64–76 %, 232")
    assert other.startswith("osd.4   image rbd/02bc has 100 % of the work (82–100 %, 18 samples)")
    assert "10 min" in last


async def test_a_time_in_the_past_is_asked_for() -> None:
    times = []

    async def answer(request: web.Request) -> web.Response:
        times.append((await request.post()).get("time"))
        return web.json_response({"data": {"result": []}})

    async with serving(answer) as url:
        await run("--prometheus", url, "--at", "2026-01-31T03:00:00Z")
        await run("--prometheus", url)
    assert times == ["1769828400.000"] * 4 + [None] * 4


async def test_json_has_all_shares_with_their_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asked(NOISY, "--json", "--osd", "osd.3") == 0
    (osd,) = json.loads(capsys.readouterr().out)["shares"]
    assert (osd["osd"], osd["client_short_ops"]) == ("osd.3", 420.0)
    first, second, third = osd["tenants"]
    assert (first["name"], first["victim"]) == ("image rbd/17af", False)
    assert second["victim"] and third["victim"]
    assert first["working"]["low"] < 0.71 < first["working"]["high"]
    assert osd["other"]["waiting"]["share"] == 0.02


async def test_work_is_divided_by_the_application_of_its_pool(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bucket = tenant("osd.3", "d1.4137.1", 0, 250, kind="bucket")
    found = {**NOISY, "seconds": [*NOISY["seconds"], *bucket]}
    assert await asked(found) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("   rbd 76 %, rgw 20 %, other 4 %")
    labels = {"cluster": "c1", "pool_id": "3", "pool": "p", "application": "cephfs"}
    assert await asked({**found, "pools": [(labels, 1.0)]}, "--json", "--osd", "osd.3") == 0
    (osd,) = json.loads(capsys.readouterr().out)["shares"]
    (only,) = osd["applications"]
    assert (only["application"], only["waiting"]["share"]) == ("cephfs", 0.98)
    assert only["working"]["low"] < only["working"]["share"] < only["working"]["high"]


async def test_without_a_name_a_pool_is_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asked({**NOISY, "pools": [], "shortfall": []}, "--osd", "osd.3") == 0
    assert "image pool 3/17af has" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ('{"id_17af": "05000000766d2d3137"}', "image rbd/vm-17 has 71 %"),
        ("no such key", "image rbd/17af has 71 %"),
    ],
)
async def test_the_cluster_says_what_images_are_called(
    reply: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child = tmp_path / "python"
    child.write_text(CHILD.format(python=sys.executable, omap=reply))
    child.chmod(0o755)
    conf = tmp_path / "ceph.conf"
    conf.touch()
    assert await asked(NOISY, "--conf", str(conf), "--python", str(child)) == 0
    out = capsys.readouterr().out
    assert said in out
    assert "image rbd/02bc" in out, "removed meanwhile"
    assert ("does not say the names of images" in out) == (not reply.startswith("{"))


async def test_names_cannot_change_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    labels = {"cluster": "c1", "pool_id": "3", "pool": "a\x1b[2J\nosd.9"}
    assert await asked({**NOISY, "pools": [(labels, 1.0)]}, "--osd", "osd.3") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and len(out.splitlines()) == 2


async def test_without_tenants_it_says_why_and_is_no_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing: Mapping[str, Samples] = {name: [] for name in NOISY}
    assert await asked(nothing) == 1
    assert "collector `tenants` is off" in capsys.readouterr().out


async def test_many_osds_are_cut_to_the_worst_twenty(capsys: pytest.CaptureFixture[str]) -> None:
    many = [one for n in range(30) for one in tenant(f"osd.{n}", "17af", n, 5)]
    counts = [one for n in range(30) for one in sampled(f"osd.{n}", 5, 5)]
    found = {**NOISY, "seconds": many, "samples": counts}
    assert await asked(found) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("osd.29") and "and 10 more OSDs" in lines[21]
    assert await asked(found, "--all") == 0
    assert len(capsys.readouterr().out.splitlines()) == 32


@pytest.mark.parametrize(
    "options",
    [[], ["--prometheus", "nonsense"], ["--prometheus", "http://h:1", "--since", "10s"],
     ["--prometheus", "http://h:1", "--osd", "3"], ["--prometheus", "http://h:1", "--at", "3 am"]],
)  # fmt: skip
async def test_a_mistake_in_the_command_is_refused(options: list[str]) -> None:
    with pytest.raises(UsageError):
        await run(*options)


@pytest.mark.parametrize("odd", [[], {"data": []}, {"data": {"result": [{"metric": {}}]}}])
async def test_an_odd_answer_is_one_line(odd: Any) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(odd)

    async with serving(answer) as url:
        with pytest.raises(CephqosError, match="not the API of a Prometheus"):
            await run("--prometheus", url)


# Intervals.


def test_an_interval_holds_the_true_share_in_nineteen_of_twenty_cases() -> None:
    rng = random.Random(34)  # noqa: S311 - no secret
    for true, samples in ((0.5, 40), (0.71, 214), (0.05, 100), (0.98, 60)):
        held = 0
        for _ in range(1000):
            seen = sum(rng.random() < true for _ in range(samples)) / samples
            low, high = interval(seen, samples)
            held += low <= true <= high
        assert held >= 920


def test_nothing_is_known_without_samples_and_little_with_few() -> None:
    assert interval(0.0, 0) == (0.0, 1.0)
    low, high = interval(1.0, 3)
    assert low < 0.5 and high == 1.0
    assert all(0.0 <= it <= 1.0 and not math.isnan(it) for it in interval(1.0000001, 5))


def test_shares_of_tenants_and_others_add_up() -> None:
    sums = OsdSums(
        {(TenantKey("image", "3", str(n)), "working"): float(n) for n in range(8)}
        | {(TenantKey("other"), "working"): 12.0},
        {"working": 50.0},
    )
    found = sums.shares("c1", "osd.0")
    assert math.isclose(sum(it.working.share for it in (*found.tenants, found.other)), 1.0)
    assert not found.victims
