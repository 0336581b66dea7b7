"""What the doctor makes of clusters that answer in ways which are easily misread."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import pytest
from tests.recorded import RECORDINGS

from cephqos_doctor import cluster_facts, cluster_state, key
from cephqos_doctor.cli import CLUSTER_CHECKS
from cephqos_doctor.cluster_facts import NEEDED, POWERS, ClusterFacts
from cephqos_doctor.finding import Finding, diagnose
from cephqos_exporter.ceph.monclient import ClusterAccess, ClusterSilent, CommandFailed

from .doctor_facts import found, mends

ACTIVE = {"mgrmap": {"available": True}, "health": {"checks": {}}}
NO_MANAGER = {"mgrmap": {"available": False}, "health": {"checks": {}}}
Answer = Callable[[str, str], Any]
# What no role needs and the key does not allow: everything else has an answer.
DENIED = {power.prefix for power in POWERS if power.target != "osd"}


class StandIn:
    """A cluster as a client of it sees it: a function of target and command."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked: list[tuple[str, str]] = []

    def __call__(self, _: ClusterAccess) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def command(self, prefix: str, *, target: str, within: float, **_: Any) -> Any:
        assert within <= 10
        self.asked.append((target, prefix))
        return self._answer(target, prefix)


def osds(*up: int, down: tuple[int, ...] = ()) -> dict[str, Any]:
    every = [{"osd": osd, "up": 1} for osd in up] + [{"osd": osd, "up": 0} for osd in down]
    return {"osds": every}


def a_minimal_key(target: str, prefix: str, *, status: Any = ACTIVE, dump: Any = None) -> Any:
    """The documented key. An OSD drops what comes from it, a client refuses one that is gone."""
    if target.startswith("osd."):
        if target not in {f"osd.{one['osd']}" for one in (dump or osds(0))["osds"] if one["up"]}:
            raise CommandFailed(prefix, -6, "osd down or gone")
        raise ClusterSilent(f"{prefix}: no answer before the deadline")
    if prefix in DENIED:
        raise CommandFailed(prefix, -13, "access denied")
    return {"status": status, "osd dump": dump or osds(0)}.get(prefix, {})


async def looked_at(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, *, try_powers: bool = True
) -> tuple[ClusterFacts, StandIn]:
    stand_in = StandIn(answer)
    monkeypatch.setattr(cluster_facts, "MonClient", stand_in)
    access = ClusterAccess(conf="x", name="client.cephqos")
    return await cluster_facts.gather(access, try_powers=try_powers), stand_in


async def test_what_no_role_needs_is_not_sent_unless_one_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts, stand_in = await looked_at(monkeypatch, a_minimal_key, try_powers=False)
    needed = {query.prefix for query, _ in NEEDED}
    # The caps for the first three of NEEDED allow these, too.
    allowed = {"osd crush rule dump", "versions", "osd metadata", "config dump"}
    assert {prefix for _, prefix in stand_in.asked} == needed | allowed
    assert ("caps-minimal", "needs --try-powers") in diagnose("it", key.CHECKS, facts).skipped


async def test_the_hours_of_scrubs_are_asked_where_deep_scrubs_are_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = {"PG_NOT_DEEP_SCRUBBED": {"summary": {"count": 9}}}
    late = {"mgrmap": {"available": True}, "health": {"checks": check}}

    def answer(target: str, prefix: str) -> Any:
        return "6" if prefix == "config get" else a_minimal_key(target, prefix, status=late)

    facts, _ = await looked_at(monkeypatch, answer, try_powers=False)
    assert (facts.overdue, facts.window_hours) == (9, 168)  # from 6 to 6 o'clock: always
    facts, _ = await looked_at(monkeypatch, a_minimal_key, try_powers=False)
    assert (facts.overdue, facts.window_hours) == (0, None)
    assert cluster_facts.scrub_hours(22, 4, 0, 0) == 42


