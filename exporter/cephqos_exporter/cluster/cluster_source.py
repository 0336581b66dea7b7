"""The cluster as a source of a scrape: serves what a poller in the background last read.

The poller begins when the exporter starts, so that the first scrape finds everything. A scrape does
not wait for the cluster; only one before the end of the first poll waits, for a second at most. So
trouble with the monitors does not delay the rest of a scrape.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from cephqos_exporter.cluster.balance import balance_families, map_families
from cephqos_exporter.cluster.cluster_options import MOST_POOLS_SHOWN
from cephqos_exporter.cluster.health import election_families, health_families
from cephqos_exporter.cluster.osdmap import osd_map_families, pool_family
from cephqos_exporter.cluster.poller import ClusterState, Poller
from cephqos_exporter.cluster.recovery_progress import cluster_families
from cephqos_exporter.cluster.replies import OsdMap, Pool
from cephqos_exporter.cluster.schedule import schedule_families
from cephqos_exporter.cluster.scrub_progress import done_families, running_families
from cephqos_exporter.cluster.time_left import FACTORS, add_bounds
from cephqos_exporter.daemon_errors import SourceUnavailable
from cephqos_exporter.families import Family, counter, gauge, single
from cephqos_exporter.labels import Labels, LabelText, render_labels
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.resting import WhileScraped

log = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS: Final = 1.0
_LABEL_BYTES: Final = 64 << 20  # of 10,000 pools; pools come and go for years


class ClusterSource:
    """Scrub and recovery of one cluster, by pool."""

    name = "cluster"

    def __init__(
        self,
        make: Callable[[], Poller],
        clock: Callable[[], float] = time.time,
        most_pools: int = MOST_POOLS_SHOWN,
    ) -> None:
        self.not_understood = NotUnderstood()
        self._make = make
        self._clock = clock
        self._most_pools = most_pools
        # The pools to report, and the OSD map that they are from.
        self._shown: tuple[OsdMap | None, Mapping[int, Pool]] = (None, {})
        self._poller: Poller | None = None
        self._polling = WhileScraped("cluster poller", self._run)
        self._waited = False  # whether a scrape has waited for the first poll
        self._labels = Labels(LabelText(""))

    def start(self) -> None:
        """Begin to read; without a scrape it rests after a while."""
        self._ensure_running()

    async def collect(self, deadline: float) -> Iterable[Family]:
        """All that is known of the cluster; SourceUnavailable, with the reason, if nothing is."""
        poller = self._ensure_running()
        if not self._waited:
            self._waited = True
            loop = asyncio.get_running_loop()
            wait_until = min(loop.time() + _FIRST_WAIT_SECONDS, deadline - 0.1)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(wait_until):
                    await poller.polled.wait()
        poller_families = self._poller_families(poller)
        if poller.state is None:
            failure = poller.failure
            reason = failure.reason if failure else "starting"
            raise SourceUnavailable(reason, families=poller_families)
        return [*poller_families, *self._families(poller.state)]

    async def close(self) -> None:
        """End the poller and its child."""
        await self._polling.end()
        if self._poller is not None:
            await self._poller.close()

    def _ensure_running(self) -> Poller:
        """The poller, started if it is not; it stops by itself when scrapes do."""
        if self._poller is None:
            self._poller = self._make()
            self.not_understood = self._poller.not_understood
        if self._polling.go_on():
            self._waited = False
        return self._poller

    async def _run(self) -> None:
        poller = self._poller
        assert poller is not None  # noqa: S101 - made before this is started
        try:
            await poller.run()
        finally:
            # When scrapes begin again, what was read before is too old.
            poller.state, poller.failure = None, None
            poller.polled.clear()
            await poller.close()

    def _poller_families(self, poller: Poller) -> list[Family]:
        up = gauge(
            "cephqos_cluster_up",
            "1: the cluster answered the last poll. 0: it did not, for the reason "
            "given. Absent before the first poll has ended.",
        )
        state, failure = poller.state, poller.failure
        if state and state.status.fsid not in self._labels.base:
            base = render_labels({"cluster": state.status.fsid})
            self._labels = Labels(base, most=_LABEL_BYTES)
        seconds = gauge("cephqos_cluster_poll_duration_seconds", "Time that the last poll took.")
        if state or failure:  # else none has ended yet, and neither is known
            reason = failure.reason if failure else ""
            up.add(self._labels.of("reason", reason), state is not None)
            seconds.add(self._labels.base, poller.poll_seconds)
        starts = counter(
            "cephqos_cluster_child_starts_total",
            "Child processes started to talk to the cluster; each one after the first replaces "
            "one that was killed or ended.",
        )
        starts.add(self._labels.base, poller.reader.starts)
        return [up, seconds, starts, *self._cost_families(poller)]

    def _cost_families(self, poller: Poller) -> Iterable[Family]:
        count = counter(
            "cephqos_cluster_commands_total", "Commands sent to the cluster, by command."
        )
        seconds = counter(
            "cephqos_cluster_command_seconds_total",
            "Time until the replies to commands had arrived, by command.",
        )
        size = counter(
            "cephqos_cluster_command_bytes_total", "Bytes of the replies to commands, by command."
        )
        for command, cost in sorted(poller.reader.costs.items()):
            text = self._labels.of("command", command)
            count.add(text, cost.commands)
            seconds.add(text, cost.seconds)
            size.add(text, cost.bytes)
        return count, seconds, size

    def _families(self, state: ClusterState) -> Iterable[Family]:
        labels, pools = self._labels, self._pools(state.osd_map)
        yield self._age_family(state)
        left_out = len(state.osd_map.pools) - len(pools)
        if left_out:
            text = (
                "Pools that are not reported, beyond --cluster.pools. Absent while there are none."
            )
            yield single("cephqos_cluster_pools_left_out", "gauge", text, labels.base, left_out)
        yield from osd_map_families(state.osd_map, labels)
        yield pool_family(pools, labels)
        yield from map_families(state.osd_map, pools, labels)
        yield from cluster_families(state.status, labels, self.not_understood)
        yield from health_families(state.status, labels, self.not_understood)
        yield from election_families(state.status, labels, self.not_understood)
        yield _time_left(state, labels)
        yield from state.recovery.families(pools, labels)
        if state.states_by_pool is not None:
            yield state.recovery.pool_state_family(state.states_by_pool, pools, labels)
        yield from state.trimming.families(pools, labels)
        if state.balance is not None:
            yield from balance_families(state.balance, pools, labels)
        if state.scrub.knows_running:
            yield from running_families(state.scrub, pools, labels)
        yield from done_families(state.scrub, pools, labels)
        if state.schedule is not None:
            yield from schedule_families(state.schedule, pools, state.scrub, labels)
            counted = gauge(
                "cephqos_cluster_schedule_pgs",
                "Placement groups whose scrub times are known. Those without a primary "
                "are not counted.",
            )
            counted.add(labels.base, state.schedule.counted)
            yield counted

    def _pools(self, osd_map: OsdMap) -> Mapping[int, Pool]:
        """Those to report: 10,000 pools would make a page of 70 MB, too large to scrape."""
        if len(osd_map.pools) <= self._most_pools:
            return osd_map.pools
        if self._shown[0] is not osd_map:
            by_size = sorted(osd_map.pools.values(), key=lambda pool: (-pool.pg_num, pool.id))
            self._shown = osd_map, {pool.id: pool for pool in by_size[: self._most_pools]}
        return self._shown[1]

    def _age_family(self, state: ClusterState) -> Family:
        family = gauge(
            "cephqos_cluster_data_age_seconds",
            "Age of the cluster's figures: the totals, the states by pool, the oldest "
            "scrub time of the schedule. OSDs report to the manager every 5 s; that "
            "delay is not included.",
        )
        now = self._clock()
        family.add(self._labels.of("part", "totals"), now - state.read_at)
        if state.states_by_pool is not None:
            family.add(self._labels.of("part", "states"), now - state.states_read_at)
        if state.schedule is not None and state.schedule_as_of is not None:
            family.add(self._labels.of("part", "schedule"), now - state.schedule_as_of)
        return family


def _time_left(state: ClusterState, labels: Labels) -> Family:
    family = gauge(
        "cephqos_recovery_cluster_eta_seconds",
        "Time until recovery ends, by its slowest OSD at the rates of the last minute. bound: low, "
        "likely, high (90 % of recorded recoveries were between low and high). Absent if it is not "
        "known: nothing moved in the last minute, or only since less than 15 s, groups cannot "
        "recover, or more than 4,000 are left.",
    )
    add_bounds(family, state.recovery_seconds, FACTORS, labels)
    return family
