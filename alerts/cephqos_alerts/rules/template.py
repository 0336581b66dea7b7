"""Parts of an alert's text in Go's template language, which Prometheus fills in.

    when(query('up{instance="%s"}', "$labels.instance"), " It is scraped.")

A value is written as Go has it: `$labels.cluster`, `.Labels.by`, `. | first | value`.
"""

ITSELF = "{{ . }}"


def show(value: str) -> str:
    return f"{{{{ {value} }}}}"


def query(expr: str, *values: str) -> str:
    """What Prometheus finds. Each %s of the expression is the next value, %[1]s is the first."""
    escaped = expr.replace('"', '\\"')
    return f'printf "{escaped}"{"".join(f" {value}" for value in values)} | query'


def when(value: str, text: str, otherwise: str = "") -> str:
    """The text, in which `.` is the value; the other one where there is none."""
    instead = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f"{{{{ with {value} }}}}{text}{instead}{{{{ end }}}}"


def each(value: str, text: str) -> str:
    """The text for each of many, in which `.` is one of them."""
    return f"{{{{ range {value} }}}}{text}{{{{ end }}}}"


def only_if(condition: str, text: str, otherwise: str = "") -> str:
    instead = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return f"{{{{ if {condition} }}}}{text}{instead}{{{{ end }}}}"
