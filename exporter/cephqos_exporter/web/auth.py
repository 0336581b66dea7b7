"""Basic authentication with bcrypt hashes, and the rate limit."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

import bcrypt

from cephqos_exporter.web.config import RateLimit

_CACHED: Final = 100
# Hashed for users that do not exist, so that the time taken does not tell which ones do.
_NOBODY: Final = "$2b$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"


class BasicAuth:
    """Checks credentials; remembers a good or bad outcome, because bcrypt takes 70 ms."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = dict(users)
        self._known: OrderedDict[bytes, bool] = OrderedDict()
        self._salt = secrets.token_bytes(16)  # what is remembered tells nothing about passwords
        self._lock = asyncio.Lock()  # one bcrypt at a time: a flood must not take every core

    async def allows(self, header: str | None) -> bool:
        """Whether an Authorization header names a user and that user's password."""
        credentials = _decode(header)
        if credentials is None:
            return False
        user, password = credentials
        hashed = self._users.get(user)
        key = hashlib.blake2b(
            b"\0".join((user.encode(), (hashed or "").encode(), password)), key=self._salt
        ).digest()
        if key not in self._known:
            async with self._lock:
                good = await asyncio.to_thread(_matches, password, hashed or _NOBODY)
            self._known[key] = good and hashed is not None
            if len(self._known) > _CACHED:
                self._known.popitem(last=False)
        return self._known[key]


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
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
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
