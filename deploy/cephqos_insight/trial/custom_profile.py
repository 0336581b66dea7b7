"""A custom profile that is tried: which shares classes have that are not named.

A switch to it leaves those of the profile before in force, until the OSDs start again. So what is
measured would not last: they are set, too.
"""

from collections.abc import Mapping
from dataclasses import replace

from cephqos_base.profiles import CUSTOM, FIRST_WITHOUT_SET_SHARES, PROFILE_OPTION
from cephqos_insight.trial.plan import TriedSetting, osds_of
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.cluster import set_shares
from cephqos_loadgen.cluster.connection import ClusterView
from cephqos_loadgen.cluster.settings import ClusterSettings, runs_mclock
from cephqos_loadgen.plan.errors import SettingRefused


async def completed(
    candidate: TriedSetting, settings: ClusterSettings, cluster: ClusterView
) -> TriedSetting:
    """With all shares of a custom profile. Those that are not named stay as they are now."""
    unnamed = candidate.unnamed_shares
    if not unnamed:
        return candidate
    up = await cluster.up_osds()
    releases = await set_shares.releases(cluster)
    in_force: dict[int, Mapping[str, str]] = {}
    for osd in sorted({osd for section, _ in unnamed for osd in osds_of(section, up)}):
        in_force[osd] = await settings.effective(osd)
        _refuse_hidden(candidate, osd, in_force[osd], releases.get(osd))
    added = []
    for section, name in unnamed:
        values = sorted({float(in_force[osd][name]) for osd in osds_of(section, up)})
        if len(values) > 1:
            raise SettingRefused(
                f"{candidate.name}: {name} is {' and '.join(f'{v:g}' for v in values)} on different"
                " OSDs; expected the same on all, or its value in --try"
            )
        added.append(CephOption(section, name, f"{values[0]:g}"))
    return replace(candidate, options=(*candidate.options, *added))


def _refuse_hidden(
    candidate: TriedSetting, osd: int, effective: Mapping[str, str], release: int | None
) -> None:
    """SettingRefused where the options do not say what a built-in profile gives (21.x)."""
    profile = effective[PROFILE_OPTION]
    says = release is not None and release < FIRST_WITHOUT_SET_SHARES
    if runs_mclock(effective) and profile != CUSTOM and not says:
        names = ", ".join(dict.fromkeys(name for _, name in candidate.unnamed_shares))
        raise SettingRefused(
            f"{candidate.name}: osd.{osd} does not say what its profile {profile} gives; expected"
            f" in --try also {names}"
        )
