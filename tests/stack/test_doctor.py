"""`cephqos doctor` on a real cluster with keys and its Prometheus: what it finds, and what not."""

import asyncio
import json
import os
import pwd
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lab.conftest import LabPool, lab_name
from tests.waiting import until

from cephqos_doctor.key import MGR_CAPS, MON_CAPS
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec
from cephqos_stack.stack import Stack, StackSpec

CEPHQOS = (sys.executable, "-m", "cephqos_base")
# Imports everything before it becomes someone who may not read the checkout.
AS_USER = """
import os, sys
import cephqos_doctor.cli
from cephqos_base.command import main
uid = int(sys.argv[1])
os.setgroups([]); os.setgid(uid); os.setuid(uid)
sys.exit(main(sys.argv[2:]))
"""
CAPACITY = "osd_mclock_max_capacity_iops"


@pytest.fixture(scope="module")
def lab(labs: LabPool) -> Iterator[RunningLab]:
    """18.2 with keys and unprivileged daemons; an option of one OSD takes figures away."""
    spec = LabSpec(
        name=lab_name("doctor"),
        release="reef",
        osds=2,
        auth="cephx",
        setuser="ceph",
        settings=(CephOption("osd.1", "throttler_perf_counter", "false"),),
    )
    lab = labs.start(spec)
    yield lab
    labs.end(lab)


async def doctor(*words: str, uid: int | None = None) -> tuple[int, dict[str, set[str]], Any]:
    """Status, subjects by check that found something, and the findings."""
    argv = [*CEPHQOS, "doctor", *words, "--json"]
    if uid is not None:
        argv = [sys.executable, "-c", AS_USER, str(uid), "doctor", *words, "--json"]
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), 200)
    findings = json.loads(out)["findings"]
    by_check: dict[str, set[str]] = {}
    for found in findings:
        by_check.setdefault(found["check"], set()).add(found["subject"])
    assert process.returncode == (1 if findings else 0)
    return process.returncode, by_check, findings


def host(lab: RunningLab) -> tuple[str, ...]:
    return ("host", f"--discovery.sockets={lab.paths.sockets}/*.asok")


def mine(found: dict[str, set[str]], check: str) -> set[str]:
    """Subjects that are OSDs of ours; other clusters of this machine have others."""
    return {one for one in found.get(check, set()) if one in ("osd.0", "osd.1")}


async def until_told(
    lab: RunningLab, blinded: set[str], *, plausible: bool
) -> list[dict[str, str]]:
    """What a host is told once its OSDs have heard of what was set: the findings."""

    async def as_set() -> Any:
        _, found, findings = await doctor(*host(lab), uid=owner_of(lab))
        return (
            mine(found, "figures-not-blinded") == blinded
            and ("osd.0" not in mine(found, "capacity-plausible")) == plausible
            and findings
        )

    heard: list[dict[str, str]] = await until(as_set, f"{blinded} blinded, plausible: {plausible}")
    return heard


def owner_of(lab: RunningLab) -> int:
    return next(Path(lab.paths.sockets).glob("*osd.0.asok")).stat().st_uid


async def set_capacity(lab: RunningLab, **iops: int) -> None:
    """Of osd.0, on whichever media this machine has."""
    for media, value in iops.items():
        await lab.exec(["ceph", "config", "set", "osd.0", f"{CAPACITY}_{media}", str(value)])


async def test_a_host_is_told_what_blinds_and_mends_are_commands_that_work(
    lab: RunningLab,
) -> None:
    _, found, findings = await doctor(*host(lab), uid=owner_of(lab))
    assert mine(found, "figures-not-blinded") == {"osd.1"}
    assert not found.get("sockets-permitted")
    assert not found.get("osds-answer")
    assert not found.get("scheduler-in-force")
    await lab.exec(["ceph", "config", "set", "osd.0", "osd_enable_op_tracker", "false"])
    await set_capacity(lab, hdd=90_000, ssd=90_000)
    findings = await until_told(lab, {"osd.0", "osd.1"}, plausible=False)
    mend = next(one["mend"] for one in findings if "osd_enable_op_tracker" in one["problem"])
    await lab.exec(shlex.split(mend))
    await set_capacity(lab, hdd=400, ssd=9000)
    await until_told(lab, {"osd.1"}, plausible=True)
    await lab.exec(["ceph", "config", "rm", "osd.0", "osd_enable_op_tracker"])


async def test_another_user_is_told_whose_rights_are_needed(lab: RunningLab) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    run = Path(lab.paths.sockets)
    mode = run.stat().st_mode
    try:
        run.chmod(0o755)
        _, found, findings = await doctor(*host(lab), uid=nobody)
        assert mine(found, "sockets-permitted") == {"osd.0", "osd.1"}
        owner = owner_of(lab)
        assert any(f"User={_name(owner)}" in one["mend"] for one in findings)
        run.chmod(0o700)
        os.chown(run, owner, -1)
        _, found, _ = await doctor(*host(lab), uid=nobody)
        assert found["directories-readable"] == {str(run)}
    finally:
        run.chmod(mode)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


async def key(lab: RunningLab, entity: str, mon: str, mgr: str, osd: str = "") -> str:
    """Its keyring, once the cluster has the pool of OF_A_LAB, which the manager makes late."""

    async def has_pool() -> bool:
        return ".mgr" in (await lab.exec(["ceph", "osd", "pool", "ls"])).stdout.split()

    await until(has_pool, "the manager's pool is there")
    keyring = str(lab.paths.keyring(entity))
    caps = ["mon", mon, *(("mgr", mgr) if mgr else ()), *(("osd", osd) if osd else ())]
    await lab.exec(["ceph", "auth", "get-or-create", entity, *caps, "-o", keyring])
    return keyring


