"""The label of a site, such as `k8s_cluster`: one more name for where a series comes from.

An FSID tells clusters apart. A name such as Rook's namespace may be the same at two sites; then a
label that the scrape jobs add does. Rules keep that label (`keep`), and commands choose a site by
it (`only`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cephqos_base.errors import UsageError

LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# What grouped or matched by one of these must not cross sites.
_PLACES: Final = frozenset(("cluster", "instance", "host"))
_GROUPING: Final = re.compile(r"\b(by|on) ?\(([^()]*)\)")
STRING: Final = r'"(?:[^"\\]|\\.)*"|`[^`]*`'
# What is no selector first, so that the last two alternatives find selectors only.
_TOKEN: Final = re.compile(
    rf"""{STRING} | \#.* | \[[^\]]*\] | \$\w+ | \$\{{[^}}]*\}}\w* | \b\d[\w.]*
    | \b(?:by|on|without|ignoring|group_left|group_right)\s*\([^()]*\)
    | \b(?:and|or|unless|offset|bool|atan2|group_left|group_right|inf|nan)\b
    | [a-zA-Z_]\w*(?=\s*\(|\s+by\b|\s+without\b)
    | (?P<name>[a-zA-Z_:][\w:]*)?\{{(?P<matchers>(?:{STRING}|[^"`}}])*)\}}
    | (?P<bare>[a-zA-Z_:][\w:]*)""",
    re.VERBOSE | re.IGNORECASE,
)


def keep(expr: str, labels: Sequence[str]) -> str:
    """The expression, which groups and matches by these labels too, wherever it does by a place."""

    def kept(match: re.Match[str]) -> str:
        named = [name.strip() for name in match[2].split(",")]
        if not _PLACES & set(named):
            return match[0]
        return f"{match[1]} ({', '.join(dict.fromkeys([*named, *labels]))})"

    return _GROUPING.sub(kept, expr) if labels else expr


def only(expr: str, site: Mapping[str, str]) -> str:
    """The expression, which reads series of this site only."""
    matchers = ",".join(f"{label}={_quoted(value)}" for label, value in site.items())

    def selected(match: re.Match[str]) -> str:
        if match["bare"]:
            return f"{match['bare']}{{{matchers}}}"
        if match["matchers"] is not None:
            own = match["matchers"].strip().removesuffix(",")
            return f"{match['name'] or ''}{{{','.join(filter(None, (own, matchers)))}}}"
        return match[0]

    return _TOKEN.sub(selected, expr) if matchers else expr


def parse_site(given: Iterable[str], option: str = "--site") -> dict[str, str]:
    """Labels and values of `NAME=VALUE`."""
    site = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not value or not LABEL.fullmatch(name):
            raise UsageError(f"{option} {text}: expected NAME=VALUE, such as k8s_cluster=prod-eu")
        site[name] = value
    return site


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
