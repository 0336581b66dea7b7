"""The demo's story: one reservation is violated on purpose, and its alert fires and ends.

One OSD's device is limited to a few writes per second while clients send more, so that this OSD
cannot keep its clients' reservation. Then the limit is removed.
"""

import asyncio
import contextlib
import json
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass

from cephqos_base.servers import NoAnswer, fetch
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.processes import in_background
from cephqos_stack.stack import Stack

VICTIM = 1  # the OSD whose device gets slow
WRITES_PER_SECOND = 100  # of that device then
CALM_SECONDS = 15.0  # before it
FULL_LOAD_SECONDS = 12.0  # to measure the capacity
SATURATED_WITHIN = 60.0  # seconds after that until an OSD is saturated at the latest
DELIVERED = "avg(avg_over_time(osd:cephqos_saturated_ops:rate[5s]))"
STORY_POOL = "story"
CAPACITY_OPTION = "osd_mclock_max_capacity_iops_ssd"
SHOWN_SECONDS = 20.0  # time to look at the alert
FIRING_WITHIN = 150.0  # seconds
RESOLVED_WITHIN = 120.0
VIOLATED = "CephQosReservationViolated"

Tell = Callable[[str], None]
InPhase = Callable[[str], AbstractContextManager[None]]  # a step of the story, as a run's phase


@dataclass(frozen=True, slots=True)
class NotifiedAlert:
    """An alert as Alertmanager has it."""

    labels: dict[str, str]
    annotations: dict[str, str]
    notified: bool = True  # False while another alert or a silence keeps it back

    @property
    def title(self) -> str:
        who = self.labels.get("ceph_daemon", "cluster")
        parts = [self.labels["alertname"], who, self.labels.get("class", "")]
        return " ".join(part for part in parts if part)

    def lines(self) -> list[str]:
        """The alert as text: severity, OSD, class, summary with the cause, links."""
        lines = [f"FIRING ({self.labels.get('severity', 'none')}): {self.title}"]
        if summary := self.annotations.get("summary"):
            lines.append(f"  {summary}")
        for name in ("runbook", "dashboard"):
            if link := self.annotations.get(f"{name}_url"):
                lines.append(f"  {name}: {link}")
        return lines


def parse_alerts(text: bytes) -> dict[str, NotifiedAlert]:
    """Alerts that fire, by fingerprint, without those that are not sent to anyone."""
    return {
        alert["fingerprint"]: NotifiedAlert(
            alert["labels"], alert["annotations"], alert["status"]["state"] == "active"
        )
        for alert in json.loads(text)
        if alert["labels"].get("severity") != "none"
    }


class AlertWatch:
    """Reports each alert when it is notified of, and when it no longer fires."""

    def __init__(self, alertmanager_url: str, tell: Tell) -> None:
        self._url = f"{alertmanager_url}/api/v2/alerts"
        self._tell = tell
        # By fingerprint: alerts that were reported, and since when.
        self._active: dict[str, tuple[NotifiedAlert, float]] = {}

    async def look(self) -> list[NotifiedAlert]:
        """Ask Alertmanager once, report what is new, return the alerts that it notifies of.

        An alert that was reported and is inhibited now still fires: it is not reported as resolved.
        """
        now = asyncio.get_running_loop().time()
        alerts = parse_alerts(await fetch(self._url))
        notified = {key: alert for key, alert in alerts.items() if alert.notified}
        for key in notified.keys() - self._active.keys():
            self._active[key] = (notified[key], now)
            for line in notified[key].lines():
                self._tell(line)
        for key in self._active.keys() - alerts.keys():
            alert, since = self._active.pop(key)
            self._tell(f"RESOLVED after {now - since:.0f} s: {alert.title}")
        return list(notified.values())

    async def try_look(self) -> list[NotifiedAlert] | None:
        """None where the request failed, as it may on a busy machine: the next follows soon."""
        try:
            return await self.look()
        except NoAnswer:
            return None


