"""Parts of an alert's text in Go's template language, which Prometheus fills in.

    when(query("up{instance=%q}", "$labels.instance"), " It is scraped.") ->
    {{ with printf "up{instance=%q}" $labels.instance | query }} It is scraped.{{ end }}

A value is written as in Go: `$labels.cluster`, `.Labels.by`, `. | first | value`.
"""

from collections.abc import Sequence

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
