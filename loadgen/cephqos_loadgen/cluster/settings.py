"""Cluster settings: applied, read back from the daemons, and given back.

A value in the monitors' configuration database may not be in force: a daemon's conf file, its
command line, a more specific section or a profile can override it. So a setting counts as applied
only when the daemons themselves report it, before any load is started.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cephqos_base.profiles import CUSTOM, OVERRIDE_OPTION, PROFILE_OPTION, SHARE_OPTIONS
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster import restarts, undo
from cephqos_loadgen.cluster.connection import ClusterConnection, ClusterView
from cephqos_loadgen.cluster.option_values import OptionInfo, read_info, same_value, unfit
from cephqos_loadgen.cluster.steps.options import SKIP_BENCHMARK, OptionSet, stored_options
from cephqos_loadgen.cluster.steps.osds import OsdsRestarted
from cephqos_loadgen.cluster.steps.step import StepBack
from cephqos_loadgen.plan.errors import RunError, SettingRefused

_VERIFY_SECONDS = 15.0  # until all daemons report the new values
_CLEAN_SECONDS = 300.0  # until all is clean before OSDs are restarted
_Values = Mapping[tuple[str, str], str]  # by section and option
AtStart = dict[tuple[int, str], str]  # by OSD and option
_SPECIFIC = {"global": 0, "osd": 1}  # any other section is a daemon
# Options of a manager's modules: the daemon itself does not know them, the monitors do.
_MODULE_PREFIX = "mgr/"

# Daemons with the bandwidth model of mClock accept these, but they have no effect.
_IGNORED_BY_MCLOCK = (
    "osd_scrub_cost",
    "osd_recovery_cost",
    "osd_snap_trim_cost",
    "osd_scrub_sleep",
    "osd_recovery_sleep",
)
# Under mClock these have an effect only if OVERRIDE_OPTION is true.
_NEED_OVERRIDE = (
    "osd_max_backfills",
    "osd_recovery_max_active",
    "osd_recovery_max_active_hdd",
    "osd_recovery_max_active_ssd",
)
# A scenario that sets one of these says itself whether OSDs measure their capacity at their start.
_OF_BENCHMARK = (SKIP_BENCHMARK, "osd_mclock_force_run_benchmark_on_init")


def _is_zero_sleep(option: CephOption) -> bool:
    """mClock sets every sleep to 0 itself, so this setting changes nothing."""
    return option.name.endswith("_sleep") and option.value.strip("0.") == ""


def warnings_for(options: Sequence[CephOption], effective: dict[str, str]) -> list[str]:
    """A line for each option without effect. `effective` is one OSD's configuration."""
    if not runs_mclock(effective):
        return []
    warnings = [
        f"{option.name} = {option.value} has no effect: this release's mClock ignores it"
        for option in options
        if option.name in _IGNORED_BY_MCLOCK and not _is_zero_sleep(option)
    ]
    if effective.get(OVERRIDE_OPTION) != "true":
        warnings += [
            f"{option.name} = {option.value} has no effect while {OVERRIDE_OPTION} is not true"
            for option in options
            if option.name in _NEED_OVERRIDE
        ]
    if effective.get(PROFILE_OPTION) != CUSTOM:
        warnings += [
            f"{option.name} = {option.value} has no effect while {PROFILE_OPTION} is not {CUSTOM}:"
            " OSDs remove it"
            for option in options
            if option.name in SHARE_OPTIONS
        ]
    return warnings


def runs_mclock(effective: Mapping[str, str]) -> bool:
    """Whether an OSD with this configuration runs mClock with the bandwidth model."""
    bandwidth_model = "osd_mclock_max_sequential_bandwidth_ssd" in effective
    return bandwidth_model and effective.get("osd_op_queue") == "mclock_scheduler"


