"""URLs that a user gives: what of them may be shown."""

import re
from typing import Final

# A password may hold every character that a URL should not hold.
_BEFORE_HOST: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)


def without_password(url: str) -> str:
    """For messages: nothing of what stands before the last @, apart from the scheme.

    >>> without_password("http://me:sec/ret@host:9090/x")
    'http://host:9090/x'
    """
    return _BEFORE_HOST.sub(lambda found: found[1] or "", url, count=1)
