"""What a check of Ceph's health means that no figure shows, by a pattern of its names."""

from collections.abc import Mapping
from typing import Final

from cephqos_alerts.rules.template import only_if

MEANINGS: Final[Mapping[str, str]] = {
    "DEVICE_HEALTH.*": "A device says of itself that it will fail.",
    "OSD_TOO_MANY_REPAIRS": "Reads of an OSD failed often, and other copies repaired them.",
    "BLUESTORE_SPURIOUS_READ_ERRORS": "The kernel returned bad data, and the next try was right.",
    ".*_DEVICE_STALLED_READ_ALERT": "Reads of a device stalled lately.",
    "HARDWARE_.*": "A host reports a part that fails.",
    "PG_BACKFILL_FULL|PG_RECOVERY_FULL": "Copies have no room where they belong.",
    "OSD_OUT_OF_ORDER_FULL": "A limit of fullness is above the next one.",
    "OSD_UNREACHABLE": "An OSD's address is in no network of public_network.",
    "SMALLER_PGP_NUM": "A pool was split, and its new groups do not move.",
    "TOO_MANY_PGS": "OSDs have more placement groups than they should.",
    "MON_NETSPLIT": "Monitors do not reach one another, though both are up.",
    "MDS_INSUFFICIENT_STANDBY": "No MDS waits to take over.",
    "DAEMON_OLD_VERSION": "Daemons have run different releases for long: an upgrade stands still.",
    "UPGRADE_.*": "cephadm stopped an upgrade.",
    "CEPHADM_FAILED_DAEMON": "A daemon of cephadm does not run.",
    "CEPHADM_PAUSED": "cephadm starts and replaces nothing.",
    "CEPHADM_HOST_CHECK_FAILED|CEPHADM_REFRESH_FAILED": "cephadm cannot work on a host.",
    "CEPHADM_DAEMON_PLACE_FAIL|CEPHADM_APPLY_SPEC_FAIL": "cephadm cannot place a service.",
    # While no object is degraded, and no OSD is down.
    "PG_DEGRADED": "Placement groups lack a copy. Perhaps CRUSH finds no OSD for it.",
    "SLOW_OPS": "Operations wait for very long, on daemons that `ceph health detail` names.",
}
WHAT_IT_MEANS: Final = "".join(
    only_if(f'match "^(?:{pattern})$" $labels.check', f" {meaning}")
    for pattern, meaning in MEANINGS.items()
)
