"""Values of options that must not reach an archive: archives are passed on.

Managers' modules keep passwords and tokens among Ceph's options, and `config dump` shows them.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

WITHHELD: Final = "(not recorded: it may be a secret)"

_SECRET: Final = re.compile(r"pass(word|wd|phrase)?$|secret$|token$|credentials?$")
# An option about keys of objects has a number; a key is none.
_KEY: Final = re.compile(r"(api)?keys?$")
_PLAIN: Final = re.compile(r"[-+]?[0-9.]*[A-Za-z%]?|true|false|yes|no", re.IGNORECASE)
_USER_IN_URL: Final = re.compile(r"://[^/\s\"]*@")
# What modules of the manager keep in structures may hold anything.
_STRUCTURE: Final = re.compile(r"[{\[\"]")


def recorded(name: str, value: Any) -> Any:
    """The value as it may be recorded."""
    text = value if isinstance(value, str) else ""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    secret = any(_SECRET.search(word) for word in words)
    key = any(_KEY.fullmatch(word) for word in words) and not _PLAIN.fullmatch(text)
    module = name.startswith("mgr/") and _STRUCTURE.search(text)
    if value and (secret or key or module):
        return WITHHELD
    return _USER_IN_URL.sub("://(not recorded)@", text) if text else value


def dump(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A `config dump` as it may be recorded."""
    return [entry | {"value": recorded(entry["name"], entry.get("value"))} for entry in entries]


def diff(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a `config diff`, each with its values by where they come from."""
    return {
        name: (
            {where: recorded(name, value) for where, value in values.items()}
            if isinstance(values, dict)
            else recorded(name, values)
        )
        for name, values in options.items()
    }


def conf(text: str) -> str:
    """A ceph.conf as it may be recorded."""
    lines = []
    goes_on = False  # a withheld value, behind a backslash
    for line in text.splitlines():
        body = line.lstrip("#; \t")  # what is commented out may still be in use elsewhere
        name, equals, value = body.partition("=")
        if goes_on:
            goes_on = line.endswith("\\")
        elif equals and not name.startswith("["):
            kept = recorded("_".join(name.split()), value.strip())
            goes_on = kept == WITHHELD and line.endswith("\\")
            before = line.removesuffix(body)
            lines.append(line if kept == value.strip() else f"{before}{name.rstrip()} = {kept}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
