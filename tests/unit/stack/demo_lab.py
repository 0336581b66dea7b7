"""A lab that takes what the demo does to it, and remembers it."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

CLEAN = {
    "pgmap": {"pgs_by_state": [{"state_name": "active+clean", "count": 1}]},
    "osdmap": {"num_up_osds": 3},
}
_sleep = asyncio.sleep


async def at_once(_: float) -> None:
    """In place of asyncio.sleep."""
    await _sleep(0)


class DemoLab:
    """Takes commands and faults; loads last until they are ended."""

    def __init__(self, folder: Path = Path()) -> None:
        self.said: list[str] = []
        self.spec = SimpleNamespace(osds=3)
        self.paths = SimpleNamespace(conf=folder / "ceph.conf")
        self.faults = SimpleNamespace(throttle=self._throttle, kill=self._kill, restart=self._start)

    async def exec(self, argv: list[str], **_: Any) -> Any:
        self.said.append(" ".join(argv))
        if argv[0] == "fio" or ("bench" in argv and "600" in argv):
            await asyncio.Event().wait()
        if argv[0] == "rados":
            return SimpleNamespace(stdout='hints = 1\n{"average_iops": "400"}\n')
        known = {"info": {"id": "12ab"}, "status": CLEAN}
        return SimpleNamespace(stdout=json.dumps(known.get(argv[1], {})))

    async def pids(self) -> dict[str, int]:
        return {f"osd.{osd}": 1 for osd in range(3)}

    async def _throttle(self, osd: int, **limits: int) -> None:
        self.said.append(f"throttle {osd} {limits}")

    async def _kill(self, osd: int) -> None:
        self.said.append(f"kill {osd}")

    async def _start(self, osd: int) -> None:
        self.said.append(f"restart {osd}")
