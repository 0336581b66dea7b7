"""Clusters that ask for keys: the keys that the documentation makes, what they allow and refuse."""

import re
import shlex
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from cephqos_exporter.ceph import cluster
from cephqos_exporter.ceph.monclient import (
    ClusterAccess,
    ClusterUnreachable,
    CommandFailed,
    MonClient,
)
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec

from .cluster_exporter import exporting
from .conftest import RELEASES_IN_TURN, LabPool, lab_name

DOCUMENTS = Path(__file__).parents[2] / "docs" / "install"
POOL = "guarded"


def documented(name: str, entity: str) -> list[str]:
    """The command that a document tells to make a key with, as its words."""
    found = re.findall(
        rf"^(ceph auth get-or-create {entity} .*)$", (DOCUMENTS / name).read_text(), re.MULTILINE
    )
    assert len(found) == 1
    return shlex.split(found[0].replace("POOL", POOL))


async def make_key(lab: RunningLab, entity: str) -> str:
    """Make a documented key; its keyring."""
    argv = documented("security.md", entity)
    keyring = str(lab.paths.keyring(entity))
    argv[argv.index("-o") + 1] = keyring  # one name inside and outside of the lab
    await lab.exec(argv)
    return keyring


@pytest.fixture(scope="module", params=RELEASES_IN_TURN)
def guarded(request: pytest.FixtureRequest, labs: LabPool) -> Iterator[RunningLab]:
    """A lab with keys; daemons of 18.2 run unprivileged as well."""
    user = "ceph" if request.param == "reef" else None
    spec = LabSpec(
        name=lab_name("keys"), release=str(request.param), osds=2, auth="cephx", setuser=user
    )
    lab = labs.start(spec)
    labs.call(_fill(lab))
    yield lab
    labs.end(lab)


async def _fill(lab: RunningLab) -> None:
    await lab.exec(["ceph", "osd", "pool", "create", POOL, "8"])
    await lab.exec(["rados", "-p", POOL, "put", "object", "-"], data="x")
    await lab.exec(["ceph", "config-key", "set", "secret", "s3cret"])
    await make_key(lab, "client.cephqos")
    await make_key(lab, "client.cephqos-probe")


def connection(lab: RunningLab, entity: str) -> ClusterAccess:
    keyring = str(lab.paths.keyring(entity))
    python = tuple(lab.enter_argv(["python3"]))
    return ClusterAccess(conf=str(lab.paths.conf), python=python, name=entity, keyring=keyring)


@pytest.fixture
async def restricted(guarded: RunningLab) -> AsyncIterator[MonClient]:
    async with MonClient(connection(guarded, "client.cephqos")) as client:
        yield client


def test_all_documents_tell_to_make_the_same_keys() -> None:
    readme = documented("security.md", "client.cephqos")
    assert documented("cluster.md", "client.cephqos") == readme
    probe = documented("security.md", "client.cephqos-probe")
    assert documented("probe.md", "client.cephqos-probe") == probe


async def test_the_role_cluster_works_with_the_documented_key(guarded: RunningLab) -> None:
    flags = {
        "cluster_name": "client.cephqos",
        "cluster_keyring": str(guarded.paths.keyring("client.cephqos")),
        "cluster_timeout": "30",  # a child that is too slow would be started again
    }
    async with exporting(guarded, **flags) as exporter:
        first = await exporter.until(
            lambda page: (
                page.values("cephqos_cluster_up") == [1]
                and page.values("cephqos_daemon_up") == [1, 1]
            ),
            "the cluster and its OSDs answer",
        )
        assert first.sum("cephqos_cluster_child_starts_total") == 1
        # Some placement groups may still be without a primary when it is first asked.
        await exporter.until(
            lambda page: (
                page.sum("cephqos_cluster_schedule_pgs") == page.sum("cephqos_cluster_pgs") >= 8
            ),
            "all placement groups are known",
        )
        # OSDs report to the manager every 5 seconds.
        page = await exporter.until(
            lambda page: page.sum("cephqos_recovery_pool_object_copies", pool=POOL) == 2,
            "the object has two copies",
        )
        assert page.sum("cephqos_scrub_pool_schedule_pgs", pool=POOL, level="deep") == 8


async def test_it_allows_every_command_of_the_role(guarded: RunningLab) -> None:
    reader = cluster.ClusterReader(connection(guarded, "client.cephqos"), timeout=60)
    every = (
        cluster.STATUS,
        cluster.OSD_DUMP,
        cluster.OSD_TREE,
        cluster.POOL_TOTALS,
        cluster.OSD_USE,
        cluster.TRIMMING_PGS,
        cluster.PGS_IN_BRIEF,
        cluster.SCRUBBING_PGS,
        cluster.pgs_of_primary(0),
        cluster.option("osd", "osd_scrub_min_interval"),
    )
    assert {query.prefix for query in every} == cluster.READ_ONLY_COMMANDS
    try:
        for query in every:
            assert await reader.ask(query) is not None
    finally:
        await reader.close()


