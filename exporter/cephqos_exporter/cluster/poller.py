"""Polls a cluster in the background and keeps its state up to date, at a bounded cost.

Every poll reads what is small on a cluster of any size: the status, the sums over each pool, and
the placement groups being scrubbed, if any. Replies that grow with the number of placement groups
are read rarely or in parts. The pause after a poll is ten times as long as the poll took, so that
the manager has little to do on a cluster of any size.
"""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from cephqos_exporter.ceph import cluster
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_exporter.cluster import replies
from cephqos_exporter.cluster.balance import Balance, parse_tree, parse_use, pg_ratios, pg_sizes
from cephqos_exporter.cluster.recovery_progress import RecoveryTotals, is_recovering
from cephqos_exporter.cluster.rotation import Rotation
from cephqos_exporter.cluster.schedule import OPTIONS, DaemonOption, Schedule, make_schedule
from cephqos_exporter.cluster.scrub_progress import ScrubProgress
from cephqos_exporter.cluster.snaptrim import TRIMMING_STATES, SnapTrim, parse_trimming
from cephqos_exporter.cluster.time_left import RecoveryPace
from cephqos_exporter.not_understood import NotUnderstood, listed

log = logging.getLogger(__name__)

# Shares of the time in which the cluster may be asked: in all, and for each expensive reply.
_DUTY: Final = 0.1
_EXPENSIVE_DUTY: Final = 0.02
_LONGEST_PAUSE_SECONDS: Final = 15.0
_OPTIONS_INTERVAL_SECONDS: Final = 60.0
# An OSD map of a thousand OSDs is half a megabyte, and every step of a recovery makes a new one.
_OSD_MAP_INTERVAL_SECONDS: Final = 10.0
# Placement groups that recover or wait, or trim snapshots: 2.5 kB each. With more, the time left is
# not known.
_MOST_MOVING: Final = 4000
# OSDs report 1 to 2 kB each, and change slowly.
_BALANCE_INTERVAL_SECONDS: Final = 60.0
# The map of an epoch never changes, but the reply that it was read from may have been wrong.
_SAME_MAP_INTERVAL_SECONDS: Final = 3600.0


@dataclass(slots=True)
class ClusterState:
    """All that is known of a cluster; times are of the wall clock."""

    status: replies.ClusterStatus
    osd_map: replies.OsdMap
    options: Mapping[DaemonOption, float]
    read_at: float  # status and sums
    scrub: ScrubProgress
    recovery: RecoveryTotals
    trimming: SnapTrim
    states_by_pool: Mapping[int, Mapping[str, int]] | None = None  # placement groups in each
    states_read_at: float = 0.0
    recovery_seconds: float | None = None  # what the slowest OSD still needs
    schedule: Schedule | None = None
    schedule_as_of: float | None = None
    balance: Balance | None = None


@dataclass(slots=True)
class _Expensive:
    """When an expensive reply may be asked for again."""

    due: float = 0.0
    read_at: float = 0.0

    def is_due(self, now: float) -> bool:
        """Also after the clock was set back: else it would not be read for as long."""
        return not self.read_at <= now < self.due

    def was_read(self, now: float, *, took: float, least: float) -> None:
        """Set the next time, at least `least` seconds from now, by the seconds that it took."""
        self.read_at, self.due = now, now + max(least, took / _EXPENSIVE_DUTY)


@dataclass(slots=True)
class Failure:
    """Why there is no state."""

    reason: str
    text: str


@dataclass(slots=True)
class _Due:
    """`osd_map`: a map of a new epoch. `same_map`: the map again, though the epoch is the same."""

    osd_map: _Expensive = field(default_factory=_Expensive)
    same_map: _Expensive = field(default_factory=_Expensive)
    states: _Expensive = field(default_factory=_Expensive)
    moving: _Expensive = field(default_factory=_Expensive)
    trimming: _Expensive = field(default_factory=_Expensive)
    balance: _Expensive = field(default_factory=_Expensive)
    schedule: _Expensive = field(default_factory=_Expensive)
    options: _Expensive = field(default_factory=_Expensive)