def cluster(lab: RunningLab, entity: str, keyring: str) -> tuple[str, ...]:
    return (
        "cluster",
        f"--cluster.conf={lab.paths.conf}",
        f"--cluster.name={entity}",
        f"--cluster.keyring={keyring}",
        f"--cluster.python={shlex.join(lab.enter_argv(['python3']))}",
        "--try-powers",
    )


# A lab lets its pools take writes that one disk has.
OF_A_LAB = {"copies-apart": {".mgr"}}


async def test_the_documented_key_is_neither_too_narrow_nor_too_wide(lab: RunningLab) -> None:
    keyring = await key(lab, "client.right", MON_CAPS, MGR_CAPS)
    await lab.exec(["ceph", "osd", "blocklist", "add", "192.0.2.7:0/123", "600"])
    await lab.exec(["ceph", "osd", "set-group", "noin", "default"])
    await lab.exec(["ceph", "osd", "reweight", "osd.0", "0.95"])
    try:
        _, found, findings = await doctor(*cluster(lab, "client.right", keyring))
    finally:
        await lab.exec(["ceph", "osd", "reweight", "osd.0", "1"])
        await lab.exec(["ceph", "osd", "unset-group", "noin", "default"])
        await lab.exec(["ceph", "osd", "blocklist", "rm", "192.0.2.7:0/123"])
    left = {"no-flag-left": {"default"}, "no-reweight-left": {"osd.0"}}
    assert found == OF_A_LAB | left | {"clients-fenced": {"192.0.2.7"}}, findings


async def test_a_cap_that_is_missing_is_named_and_the_mend_gives_it(lab: RunningLab) -> None:
    narrow = MGR_CAPS.replace(', allow command "pg ls-by-primary"', "")
    assert narrow != MGR_CAPS
    keyring = await key(lab, "client.narrow", MON_CAPS, narrow)
    _, found, findings = await doctor(*cluster(lab, "client.narrow", keyring))
    assert found == OF_A_LAB | {"caps-sufficient": {"client.narrow"}}
    assert '"pg ls-by-primary"' in findings[0]["problem"]
    assert '"pg dump"' not in findings[0]["problem"]
    await lab.exec(shlex.split(findings[0]["mend"]))
    _, found, _ = await doctor(*cluster(lab, "client.narrow", keyring))
    assert found == OF_A_LAB


@pytest.mark.parametrize(
    ("mon", "mgr", "osd", "power"),
    [
        ("allow rw", "allow r", "", "change pools"),
        ("allow *", "allow r", "", "read keys"),
        ("allow r", "allow *", "", "start scrubs"),
        ("allow r", "allow r", "allow *", "command OSDs"),
    ],
)
async def test_a_key_that_can_do_more_is_told_what(
    lab: RunningLab, mon: str, mgr: str, osd: str, power: str
) -> None:
    entity = f"client.can-{power.replace(' ', '-')}"
    keyring = await key(lab, entity, mon, mgr, osd)
    before = (await lab.exec(["ceph", "osd", "pool", "ls"])).stdout
    _, found, findings = await doctor(*cluster(lab, entity, keyring))
    assert found == OF_A_LAB | {"caps-minimal": {entity}}
    assert power in findings[0]["problem"]
    assert (await lab.exec(["ceph", "osd", "pool", "ls"])).stdout == before


async def test_read_only_caps_are_not_called_too_wide_for_changing_things(lab: RunningLab) -> None:
    keyring = await key(lab, "client.reader", "allow r", "allow r")
    _, _, findings = await doctor(*cluster(lab, "client.reader", keyring))
    said = " ".join(one["problem"] for one in findings)
    assert not any(power in said for power in ("change", "start", "command", "read keys"))


async def test_a_key_that_is_not_known_is_told_how_to_be_made(lab: RunningLab) -> None:
    keyring = await key(lab, "client.gone", MON_CAPS, MGR_CAPS)
    await lab.exec(["ceph", "auth", "rm", "client.gone"])
    _, found, findings = await doctor(*cluster(lab, "client.gone", keyring))
    assert found == {"cluster-reachable": {"the cluster"}}
    assert "ceph auth get-or-create client.gone" in findings[0]["mend"]


async def nothing_found(*words: str) -> None:
    """Once all that has just been started has been scraped and evaluated."""
    findings: Any = None

    async def nothing() -> bool:
        nonlocal findings
        _, found, findings = await doctor(*words)
        return not found

    await until(nothing, lambda: f"nothing is found; now {findings}")


async def test_a_prometheus_is_judged_by_its_own_words(lab: RunningLab) -> None:
    async with Stack(lab, StackSpec(scrape_interval=1, time_scale=1)) as stack:
        await nothing_found("prometheus", stack.prometheus_url)
    other = StackSpec(name="other", scrape_interval=1, time_scale=1 / 30, cluster_role=False)
    async with Stack(lab, other) as stack:
        rules = str(stack.dir / "rules")
        await nothing_found("prometheus", stack.prometheus_url, f"--rules={rules}")
        _, found, findings = await doctor("prometheus", stack.prometheus_url)
        assert set(found) == {"rules-of-this-version"}
        assert "differ" in findings[0]["problem"]
