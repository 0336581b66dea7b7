"""What the load's clients measured, beside the account of the same time."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.recorded import RELEASES, client_output
from tests.truth import load_all
from tests.truth.clients import Client, Compared, HeardStage, at, compare

(SITUATION,) = load_all("^device-size3$")
BEGAN, NOW = 100.0, 141.5
# Four client-seconds per second of osd.0 and two of osd.1, which were busy before, too.
BUSY = {
    "osd.0": [(98.5 + at, 50.0 + max(0.0, 4 * (at - 2))) for at in range(43)],
    "osd.1": [(98.5 + at, 70.0 + max(0.0, 2 * (at - 2))) for at in range(43)],
}


def bench(per_second: float, until: int = 41, **state: object) -> Client:
    """From 100.5 on: ten operations per second, and what they took."""
    rows = [(100.5 + at, 10.0 * at, per_second * at) for at in range(until)]
    return Client("rados 0", rows, **state)  # type: ignore[arg-type]


def test_the_account_is_compared_with_all_clients_until_the_last_moment_that_both_know() -> None:
    found = compare(BUSY, BUSY, [bench(5), bench(1.25)], BEGAN, NOW)
    assert found.off == pytest.approx(6 / 6.25 - 1)
    assert found.ms == pytest.approx(1000 * 0.25 / 20)
    earlier = compare(BUSY, BUSY, [bench(5, until=36), bench(1.25)], BEGAN, NOW)
    assert earlier.off == pytest.approx(found.off), "rows end 5 s before the last reading"


def test_a_client_that_has_ended_counts_with_all_that_it_did() -> None:
    ended = bench(6, until=21, running=False, failed="")
    account = {"osd.0": [(100.0, 0.0), (120.5, 120.0), (140.5, 120.0)]}
    assert compare(account, account, [ended], BEGAN, NOW).off == pytest.approx(0)


def test_between_two_readings_a_sum_grows_evenly() -> None:
    course = [(10.0, 1.0), (20.0, 3.0)]
    assert [at(course, moment) for moment in (0, 10, 15, 20, 30)] == [1, 1, 2, 3, 3]


def test_an_osd_that_began_during_the_load_is_compared_if_all_that_it_did_was_read() -> None:
    account = {"osd.0": [(105.5, 0.0), (140.5, 200.0)]}
    idle, busy = ({"osd.0": [(105.5, had), (140.5, had + 200)]} for had in (0.0, 7.0))
    assert compare(account, idle, [bench(5)], BEGAN, NOW).off == pytest.approx(0)
    late = compare(account, busy, [bench(5)], BEGAN, NOW)
    assert late == Compared(why="osd.0 was read too late")


@pytest.mark.parametrize(
    ("osds", "latency", "clients", "why"),
    [
        ({}, {}, [], "no load"),
        ({}, {}, [bench(0)], "no operation ended"),
        ({}, {}, [bench(5, until=20)], "rados 0 said nothing for 22 s"),
        ({}, {}, [bench(5, running=False)], "rados 0 was broken off"),
        ({"osd.1": BUSY["osd.1"][:20]}, {}, [bench(5)], "osd.1 said nothing for 24 s"),
        ({"osd.2": []}, {}, [bench(5)], "osd.2 said nothing for 42 s"),
        ({}, {"osd.1": [(99.0, 70.0), (140.0, 3.0)]}, [bench(5)], "osd.1 restarted"),
    ],
)
def test_what_cannot_be_compared_has_no_figure_and_a_reason(
    osds: dict[str, list[tuple[float, float]]],
    latency: dict[str, list[tuple[float, float]]],
    clients: list[Client],
    why: str,
) -> None:
    assert compare(BUSY | osds, BUSY | osds | latency, clients, BEGAN, NOW) == Compared(why=why)


async def heard(*argv: str, prints: Path) -> Client:
    lab = SimpleNamespace(enter_argv=lambda _: ["sh", "-c", f"cat {prints}; exit {argv[-1]}"])
    lab.exec = lambda *_, **__: asyncio.sleep(0)
    stage = HeardStage(SimpleNamespace(lab=lab), SITUATION, 0, "p")  # type: ignore[arg-type]
    await stage.client(argv, 20)
    return stage.clients[0]


@pytest.mark.parametrize("release", RELEASES)
async def test_what_a_bench_reports_grows_up_to_its_result(release: str, tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_bytes(client_output(release, "bench_write"))
    client = await heard("rados", "bench", "0", prints=path)
    assert (client.running, client.failed) == (False, "")
    assert len(client.reports) > 2
    for figure in range(3):
        assert [it[figure] for it in client.reports] == sorted(it[figure] for it in client.reports)
    _, ops, seconds = client.reports[-1]
    assert ops > 5000 and 20 < seconds < 25, "about eight at a time, for three seconds"


async def test_a_client_that_was_broken_off_or_says_nothing_is_known_by_that() -> None:
    nothing = Path("/dev/null")
    assert (await heard("rados", "bench", "3", prints=nothing)).failed == "ended with status 3"
    assert "does not say" in (await heard("rados", "cleanup", "0", prints=nothing)).failed
    assert "does not say" in (await heard("fio", "0", prints=nothing)).failed
