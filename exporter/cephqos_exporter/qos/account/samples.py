"""Where sampled operations waited lately: for what Ceph does not count at all."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cephqos_exporter.qos import waits
from cephqos_exporter.qos.account.sums import Shares, State
from cephqos_exporter.qos.largest import Largest

_HALF_LIFE_SECONDS: Final = 60.0  # samples come every 10 to 33 s
NAMED_PEERS: Final = 3
_NO_PEER: Final = (waits.UNKNOWN_PEER,)
# Operations of one sample wait for the same batch of commits: a sample of many counts once, one of
# few for less. The mean commit of all transactions counts as much as ten samples. It is exact if
# all are alike; recovery's and clients' are not.
_FEW: Final = 4.0
_MEAN_COUNTS: Final = 10.0

# The places of sampled operations that are not counted, or that others are compared with.
_STATES: Final[Mapping[str, State]] = {
    waits.QUEUE: State.QUEUE,
    waits.BLOCKED: State.BLOCKED,
    waits.SUBOPS: State.REPLICA,
    waits.REPLY: State.REPLY,
    waits.UNKNOWN: State.UNKNOWN,
}


@dataclass(slots=True)
class WaitSamples:
    """Client operations of one OSD; samples of long ago count less."""

    seconds: Shares = field(default_factory=dict)
    # Of operations that left the queue: how many wait for the own commit, and for what comes later.
    _committing: float = 0.0
    _committed: float = 0.0
    _peers: Largest[str] = field(default_factory=lambda: Largest(NAMED_PEERS))

    def add(self, operations: Iterable[waits.SampledOperations]) -> Sequence[str]:
        """Take in a sample; the peers that are one with the others from now on."""
        sample: Shares = defaultdict(float)
        during = after = 0.0
        for those in operations:
            number, whole = len(those.descriptions), those.seconds
            for wait, seconds in those.spent if those.kind == waits.CLIENT else ():
                if seconds and wait.event == waits.COMMIT:
                    during += number * seconds / whole
                elif seconds and wait.event in (waits.SUBOPS, waits.REPLY):
                    after += number * seconds / whole
                if (state := _STATES.get(wait.event)) is not None:
                    peers = (wait.peers or _NO_PEER) if state is State.REPLICA else ("",)
                    for peer in peers:
                        sample[state, peer] += number * seconds / len(peers)
        self._committing += during / (during + after + _FEW)
        self._committed += after / (during + after + _FEW)
        named = {peer: s for (_, peer), s in sample.items() if peer not in ("", *_NO_PEER)}
        lost = self._peers.add(named)
        for peer in lost:
            self.seconds.pop((State.REPLICA, peer), None)
        for (state, peer), seconds in sample.items():
            place = state, peer if not peer or peer in self._peers.shown else waits.OTHER
            self.seconds[place] = self.seconds.get(place, 0.0) + seconds
        return lost

    def fade(self, seconds: float) -> None:
        """So much time has passed."""
        kept = 0.5 ** (seconds / _HALF_LIFE_SECONDS)
        self.seconds = {p: s * kept for p, s in self.seconds.items() if s * kept > 1e-6}
        self._committing *= kept
        self._committed *= kept

    def of(self, *states: State) -> Shares:
        """The seconds in these states."""
        return {place: s for place, s in self.seconds.items() if place[0] in states}

    def corrected_commit(self, mean: float, whole: float) -> float:
        """The own commit as its mean says, as far as samples do not say otherwise."""
        if not whole:
            return mean
        committing = _MEAN_COUNTS * mean / whole + self._committing
        return whole * committing / (_MEAN_COUNTS + self._committing + self._committed)
