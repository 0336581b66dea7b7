"""The world of a trial that is a real cluster: settings by the journal, counters of all OSDs."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.prometheus import Prometheus
from cephqos_base.recorded import PerClass
from cephqos_base.series import OSD_CLASS
from cephqos_base.servers import NoAnswer
from cephqos_base.units import time_span
from cephqos_exporter.ceph.cluster import SCRUBBING_PGS, ClusterQuery, pgs_of_primary
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_exporter.cluster.replies import PgStat, parse_pgs
from cephqos_exporter.cluster.scrub_progress import ScrubProgress
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_insight.trial import effect
from cephqos_insight.trial.alert_watch import WatchedAlerts
from cephqos_insight.trial.custom_profile import completed
from cephqos_insight.trial.host import HostGroups, check_restart, on_osds
from cephqos_insight.trial.measure import Reading
from cephqos_insight.trial.plan import TriedSetting
from cephqos_insight.trial.readers import LOOK_SECONDS, OsdReaders
from cephqos_loadgen.cluster.connection import ClusterConnection
from cephqos_loadgen.cluster.lock import ClusterLock
from cephqos_loadgen.cluster.restarts import named
from cephqos_loadgen.cluster.settings import ClusterSettings
from cephqos_loadgen.cluster.undo import Journal
from cephqos_loadgen.plan.errors import ClusterUnfit, NotRestored, SettingRefused

_VERIFY_SECONDS: Final = 30.0  # until all OSDs say that they have a setting: no guard rail holds
_COMPARE_SECONDS: Final = 30.0  # for monitors to say at the end what is set
_MONITORS_SECONDS: Final = 15.0  # without an answer: an election takes some
_SILENT_SECONDS: Final = 60.0  # of an OSD that monitors have not found to be down
# An OSD writes there by itself what it measures when it starts.
_OWN: Final = "osd_mclock_max_capacity_iops"
_TUNED: Final = "osd_memory_target"

_Key = tuple[str, str, str]  # section, mask and name
_Config = Mapping[_Key, str]


class NotKnown(Exception):
    """A reply was not understood."""


class RealWorld:
    """Used by `conduct`. `check` comes first, and changes nothing."""

    def __init__(
        self,
        cluster: ClusterConnection,
        watch: ClusterConnection,
        readers: OsdReaders,
        lock: ClusterLock,
        candidates: Sequence[TriedSetting],
        prometheus: Prometheus | None,
        groups: HostGroups | None = None,
    ) -> None:
        """`groups`: candidates are put on the OSDs of one host only, which may be restarted."""
        if groups:
            candidates = [on_osds(candidate, groups.osds) for candidate in candidates]
        self.groups = groups
        self._cluster, self._lock, self._prometheus = cluster, lock, prometheus
        self._readers = readers
        self._watch = watch  # of its own: what waits for an OSD must not hold up the way back
        self._candidates = {candidate.name: candidate for candidate in candidates}
        self.journal = Journal(lock.save)
        self._settings = ClusterSettings(cluster, self.journal)
        self.way_back: dict[str, list[str]] = {}  # by candidate: the commands, once they are known
        self.left: list[str] = []  # what is not as before, and why
        self._numbers: list[int] = []
        self._osds: list[int] = []
        self._silent_since: Mapping[int, float] = {}
        self._unheard_since: float | None = None  # monitors
        self._flags = ""
        self._weights: Mapping[int, float] = {}
        self._crush: int | None = None  # the number of the CRUSH map
        self._before: _Config = {}
        self._expected: _Config = {}
        self._alerts = WatchedAlerts(prometheus, cluster.fsid) if prometheus else None
        self._scrubs = ScrubProgress()
        self._violated_until: float | None = None
        self._violated_seconds = 0.0

    @property
    def candidates(self) -> Sequence[TriedSetting]:
        """As they are put in force."""
        return tuple(self._candidates.values())

    async def check(self) -> None:
        """UsageError or SettingRefused for a candidate that cannot be tried here."""
        for name, wanted in self._candidates.items():
            await self._settings.check(wanted.options)
            options = await self._settings.known(wanted.options)
            candidate = replace(wanted, options=tuple(options))
            if at_start := await self._settings.wanted_at_start(candidate.options):
                if self.groups is None:
                    names = ", ".join(sorted({name for _, name in at_start}))
                    raise UsageError(
                        f"{candidate.name}: OSDs read {names} only when they start; --host NAME"
                        " tries it on one host, whose OSDs are restarted"
                    )
                await check_restart(self._cluster, self.groups.osds)
            await effect.check(candidate, self._settings, self._cluster)
            self._candidates[name] = await completed(candidate, self._settings, self._cluster)
        self._osds = await self._cluster.up_osds()
        read = await self._readers.read(self._osds)
        if silent := [osd for osd in self._osds if osd not in read]:
            why = self._readers.why.get(silent[0], "no answer in time")
            raise ClusterUnfit(f"{named(silent)} did not say what clients did: {why}")
        dump = await self._cluster.command("osd dump")
        self._flags, self._weights = dump["flags"], _weights(dump)
        self._crush = dump.get("crush_version")
        self._before = self._expected = await self._stored()
        if self._alerts:
            self._cluster.note(await self._alerts.begin(dump))

    # -- the world ------------------------------------------------------------------------------

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def put(self, candidate: str) -> None:
        options = self._candidates[candidate].options
        if not options:
            return
        self._numbers = await self._settings.put(options)
        self.way_back[candidate] = self.journal.commands()
        self._expected = await self._stored()
        try:
            async with asyncio.timeout(_VERIFY_SECONDS):
                await self._settings.verify(options)
        except (CephqosError, CommandFailed, TimeoutError) as error:
            why = await self.trouble() or str(error) or "OSDs did not say in time what they have"
            raise SettingRefused(why) from error
        self._expected = await self._stored()

    async def back(self) -> None:
        """NotRestored if the settings are not as before: someone may have changed them."""
        if not self._numbers:
            return
        failures = await self.journal.take_back(self._cluster, self._numbers)
        self._numbers = []
        problems = [*failures, *self.journal.left]
        if not problems:
            differing = _differing(self._before, await self._stored(), self._ours)
            problems = [f"not as before the trial: {_named(key)}" for key in differing]
        if problems:
            raise NotRestored("; ".join(problems))
        self._expected = self._before

    @property
    def fsid(self) -> str:
        return self._cluster.fsid

    async def give_back(self) -> list[str]:
        """Undo all that is still changed, at the end, and see what is not as before. Returns what
        could not be undone."""
        self.left = ["the way back was stopped; cephqos run --restore-only finishes it"]
        failures: list[str] = []
        if self.journal.entries:
            await self._lock.look()
            if self._lock.lost:
                self.journal.forget()  # the run that took the cluster over has undone it
            else:
                failures = await self.journal.roll_back(self._cluster)
        self.left = [*self.journal.left, *failures]
        if self._flags:  # it had begun
            self.left += await self._not_as_before()
        return failures

    async def _not_as_before(self) -> list[str]:
        """What has another value than before the trial, and is not in `left`. Commands to keep, or
        to go back from, what others have changed are forgotten."""
        try:
            dump = await self._cluster.command("config dump", patience=_COMPARE_SECONDS)
            osds = await self._cluster.command("osd dump", patience=_COMPARE_SECONDS)
        except (CephqosError, CommandFailed) as error:
            return [f"what is set was not compared with what was set before the trial: {error}"]
        now = _by_key(dump)
        changed = _differing(self._before, now, self._ours)
        sections = {(section, name) for section, _, name in changed}
        for name, candidate in self._candidates.items():
            if any((option.section, option.name) in sections for option in candidate.options):
                self.way_back.pop(name, None)
        none = "not set"
        lines = [
            f"{_named(key)} is {now.get(key, none)}, and was {self._before.get(key, none)}"
            for key in changed
            if not any(_named(key) in said for said in self.left)
        ]
        if osds["flags"] != self._flags:
            lines.append(f"the flags are {osds['flags']}, and were {self._flags}")
        return lines

    async def read(self) -> Reading:
        at = self.now()
        scrubbed, violated, read = await asyncio.gather(
            self._scrubbed(), self._violated(at), self._readers.read(self._osds)
        )
        bounds = next((bounds for _, bounds in read.values()), ())
        silent = tuple(osd for osd in self._osds if osd not in read)
        self._silent_since = {osd: self._silent_since.get(osd, at) for osd in silent}
        counters = {osd: counters for osd, (counters, _) in read.items()}
        return Reading(at, bounds, counters, silent, scrubbed, violated)

    async def _scrubbed(self) -> float | None:
        """Objects that scrubs have done since the first reading."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                ended = self._scrubs.list_running(await self._groups(SCRUBBING_PGS))
                for primary in sorted(ended):
                    self._scrubs.observe(await self._groups(pgs_of_primary(primary)))
        except (ClusterUnreachable, CommandFailed, NotKnown, TimeoutError):
            return None
        return float(sum(done.objects for done in self._scrubs.done.values()))

    async def _groups(self, query: ClusterQuery) -> Sequence[PgStat]:
        reply = await self._watch.once(query.prefix, target="mgr", **query.arguments)
        groups = parse_pgs(reply, NotUnderstood())
        if groups is None:
            raise NotKnown
        return groups

    async def _violated(self, at: float) -> float | None:
        """Seconds since the first reading, summed over OSDs and classes; None: no Prometheus
        says it now."""
        if self._prometheus is None:
            return None
        last, self._violated_until = self._violated_until, at
        with suppress(NoAnswer):
            if found := await self._prometheus.vector(self._violated_now):
                self._violated_seconds += found[0][1] * (at - (at if last is None else last))
                return self._violated_seconds
        return None

    @property
    def _violated_now(self) -> str:
        """How many classes are violated, on all OSDs."""
        return f'sum(max by ({OSD_CLASS}) ({PerClass.VIOLATED}{{cluster="{self.fsid}"}}))'

    async def trouble(self) -> str:
        if self._lock.lost or self._lock.failure:
            return self._lock.failure or "another run took this cluster over"
        asked = self.now()
        try:
            dump = await self._watch.once("osd dump")
            config = await self._config()
        except CephqosError as error:
            self._unheard_since = self._unheard_since or asked
            silent = self.now() - self._unheard_since > _MONITORS_SECONDS
            return f"the monitors did not answer: {error}" if silent else ""
        self._unheard_since = None
        up = {osd["osd"] for osd in dump["osds"] if osd["up"]}
        if down := sorted({*self._osds} - up):
            return f"down: {named(down)}"
        if new := sorted(up - {*self._osds}):
            return f"it came up, and was not when the trial began: {named(new)}"
        for osd, since in self._silent_since.items():
            if self.now() - since > _SILENT_SECONDS:
                return f"osd.{osd} has not answered for {time_span(self.now() - since)}"
        if changed := self._changed_by_others(dump, config):
            return changed
        return await self._alerts.trouble() if self._alerts else ""

    def _changed_by_others(self, dump: Mapping[str, Any], config: _Config) -> str:
        if dump["flags"] != self._flags:
            changed = {*dump["flags"].split(",")} ^ {*self._flags.split(",")}
            return f"someone has changed flags of the cluster: {', '.join(sorted(changed))}"
        if moved := sorted(_weights(dump).items() - self._weights.items()):
            osd, weight = moved[0]
            return f"someone has set the weight of osd.{osd} to {weight:g} (0: it is out)"
        if dump.get("crush_version") != self._crush:
            return "the CRUSH map has changed: data may move"
        if differing := _differing(self._expected, config, self._ours):
            return f"someone has changed {', '.join(map(_named, differing))}"
        return ""

    @property
    def _ours(self) -> Collection[_Key]:
        options = (option for it in self._candidates.values() for option in it.options)
        return {(option.section, "", option.name) for option in options}

    async def _config(self) -> _Config:
        return _by_key(await self._watch.once("config dump"))

    async def _stored(self) -> _Config:
        """The same, where no other look follows soon: monitors may need a while."""
        reply = await self._cluster.command("config dump", patience=_MONITORS_SECONDS)
        return _by_key(reply)


