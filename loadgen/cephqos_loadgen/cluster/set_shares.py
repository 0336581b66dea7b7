"""Shares of classes that were set for a custom profile, and that a built-in one does not replace.

Up to 20.2 an OSD writes what a built-in profile gives as defaults of these options. So what was set
stays in force above it, until it is removed.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from cephqos_base.profiles import (
    CUSTOM,
    FIRST_WITHOUT_SET_SHARES,
    PROFILE_OPTION,
    SHARE_OPTIONS,
    release_of,
)
from cephqos_base.terminal import first_names
from cephqos_loadgen.cluster.connection import ClusterView

_NO_SOURCES: Final = frozenset({"default", "final"})


async def releases(cluster: ClusterView) -> Mapping[int, int | None]:
    """The first number of each OSD's release; None where it has none, as one built by hand."""
    metadata = await cluster.command("osd metadata")
    return {osd["id"]: release_of({"version": osd.get("ceph_version_short")}) for osd in metadata}


async def above_profile(
    cluster: ClusterView, osds: Sequence[int], profile: str = "", ours: Collection[str] = ()
) -> str:
    """Shares that stay in force above a built-in profile, and what to do; empty if none does.

    `profile`: what these OSDs are to get, if it is not in force yet. `ours`: options of the run.
    """
    known = await releases(cluster)
    above: dict[int, tuple[str, Collection[str]]] = {}  # by OSD: the profile, and the options
    for osd in osds:
        if (known.get(osd) or FIRST_WITHOUT_SET_SHARES) >= FIRST_WITHOUT_SET_SHARES:
            continue
        diff: Any = (await cluster.command("config diff", target=f"osd.{osd}"))["diff"]
        # An option that is not there has its default, which is a built-in profile.
        built_in = profile or str(diff.get(PROFILE_OPTION, {}).get("final", "of the release"))
        names = [n for n in SHARE_OPTIONS if n not in ours and diff.get(n, {}).keys() - _NO_SOURCES]
        if names and built_in != CUSTOM:
            above[osd] = built_in, names
    return await _what_to_do(cluster, above) if above else ""


async def kept_in_force(cluster: ClusterView, who: str) -> str:
    """What to do about shares that were removed while a built-in profile was in force; empty if
    no OSD keeps them."""
    known = (await releases(cluster)).values()
    if all((release or FIRST_WITHOUT_SET_SHARES) >= FIRST_WITHOUT_SET_SHARES for release in known):
        return ""
    section = "osd" if who == "global" else who
    return (
        f"shares of {who} were removed after their custom profile, so OSDs keep them in force until"
        f" the profile changes: ceph config set {section} {PROFILE_OPTION} {CUSTOM}, and back"
    )


async def _what_to_do(
    cluster: ClusterView, above: Mapping[int, tuple[str, Collection[str]]]
) -> str:
    osds = first_names([f"osd.{osd}" for osd in sorted(above)])
    profiles = ", ".join(sorted({profile for profile, _ in above.values()}))
    names = {name for _, found in above.values() for name in found}
    sections = {"global", "osd", *(f"osd.{osd}" for osd in above)}
    removals = [
        f"ceph config rm {'/'.join(filter(None, (e['section'], e.get('mask'))))} {e['name']}"
        for e in await cluster.command("config dump")
        if e["name"] in names and e["section"] in sections
    ]
    where = "; ".join(removals) or "they are in ceph.conf, or were set by `ceph tell`"
    return (
        f"the profile {profiles} does not replace {', '.join(sorted(names))} of {osds}, set for a"
        f" custom profile: they stay in force until they are removed and the profile changes after"
        f" that (ceph config set osd {PROFILE_OPTION} {CUSTOM}, and back): {where}"
    )
