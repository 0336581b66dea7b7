"""What the built-in profiles of mClock give each class.

Up to 20.2 an OSD writes the values of its built-in profile into its options. So this table is used
only to say what another profile would give. From 21.x on the options stay 0, or what a custom
profile left there, and have no effect: then this table is the only source of the values in force.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY, SCHEDULED

PROFILE_OPTION: Final = "osd_mclock_profile"
CUSTOM: Final = "custom"  # the profile that is not built in
# What a custom profile gives each class.
SHARE_OPTIONS: Final = tuple(
    f"osd_mclock_scheduler_{cls}_{part}" for cls in SCHEDULED for part in ("res", "wgt", "lim")
)
# From this release on, these count only under CUSTOM. In earlier ones with the bandwidth model,
# those that were set stay in force under a built-in profile, too. Removed under it, they stay in
# force all the same until the profile changes, though every option says otherwise.
FIRST_WITHOUT_SET_SHARES: Final = 21
# While it is not true, mClock undoes changes of the limits of recovery.
OVERRIDE_OPTION: Final = "osd_mclock_override_recovery_settings"
CAPACITY_OPTION: Final = "osd_mclock_max_capacity_iops_"  # and the medium: hdd or ssd


class Share(NamedTuple):
    """What a profile gives a class. Reservation and limit are shares of the capacity."""

    reservation: float | None  # None: not known
    weight: float | None  # None: not known
    limit: float  # 0: no limit


# Of clients and of recovery: the same in each release of the bandwidth model.
_CLIENTS_AND_RECOVERY: Final[Mapping[str, tuple[Share, Share]]] = {
    "balanced": (Share(0.5, 1, 0), Share(0.5, 1, 0)),
    "high_client_ops": (Share(0.6, 2, 0), Share(0.4, 1, 0)),
    "high_recovery_ops": (Share(0.3, 1, 0), Share(0.7, 2, 0)),
}
# Of best effort, by the first number of the release. Nothing is guessed for a release that is not
# here. The sources of 21.x reserve nothing for best effort, but a later discussion of them says
# 5 %: so there its reservation and weight are not known.
_BEST_EFFORT: Final[Mapping[int, Mapping[str, Share]]] = {
    18: {
        "balanced": Share(0, 1, 0.9),
        "high_client_ops": Share(0, 1, 0.7),
        "high_recovery_ops": Share(0, 1, 0),
    },
    20: {
        "balanced": Share(0.05, 2, 0.9),
        "high_client_ops": Share(0.05, 4, 0.7),
        "high_recovery_ops": Share(0.05, 2, 0),
    },
    21: {
        "balanced": Share(None, None, 0.9),
        "high_client_ops": Share(None, None, 0.7),
        "high_recovery_ops": Share(None, None, 0),
    },
}


PROFILES: Final = tuple(_CLIENTS_AND_RECOVERY)


def release_of(version: Any) -> int | None:
    """The first number of the release, from the reply to `version`; None if it has none.

    >>> release_of({"version": "21.1.0-12-gabcdef"}), release_of({"version": "Development"})
    (21, None)
    """
    text = version.get("version") if isinstance(version, dict) else None
    first = text.partition(".")[0] if isinstance(text, str) else ""
    return int(first) if first.isdecimal() and len(first) <= 3 else None


def shares_of(release: int | None, profile: str) -> Mapping[str, Share] | None:
    """What a built-in profile gives each class in that release; None if that is not known."""
    best_effort = _BEST_EFFORT.get(release, {}).get(profile) if release is not None else None
    if best_effort is None:
        return None
    client, recovery = _CLIENTS_AND_RECOVERY[profile]
    return {CLIENT: client, RECOVERY: recovery, BEST_EFFORT: best_effort}


def release_independent_shares(profile: str) -> Mapping[str, Share]:
    """What a profile gives clients and recovery, in each release of the bandwidth model."""
    return dict(zip((CLIENT, RECOVERY), _CLIENTS_AND_RECOVERY[profile], strict=True))


def release_that_gives(
    profile: str, bounds: Mapping[str, tuple[float | None, float]]
) -> int | None:
    """The release whose profile of that name gives these reservations and limits, by class; None
    if none does. A later release with the same values counts as the first with them."""
    for release in _BEST_EFFORT:
        shares = shares_of(release, profile) or {}
        if shares and all(
            bounds.get(cls, (None, 0.0)) == (share.reservation, share.limit)
            for cls, share in shares.items()
        ):
            return release
    return None
