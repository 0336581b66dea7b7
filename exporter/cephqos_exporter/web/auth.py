"""Basic authentication with bcrypt hashes, and the rate limits.

bcrypt takes 70 ms or more of a core, so guessing is also an attack on the time of all others.
Hence: what was right is remembered and costs nothing again, whatever else is tried meanwhile; who
guesses is held up by address; checks are made one at a time, the addresses in turn.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Final

import bcrypt

from cephqos_exporter.web.config import RateLimit
from cephqos_exporter.web.network import network_of

# Failures of one address: so many at once, then one each second.
FAILURES: Final = RateLimit(interval=1.0, burst=20)
_ADDRESSES: Final = 10_000  # that are remembered
_BAD: Final = 100
_WAITING: Final = 64  # checks, over all addresses
_LEAST_COST: Final = 4
_SALT: Final = "QOauhQNbBCuQDKes6eFzPe"


class TooManyFailures(Exception):
    """Credentials that are not known to be right came too fast to be checked."""


class BasicAuth:
    """Checks credentials; `limit` is for what fails, of each address."""

    def __init__(
        self,
        users: Mapping[str, str],
        limit: RateLimit = FAILURES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._users = dict(users)
        self._cost = max((_cost(hashed) for hashed in users.values()), default=_LEAST_COST)
        self._good: set[bytes] = set()  # at most one for each user
        self._bad: OrderedDict[bytes, None] = OrderedDict()  # tried again and again
        self._salt = secrets.token_bytes(16)  # what is remembered tells nothing about passwords
        self._limits = RateLimiters(limit if limit.interval else FAILURES, clock)
        self._turns = _Turns()

    async def allows(self, header: str | None, address: str = "") -> bool:
        """Whether an Authorization header names a user and that user's password.

        TooManyFailures if it would have to be checked, and its address has failed too often.
        """
        credentials = _decode(header)
        if credentials is None:
            return False
        user, password = credentials
        hashed = self._users.get(user)
        key = hashlib.blake2b(
            b"\0".join((user.encode(), (hashed or "").encode(), password)), key=self._salt
        ).digest()
        if key in self._good:
            return True
        if key in self._bad:
            return False
        network = network_of(address)
        limiter = self._limits.of(network)
        if not limiter.allows() or not self._turns.room_for(network):
            raise TooManyFailures
        async with self._turns.of(network):
            if key in self._good:  # by another request meanwhile
                return True
            good = await asyncio.to_thread(_check, password, hashed, self._cost)
        if good:
            self._good.add(key)
            limiter.give_back()
        else:
            self._bad[key] = None
            if len(self._bad) > _BAD:
                self._bad.popitem(last=False)
        return good


class _Turns:
    """One at a time, the addresses in turn: a flood from one of them delays others by one check."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._taken = False

    def of(self, address: str) -> "_Turn":
        return _Turn(self, address)

    def room_for(self, address: str) -> bool:
        """Whether one more may wait. The address that has most waiting gives up its last place."""
        if sum(map(len, self._queues.values())) < _WAITING:
            return True
        longest = max(self._queues.values(), key=len)
        if len(longest) < len(self._queues.get(address, ())) + 2:
            return False
        last = longest.pop()
        if not last.done():
            last.set_exception(TooManyFailures())
        return True

    async def take(self, address: str) -> None:
        if not self._taken:
            self._taken = True
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(address, deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and not future.exception():
                self.give()  # it was ours already
            raise

    def give(self) -> None:
        while self._queues:
            address, queue = self._queues.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._queues[address] = queue  # behind all others
            if not future.done():
                future.set_result(None)
                return
        self._taken = False


class _Turn:
    def __init__(self, turns: _Turns, address: str) -> None:
        self._turns = turns
        self._address = address

    async def __aenter__(self) -> None:
        await self._turns.take(self._address)

    async def __aexit__(self, *_: object) -> None:
        self._turns.give()


def _check(password: bytes, hashed: str | None, cost: int) -> bool:
    """Whether it is the password; if not, this takes as long for every user, and for none."""
    if hashed is not None and _matches(password, hashed):
        return True
    # A cost is the logarithm of the work: 4, 5, 6 … 9 make up for what 4 lacks of 10.
    for missing in range(_cost(hashed), cost) if hashed is not None else [cost]:
        bcrypt.hashpw(password[:72], f"$2b${missing:02}${_SALT}".encode())
    return False


def _cost(hashed: str) -> int:
    return int(hashed.split("$")[2])


def _matches(password: bytes, hashed: str) -> bool:
    # bcrypt looks at 72 bytes; newer versions of the library refuse more instead of cutting.
    # PHP and htpasswd write 2y, the library knows the same thing as 2b.
    encoded = hashed.encode()
    if encoded.startswith(b"$2y$"):
        encoded = b"$2b$" + encoded[4:]
    try:
        return hmac.compare_digest(bcrypt.hashpw(password[:72], encoded), encoded)
    except ValueError:
        return False


def _decode(header: str | None) -> tuple[str, bytes] | None:
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True)
        if b"\0" in decoded:  # which no password has, and bcrypt before 4 fails on
            return None
        user, colon, password = decoded.partition(b":")
        return (user.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None


class RateLimiters:
    """One for each network, as many as are remembered."""

    def __init__(self, limit: RateLimit, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._found: OrderedDict[str, RateLimiter] = OrderedDict()

    def of(self, network: str) -> "RateLimiter":
        found = self._found.setdefault(network, RateLimiter(self._limit, self._clock))
        self._found.move_to_end(network)
        if len(self._found) > _ADDRESSES:
            self._found.popitem(last=False)
        return found


class RateLimiter:
    """A token bucket over all requests."""

    def __init__(self, limit: RateLimit, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._tokens = float(limit.burst)
        self._updated = clock()

    def allows(self) -> bool:
        """Take a token if there is one. An interval of 0 switches the limit off."""
        if not self._limit.interval:
            return True
        now = self._clock()
        earned = (now - self._updated) / self._limit.interval
        self._tokens = min(float(self._limit.burst), self._tokens + earned)
        self._updated = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def give_back(self) -> None:
        """Undo the last `allows`."""
        self._tokens += 1