async def tell_story(
    lab: RunningLab, watch: AlertWatch, pool: str, tell: Tell, phase: InPhase
) -> None:
    """Violate the reservation, wait for the alert, end the fault, wait until it is resolved."""
    await _watch_for(watch, CALM_SECONDS)
    tell(
        f"PROVOKED: the device of osd.{VICTIM} is limited to {WRITES_PER_SECOND} writes/s,"
        " while clients send more"
    )
    await lab.faults.throttle(VICTIM, wiops=WRITES_PER_SECOND)
    try:
        with phase(f"slow device of osd.{VICTIM}"):
            async with _full_load(lab, pool):
                await _until(watch, firing=True, within=FIRING_WITHIN)
                await _watch_for(watch, SHOWN_SECONDS)
    finally:
        await lab.faults.throttle(VICTIM)
    tell("MENDED: the limit is removed, and the extra load has ended")
    await _until(watch, firing=False, within=RESOLVED_WITHIN)
    tell("The story is over.")


def _full_load(lab: RunningLab, pool: str) -> AbstractAsyncContextManager[Process]:
    """As many small writes as the OSDs can take."""
    argv = ["rados", "-p", pool, "bench", "600", "write", "-b", "4096", "-t", "128"]
    load = lab.enter_argv([*argv, "--no-cleanup"])
    return in_background(load, lab.paths.logs / "story.out")


async def calibrate(lab: RunningLab, stack: Stack, watch: AlertWatch, pool: str, tell: Tell) -> int:
    """Measure what the OSDs deliver under full load, and set it as their mClock capacity."""
    tell(f"MEASURING: full load for {FULL_LOAD_SECONDS:.0f} s, to measure the OSDs' capacity")
    async with _full_load(lab, pool):
        await _watch_for(watch, FULL_LOAD_SECONDS)
        delivered = await _delivered(stack, watch)
        # Before the load ends: a reservation that grows after it looks violated for a moment.
        await lab.exec(["ceph", "config", "set", "osd", CAPACITY_OPTION, str(delivered)])
    tell(f"MEASURED: {delivered} normalised ops/s per OSD, now set as their capacity")
    return delivered


async def _delivered(stack: Stack, watch: AlertWatch) -> int:
    """The mean rate of saturated OSDs. On a busy machine it takes a while until there is one."""
    try:
        async with asyncio.timeout(SATURATED_WITHIN):
            while not (average := await stack.query(DELIVERED)):
                await _watch_for(watch, 1.0)
    except TimeoutError:
        raise LabError(
            f"no OSD was saturated within {FULL_LOAD_SECONDS + SATURATED_WITHIN:g} s of full load,"
            " so the capacity could not be measured. Other work keeps this machine busy: try again"
            " when it has ended"
        ) from None
    return round(float(average[0]["value"][1]))


def _is_story_alert(alert: NotifiedAlert) -> bool:
    wanted = {"alertname": VIOLATED, "ceph_daemon": f"osd.{VICTIM}"}
    return wanted.items() <= alert.labels.items()


async def _until(watch: AlertWatch, *, firing: bool, within: float) -> None:
    """Wait until the story's alert fires, or is resolved. A failed request counts as neither."""
    try:
        async with asyncio.timeout(within):
            while True:
                alerts = await watch.try_look()
                if alerts is not None and any(map(_is_story_alert, alerts)) == firing:
                    return
                await asyncio.sleep(0.5)
    except TimeoutError:
        what = "fire" if firing else "resolve"
        raise LabError(f"{VIOLATED} did not {what} within {within:g} s") from None


async def _watch_for(watch: AlertWatch, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                await watch.try_look()
                await asyncio.sleep(0.5)


def addresses(stack: Stack) -> dict[str, str]:
    """Addresses for the user's browser."""
    return {
        "metrics": f"{stack.exporter_url}/metrics",
        "Prometheus": f"{stack.prometheus_url}/alerts",
        "Alertmanager": f"{stack.alertmanager_url}/",
    }
