"""What the built-in profiles of mClock reserve where the OSD's options do not say it.

Up to 20.2 a built-in profile writes its values into the options. From 21.x on it sets the
scheduler alone: the options stay 0, or what a custom profile left there, and have no effect.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cephqos_base.series import BEST_EFFORT, CLIENT, RECOVERY

PROFILE_OPTION: Final = "osd_mclock_profile"


class Share(NamedTuple):
    """What a class is given, as shares of the capacity; `limit` 0 is none, None is not known."""

    reservation: float | None
    weight: float | None
    limit: float


# By the first number of the release, then by profile. A release that is not here is not guessed.
# The sources of 21.x reserve nothing for best effort, a later discussion of them says 5 %: its
# reservation and weight are not known.
_BUILT_IN: Final[Mapping[int, Mapping[str, Mapping[str, Share]]]] = {
    21: {
        "balanced": {
            CLIENT: Share(0.5, 1, 0),
            RECOVERY: Share(0.5, 1, 0),
            BEST_EFFORT: Share(None, None, 0.9),
        },
        "high_client_ops": {
            CLIENT: Share(0.6, 2, 0),
            RECOVERY: Share(0.4, 1, 0),
            BEST_EFFORT: Share(None, None, 0.7),
        },
        "high_recovery_ops": {
            CLIENT: Share(0.3, 1, 0),
            RECOVERY: Share(0.7, 2, 0),
            BEST_EFFORT: Share(None, None, 0),
        },
    },
}


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
    return _BUILT_IN.get(release, {}).get(profile) if release is not None else None