class SettingsReader:
    """Reads settings back from daemons and monitors."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._known: dict[str, OptionInfo] = {}

    async def _is_known(self, option: CephOption) -> bool:
        """Whether the release has the option. SettingRefused if not, unless it is optional."""
        try:
            await self._info(option)
        except SettingRefused:
            if not option.optional:
                raise
            return False
        return True

    async def known(self, options: Iterable[CephOption]) -> list[CephOption]:
        """Without optional ones that the release does not have. SettingRefused for others."""
        return [option for option in options if await self._is_known(option)]

    def is_value(self, option: CephOption, present: str) -> bool:
        """Whether a known option has this value, perhaps in another spelling."""
        return same_value(self._known[option.name].type, option.value, present)

    async def _info(self, option: CephOption) -> OptionInfo:
        if option.name not in self._known:
            try:
                answer = await self._cluster.command("config help", key=option.name)
            except CommandFailed as error:
                raise SettingRefused(f"option {option.name}: {error}") from None
            if not isinstance(answer, dict):
                raise SettingRefused(f"option {option.name}: the cluster does not know it")
            self._known[option.name] = read_info(answer)
        return self._known[option.name]

    async def read(self, daemon: str, name: str) -> str:
        """The value in force in a daemon; for an option of a module, the monitors' value."""
        if name.startswith(_MODULE_PREFIX):
            value = await self._cluster.command("config get", who=daemon, key=name)
            return str(value).strip()
        answer: Any = await self._cluster.command("config get", target=daemon, var=name)
        if not isinstance(answer, dict) or name not in answer:
            raise RunError(f"{daemon} does not say what {name} is: {answer}")
        return str(answer[name])

    async def _daemons(self) -> list[str]:
        """All that can be asked: OSDs that are up, monitors in quorum, the active manager."""
        daemons = [f"osd.{osd}" for osd in await self._cluster.up_osds()]
        quorum = await self._cluster.command("quorum_status")
        daemons += [f"mon.{name}" for name in quorum["quorum_names"]]
        manager = (await self._cluster.command("mgr dump"))["active_name"]
        return [*daemons, f"mgr.{manager}"] if manager else daemons

    def _asked(self, option: CephOption, daemons: Sequence[str]) -> list[str]:
        """The daemons from which an option is read back.

        An option that is set for all daemons and read only at their start is meant for OSDs: only
        they are restarted for it.
        """
        asked = concerned(option, daemons)
        if option.section == "global" and not self._known[option.name].runtime:
            asked = [daemon for daemon in asked if daemon.startswith("osd.")]
        return asked

    async def wanted_at_start(self, options: Iterable[CephOption]) -> AtStart:
        """The values that OSDs which are up would have, of options that they read only at their
        start. The most specific section wins."""
        at_start = [
            option for option in await self.known(options) if not self._known[option.name].runtime
        ]
        up = [f"osd.{osd}" for osd in await self._cluster.up_osds()] if at_start else []
        return {
            (int(daemon.removeprefix("osd.")), option.name): option.value
            for option in sorted(at_start, key=lambda option: _SPECIFIC.get(option.section, 2))
            for daemon in concerned(option, up)
        }

    async def in_force_at_start(self, which: Iterable[tuple[int, str]]) -> AtStart:
        """The values that these OSDs have now."""
        return {(osd, name): await self.read(f"osd.{osd}", name) for osd, name in which}

    def differs(self, osd: int, name: str, one: AtStart, other: AtStart) -> bool:
        """Whether an OSD has two different values of an option in these."""
        return not same_value(self._known[name].type, one[osd, name], other[osd, name])

    async def verify(self, options: Sequence[CephOption]) -> dict[str, dict[str, str]]:
        """Read options back. Returns values by daemon; SettingRefused if one has another value."""
        options = await self.known(options)
        daemons = await self._daemons()
        in_force: dict[str, dict[str, str]] = {daemon: {} for daemon in daemons}
        deadline = time.monotonic() + _VERIFY_SECONDS
        for option in options:
            for daemon in self._asked(option, daemons):
                value = await self.read(daemon, option.name)
                while not self.is_value(option, value):
                    if time.monotonic() > deadline:
                        raise SettingRefused(
                            f"{daemon} has {option.name} = {value}, not {option.value}: its conf"
                            " file, its command line, a more specific setting or the mClock profile"
                            " in force says otherwise"
                        )
                    await asyncio.sleep(0.2)
                    value = await self.read(daemon, option.name)
                in_force[daemon][option.name] = value
        return in_force


