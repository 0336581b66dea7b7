"""Basic authentication with bcrypt hashes, and the rate limits.

bcrypt takes 70 ms or more of a core, so guesses also take CPU time from all others. So a password
that was right is remembered, and failed logins do not evict it. Failures are limited by address.
Checks are made one at a time, and each address has one check waiting at most.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import bcrypt

from cephqos_exporter.web.config import RateLimit
from cephqos_exporter.web.network import network_of

# Failures of one address: 20 at once, then one each second.
FAILURES: Final = RateLimit(interval=1.0, burst=20)
_MOST_ADDRESSES: Final = 10_000  # that are remembered
_MOST_BAD: Final = 100  # wrong credentials that are remembered
_LEAST_COST: Final = 4
_SALT: Final = "QOauhQNbBCuQDKes6eFzPe"  # of hashes that only take time


class TooManyFailures(Exception):
    """Credentials that are not known to be right came too fast to be checked."""


class BasicAuth:
    """Checks credentials. `limit`: of failures, for each address."""

    def __init__(
        self,
        users: Mapping[str, str],
        limit: RateLimit = FAILURES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._users = dict(users)
        self._cost = max((_cost(hashed) for hashed in users.values()), default=_LEAST_COST)
        self._good: set[bytes] = set()  # at most one for each user
        self._bad: OrderedDict[bytes, None] = OrderedDict()  # the latest wrong ones
        self._salt = secrets.token_bytes(16)  # so that remembered keys show nothing of passwords
        self._limit = limit if limit.interval else FAILURES
        self._clock = clock
        self._guessers: OrderedDict[str, _Guesser] = OrderedDict()
        self._one_check = asyncio.Lock()  # in the order of waiting

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
        guesser = self._guesser(network_of(address))
        if not guesser.limiter.allows():
            raise TooManyFailures
        async with guesser.turn, self._one_check:
            if key in self._good:  # another request added it
                return True
            good = await asyncio.to_thread(_check, password, hashed, self._cost)
        if good:
            self._good.add(key)
            guesser.limiter.give_back()
        else:
            self._bad[key] = None
            if len(self._bad) > _MOST_BAD:
                self._bad.popitem(last=False)
        return good

    def _guesser(self, network: str) -> "_Guesser":
        guesser = self._guessers.setdefault(
            network, _Guesser(RateLimiter(self._limit, self._clock))
        )
        self._guessers.move_to_end(network)
        if len(self._guessers) > _MOST_ADDRESSES:
            self._guessers.popitem(last=False)
        return guesser


def _check(password: bytes, hashed: str | None, cost: int) -> bool:
    """Whether the password is right.

    If not, it takes as long for every user, and for one that does not exist: the time of the
    highest `cost`, so that it does not show which users there are.
    """
    if hashed is None:
        costs: Iterable[int] = [cost]
    elif _matches(password, hashed):
        return True
    else:
        # A cost is the logarithm of the work: after 4, the costs 4, 5 … 9 make it the work of 10.
        costs = range(_cost(hashed), cost)
    for missing in costs:
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


class _Guesser:
    """The failures of one network, which has one check at a time."""

    def __init__(self, limiter: RateLimiter) -> None:
        self.limiter = limiter
        self.turn = asyncio.Lock()
