"""Parts of an alert's text in Go's template language, which Prometheus fills in.

    when(query("up{instance=%q}", "$labels.instance"), " It is scraped.") ->
    {{ with printf "up{instance=%q}" $labels.instance | query }} It is scraped.{{ end }}

A value is written as in Go: `$labels.cluster`, `.Labels.by`, `. | first | value`.
"""

import re
from collections.abc import Sequence
from typing import Final

from cephqos_base.site import keep

ITSELF = "{{ . }}"  # the value, in a text of `when` or `each`


def show(value: str) -> str:
    return f"{{{{ {value} }}}}"


def query(expr: str, *values: str) -> str:
    """The result of a PromQL query. Each %q in it is the next value, and %[1]q is the first.

    %q writes a text as PromQL reads it, with its quotes: names of pools, hosts and others may hold
    quotes and more. %v is for numbers.
    """
    escaped = expr.replace("\\", "\\\\").replace('"', '\\"')
    return f'printf "{escaped}"{"".join(f" {value}" for value in values)} | query'


def matchers(labels: Sequence[str]) -> str:
    """For a query with the values of these labels: cluster=%[1]q,class=%[2]q.

    %[1]q is the first value, wherever it stands: a query may have the matchers more than once.
    """
    return ",".join(f"{label}=%[{n}]q" for n, label in enumerate(labels, 1))


def when(value: str, text: str, otherwise: str = "") -> str:
    """The text, in which `.` is the value; the other text if the value is empty."""
    instead = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f"{{{{ with {value} }}}}{text}{instead}{{{{ end }}}}"


def each(value: str, text: str) -> str:
    """The text once for each element of the value. In the text, `.` is the element."""
    return f"{{{{ range {value} }}}}{text}{{{{ end }}}}"


def only_if(condition: str, text: str, otherwise: str = "") -> str:
    instead = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f"{{{{ if {condition} }}}}{text}{instead}{{{{ end }}}}"


# A query as `query` writes it: its text, and the values in it.
_QUERY: Final = re.compile(
    r'printf ("(?:[^"\\]|\\.)*")((?: (?:\([^()]*\)[^ ()|{}]*|[^ ()|{}]+))*) \| query'
)
# What says where a series is from, as a verb in such a text, and as its value.
_PLACE_VERB: Final = re.compile(r"\b(cluster|instance)=(%(?:\[\d+\])?)q")
_PLACE_VALUE: Final = re.compile(r"\$labels\.(?:cluster|instance)\b")


def of_site(text: str, labels: Sequence[str]) -> str:
    """The text, whose queries read series of the alert's site only, and group by it.

    Where the text of a query has `cluster=%q`, the value brings further matchers with it:
    `cluster=%v`, of "c1",k8s_cluster="prod-eu".
    """
    more = "".join(f",{label}=%q" for label in labels)
    values = "".join(f" $labels.{label}" for label in labels)

    def of_query(match: re.Match[str]) -> str:
        asked = keep(_PLACE_VERB.sub(r"\1=\2v", match[1]), labels)
        given = _PLACE_VALUE.sub(rf'(printf "%q{more}" \g<0>{values})', match[2])
        return f"printf {asked}{given} | query"

    return _QUERY.sub(of_query, text) if labels else text