def _by_key(config_dump: Any) -> _Config:
    return {(e["section"], e.get("mask", ""), e["name"]): e["value"] for e in config_dump}


def _weights(osd_dump: Any) -> Mapping[int, float]:
    """By OSD: what it has of the data; 0 if it is out."""
    return {osd["osd"]: round(osd["weight"] * osd["in"], 3) for osd in osd_dump["osds"]}


def _differing(expected: _Config, found: _Config, ours: Collection[_Key]) -> list[_Key]:
    """Options that have another value, were removed or are new. `ours`: those of the trial."""
    keys = {key for key in {*expected, *found} if expected.get(key) != found.get(key)}
    return sorted(key for key in keys if not _is_of_the_cluster(key, expected, ours))


def _is_of_the_cluster(key: _Key, expected: _Config, ours: Collection[_Key]) -> bool:
    """What daemons set themselves: an OSD the capacity that it measured when it started, a manager
    of cephadm the memory of each host's OSDs."""
    section, mask, name = key
    measured = name.startswith(_OWN) and section.startswith("osd.") and not mask
    tuned = name == _TUNED and (mask.startswith("host:") or section.startswith("osd."))
    return key not in ours and ((measured and key not in expected) or tuned)


def _named(key: _Key) -> str:
    section, mask, name = key
    return f"{'/'.join(filter(None, (section, mask)))} {name}"
