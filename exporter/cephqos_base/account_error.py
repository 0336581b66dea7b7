"""By how many points a share of the account was off at most, when shares were compared with records
of all operations (docs/internals/account.md)."""

from typing import Final

POINTS: Final = 3
BESIDE_RECOVERY: Final = 13
ERASURE_CODED: Final = 14  # in a cluster that has erasure-coded pools
