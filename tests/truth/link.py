"""A slow link to one OSD: real packets wait in the kernel, in a network namespace of our own."""

import contextlib
import json
from collections.abc import Iterable

import psutil

from cephqos_base.errors import CephqosError
from cephqos_loadgen import processes
from cephqos_loadgen.lab.lab import RunningLab

_OF_OSDS = ("cluster_addrs", "heartbeat_back_addrs", "heartbeat_front_addrs")
# A packet of the loopback device has up to 64 KiB, and a burst has to hold one.
_BURST = "128k"


async def slow_down(lab: RunningLab, osd: int, kbit: int) -> None:
    """What other OSDs send to this one, heartbeats too, passes at so many kbit/s; clients' not."""
    if [name for name, it in psutil.net_if_stats().items() if it.isup] != ["lo"]:
        raise CephqosError("a slow link needs a network namespace of its own: use `make truth`")
    await _tc("qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb", "default", "1")
    for number, rate in ((1, "10gbit"), (2, f"{kbit}kbit")):
        limits = ["rate", rate, "burst", _BURST, "cburst", _BURST, "quantum", "60000"]
        await _tc(
            "class", "add", "dev", "lo", "parent", "1:", "classid", f"1:{number}", "htb", *limits
        )
    for port in sorted(await _ports_to(lab, osd)):
        match = ["match", "ip", "dport", str(port), "0xffff"]
        where = ["dev", "lo", "parent", "1:", "protocol", "ip", "u32"]
        await _tc("filter", "add", *where, *match, "flowid", "1:2")


async def restore() -> None:
    """As it was. Nothing was changed yet where slowing down failed at once."""
    with contextlib.suppress(CephqosError):
        await _tc("qdisc", "del", "dev", "lo", "root")


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


async def _tc(*words: str) -> None:
    done = await processes.run(["tc", *words], within=10)
    if done.returncode:
        raise CephqosError(f"tc {' '.join(words)}: {done.stderr.strip()}")