class ClusterSettings(SettingsReader):
    """Applies settings. What undoes a change is in the journal before the change."""

    def __init__(self, cluster: ClusterConnection, journal: undo.Journal) -> None:
        super().__init__(cluster)
        self._connection = cluster
        self._journal = journal

    async def check(self, options: Iterable[CephOption]) -> None:
        """SettingRefused for unknown options and daemons, and for unfit values."""
        options = await self.known(options)
        await self._refuse_unknown_daemons(options)
        for option in options:
            if self._known[option.name].at_creation:
                raise SettingRefused(
                    f"{option.section} {option.name} = {option.value}: a daemon that exists keeps"
                    " the value with which it was made, also over restarts. Expected an option that"
                    " a running cluster can change"
                )
            expected = unfit(self._known[option.name], option.value)
            if expected:
                raise SettingRefused(
                    f"{option.section} {option.name} = {option.value}: expected {expected}"
                )

    async def apply(self, options: Sequence[CephOption]) -> dict[str, dict[str, str]]:
        """Set all, restart OSDs that need it, and read back. Returns the values by daemon."""
        await self.put(options)
        return await self.verify(options)

    async def put(self, options: Sequence[CephOption]) -> list[int]:
        """Set all, and restart the OSDs that need it. Returns the numbers of the steps back."""
        options = profile_first(await self.known(options))
        stored = await stored_options(self._cluster)
        daemons = await self._daemons()
        await self._refuse_unknown_daemons(options)
        await self._refuse_other_restarts(options, daemons)
        restart = await self._osds_to_restart(options)
        numbers: list[int] = []
        if restart:
            # These are undone after the options, which take effect by the restart.
            way_back = await self._way_back_by_restart(restart)
            numbers += await self._skip_benchmark(options, stored)
            numbers.append(await self._journal.push(way_back))
        # First the options that are read at the start, such as the scheduler: an OSD that still
        # runs mClock removes settings of backfill and recovery from the monitors' database.
        at_start = [option for option in options if not self._known[option.name].runtime]
        for option in at_start:
            numbers += await self._set(option, stored.get((option.section, option.name)))
        if restart:
            await restarts.restart(self._connection, restart)
        for option in options:
            if option not in at_start:
                numbers += await self._set(option, stored.get((option.section, option.name)))
        return numbers

    async def _skip_benchmark(self, options: Sequence[CephOption], stored: _Values) -> list[int]:
        """Keep OSDs from measuring their capacity when they restart: they start together, under
        the load of others, and what they store then stays. Undone after the last restart."""
        skip = CephOption("osd", SKIP_BENCHMARK, "true", optional=True)
        wanted = any(option.name in _OF_BENCHMARK for option in options)
        if wanted or self._connection.access.at_once or not await self._is_known(skip):
            return []
        before = stored.get((skip.section, skip.name))
        if before is not None and same_value("bool", skip.value, before):
            return []
        self._connection.note(f"OSDs do not measure their capacity at restarts: {SKIP_BENCHMARK}")
        return await self._set(skip, before)

    async def _way_back_by_restart(self, osds: Sequence[int]) -> StepBack:
        """What restarts OSDs again; RunError if they must not be restarted now."""
        cluster = self._connection
        await cluster.access.check_restart(cluster, osds)
        if not cluster.access.at_once:
            await cluster.wait_for_pgs(clean=True, within=_CLEAN_SECONDS)
        groups = await restarts.plan_steps(cluster, osds)
        running = restarts.processes(await cluster.command("osd dump"))
        before = {str(osd): str(running[osd]) for osd in osds if running[osd]}
        lab = cluster.access.lab_name
        return OsdsRestarted(tuple(group.osds for group in groups), before, lab)

    async def _osds_to_restart(self, options: Sequence[CephOption]) -> list[int]:
        """OSDs that have another value of an option which they read only at their start."""
        wanted = await self.wanted_at_start(options)
        in_force = await self.in_force_at_start(wanted)
        return sorted({osd for osd, name in wanted if self.differs(osd, name, wanted, in_force)})

    async def _refuse_unknown_daemons(self, options: Sequence[CephOption]) -> None:
        """SettingRefused for a section that names a daemon which the cluster does not have."""
        sections = {option.section for option in options if "." in option.section}
        if not sections:
            return
        mons = (await self._cluster.command("quorum_status"))["monmap"]["mons"]
        managers = await self._cluster.command("mgr metadata")
        known = [f"osd.{osd}" for osd in await self._cluster.osds()]
        known += [f"mon.{mon['name']}" for mon in mons] + [f"mgr.{m['name']}" for m in managers]
        for section in sorted(sections.difference(known)):
            raise SettingRefused(f"settings for {section}: the cluster has {', '.join(known)}")

    async def _refuse_other_restarts(
        self, options: Sequence[CephOption], daemons: Sequence[str]
    ) -> None:
        """SettingRefused if a monitor or a manager had to restart: a run restarts only OSDs."""
        others = [name for name in daemons if not name.startswith("osd.")]
        for option in options:
            if self._known[option.name].runtime:
                continue
            for daemon in self._asked(option, others):
                present = await self.read(daemon, option.name)
                if not self.is_value(option, present):
                    raise SettingRefused(
                        f"{daemon} has {option.name} = {present}, not {option.value}, and reads it"
                        " at its start only: set it and restart the daemon before the run"
                    )

    async def _set(self, option: CephOption, before: str | None) -> list[int]:
        who, name = option.section, option.name
        back = OptionSet(who, name, before, option.value)
        change = undo.Change(f"option {option.name}", [set_option(option)], (back,))
        try:
            return await self._journal.make(change, self._connection)
        except CommandFailed as error:
            raise SettingRefused(f"{who} {name} = {option.value}: {error}") from None

    async def _last_set(self, entries: Sequence[StepBack]) -> tuple[_Values, _Values]:
        """The values that the run has set last, and those that the monitors have now."""
        last = {(e.who, e.name): e.ours for e in entries if isinstance(e, OptionSet)}
        return last, await stored_options(self._cluster, patience=0.0) if last else {}

    async def changed_by_others(self, entries: Sequence[StepBack]) -> list[str]:
        """A line for each option that has another value now than the run has set last, or none."""
        last, stored = await self._last_set(entries)
        lines = []
        for (who, name), ours in last.items():
            now = stored.get((who, name))
            if now is None:
                lines.append(
                    f"{who} {name} was removed during the run, which had set it to {ours}: by"
                    " someone else, or by an OSD, as mClock does"
                )
            elif not same_value(self._known[name].type, ours, now):
                lines.append(
                    f"{who} {name} was set to {now} by someone else during the run, which had set"
                    f" it to {ours}"
                )
        return lines

    async def overridden(self, entries: Sequence[StepBack]) -> list[str]:
        """A line for each option of which an OSD has another value than the run has set last.

        The monitors have that value, but the daemon, a more specific section or a profile
        overrides it.
        """
        last, stored = await self._last_set(entries)
        kept = {
            (who, name): ours
            for (who, name), ours in last.items()
            if same_value(self._known[name].type, ours, stored.get((who, name), ""))
        }
        lines = []
        for osd in await self._cluster.up_osds() if kept else []:
            daemon = f"osd.{osd}"
            expected: dict[str, str] = {}
            for section in ("global", "osd", daemon):  # the most specific last
                expected |= {name: ours for (who, name), ours in kept.items() if who == section}
            shown = await self._shown_by(daemon)
            lines += [
                f"{daemon} {name} is {shown[name]} at the end, the run had set {ours}"
                for name, ours in expected.items()
                if not same_value(self._known[name].type, ours, str(shown.get(name, ours)))
            ]
        return lines

    async def _shown_by(self, daemon: str) -> dict[str, Any]:
        """All of a daemon's configuration; empty if it does not answer at once."""
        with contextlib.suppress(ClusterUnreachable, CommandFailed):
            shown: dict[str, Any] = await self._connection.once("config show", target=daemon)
            return shown
        return {}

    async def effective(self, osd: int) -> dict[str, str]:
        """All of an OSD's configuration."""
        shown: Any = await self._cluster.command("config show", target=f"osd.{osd}")
        return {str(name): str(value) for name, value in shown.items()}


def profile_first(options: Sequence[CephOption]) -> Sequence[CephOption]:
    """OSDs remove shares while a built-in profile is in force. First is undone last: up to 20.2
    shares that are removed after their custom profile stay in force until the profile changes
    again, though every option says otherwise."""
    return sorted(options, key=lambda option: option.name != PROFILE_OPTION)


def concerned(option: CephOption, daemons: Sequence[str]) -> list[str]:
    """The daemons that an option is meant for: its section is global, their kind or their name."""
    section = option.section
    kinds = {daemon: daemon.partition(".")[0] for daemon in daemons}
    return [name for name, kind in kinds.items() if section in ("global", kind, name)]


def set_option(option: CephOption) -> undo.ClusterCommand:
    return undo.ceph("config set", who=option.section, name=option.name, value=option.value)
