"""`cephqos who` against a small Prometheus that answers its questions, and no others."""

import argparse
import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web
from tests.fake_server import serving
from tests.shares.coverage import LOADS, ONE, Load, covered

from cephqos_base.command import Parser
from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.tenant_shares import OsdSums, TenantKey, interval
from cephqos_insight import who

# Answers like the child of MonClient.
CHILD = """#!{python}
import json, sys
def answer(out, **header):
    print(json.dumps(dict(header, length=len(out))), out, sep="\\n", end="", flush=True)
answer("")
for line in sys.stdin:
    asked = json.loads(line)
    if asked["target"] == "mon":
        answer('{{"fsid": "{fsid}"}}', code=0, err="")
    else:
        assert asked["target"] == "pool.3" and "id_17af" in asked["command"]["keys"]
        answer('{omap}', code=0, err="")
"""

Samples = Sequence[tuple[Mapping[str, str], float]]


def stand_in(folder: Path, reply: str, fsid: str = "c1") -> Sequence[str]:
    """Options that ask a stand-in of a cluster how its images are called."""
    child, conf = folder / "python", folder / "ceph.conf"
    child.write_text(CHILD.format(python=sys.executable, omap=reply, fsid=fsid))
    child.chmod(0o755)
    conf.touch()
    return "--conf", str(conf), "--python", str(child)


def tenant(osd: str, image: str, waiting: float, working: float, kind: str = "image") -> Samples:
    labels = {"cluster": "c1", "ceph_daemon": osd, "kind": kind}
    if image:
        labels |= {"pool_id": "3", "tenant": image}
    return [
        (labels | {"state": "waiting"}, waiting),
        (labels | {"state": "working"}, working),
    ]


def squares(osd: str, waiting: float, working: float) -> Samples:
    labels = {"cluster": "c1", "ceph_daemon": osd}
    return [(labels | {"state": "waiting"}, waiting), (labels | {"state": "working"}, working)]


def counted(osd: str, waiting: float, working: float) -> Samples:
    """What the OSD's account has of it."""
    labels = {"cluster": "c1", "ceph_daemon": osd}
    return [(labels | {"state": "queue"}, waiting), (labels | {"state": "store_device"}, working)]


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
    # As sure as 300 samples of waiting and 214 of work; of osd.4 as 2 and 18.
    "squares": [
        *squares("osd.3", 1000**2 / 300, 1000**2 / 214),
        *squares("osd.4", 1 / 2, 81 / 18),
        *squares("osd.5", 0, 0),
    ],
    "counted": [*counted("osd.3", 1000, 1000), *counted("osd.4", 1, 9)],
    "counted_for_others": [],
    "shortfall": [({"cluster": "c1", "ceph_daemon": "osd.3"}, 420.0)],
    "pools": [({"cluster": "c1", "pool_id": "3", "pool": "rbd"}, 1.0)],
}


