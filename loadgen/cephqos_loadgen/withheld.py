"""Values of options that must not reach an archive: archives are passed on.

Managers' modules keep passwords and tokens among Ceph's options, and `config dump` shows them.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

WITHHELD: Final = "(not recorded: it may be a secret)"

_SECRET: Final = re.compile(r"pass(word|wd|phrase)?$|secret$|token$|credentials?$")
# Options with `key` in their name are secrets, unless their value is plain: a number, or yes or no.
_KEY: Final = re.compile(r"(api)?keys?$")
_PLAIN: Final = re.compile(r"[-+]?[0-9.]*[A-Za-z%]?|true|false|yes|no", re.IGNORECASE)
_USER_IN_URL: Final = re.compile(r"://[^/\s\"]*@")
# What modules of the manager keep in structures may hold anything.
_STRUCTURE: Final = re.compile(r"[{\[\"]")


def recorded(name: str, value: Any) -> Any:
    """The value as it may be recorded."""
    text = value if isinstance(value, str) else ""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    is_secret = any(_SECRET.search(word) for word in words)
    is_key = any(_KEY.fullmatch(word) for word in words) and not _PLAIN.fullmatch(text)
    is_structure = name.startswith("mgr/") and _STRUCTURE.search(text)
    if value and (is_secret or is_key or is_structure):
        return WITHHELD
    return _USER_IN_URL.sub("://(not recorded)@", text) if text else value


def dump(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A `config dump` as it may be recorded."""
    return [entry | {"value": recorded(entry["name"], entry.get("value"))} for entry in entries]


def diff(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a `config diff` as they may be recorded, each with its value by source."""
    diff: dict[str, Any] = {}
    for name, values in options.items():
        if isinstance(values, dict):
            diff[name] = {source: recorded(name, value) for source, value in values.items()}
        else:
            diff[name] = recorded(name, values)
    return diff


def conf(text: str) -> str:
    """A ceph.conf as it may be recorded."""
    lines = []
    goes_on = False  # a withheld value, on the line after a backslash
    for line in text.splitlines():
        body = line.lstrip("#; \t")  # what is commented out may still be in use elsewhere
        name, equals, value = body.partition("=")
        if goes_on:
            goes_on = line.endswith("\\")
        elif equals and not name.startswith("["):
            value = value.strip()
            shown = recorded("_".join(name.split()), value)
            goes_on = shown == WITHHELD and line.endswith("\\")
            comment = line.removesuffix(body)
            lines.append(line if shown == value else f"{comment}{name.rstrip()} = {shown}")
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
