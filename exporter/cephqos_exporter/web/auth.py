"""Basic authentication with bcrypt hashes, and the limit of all requests.

A check with bcrypt takes 70 ms or more of a core. So checks are made one at a time, and a password
that was right is remembered: wrong ones do not make it be checked again.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping

from cephqos_exporter.web.config import RateLimit


class BasicAuth:
    """Checks credentials."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = dict(users)
        # What is checked for a user that does not exist, so that the time does not tell.
        self._decoy = next(iter(users.values()), "")
        self._good: set[bytes] = set()  # at most one for each user
        self._salt = secrets.token_bytes(16)  # so that remembered keys show nothing of passwords
        self._one_check = asyncio.Lock()  # in the order of waiting

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
        if key in self._good:
            return True
        async with self._one_check:
            if key in self._good:  # another request added it
                return True
            matches = await asyncio.to_thread(_matches, password, hashed or self._decoy)
        if hashed is None or not matches:
            return False
        self._good.add(key)
        return True


def _matches(password: bytes, hashed: str) -> bool:
    import bcrypt

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
