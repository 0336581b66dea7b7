"""URLs that a user gives: what of them may be shown, and what may not stand in them."""

import re
from typing import Final

from cephqos_base.errors import UsageError

# A password may hold every character that a URL should not hold.
_BEFORE_HOST: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)


def without_password(url: str) -> str:
    """For messages: nothing of what stands before the last @, apart from the scheme.

    >>> without_password("http://me:sec/ret@host:9090/x")
    'http://host:9090/x'
    """
    return _BEFORE_HOST.sub(lambda match: match[1] or "", url, count=1)


def check_url(option: str, url: str, instead: str, port: int = 9090) -> None:
    """UsageError for what is no URL of a server, or may contain a user or password.

    Every user of a host sees arguments, and all readers of a file see what is written into it.
    `instead`: where a password goes. An error shows an example with `port`.

    >>> check_url("--loki", "http://host:3100", "")
    """
    if "@" in url:
        raise UsageError(f"{option}: found a user or password before @; {instead}")
    if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url):
        raise UsageError(f"{option} {url}: expected a URL such as http://host:{port}")
