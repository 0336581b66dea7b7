"""`cephqos doctor collect`: a folder of tests/contract that shows what the cluster showed."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.contract.fields import _Reader, shown
from tests.contract.releases import Release, Replies, releases
from tests.replay.daemons import RecordedDaemon, ReplayedDaemon

from cephqos_base.errors import UsageError
from cephqos_doctor.cluster_facts import NEEDED
from cephqos_doctor.collect import Cleaning, check_empty, cluster_replies, record
from cephqos_doctor.key import refusal
from cephqos_exporter.ceph.cluster import ClusterQuery
from cephqos_exporter.ceph.discovery import Socket, find_sockets
from cephqos_exporter.ceph.monclient import CommandFailed

CLEANING = Cleaning()
RELEASES = {release.name: release for release in releases()}
SECRET = "acme"


def with_names(replies: Replies) -> Replies:
    """A user's names in all places of an OSD's replies that have some."""
    text = json.dumps(replies).replace("benchmark_data_vm", f"rbd_data.{SECRET}")
    text = text.replace("127.0.0.1:0/", "10.11.12.13:0/").replace("/var/lib", f"/srv/{SECRET}")
    named: Replies = json.loads(text)
    named["config show"] |= {"host": SECRET, "osd_password": f"{SECRET}-1"}
    return named


async def collected(folder: Path, place: Path, osd: Replies, cluster: Replies | None) -> None:
    bodies = {name: json.dumps(reply).encode() for name, reply in osd.items()}
    daemon = ReplayedDaemon(place / "ceph-osd.3.asok", RecordedDaemon(bodies))
    daemon.start()
    try:
        (socket,) = find_sockets([str(place / "*.asok")], ["osd"])
        ask = None if cluster is None else _Reader(cluster).ask
        await record(socket, ask, folder, apart=0)
    finally:
        daemon.stop()


def written(folder: Path) -> str:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "".join(
        (gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes()).decode()
        for p in files
    )


@pytest.mark.parametrize("name", ["16.2", "18.2", "20.2"])
async def test_a_collected_folder_shows_the_same_fields_and_no_name(
    name: str, tmp_path: Path
) -> None:
    release = RELEASES[name]
    cluster = release.cluster_replies("scrub") | release.cluster_replies("idle")
    for pool in cluster["osd_dump"]["pools"]:
        pool["pool_name"] = SECRET
    cluster["status"]["servicemap"] = {"services": {SECRET: {"addr": "10.11.12.13"}}}
    osd = with_names(release.osd_replies("load"))
    await collected(tmp_path / "new", tmp_path, osd, cluster)

    new = Release.load(tmp_path / "new")
    assert set(new.unknown_commands) >= set(release.unknown_commands)

    def found(osds: list[Replies], replies: Replies) -> Any:
        return shown(osds, {"idle": replies})

    ours, theirs = await asyncio.gather(
        asyncio.to_thread(
            found, [new.osd_replies(m) for m in new.moments], new.cluster_replies("x")
        ),
        asyncio.to_thread(found, [osd] * 5, cluster),
    )
    assert ours.fields == theirs.fields
    assert (ours.not_understood, ours.failed) == (theirs.not_understood, theirs.failed)
    assert len(ours.fields) > 60
    text = written(tmp_path / "new")
    assert SECRET not in text
    assert "10.11.12.13" not in text


def test_nothing_is_written_over(tmp_path: Path) -> None:
    check_empty(tmp_path)
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="expected a new or empty folder"):
        check_empty(tmp_path)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("2026-11-21T02:59:35.259415+0000", "2026-11-21T02:59:35.259415+0000"),
        ("active+clean+scrubbing+deep", "active+clean+scrubbing+deep"),
        ("v1:10.0.0.1:6801/123", "127.0.0.1:0/0"),
        ("mclock_scheduler", "mclock_scheduler"),
        ("2.1as0", "2.1as0"),
    ],
)
def test_words_of_ceph_and_numbers_stay(text: str, clean: str) -> None:
    assert CLEANING.clean({"key": text}) == {"key": clean}


def test_an_object_has_a_pseudonym_and_the_rest_of_its_operation_stays() -> None:
    op = "osd_op(client.4119.0:21271 1.1 1:84b20b20:ns::my file:head [write 0~4096] snapc 0=[] e9)"
    found = CLEANING.clean(op)
    assert found.startswith("osd_op(client.4119.0:21271 1.1 1:84b20b20:::object-")
    assert found.endswith(":head [write 0~4096] snapc 0=[] e9)")


async def test_collect_asks_the_cluster_what_the_documented_key_allows(tmp_path: Path) -> None:
    release = RELEASES["20.2"]
    reader = _Reader(release.cluster_replies("scrub") | release.cluster_replies("idle"))
    asked = []

    async def ask(query: ClusterQuery) -> Any:
        asked.append(query.prefix)
        return await reader.ask(query)

    await cluster_replies(ask)
    assert set(asked) <= {query.prefix for query, _ in NEEDED}


async def test_a_key_that_is_denied_costs_no_wait_and_leaves_no_file(tmp_path: Path) -> None:
    """A second try needs an empty folder."""

    async def denied(query: ClusterQuery) -> Any:
        raise CommandFailed(query.prefix, -13, "access denied")

    socket = Socket(tmp_path / "nobody.asok", "osd", "3", (1, 1))
    with pytest.raises(CommandFailed):
        await record(socket, denied, tmp_path / "new")
    check_empty(tmp_path / "new")


def test_only_a_refusal_for_lack_of_rights_names_the_caps() -> None:
    denied = refusal("client.a", CommandFailed("osd dump", -13, ""))
    assert denied.startswith("client.a: osd dump: Permission denied (-13); expected the caps")
    other = refusal("client.a", CommandFailed("osd dump", -22, "no such command"))
    assert other == "client.a: osd dump: no such command (-22)"