class NoManager(ClusterUnreachable):
    """The monitors answer, but no manager is active: nothing is known of placement groups."""

    reason = "no_manager"


class ManagerStarting(ClusterUnreachable):
    """A manager has just taken over, and knows only a part of the placement groups."""

    reason = "manager_starting"


class Poller:
    """Reads one cluster. `state` is None until the first poll, and whenever the last one failed."""

    def __init__(
        self,
        reader: cluster.ClusterReader,
        *,
        interval: float,
        schedule_interval: float,
        most_pgs: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.reader = reader
        self.not_understood = NotUnderstood()
        self.state: ClusterState | None = None
        self.failure: Failure | None = None
        self.poll_seconds = 0.0
        self.polled = asyncio.Event()  # set once the first poll has ended, well or badly
        self._interval = interval
        self._most_pgs = most_pgs
        self._clock = clock
        self._rotation = Rotation(schedule_interval)
        self._due = _Due()
        self._scrub = ScrubProgress()
        self._recovery = RecoveryTotals()
        self._trimming = SnapTrim()
        self._pace = RecoveryPace()
        self._osd_map: replies.OsdMap | None = None
        self._options: dict[DaemonOption, float] = {}
        self._last_state: ClusterState | None = None  # for parts that are not read in every poll

    async def run(self) -> None:
        """Poll until cancelled."""
        failures = 0
        while True:
            failures = 0 if await self.poll() else failures + 1
            pause = max(self._interval, self.poll_seconds / _DUTY)
            if failures:
                pause = min(self._interval * 2 ** min(failures, 10), _LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    async def poll(self) -> bool:
        """Read once. False if that failed: `failure` says why."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            self.state = self._last_state = await self._read()
            if self.failure:
                log.info("the cluster answers again")
            self.failure = None
        except ClusterUnreachable as error:
            self._fail(error.reason, str(error))
        except CommandFailed as error:
            self._forget_replies()
            self._fail("failed", str(error))
        except Exception as error:
            self._forget_replies()
            # A reply that no known release gives: it is counted, and asked for again.
            log.exception("could not make sense of the cluster's replies")
            what = f"{type(error).__name__}: {error}"
            self.not_understood.add("reply", what)
            self._fail("malformed", f"a reply that is not as expected ({what})")
        finally:
            self.poll_seconds = loop.time() - started
            self.polled.set()
        return self.failure is None

    def _forget_replies(self) -> None:
        """Ask for everything again: an earlier wrong reply may have led to a command that fails."""
        self._osd_map, self._options = None, {}
        self._pace = RecoveryPace()

    def _fail(self, reason: str, text: str) -> None:
        if self.failure is None or self.failure.reason != reason:
            log.warning("no figures of the cluster: %s", text)
        self.state, self.failure = None, Failure(reason, text)

    async def _read(self) -> ClusterState:
        status = replies.parse_status(await self.reader.ask(cluster.STATUS))
        if not status.manager:
            raise NoManager("no manager is active")
        now = self._clock()
        totals = replies.parse_pool_totals(
            await self._ask_manager(cluster.POOL_TOTALS), self.not_understood
        )
        known_pools = self._osd_map.pools.keys() if self._osd_map else set()
        osd_map = await self._read_osd_map(status, totals.keys() - known_pools, now)
        await self._read_options(now)
        self._recovery.update(totals, now, self.not_understood)
        await self._read_scrubs(status)
        await self._rotate(osd_map)
        self._scrub.tick(self._clock(), osd_map.pools)
        state = ClusterState(
            status, osd_map, self._options, now, self._scrub, self._recovery, self._trimming
        )
        await self._read_states(state)
        await self._read_moving(state)
        await self._read_trimming(status)
        await self._read_balance(state, totals)
        self._make_schedule(state)
        return state

    async def _ask_manager(self, query: cluster.ClusterQuery) -> Any:
        """The manager's reply, once it knows all placement groups; before, ManagerStarting.

        OSDs report to a new manager within five seconds. Until then its sums would be too low, and
        the rest would look like work done.
        """
        reply = await self.reader.ask(query)
        if reply.get("pg_ready") is False:
            raise ManagerStarting("a manager has just started and knows a part of the cluster only")
        return reply

    async def _read_osd_map(
        self, status: replies.ClusterStatus, unknown_pools: set[int], now: float
    ) -> replies.OsdMap:
        """The OSD map; the last one, unless it may be read again or a new one has unknown pools."""
        known = self._osd_map
        new = known is None or known.epoch != status.epoch
        read_new = new and (unknown_pools or self._due.osd_map.is_due(now))
        if known is None or read_new or self._due.same_map.is_due(now):
            started = self._clock()
            reply = await self.reader.ask(cluster.OSD_DUMP)
            known = self._osd_map = replies.parse_osd_dump(reply, self.not_understood)
            took = self._clock() - started
            least = min(_OSD_MAP_INTERVAL_SECONDS, 2 * self._interval)
            self._due.osd_map.was_read(now, took=took, least=least)
            self._due.same_map.was_read(now, took=took, least=_SAME_MAP_INTERVAL_SECONDS)
        return known

    async def _read_options(self, now: float) -> None:
        if self._options and not self._due.options.is_due(now):
            return
        for who, key in OPTIONS:
            self._options[who, key] = float(await self.reader.ask(cluster.option(who, key)))
        self._due.options.was_read(now, took=0.0, least=_OPTIONS_INTERVAL_SECONDS)

    async def _read_scrubs(self, status: replies.ClusterStatus) -> None:
        """Read the placement groups being scrubbed. OSDs do few at once, so the list is short."""
        states = replies.count_states(status.pgs_by_state)
        any_now = "scrubbing" in states
        self._scrub.beside_recovery = not states.keys().isdisjoint(replies.MOVING_STATES)
        listing: Sequence[replies.PgStat] | None = []
        if any_now or self._scrub.running:
            listing = replies.parse_pgs(
                await self._ask_manager(cluster.SCRUBBING_PGS), self.not_understood
            )
            running = [pg for pg in listing or () if pg.scrubbing]
            self._rotation.ask_soon(self._scrub.list_running(running))
        self._scrub.knows_running = listing is not None

    def _too_many(self, osd_map: replies.OsdMap) -> bool:
        return sum(pool.pg_num for pool in osd_map.pools.values()) > self._most_pgs

    async def _rotate(self, osd_map: replies.OsdMap) -> None:
        if self._too_many(osd_map):
            # Only scrubs that are under way are followed, to their end.
            for osd in self._rotation.due_out_of_turn(osd_map.osds_up):
                await self._read_primary(osd)
            self._scrub.keep_running_only()
            self._trimming.end_round()
            return
        for osd in self._rotation.due(osd_map.osds_up, self._clock()):
            await self._read_primary(osd)
        if self._rotation.end_round():
            self._scrub.end_round()
            self._trimming.end_round()

    async def _read_primary(self, osd: int) -> None:
        reply = await self._ask_manager(cluster.pgs_of_primary(osd))
        groups = replies.parse_pgs(reply, self.not_understood) or ()
        self._scrub.observe(groups)
        self._trimming.observe_any(groups)

    async def _read_states(self, state: ClusterState) -> None:
        """Read the states by pool. While the whole cluster is in none of them, no pool is."""
        if not is_recovering(state.status):
            state.states_by_pool, state.states_read_at = {}, state.read_at
            self._due.states.due = 0.0
            return
        if self._too_many(state.osd_map):
            return
        if not self._due.states.is_due(self._clock()) and self._last_state is not None:
            state.states_by_pool = self._last_state.states_by_pool
            state.states_read_at = self._last_state.states_read_at
            return
        started = self._clock()
        brief = await self._ask_manager(cluster.PGS_IN_BRIEF)
        state.states_by_pool = replies.count_states_by_pool(
            listed(brief["pg_stats"]), self.not_understood
        )
        state.states_read_at = started
        took = self._clock() - started
        self._due.states.was_read(started, took=took, least=self._interval)

    async def _read_moving(self, state: ClusterState) -> None:
        """Read the placement groups that recover, for the time left."""
        counts = replies.count_states(state.status.pgs_by_state)
        number = sum(counts.get(name, 0) for name in replies.MOVING_STATES)
        if number > _MOST_MOVING:
            self._pace = RecoveryPace()
            return
        now = self._clock()
        if number and not self._due.moving.is_due(now):
            if self._last_state is not None:
                state.recovery_seconds = self._last_state.recovery_seconds
            return
        groups: Sequence[replies.MovingGroup] | None = []
        if number:
            groups = replies.parse_moving(
                await self._ask_manager(cluster.MOVING_PGS), self.not_understood
            )
            self._due.moving.was_read(now, took=self._clock() - now, least=self._interval)
        if groups is not None:
            self._pace.observe(groups, now)
            # Copies of groups that do not even wait, as with too few OSDs, are not recovered.
            if groups or not any(map(self._recovery.left, self._recovery.sums)):
                state.recovery_seconds = self._pace.slowest_seconds()

    async def _read_trimming(self, status: replies.ClusterStatus) -> None:
        """Read the placement groups that trim snapshots, if any."""
        counts = replies.count_states(status.pgs_by_state)
        number = sum(counts.get(name, 0) for name in TRIMMING_STATES)
        now = self._clock()
        if number > _MOST_MOVING:
            self._trimming.observe(None, now)
        elif not number:
            self._trimming.observe([], now)
        elif self._due.trimming.is_due(now):
            reply = await self._ask_manager(cluster.TRIMMING_PGS)
            self._trimming.observe(parse_trimming(reply, self.not_understood), now)
            self._due.trimming.was_read(now, took=self._clock() - now, least=self._interval)

    async def _read_balance(
        self, state: ClusterState, totals: Mapping[int, Mapping[str, Any]]
    ) -> None:
        now = self._clock()
        if self._last_state is not None and not self._due.balance.is_due(now):
            state.balance = self._last_state.balance
            return
        use = parse_use(await self._ask_manager(cluster.OSD_USE), self.not_understood)
        places = parse_tree(await self.reader.ask(cluster.OSD_TREE), self.not_understood)
        sizes = pg_sizes(totals, state.osd_map.pools, use, self.not_understood)
        ratios, primaries = pg_ratios(places, use), self._primaries(state)
        state.balance = Balance(places, use, ratios, primaries, sizes)
        took = self._clock() - now
        self._due.balance.was_read(now, took=took, least=_BALANCE_INTERVAL_SECONDS)

    def _primaries(self, state: ClusterState) -> Mapping[int, int]:
        if self._rotation.as_of is None or self._too_many(state.osd_map):
            return {}
        return Counter(record.primary for record in self._scrub.records.values())

    def _make_schedule(self, state: ClusterState) -> None:
        state.schedule_as_of = self._rotation.as_of
        if self._rotation.as_of is None or self._too_many(state.osd_map):
            return  # before the end of the first round, all counts would be too low
        started = self._clock()
        if self._last_state is not None and not self._due.schedule.is_due(started):
            state.schedule = self._last_state.schedule
            return
        records = self._scrub.records.values()
        state.schedule = make_schedule(records, state.osd_map, self._options, started)
        took = self._clock() - started
        self._due.schedule.was_read(started, took=took, least=self._interval)

    async def close(self) -> None:
        """End the child; a poll under way must have been cancelled before."""
        with contextlib.suppress(ClusterUnreachable):
            await self.reader.close()