async def test_the_ceph_command_works_with_it_too(guarded: RunningLab) -> None:
    argv = tuple(guarded.enter_argv(["ceph"]))
    where = connection(guarded, "client.cephqos")
    command = cluster.CephCommand(where, argv, max_bytes=1 << 20)
    for query in (cluster.STATUS, cluster.pgs_of_primary(0), cluster.POOL_TOTALS):
        reply = await command.command(query.prefix, within=60, **query.arguments)
        assert isinstance(reply, dict | list)


REFUSED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("config set", "mon", {"who": "osd", "name": "osd_max_backfills", "value": "2"}),
    ("osd set", "mon", {"key": "noout"}),
    ("osd out", "mon", {"ids": ["1"]}),
    ("osd pool create", "mon", {"pool": "mine", "pg_num": 8}),
    ("osd pool set", "mon", {"pool": POOL, "var": "size", "val": "1"}),
    ("auth ls", "mon", {}),
    ("auth get", "mon", {"entity": "client.admin"}),
    ("config-key get", "mon", {"key": "secret"}),
    ("config-key dump", "mon", {}),
    ("mgr fail", "mon", {}),
    ("log", "mon", {"logtext": ["hello"]}),
    ("pg deep-scrub", "mgr", {"pgid": "1.0"}),
    ("config show", "mgr", {"who": "osd.0"}),
)


async def test_it_refuses_whatever_changes_or_reveals_something(restricted: MonClient) -> None:
    for prefix, target, arguments in REFUSED:
        with pytest.raises(CommandFailed) as caught:
            await restricted.command(prefix, target=target, **arguments)
        assert caught.value.code == -13, prefix


async def test_it_refuses_objects_and_the_osds_own_commands(
    guarded: RunningLab, restricted: MonClient
) -> None:
    assert not await rados(guarded, "client.cephqos", "-p", POOL, "get", "object", "/dev/null")
    assert not await rados(guarded, "client.cephqos", "-p", POOL, "put", "object", "/etc/fstab")
    # 16.2 says no, later releases do not answer who has no word for OSDs in the key.
    with pytest.raises((CommandFailed, ClusterUnreachable)):
        option: dict[str, Any] = {"var": "osd_max_backfills", "val": ["2"]}
        await restricted.command("config set", target="osd.0", within=3, **option)
    async with guarded.client() as admin:
        shown = await admin.command("config get", target="osd.0", var="osd_max_backfills")
    assert shown["osd_max_backfills"] != "2"


async def rados(lab: RunningLab, entity: str, *words: str, within: int = 5) -> bool:
    """Whether the rados command is let do that; one that hangs is not."""
    argv = ["rados", "-n", entity, "--keyring", str(lab.paths.keyring(entity)), *words]
    done = await lab.exec(["timeout", str(within), *argv], check=False)
    return done.returncode == 0


async def test_the_probes_key_reads_and_writes_its_own_namespace_only(guarded: RunningLab) -> None:
    own = ("client.cephqos-probe", "-p", POOL, "-N", "cephqos-probe")
    for words in (("put", "o", "/etc/hostname"), ("get", "o", "/dev/null"), ("rm", "o")):
        assert await rados(guarded, *own, *words, within=50)
    others = ("client.cephqos-probe", "-p", POOL)
    assert not await rados(guarded, *others, "put", "o", "/etc/hostname")
    assert not await rados(guarded, *others, "get", "object", "/dev/null")
    assert not await rados(guarded, *others, "ls")
    async with MonClient(connection(guarded, "client.cephqos-probe")) as client:
        for prefix, target, arguments in REFUSED[:-2]:
            with pytest.raises(CommandFailed):
                await client.command(prefix, target=target, **arguments)


async def test_the_role_probe_works_with_the_documented_key(guarded: RunningLab) -> None:
    flags = {
        "role": "probe",
        "probe_pools": POOL,
        "cluster_name": "client.cephqos-probe",
        "cluster_keyring": str(guarded.paths.keyring("client.cephqos-probe")),
    }
    async with exporting(guarded, **flags) as exporter:
        page = await exporter.until(
            lambda page: page.values("cephqos_probe_latency_seconds_count", op="read") >= [1.0],
            "the probe has read",
        )
        assert page.values("cephqos_probe_up") == [1]
        assert not page.values("cephqos_probe_failures_total")


async def test_a_key_that_the_cluster_does_not_know_is_told_and_costs_nothing_else(
    guarded: RunningLab,
) -> None:
    wrong = guarded.paths.work / "wrong.keyring"
    known = guarded.paths.keyring("client.cephqos").read_text()
    wrong.write_text(known.replace("[client.cephqos]", "[client.nobody]"))
    flags = {"cluster_name": "client.nobody", "cluster_keyring": str(wrong)}
    async with exporting(guarded, **flags) as exporter:
        page = await exporter.until(
            lambda page: (
                page.values("cephqos_cluster_up") == [0]
                and page.labels("cephqos_cluster_up")[0]["reason"] == "unreachable"
            ),
            "the cluster says no",
        )
        assert page.values("cephqos_daemon_up") == [1, 1]
