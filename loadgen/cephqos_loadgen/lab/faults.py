"""Injected faults, each with a way to end it."""

import asyncio
import os
import signal
import time
from typing import Any

from cephqos_base.errors import UsageError
from cephqos_exporter.ceph import asok
from cephqos_exporter.daemon_errors import DaemonError
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.daemons.bringup import BringUp
from cephqos_loadgen.lab.handle import LabHandle
from cephqos_loadgen.lab.isolation import cgroups, namespaces
from cephqos_loadgen.lab.spec import osds_there_are
from cephqos_loadgen.progress import Silent

_DELAY_OPTIONS = {
    "seconds": "osd_debug_inject_dispatch_delay_duration",
    "probability": "osd_debug_inject_dispatch_delay_probability",
}
_ASK_SECONDS = 1.0  # for an answer of an OSD
_STOP_SECONDS = 10.0  # until an OSD has stopped or ended
FULL_STATES = ("none", "nearfull", "backfillfull", "full", "failsafe")


class Faults:
    """Injects faults into one OSD of a running lab."""

    def __init__(self, lab: LabHandle) -> None:
        self._lab = lab

    async def stop(self, osd: int) -> None:
        """SIGSTOP: the OSD keeps its connections and answers nothing."""
        pid, deadline = await self._pid(osd), time.monotonic() + _STOP_SECONDS
        os.kill(pid, signal.SIGSTOP)
        while not namespaces.is_stopped(pid):  # a thread in the kernel stops when it comes back
            if time.monotonic() > deadline:
                raise LabError(f"osd.{osd} has threads that did not stop in {_STOP_SECONDS:g} s")
            await asyncio.sleep(0.01)

    async def resume(self, osd: int) -> None:
        await self._signal(osd, signal.SIGCONT)

    async def kill(self, osd: int) -> None:
        await self._signal(osd, signal.SIGKILL)

    async def restart(self, osd: int) -> None:
        """Kill the OSD if it runs, then start it."""
        name = self._name(osd)
        if name in await self._lab.pids():
            await self.kill(osd)
            deadline = time.monotonic() + _STOP_SECONDS
            while name in (await self._lab.ask_process_one(op="list"))["daemons"]:
                if time.monotonic() > deadline:
                    raise LabError(f"{name} was killed and did not end in {_STOP_SECONDS:g} s")
                await asyncio.sleep(0.01)
        await BringUp(self._lab, Silent()).start_osd(osd)
        pid = await self._pid(osd)
        await asyncio.to_thread(cgroups.rejoin, self._lab.paths, osd, pid)

    async def delay(self, osd: int, seconds: float, probability: float = 1.0) -> None:
        """Delay each op before it is queued; 0 ends it."""
        if seconds < 0 or not 0 <= probability <= 1:
            raise UsageError(
                f"delay {seconds:g} s with probability {probability:g}: expected 0 or more seconds,"
                " and 0 to 1"
            )
        async with self._lab.client() as client:
            for option, value in (
                (_DELAY_OPTIONS["seconds"], seconds),
                (_DELAY_OPTIONS["probability"], probability if seconds else 0),
            ):
                await client.command(
                    "config set", target=self._name(osd), var=option, val=[str(value)]
                )

    async def throttle(self, osd: int, **limits: int) -> None:
        """Limit the OSD's device to riops, wiops, rbps, wbps. Without a limit, only those stay with
        which the lab was started."""
        for name, limit in limits.items():
            if limit < 1:
                raise UsageError(f"throttle {name} {limit}: expected 1 or more")
        self._name(osd)  # refuses an OSD that the lab does not have
        limits = {**self._lab.spec.device_limits, **limits}
        await BringUp(self._lab, Silent()).limit_device(osd, limits)

    async def limit_cpu(self, osd: int, cpus: float | None) -> None:
        """Limit the OSD to so many CPUs, as its container would be; None ends it."""
        pid = await self._pid(osd)
        await asyncio.to_thread(cgroups.limit_cpu, self._lab.paths, osd, pid, cpus)

    async def fill(self, osd: int, state: str) -> None:
        """Make the OSD report itself nearfull, backfillfull, full or failsafe; none ends it."""
        if state not in FULL_STATES:
            raise UsageError(f"fill {state!r}: expected one of {', '.join(FULL_STATES)}")
        async with self._lab.client() as client:
            await client.command("injectfull", target=self._name(osd), type=state, count=-1)

    async def cut(self, osd: int) -> None:
        """Remove the admin socket's file; a restart of the OSD brings it back."""
        self._lab.paths.socket(self._name(osd)).unlink(missing_ok=True)

    async def in_force(self, osd: int, pid: int | None) -> dict[str, Any]:
        """The faults that an OSD is under now, as read from the OSD and the kernel.

        Only the OSD knows whether its ops are delayed: `delay` is None while it cannot be asked.
        """
        faults: dict[str, Any] = {}
        if namespaces.is_stopped(pid):
            faults["stop"] = True
        if pid is not None and not self._lab.paths.socket(self._name(osd)).exists():
            faults["cut"] = True
        limits = cgroups.limits(self._lab.paths, osd)
        if limits != self._lab.spec.device_limits:
            faults["throttle"] = limits
        if pid is not None:
            delay = None if faults.keys() & {"stop", "cut"} else await self._delay_of(osd)
            if delay is None or delay["seconds"]:
                faults["delay"] = delay
        return faults

    async def _delay_of(self, osd: int) -> dict[str, float] | None:
        """Seconds and probability, as the OSD reports them; None if it does not answer."""
        path, values = str(self._lab.paths.socket(self._name(osd))), {}
        for key, option in _DELAY_OPTIONS.items():
            try:
                answer = await asok.ask(path, "config get", {"var": option}, timeout=_ASK_SECONDS)
                values[key] = float(answer.value[option])
            except (DaemonError, LookupError, ValueError):
                return None
        return values if values["probability"] else {"seconds": 0.0, "probability": 0.0}

    async def _signal(self, osd: int, number: signal.Signals) -> None:
        os.kill(await self._pid(osd), number)

    async def _pid(self, osd: int) -> int:
        pid = (await self._lab.pids()).get(self._name(osd))
        if pid is None:
            raise LabError(f"osd.{osd} is not running")
        return pid

    def _name(self, osd: int) -> str:
        if not 0 <= osd < self._lab.spec.osds:
            raise UsageError(f"osd.{osd}: the lab has {osds_there_are(self._lab.spec.osds)}")
        return f"osd.{osd}"