def noisy_with(more: Samples) -> Mapping[str, Samples]:
    """The same with more seconds of osd.3, as sure as before."""
    seconds = [*NOISY["seconds"], *more]
    of_osd = [(it["state"], value) for it, value in seconds if it["ceph_daemon"] == "osd.3"]
    waiting, working = (
        sum(value for state, value in of_osd if state == of) for of in ("waiting", "working")
    )
    return {
        **NOISY,
        "seconds": seconds,
        "squares": [*squares("osd.3", waiting**2 / 300, working**2 / 214), *NOISY["squares"][2:]],
        "counted": [*counted("osd.3", waiting, working), *NOISY["counted"][2:]],
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
    cluster, *lines = capsys.readouterr().out.splitlines()
    worst = lines.index(
        "osd.3   client is 420 ops/s short   image rbd/17af has 71 % of the work (65–77 %, 214"
        " samples)"
    )
    assert lines[worst + 1] == (
        "    waiting (300 samples): image rbd/02bc 40 % (35–46), image rbd/09de 8 % (5–12)"
    )
    assert cluster.startswith("cluster c1   image rbd/17af has 70 % of the work (64–76 %, 218")
    assert lines[worst + 2] == (
        "osd.4   image rbd/02bc has 100 % of the work (82–100 %, 18 samples)"
    )
    assert "10 min" in lines[-1]


async def test_no_line_is_wider_than_a_hundred_columns_or_ends_inside_a_share(
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels = {"cluster": "c1", "pool_id": "3", "pool": "volumes-of-the-second-region"}
    assert await asked({**NOISY, "pools": [(labels, 1.0)]}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    # Two victims with this name do not fit in one line.
    at = lines.index("osd.3   client is 420 ops/s short")
    assert lines[at + 1] == (
        "    image volumes-of-the-second-region/17af has 71 % of the work (65–77 %, 214 samples)"
    )
    assert lines[at + 2 : at + 4] == [
        "    waiting (300 samples): image volumes-of-the-second-region/02bc 40 % (35–46),",
        "        image volumes-of-the-second-region/09de 8 % (5–12)",
    ]


async def test_a_time_in_the_past_is_asked_for() -> None:
    times = []

    async def answer(request: web.Request) -> web.Response:
        times.append((await request.post()).get("time"))
        return web.json_response({"data": {"result": []}})

    async with serving(answer) as url:
        await run("--prometheus", url, "--at", "2026-01-31T03:00:00Z")
        await run("--prometheus", url)
    assert times == ["1769828400.000"] * 6 + [None] * 6


async def test_json_has_all_shares_with_their_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asked(NOISY, "--json", "--osd", "osd.3") == 0
    (osd,) = json.loads(capsys.readouterr().out)["shares"]
    assert (osd["osd"], osd["client_short_ops"]) == ("osd.3", 420.0)
    first, second, third = osd["tenants"]
    assert (first["name"], first["victim"]) == ("image rbd/17af", False)
    assert second["victim"] and third["victim"]
    assert first["working"]["low"] < 0.71 < first["working"]["high"]
    assert osd["other"]["waiting"]["share"] == 0.02


async def test_work_and_waiting_are_divided_by_the_application_of_the_pool(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bucket = tenant("osd.3", "d1.4137.1", 0, 250, kind="bucket")
    found = noisy_with(bucket)
    assert await asked(found) == 0
    lines = capsys.readouterr().out.splitlines()
    work = "    work by application: rbd 76 % (70–81), rgw 20 % (15–26), other 4 % (2–7)"
    waiting = "    waiting by application: rbd 98 % (96–99), other 2 % (1–4)"
    assert [lines.index(work) + 1, lines.count(work)] == [lines.index(waiting), 1]
    labels = {"cluster": "c1", "pool_id": "3", "pool": "p", "application": "cephfs"}
    assert await asked({**found, "pools": [(labels, 1.0)]}, "--json", "--osd", "osd.3") == 0
    (osd,) = json.loads(capsys.readouterr().out)["shares"]
    (only,) = osd["applications"]
    assert (only["application"], only["waiting"]["share"]) == ("cephfs", 0.98)
    assert only["working"]["low"] < only["working"]["share"] < only["working"]["high"]


IN_TWO_POOLS: Final = noisy_with(
    [({**labels, "pool_id": "7"}, 500.0) for labels, _ in tenant("osd.3", "17af", 0, 0)]
)


async def test_work_and_waiting_are_divided_by_pool(capsys: pytest.CaptureFixture[str]) -> None:
    found = IN_TWO_POOLS
    assert await asked(found) == 0
    lines = capsys.readouterr().out.splitlines()
    work = lines.index("    work by pool: rbd 64 % (57–70), pool 7 33 % (27–40), other 3 % (2–7)")
    assert lines[work + 1] == (
        "    waiting by pool: rbd 65 % (60–71), pool 7 33 % (28–39), other 1 % (1–3)"
    )
    assert not [line for line in lines[:work] if line.startswith("osd.")], "of the cluster"
    assert await asked(found, "--json", "--osd", "osd.3") == 0
    (osd,) = json.loads(capsys.readouterr().out)["shares"]
    first, second = osd["pools"]
    assert (first["pool_id"], first["pool"]) == ("3", "rbd")
    assert (second["pool_id"], second["pool"]) == ("7", None)
    for figures in (first["working"], first["waiting"], second["working"], second["waiting"]):
        assert figures["low"] < figures["share"] < figures["high"]
    assert second["working"]["seconds"] == 500


async def test_an_osd_that_is_asked_for_has_its_sums_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await asked(IN_TWO_POOLS, "--osd", "osd.3") == 0
    osd, *lines = capsys.readouterr().out.splitlines()
    assert osd.startswith("osd.3 ")
    titles = [title for title, is_list, _ in (line.partition(": ") for line in lines) if is_list]
    assert titles == [
        "    waiting (300 samples)",
        "    work by pool",
        "    waiting by pool",
        "    work by application",
        "    waiting by application",
    ]


async def test_of_many_pools_those_with_most_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    many = [
        ({**labels, "pool_id": str(pool)}, 10.0 + pool)
        for pool in range(1, 9)
        for labels, _ in tenant("osd.3", "17af", 0, 0)
    ]
    assert await asked({**NOISY, "seconds": many, "pools": []}) == 0
    out = " ".join(capsys.readouterr().out.split())
    _, _, work = out.partition("work by pool: ")
    work, _, _ = work.partition(" waiting by pool")
    assert work.startswith("pool 8 16 % ") and work.endswith(", and 3 more")
    assert "pool 4 " in work and "pool 3 " not in work


async def test_without_a_name_a_pool_is_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asked({**NOISY, "pools": [], "shortfall": []}, "--osd", "osd.3") == 0
    assert "image pool 3/17af has" in capsys.readouterr().out


VM_17 = '{"id_17af": "05000000766d2d3137"}'


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (VM_17, "image rbd/vm-17 has 71 %"),
        ("no such key", "image rbd/17af has 71 %"),
    ],
)
async def test_the_cluster_says_what_images_are_called(
    reply: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await asked(NOISY, *stand_in(tmp_path, reply)) == 0
    out = capsys.readouterr().out
    assert said in out
    assert "image rbd/02bc" in out, "removed meanwhile"
    assert ("does not say the names of images" in out) == (not reply.startswith("{"))


async def test_osds_of_two_clusters_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    both = {
        name: [*samples, *(({**labels, "cluster": "c2"}, value) for labels, value in samples)]
        for name, samples in NOISY.items()
    }
    assert await asked(both) == 0
    starts = [line.split("   ")[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["cluster c1", "osd.3"] in starts and ["cluster c2", "osd.3"] in starts
    assert await asked(NOISY) == 0
    assert "\nosd.3   client" in capsys.readouterr().out


async def test_names_cannot_change_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    labels = {"cluster": "c1", "pool_id": "3", "pool": "a\x1b[2J\nosd.9"}
    assert await asked({**NOISY, "pools": [(labels, 1.0)]}, "--osd", "osd.3") == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\\x1b[2J osd.9" in out
    assert not [line for line in out.splitlines() if line.startswith("osd.9")]


async def test_without_tenants_it_says_why_and_is_no_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing: Mapping[str, Samples] = {name: [] for name in NOISY}
    assert await asked(nothing) == 1
    assert "collector `tenants` is off" in capsys.readouterr().out


async def test_many_osds_are_cut_to_the_worst_twenty(capsys: pytest.CaptureFixture[str]) -> None:
    many = [one for n in range(30) for one in tenant(f"osd.{n}", "17af", n, 5)]
    found = {**NOISY, "seconds": many}
    assert await asked(found) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [line.partition(" ")[0] for line in lines if line.startswith("osd.")]
    assert (len(shown), shown[0], shown[-1]) == (20, "osd.29", "osd.10")
    assert "and 10 more OSDs" in lines[-2]
    assert await asked(found, "--all") == 0
    assert sum(it.startswith("osd.") for it in capsys.readouterr().out.splitlines()) == 30


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


async def test_what_the_osd_counted_and_no_sample_saw_may_be_anyones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Samples missed a burst: as much work again as they saw."""
    missed = {**NOISY, "counted": counted("osd.3", 1000, 1600), "counted_for_others": [
        ({"cluster": "c1", "ceph_daemon": "osd.3", "state": "store_commit"}, 400.0),
        ({"cluster": "c1", "ceph_daemon": "osd.3", "state": "queue"}, 7000.0),  # no tenant's
    ]}  # fmt: skip
    assert await asked(missed, "--json", "--osd", "osd.3") == 0
    (osd,) = json.loads(capsys.readouterr().out)["shares"]
    first = osd["tenants"][0]
    assert osd["bursts_known"] == {"waiting": True, "working": True}
    assert first["working"]["low"] == pytest.approx(0.65 / 2, abs=0.005)
    assert first["working"]["high"] == pytest.approx((0.77 + 1) / 2, abs=0.005)
    assert first["waiting"]["high"] == pytest.approx(0.557, abs=0.002)


async def test_without_the_account_of_an_osd_bursts_are_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = {**NOISY, "counted": counted("osd.4", 1, 9)}
    assert await asked(one) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "71 % of the work (65–77 %, 214 samples, bursts: not known)" in out
    assert "waiting (300 samples, bursts: not known): image rbd/02bc" in out
    assert "(82–100 %, 18 samples)" in out  # osd.4
    assert "cluster c1 image rbd/17af has 70 % of the work (64–76 %, 218 samples, bursts" in out


# Intervals.


def test_a_sample_counts_by_its_seconds_and_an_osd_by_its_part() -> None:
    """Ten samples of which one has nearly all, and a second OSD that adds little."""
    key = TenantKey("image", "3", "17af")
    large = OsdSums(seconds={(key, "working"): 109.0}, squares={"working": 100.0**2 + 9})
    assert large.shares("c", "osd.0").samples["working"] == pytest.approx(1.19, abs=0.01)
    small = OsdSums(seconds={(key, "working"): 20.0}, squares={"working": 20.0})
    both = OsdSums().add([large, small]).shares("c", "")
    parts = (109 / 129) ** 2 / 1.187 + (20 / 129) ** 2 / 20
    assert both.samples["working"] == pytest.approx(1 / parts, rel=0.01)


@pytest.mark.parametrize("interval", [1.0, 10.0])
@pytest.mark.parametrize("load", LOADS, ids=lambda load: f"{load.name} {load.osds == ONE}")
def test_intervals_hold_the_true_shares_of_simulated_loads(load: Load, interval: float) -> None:
    assert covered(load, interval, runs=3).part >= 0.9


def test_without_the_osds_own_count_bursts_between_samples_break_the_intervals() -> None:
    """So the simulation can fail, and `bursts: not known` is said for a reason."""
    (paced,) = [load for load in LOADS if load.paced and load.ops == 100]
    assert covered(paced, 10.0, runs=3, counted=False).part < 0.5


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
