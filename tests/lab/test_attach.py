"""A cluster that is somebody else's: keys on, the documented caps, an unprivileged user.

Each part of a key is taken away in turn, and breaks what SECURITY.md says that it breaks.
"""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cephqos_doctor.key import MGR_CAPS, MON_CAPS
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.spec import LabSpec

from .cluster_exporter import exporting
from .conftest import LabPool, lab_name
from .live_exporter import LivePage

SECURITY = Path(__file__).parents[2] / "docs/install/security.md"
# A name that Ceph takes, and that would be harm in labels, pages and terminals.
HOSTILE = 'a"b\\c<script>{x="y"}'
SCRUBBED = "scrubbed"


def without() -> list[tuple[str, str, str]]:
    """Daemon, cap, and the reason that the page then gives, as documented."""
    row = r"^\| (mon|mgr) `(allow [^`]*)` \| .*reason `(\w+)`"
    return re.findall(row, _section("cluster"), re.MULTILINE)


def probe_without() -> list[tuple[str, str, str, str]]:
    """Daemon, the cap that is left, the operation that fails, and the reason, as documented."""
    row = r"^\| (mon|osd) `(allow [^`]*)` \| (write|read)\b.*?reason `(\w+)`"
    return re.findall(row, _section("probe"), re.MULTILINE)


def _section(role: str) -> str:
    _, _, after = SECURITY.read_text().partition(f"## Role `{role}`")
    return after.partition("\n## ")[0]


@pytest.fixture(scope="module")
def foreign(labs: LabPool) -> Iterator[RunningLab]:
    spec = LabSpec(name=lab_name("foreign"), release="reef", osds=2, auth="cephx", setuser="ceph")
    lab = labs.start(spec)
    labs.call(_fill(lab))
    yield lab
    labs.end(lab)


async def _fill(lab: RunningLab) -> None:
    for pool in (SCRUBBED, HOSTILE):
        await lab.exec(["ceph", "osd", "pool", "create", pool, "8"])
    bench = f"rados -p {SCRUBBED} bench 2 write -b 4096 -t 8 --no-cleanup"
    await lab.exec(bench.split())


async def key(lab: RunningLab, name: str, mon: str, mgr: str) -> dict[str, str]:
    """The exporter's settings for a new key."""
    entity = f"client.{name}"
    keyring = str(lab.paths.keyring(entity))
    argv = ["ceph", "auth", "get-or-create", entity, "mon", mon, "mgr", mgr, "-o", keyring]
    await lab.exec(argv)
    return {"role": "cluster", "cluster_name": entity, "cluster_keyring": keyring}


def is_down(page: LivePage, reason: str) -> bool:
    """A busy machine may also be too slow for a moment: another reason, which passes."""
    told = page.labels("cephqos_cluster_up")
    return page.values("cephqos_cluster_up") == [0] and told[0]["reason"] == reason


async def scrubs_asked_for(foreign: RunningLab) -> None:
    """One may be over before the monitors' status shows it: it is asked for again and again."""
    while True:
        await foreign.exec(["ceph", "osd", "pool", "deep-scrub", SCRUBBED])
        await asyncio.sleep(5)


def test_the_table_has_every_part_of_the_documented_key_and_no_other() -> None:
    parts = [("mon", cap) for cap in MON_CAPS.split(", ")]
    parts += [("mgr", cap) for cap in MGR_CAPS.split(", ")]
    assert [(daemon, cap) for daemon, cap, _ in without()] == parts


async def test_with_the_whole_key_everything_is_there_and_hostile_names_are_labels(
    foreign: RunningLab,
) -> None:
    flags = await key(foreign, "whole", MON_CAPS, MGR_CAPS)
    async with exporting(foreign, **flags) as exporter:
        page = await exporter.until(
            lambda page: (
                HOSTILE in {one["pool"] for one in page.labels("cephqos_recovery_pool_pgs")}
            ),
            "the pool with the hostile name is shown",
        )
        assert page.values("cephqos_cluster_osd_up") == [1, 1]
        assert page.values("cephqos_cluster_up") == [1]


@pytest.mark.parametrize(("daemon", "cap", "reason"), without())
async def test_without_a_part_of_the_key_breaks_what_is_documented(
    foreign: RunningLab, daemon: str, cap: str, reason: str
) -> None:
    caps = {"mon": MON_CAPS, "mgr": MGR_CAPS}
    caps[daemon] = ", ".join(one for one in caps[daemon].split(", ") if one != cap)
    name = "no-" + re.sub(r"\W+", "-", cap).strip("-")
    flags = await key(foreign, name, caps["mon"], caps["mgr"])
    only_while_scrubbing = cap == 'allow command "pg ls"'
    async with exporting(foreign, **flags) as exporter:
        if only_while_scrubbing:
            await exporter.until(
                lambda page: page.values("cephqos_cluster_up") == [1], "it works while none is"
            )
            await foreign.exec(["ceph", "config", "set", "osd", "osd_debug_deep_scrub_sleep", "2"])
            scrubs = asyncio.create_task(scrubs_asked_for(foreign))
        page = await exporter.until(
            lambda page: is_down(page, reason), f"it fails without {cap}: {reason}"
        )
        for gone in ("cephqos_cluster_osd_up", "cephqos_recovery_pool_pgs"):
            assert not page.values(gone)
    if only_while_scrubbing:
        scrubs.cancel()
        await foreign.exec(["ceph", "config", "rm", "osd", "osd_debug_deep_scrub_sleep"])


def test_the_probes_table_takes_every_part_of_its_key_away() -> None:
    mon, osd = re.findall(r"'(allow [^']*)'", _section("probe").splitlines()[3])
    left = {(daemon, cap) for daemon, cap, *_ in probe_without()}
    parts = mon.split(", ")
    assert {("mon", part) for part in parts} <= left
    assert len(parts) == 2
    for less in ("allow r ", "allow w "):
        assert ("osd", osd.replace("allow rw ", less)) in left
    assert ("osd", osd.replace("cephqos-probe", "OTHER")) in left


@pytest.mark.parametrize(("daemon", "cap", "op", "reason"), probe_without())
async def test_without_a_part_of_its_key_the_probe_fails_as_documented(
    foreign: RunningLab, daemon: str, cap: str, op: str, reason: str
) -> None:
    caps = {"mon": "allow service mon r, allow service osd r"}
    caps["osd"] = "allow rw pool=POOL namespace=cephqos-probe"
    caps = {name: text.replace("POOL", SCRUBBED) for name, text in (caps | {daemon: cap}).items()}
    entity = "client.probe-" + re.sub(r"\W+", "-", cap)
    keyring = str(foreign.paths.keyring(entity))
    argv = ["ceph", "auth", "get-or-create", entity, "-o", keyring]
    await foreign.exec([*argv, "mon", caps["mon"], "osd", caps["osd"]])
    flags = {"role": "probe", "probe_pools": SCRUBBED, "probe_timeout": "2"}
    flags |= {"cluster_name": entity, "cluster_keyring": keyring}
    async with exporting(foreign, **flags) as exporter:
        page = await exporter.until(
            lambda page: page.values("cephqos_probe_failures_total", op=op, reason=reason) != [],
            f"{op} fails with {reason}",
        )
        if reason != "timeout":  # after that it begins again with another connection
            assert page.values("cephqos_probe_up") == [1]
