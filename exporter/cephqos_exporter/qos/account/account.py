"""The account of one OSD: seconds by place.

The whole is exact: what Ceph counts as the latency of completed client operations (`op_latency`).
So is its first division: before an operation was taken from the queue, and after
(`op_process_latency`). Each of the two is divided by what the counters gained in the last minute or
so. So the shares add up to the whole, whatever the counters say. What has no evidence is `unknown`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cephqos_exporter.qos.account.division import Division
from cephqos_exporter.qos.account.samples import WaitSamples
from cephqos_exporter.qos.account.sums import Evidence, Shares, State, Sums
from cephqos_exporter.qos.waits import SampledOperations

_HALF_LIFE_SECONDS: Final = 30.0
# The places that an account has from its beginning; the others come when they are seen.
_CLIENT: Final = tuple((s, "") for s in State if s not in (State.QUEUE, State.REPLICA))
_REPLICA: Final = (
    *((State.QUEUE, ""), (State.CPU, ""), (State.STORE_THROTTLE, ""), (State.STORE_DEVICE, "")),
    *((State.STORE_COMMIT, ""), (State.STORE_CPU, ""), (State.UNKNOWN, "")),
)


@dataclass(slots=True)
class Account:
    """Follows one OSD; `client` and `replica` are seconds by place since the first look."""

    client: Shares = field(default_factory=lambda: dict.fromkeys(_CLIENT, 0.0))
    replica: Shares = field(default_factory=lambda: dict.fromkeys(_REPLICA, 0.0))
    excess: float = 0.0  # seconds by which parts went beyond their whole, and were cut
    begun: bool = False  # whether anything was divided
    _last: Sums | None = None
    _time: float = 0.0
    _recent: Sums = field(default_factory=Sums)
    _samples: WaitSamples = field(default_factory=WaitSamples)

    def sample(self, operations: Iterable[SampledOperations]) -> None:
        """Take in a sample of operations."""
        for peer in self._samples.add(operations):
            self.client.pop((State.REPLICA, peer), None)

    def advance(self, sums: Sums, now: float, evidence: Evidence) -> None:
        """Divide what was gained since the last time."""
        last, seconds = self._last, now - self._time
        self._last, self._time = sums, now
        if last is None or seconds <= 0:
            return
        self.begun = True
        gain = sums.gained_since(last)
        self._recent = recent = self._recent.then(gain, kept=0.5 ** (seconds / _HALF_LIFE_SECONDS))
        self._samples.fade(seconds)
        if not gain.latency and not gain.replica:
            return
        before = max(gain.latency - gain.process, 0.0)
        division = Division(recent, evidence, self._samples)
        _spend(self.client, before, division.before_dequeue())
        _spend(self.client, gain.latency - before, division.after_dequeue())
        _spend(self.replica, gain.replica, division.of_replica_writes())
        if recent.latency > 0:
            self.excess += gain.latency * division.excess / recent.latency


def _spend(account: Shares, seconds: float, shares: Shares) -> None:
    """Divide seconds by shares; without any, it is not known where they went."""
    whole = sum(shares.values())
    if whole <= 0:
        shares, whole = {(State.UNKNOWN, ""): 1.0}, 1.0
    for place, share in shares.items():
        if share > 0:
            account[place] = account.get(place, 0.0) + seconds * share / whole