@pytest.mark.parametrize(
    ("said", "on"), [("true", True), (True, True), ("false\n", False), ("?", None), (None, None)]
)
async def test_the_balancer_is_asked_of_the_monitors_which_the_key_allows(
    said: Any, on: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(target: str, prefix: str) -> Any:
        if prefix == "config get" and said is None:
            raise CommandFailed(prefix, -2, "unrecognized key 'mgr/balancer/active'")
        return said if prefix == "config get" else a_minimal_key(target, prefix)

    facts, _ = await looked_at(monkeypatch, answer, try_powers=False)
    assert facts.balancing is on
    assert ("balancer-on" in found(CLUSTER_CHECKS, facts)) == (on is False)
    assert ("balancer-on" in dict(diagnose("it", CLUSTER_CHECKS, facts).skipped)) == (on is None)


async def test_what_replica_writes_leave_for_clients_is_said_and_is_no_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pools = [{"type": 1, "size": size} for size in (3, 2, 3, 1, None)] + [{"type": 3, "size": 6}]
    dump = {**osds(0), "pools": [*pools, "not a pool"]}
    facts, _ = await looked_at(monkeypatch, partial(a_minimal_key, dump=dump))
    assert facts.sizes == (1, 2, 3)
    assert cluster_state.left_for_clients(facts).endswith(": 50% (size 2), 33% (size 3)")
    assert found(CLUSTER_CHECKS, facts) == {}
    facts, _ = await looked_at(monkeypatch, a_minimal_key)
    assert cluster_state.left_for_clients(facts) == ""


@pytest.mark.parametrize("release", ["pacific", "reef", "tentacle"])
def test_two_osds_with_one_address_are_found_in_the_map(release: str) -> None:
    dump = json.loads((RECORDINGS / f"cluster/{release}/idle/osd_dump.json").read_text())
    facts = ClusterFacts(name="client.cephqos", status=ACTIVE, osd_map=dump)
    assert "addresses-unique" not in found(CLUSTER_CHECKS, facts)
    assert "addresses-unique" not in dict(diagnose("it", CLUSTER_CHECKS, facts).skipped)
    first, second = dump["osds"][:2]
    second["cluster_addrs"] = first["cluster_addrs"]
    [finding] = found(CLUSTER_CHECKS, facts)["addresses-unique"]
    assert finding.subject == "osd.0, osd.1"
    assert first["cluster_addrs"]["addrvec"][0]["addr"] in finding.problem
    assert mends(finding)
    second["up"] = 0  # its last address, which is free again
    assert "addresses-unique" not in found(CLUSTER_CHECKS, facts)


# As `osd dump` shows them after `mgr fail`, on 16.2 without the second list.
OF_A_MANAGER = {
    "127.0.0.1:20026/2358699111": "2026-11-30T08:01:00.813970+0000",
    "127.0.0.1:20027/2358699111": "2026-11-30T08:01:00.813970+0000",
    "127.0.0.1:0/1568125384": "2026-11-30T08:01:00.813970+0000",
    "127.0.0.1:0/638603306": "2026-11-30T08:01:00.813970+0000",
}


def fenced(**lists: dict[str, str]) -> list[Finding]:
    facts = ClusterFacts(name="client.cephqos", status=ACTIVE, osd_map={"osds": [], **lists})
    return found(CLUSTER_CHECKS, facts).get("clients-fenced", [])


def test_the_clients_of_a_manager_that_failed_over_are_not_called_fenced() -> None:
    assert fenced(blocklist=OF_A_MANAGER, range_blocklist={}) == []
    # On a host with a manager a client was fenced before: its entries end at other times.
    client = {"127.0.0.1:0/77": "2026-11-29T09:00:00.000000+0000"}
    [finding] = fenced(blocklist=OF_A_MANAGER | client)
    assert finding.subject == "127.0.0.1"
    assert "(1 in the blocklist, until 2026-11-29T09:00" in finding.problem


def test_clients_that_are_fenced_are_found_by_host() -> None:
    one, other = "2026-11-29T08:10:50.016361+0000", "2026-11-29T08:10:52.182043+0000"
    listed = {"192.0.2.7:0/123": one, "[2001:db8::7]:0/9": one, "192.0.2.7:0/124": other}
    first, second = fenced(blocklist=listed | OF_A_MANAGER)
    assert (first.subject, second.subject) == ("192.0.2.7", "[2001:db8::7]")
    assert f"(2 in the blocklist, until {other})" in first.problem
    assert mends(first)
    [network] = fenced(blocklist={}, range_blocklist={"cidr:198.51.100.0:0/24": other})
    assert network.mend.startswith("ceph osd blocklist range rm 198.51.100.0/24 ")
    [network] = fenced(blocklist={}, range_blocklist={"cidr:[2001:db8::]:0/32": other})
    assert network.subject == "[2001:db8::]/32"


async def test_a_minimal_key_is_fine_whichever_osds_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """osd.0 of an old cluster was replaced long ago: to command it fails without any denial."""
    for dump in (osds(0), osds(7, 8), osds(7, down=(0, 1)), osds(), osds(down=(0,))):
        facts, stand_in = await looked_at(monkeypatch, partial(a_minimal_key, dump=dump))
        assert found(CLUSTER_CHECKS, facts) == {}, dump
        up = {f"osd.{one['osd']}" for one in dump["osds"] if one["up"]}
        assert {target for target, _ in stand_in.asked if target.startswith("osd")} <= up


async def test_a_key_that_commands_osds_is_too_wide_also_where_osd_0_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(target: str, prefix: str) -> Any:
        return {} if target == "osd.7" else a_minimal_key(target, prefix, dump=osds(7, down=(0,)))

    facts, _ = await looked_at(monkeypatch, answer)
    [finding] = found(CLUSTER_CHECKS, facts)["caps-minimal"]
    assert "command OSDs" in finding.problem


async def test_a_manager_that_is_missing_is_found_and_the_connection_is_not_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librados waits for a manager for good: the command has no answer, the monitors have."""

    def answer(target: str, prefix: str) -> Any:
        if target == "mgr":
            raise ClusterSilent(f"{prefix}: no answer before the deadline")
        return a_minimal_key(target, prefix, status=NO_MANAGER)

    facts, stand_in = await looked_at(monkeypatch, answer)
    assert list(found(CLUSTER_CHECKS, facts)) == ["manager-active"]
    # One deadline is waited for, not one for each command.
    assert sum(target == "mgr" for target, _ in stand_in.asked) == 1


async def test_a_manager_that_is_active_and_silent_is_a_hang_or_a_key_without_a_word_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(target: str, prefix: str) -> Any:
        if target == "mgr":
            raise ClusterSilent(f"{prefix}: no answer before the deadline")
        return a_minimal_key(target, prefix)

    facts, _ = await looked_at(monkeypatch, answer)
    findings = found(CLUSTER_CHECKS, facts)
    assert list(findings) == ["manager-active"]
    [finding] = findings["manager-active"]
    assert "pg dump" in finding.problem
    assert "ceph auth caps client.cephqos" in finding.mend
    assert "ceph mgr fail" in finding.mend


async def test_a_monitor_that_falls_silent_leaves_open_whether_the_key_can_do_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would say that it denies a command."""

    def answer(target: str, prefix: str) -> Any:
        if prefix == "auth ls":
            raise ClusterSilent(f"{prefix}: no answer before the deadline")
        return a_minimal_key(target, prefix)

    facts, _ = await looked_at(monkeypatch, answer)
    assert facts.unasked == ("read keys",)
    [minimal] = [check for check in CLUSTER_CHECKS if check.name == "caps-minimal"]
    assert minimal.skip(facts) == "whether the key can read keys"


async def test_monitors_that_do_not_answer_are_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(target: str, prefix: str) -> Any:
        raise ClusterSilent(f"{prefix}: no answer before the deadline")

    facts, stand_in = await looked_at(monkeypatch, answer)
    assert list(found(CLUSTER_CHECKS, facts)) == ["cluster-reachable"]
    assert len(stand_in.asked) == 1


@pytest.mark.parametrize(
    ("failure", "mend"),
    [
        # As librados says it.
        (
            "cannot connect with /x.conf as client.cephqos: [errno 2] error calling conf_read_file",
            "ceph config generate-minimal-conf",
        ),
        (
            "cannot connect with x as client.cephqos: [errno 2] RADOS object not found (error"
            " connecting to the cluster)",
            "ceph auth get client.cephqos",
        ),
        (
            "cannot connect with x as client.cephqos: [errno 13] RADOS permission denied (error"
            " connecting to the cluster)",
            "ceph auth get-or-create client.cephqos",
        ),
        (
            "cannot connect with x as client.cephqos: [errno 110] RADOS timed out (error"
            " connecting to the cluster)",
            "ceph --connect-timeout 5 --status",
        ),
        ("status: no answer before the deadline", "ceph --connect-timeout 5 --status"),
        ("what nobody has seen yet", "ceph auth get-or-create client.cephqos"),
    ],
)
def test_what_keeps_a_connection_away_has_the_mend_of_its_own(failure: str, mend: str) -> None:
    facts = ClusterFacts(name="client.cephqos", failure=failure)
    [finding] = found(CLUSTER_CHECKS, facts)["cluster-reachable"]
    assert finding.mend.startswith(mend)
