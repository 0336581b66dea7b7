"""Faults on purpose, each with its way back: what tests and the demo provoke."""

import os
import signal

from cephqos_loadgen.errors import LabError, UsageError
from cephqos_loadgen.lab import cgroups
from cephqos_loadgen.lab.access import LabAccess
from cephqos_loadgen.lab.bringup import BringUp
from cephqos_loadgen.progress import Silent

FULL_STATES = ("none", "nearfull", "backfillfull", "full", "failsafe")


class Faults:
    """What can be done to one OSD of a running lab."""

    def __init__(self, lab: LabAccess) -> None:
        self._lab = lab

    async def stop(self, osd: int) -> None:
        """SIGSTOP: it holds its connections and answers nothing."""
        await self._signal(osd, signal.SIGSTOP)

    async def resume(self, osd: int) -> None:
        await self._signal(osd, signal.SIGCONT)

    async def kill(self, osd: int) -> None:
        await self._signal(osd, signal.SIGKILL)

    async def restart(self, osd: int) -> None:
        """Kill it if it runs, and start it again."""
        name = self._name(osd)
        if name in await self._lab.pids():
            await self.kill(osd)
            while name in (await self._lab.ask_init(op="list"))["daemons"]:
                pass
        await BringUp(self._lab, Silent()).start_osd(osd)
        cgroups.rejoin(self._lab.paths.name, osd, await self._pid(osd))

    async def delay(self, osd: int, seconds: float, probability: float = 1.0) -> None:
        """Hold each op back for that long before it is queued; 0 ends it."""
        if seconds < 0 or not 0 <= probability <= 1:
            raise UsageError(
                f"delay {seconds:g} s with probability {probability:g}: expected 0 or more seconds,"
                " and 0 to 1"
            )
        async with self._lab.client() as client:
            for option, value in (
                ("osd_debug_inject_dispatch_delay_duration", seconds),
                ("osd_debug_inject_dispatch_delay_probability", probability if seconds else 0),
            ):
                await client.command(
                    "config set", target=self._name(osd), var=option, val=[str(value)]
                )

    async def throttle(self, osd: int, **limits: int) -> None:
        """Hold the OSD's device to riops, wiops, rbps, wbps; nothing given ends it."""
        for name, limit in limits.items():
            if limit < 1:
                raise UsageError(f"throttle {name} {limit}: expected 1 or more")
        device = self._lab.state.devices.get(f"{self._name(osd)}.block")
        if device is None:
            raise UsageError("throttling needs a device per OSD: a lab with --backing loop")
        pid = await self._pid(osd)
        rdev = os.stat(device).st_rdev  # noqa: PTH116 - the number is all that is wanted
        cgroups.throttle(self._lab.paths.name, osd, pid, rdev, limits)

    async def fill(self, osd: int, state: str) -> None:
        """Make the OSD report itself nearfull, backfillfull, full or failsafe; none ends it."""
        if state not in FULL_STATES:
            raise UsageError(f"fill {state!r}: expected one of {', '.join(FULL_STATES)}")
        async with self._lab.client() as client:
            await client.command("injectfull", target=self._name(osd), type=state, count=-1)

    async def cut(self, osd: int) -> None:
        """Remove the admin socket's name; a restart of the OSD brings it back."""
        self._lab.paths.socket(self._name(osd)).unlink(missing_ok=True)

    async def _signal(self, osd: int, number: signal.Signals) -> None:
        os.kill(await self._pid(osd), number)

    async def _pid(self, osd: int) -> int:
        pid = (await self._lab.pids()).get(self._name(osd))
        if pid is None:
            raise LabError(f"osd.{osd} is not running")
        return pid

    def _name(self, osd: int) -> str:
        if not 0 <= osd < self._lab.spec.osds:
            raise UsageError(f"osd.{osd}: the lab has OSDs 0 to {self._lab.spec.osds - 1}")
        return f"osd.{osd}"
