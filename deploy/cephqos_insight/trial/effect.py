"""Whether a candidate has an effect on the OSDs that it is for, before it is put in force."""

from collections.abc import Mapping, Sequence
from typing import Any

from cephqos_base.errors import UsageError
from cephqos_base.profiles import CUSTOM, PROFILE_OPTION
from cephqos_insight.trial.plan import TriedSetting, osds_of
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster import set_shares
from cephqos_loadgen.cluster.connection import ClusterView
from cephqos_loadgen.cluster.restarts import named
from cephqos_loadgen.cluster.settings import ClusterSettings, runs_mclock, warnings_for
from cephqos_loadgen.plan.errors import SettingRefused

_MCLOCK = "mclock_scheduler"


async def check(candidate: TriedSetting, settings: ClusterSettings, cluster: ClusterView) -> None:
    """UsageError or SettingRefused if one of its OSDs would not do what it says. All are asked:
    they may differ in their scheduler, release and profile."""
    if not candidate.options:
        return
    up = await cluster.up_osds()
    osds = sorted({osd for section in candidate.sections for osd in osds_of(section, up)})
    if down := sorted({*osds} - {*up}):
        raise SettingRefused(f"{candidate.name}: {named(down)} is down")
    options = {osd: _options_of(candidate, osd) for osd in osds}
    now = {osd: await settings.effective(osd) for osd in osds}
    if all(settings.is_value(o, now[osd].get(o.name, "")) for osd in osds for o in options[osd]):
        raise UsageError(
            f"{candidate.name}: that is in force already; --try same compares it with itself"
        )
    wanted = {osd: now[osd] | {o.name: o.value for o in options[osd]} for osd in osds}
    _refuse_without_mclock(candidate, options, wanted)
    for osd in osds:
        if warnings := warnings_for(options[osd], wanted[osd]):
            raise SettingRefused(f"{candidate.name}: osd.{osd}: {warnings[0]}")
    await _refuse_shares_above(candidate, wanted, cluster)
    await _refuse_overridden(candidate, osds, settings, cluster)


def _options_of(candidate: TriedSetting, osd: int) -> Sequence[CephOption]:
    """Those of all OSDs first, as what is set for one of them replaces them."""
    mine = (option for option in candidate.options if option.section in ("osd", f"osd.{osd}"))
    return sorted(mine, key=lambda option: option.section)


def _refuse_without_mclock(
    candidate: TriedSetting,
    options: Mapping[int, Sequence[CephOption]],
    wanted: Mapping[int, Mapping[str, str]],
) -> None:
    """An optional option is one that only mClock needs."""
    needs = {
        osd: [o.name for o in found if o.name.startswith("osd_mclock_") and not o.optional]
        for osd, found in options.items()
    }
    without = [osd for osd in needs if needs[osd] and wanted[osd].get("osd_op_queue") != _MCLOCK]
    if without:
        names = ", ".join(dict.fromkeys(name for osd in without for name in needs[osd]))
        queues = ", ".join(sorted({wanted[osd].get("osd_op_queue", "?") for osd in without}))
        raise SettingRefused(
            f"{candidate.name}: {names} has an effect with mClock only, and {named(without)} has"
            f" the scheduler {queues}"
        )


async def _refuse_shares_above(
    candidate: TriedSetting, wanted: Mapping[int, Mapping[str, str]], cluster: ClusterView
) -> None:
    """SettingRefused for a built-in profile where shares are set that it would not replace."""
    profiles = {option.value for option in candidate.options if option.name == PROFILE_OPTION}
    for profile in sorted(profiles - {CUSTOM}):
        osds = [o for o, it in wanted.items() if it[PROFILE_OPTION] == profile and runs_mclock(it)]
        if above := await set_shares.above_profile(cluster, osds, profile):
            raise SettingRefused(
                f"{candidate.name}: {above}. These OSDs would lose what was set for them; others"
                f" can be tried alone: --try osd.N/profile={profile}"
            )


async def _refuse_overridden(
    candidate: TriedSetting, osds: Sequence[int], settings: ClusterSettings, cluster: ClusterView
) -> None:
    """SettingRefused where the monitors keep another value in a more specific section."""
    ours = {(option.section, option.name) for option in candidate.options}
    dump: Any = await cluster.command("config dump")
    above = {
        f"{'/'.join(filter(None, (entry['section'], entry.get('mask'))))} {option.name}": option
        for option in candidate.options
        for entry in dump
        if entry["name"] == option.name
        and _is_above(entry, option.section, osds)
        and (entry.get("mask") or (entry["section"], option.name) not in ours)
        and not settings.is_value(option, entry["value"])
    }
    if above:
        first = next(iter(above.values()))
        raise SettingRefused(
            f"{candidate.name}: other values would stay in force above it: {', '.join(above)};"
            f" expected OSDs by name: --try osd.{osds[0]}/{first.name}={first.value}"
        )


def _is_above(entry: Mapping[str, Any], section: str, osds: Sequence[int]) -> bool:
    """Whether an entry counts more than one of this section, for some of these OSDs. Which OSDs a
    mask means is not asked."""
    if entry["section"] == section:
        return bool(entry.get("mask"))
    return section == "osd" and entry["section"] in {f"osd.{osd}" for osd in osds}
