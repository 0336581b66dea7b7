"""Few shards of the OSD have the work of the class."""

from typing import Final

from cephqos_alerts.causes.cause import CauseEvidence, ranked, share
from cephqos_base import causes
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_base.series import OSD, OSD_CLASS
from cephqos_base.thresholds import THRESHOLDS

# SHARDS_WITH_DEMAND is the share of the OSD's shards in whose queues the class had requests. That
# they are few proves nothing if work piles up behind the scheduler, which delays all shards, or if
# writes wait elsewhere (AWAY).
_FEW_SHARDS: Final = f"""
{PerClass.HAS_DEMAND}
  and on ({OSD_CLASS}) ({PerClass.SHARDS_WITH_DEMAND} <= @part@)
  and on ({OSD}) ({PerOsd.STORE_PILING_UP} == 0)
  unless on ({OSD_CLASS}) {PerClass.AWAY}
"""

ONE_SHARD: Final = CauseEvidence(
    cause=causes.ONE_SHARD,
    means="The work of the class goes to few shards of the OSD, as with one hot object.",
    seen=f"at most {share(THRESHOLDS.part)} of the shards had its requests in five minutes,"
    " nothing piles up behind them, and writes do not wait elsewhere",
    blind="releases without queue figures",
    expr=ranked(_FEW_SHARDS, causes.ONE_SHARD.rank),
)
