"""Bad links to one OSD, in namespaces of our own: a slow one, and one that flaps."""

import asyncio
import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import psutil

from cephqos_base.errors import CephqosError
from cephqos_loadgen import processes
from cephqos_loadgen.lab.lab import RunningLab

_OF_OSDS = ("cluster_addrs", "heartbeat_back_addrs", "heartbeat_front_addrs")
# A packet of the loopback device has up to 64 KiB, and a burst has to hold one.
_BURST = "128k"

_LINK: Final = "osdlink"
_PEER: Final = "osdlinkpeer"
_ADDRESS: Final = "10.255.77.1"
_LINKS: Final = "/sys/class/net"  # where the exporter looks


async def slow_down(lab: RunningLab, osd: int, kbit: int) -> None:
    """What other OSDs send to this one, heartbeats too, passes at so many kbit/s; clients' not."""
    _is_our_own()
    await _do("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb", "default", "1")
    for number, rate in ((1, "10gbit"), (2, f"{kbit}kbit")):
        limits = ["rate", rate, "burst", _BURST, "cburst", _BURST, "quantum", "60000"]
        parent = ["dev", "lo", "parent", "1:"]
        await _do("tc", "class", "add", *parent, "classid", f"1:{number}", "htb", *limits)
    for port in sorted(await _ports_to(lab, osd)):
        match = ["match", "ip", "dport", str(port), "0xffff"]
        where = ["dev", "lo", "parent", "1:", "protocol", "ip", "u32"]
        await _do("tc", "filter", "add", *where, *match, "flowid", "1:2")


async def restore() -> None:
    """As it was. Nothing was changed yet where slowing down failed at once."""
    with contextlib.suppress(CephqosError):
        await _do("tc", "qdisc", "del", "dev", "lo", "root")


async def give(lab: RunningLab, osd: int) -> None:
    """From its next start on, the OSD exchanges all with other OSDs at an address of a new link.

    Clients, and one of two heartbeats, go on by the loopback device. The exporter looks only at
    links with hardware behind them: this one, a veth, is shown to it as such, with the kernel's
    figures.
    """
    _is_our_own()
    await _do("ip", "link", "add", _LINK, "type", "veth", "peer", "name", _PEER)
    await _do("ip", "link", "set", _PEER, "up")
    await _up()
    with lab.paths.conf.open("a", encoding="utf-8") as conf:
        conf.write(f"\n[osd.{osd}]\ncluster_addr = {_ADDRESS}\n")
    ours, shown = _folders(lab)
    ours.mkdir()
    await _do("mount", "-t", "sysfs", "sysfs", str(ours))
    (shown / _LINK / "device").mkdir(parents=True)
    for name in ("carrier", "carrier_changes", "mtu", "speed"):
        (shown / _LINK / name).symlink_to(ours / "class/net" / _LINK / name)
    # The host's own links stay as they were, or they would seem to be gone.
    for link in Path(_LINKS).iterdir():
        (shown / link.name).symlink_to(link.resolve())
    await _do("mount", "--bind", str(shown), _LINKS)


async def give_back(lab: RunningLab) -> None:
    """As it was, as far as it was changed. The OSD keeps its address until the lab ends."""
    ours = str(_folders(lab)[0])
    for undo in (["umount", _LINKS], ["umount", ours], ["ip", "link", "del", _LINK]):
        with contextlib.suppress(CephqosError):
            await _do(*undo)


async def flap() -> None:
    """The link is down for a second in every four. Without its address, nothing reaches it."""
    while True:
        await _do("ip", "link", "set", _LINK, "down")
        await _do("ip", "address", "flush", "dev", _LINK)
        await asyncio.sleep(1)
        await _up()
        await asyncio.sleep(3)


async def _up() -> None:
    await _do("ip", "address", "add", f"{_ADDRESS}/32", "dev", _LINK)
    await _do("ip", "link", "set", _LINK, "up")


def _folders(lab: RunningLab) -> tuple[Path, Path]:
    """Where our network's sysfs is mounted, and the links that the exporter is shown."""
    return lab.paths.work / "sys", lab.paths.work / "links"


def _is_our_own() -> None:
    """What is done to the network and to mounts must end with us, and harm nobody."""
    up = [name for name, it in psutil.net_if_stats().items() if it.isup]
    mounts = [Path(f"/proc/{it}/ns/mnt").readlink() for it in ("self", os.getppid())]
    if up != ["lo"] or mounts[0] == mounts[1]:
        raise CephqosError("a bad link needs namespaces of its own: use `make truth`")


async def _ports_to(lab: RunningLab, osd: int) -> set[int]:
    """Where the OSD listens for others, and its ends of what it opened to others itself."""
    said = await lab.exec(["ceph", "osd", "dump", "--format", "json"])
    osds = {it["osd"]: set(_listens(it)) for it in json.loads(said.stdout)["osds"]}
    own = osds.pop(osd)
    others = set().union(*osds.values())
    pid = (await lab.pids())[f"osd.{osd}"]
    opened = psutil.Process(pid).net_connections("tcp4")
    return own | {it.laddr.port for it in opened if it.raddr and it.raddr.port in others}


def _listens(osd: dict[str, dict[str, list[dict[str, str]]]]) -> Iterable[int]:
    for kind in _OF_OSDS:
        for address in osd[kind]["addrvec"]:
            yield int(address["addr"].rsplit(":", 1)[1])


async def _do(*argv: str) -> None:
    done = await processes.run(argv, within=10)
    if done.returncode:
        raise CephqosError(f"{' '.join(argv)}: {done.stderr.strip()}")
