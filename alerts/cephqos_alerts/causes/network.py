"""The writes of an OSD's clients wait for a slow network."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, as_by, ranked
from cephqos_alerts.recording.conditions import CPU_SHORT, DEVICE_FAILING, SLOW_LINK
from cephqos_alerts.recording.limited import OF_THREADS
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS

# Heartbeats are slow, and device and CPU of `by` are well: so it is the link. This ranks above
# other_osd without a reason that shows (65), and below an OSD that lacks CPU (68). If `by` is not
# well, the network may only look slow, and causes.NETWORK.rank (62) is below both.
_ONLY_NETWORK_RANK: Final = 67

# An OSD whose threads a limit stops answers heartbeats late on any network.
_STOPPED: Final = as_by(
    f'max by ({OSD}) (max_over_time({PerOsd.CPU_DENIED}{{by=~"{OF_THREADS}"}}[@sustained@]))'
)
# Engines that show a series for minutes after its last sample may have two worst peers.
_ONE_LINK: Final = f"topk by ({OSD}) (1, {SLOW_LINK})"
# Classes whose writes are away on a slow link; `by` is the peer, or the OSD itself.
_WAITS_FOR_LINK: Final = f"""
group by ({OSD_CLASS}, by) (
  label_replace(
    {PerClass.AWAY} * on ({OSD}) group_left (peer) {_ONE_LINK},
    "by", "$1", "peer", "(.+)"
  )
)
unless on (cluster, by) {_STOPPED}
""".strip()
_SICK: Final = as_by(f"({DEVICE_FAILING} or {CPU_SHORT})")

NETWORK: Final = CauseEvidence(
    cause=causes.NETWORK,
    by=True,
    means="Writes wait for the network between this OSD and others.",
    seen=f"as {causes.OTHER_OSD}, and heartbeats to `by` take longer than the bound, and no"
    " limit stops `by`. It is the OSD itself if more of its peers are slow than of the"
    " peer's: suspect its own link",
    blind="heartbeat times are averages of a minute, so CephQosReplicaSlow comes first",
    other_ranks=f"{_ONLY_NETWORK_RANK} where device and CPU of `by` are well",
    expr=f"{ranked(f'{_WAITS_FOR_LINK} unless on (cluster, by) {_SICK}', _ONLY_NETWORK_RANK)}"
    f"\nor {ranked(_WAITS_FOR_LINK, causes.NETWORK.rank)}",
)
