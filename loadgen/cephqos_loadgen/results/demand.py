"""When a class wants more than it gets: the bounds of the rules of alerts. A test compares them."""

from typing import Final

# Of clients: operations in every sample, operations that wait on average, transactions in the store
# on average, and how long each of them takes. A disk takes long for being a disk.
PRESENT: Final = 2
WAITING: Final = 1.0
IN_STORE: Final = 8.0
STORE_LATENCY: Final = {"hdd": 0.05, "ssd": 0.005}
# Of any class: what it attains of its reservation, and how far its queue is behind.
SHORTFALL: Final = 0.9
LAG_SECONDS: Final = 0.25
