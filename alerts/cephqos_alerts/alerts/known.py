"""Templates of what is known of an OSD and class while an alert fires; else they are empty."""

from typing import Final

from cephqos_alerts.rules.text import host_of
from cephqos_base.recorded import PerClass


def known(series: str, text: str, *, of_class: bool = True) -> str:
    """Text with FIGURE, a figure of the same OSD and class; nothing where it is not known."""
    labels = ["cluster", "ceph_daemon", *(["class"] if of_class else [])]
    selector = ",".join(f'{label}=\\"%s\\"' for label in labels)
    arguments = " ".join(f"$labels.{label}" for label in labels)
    told = text.replace("FIGURE", ". | first | value")
    return f'{{{{ with printf "{series}{{{selector}}}" {arguments} | query }}}}{told}{{{{ end }}}}'


MAIN_CAUSE: Final = (
    f'{{{{ with printf "{PerClass.MAIN_CAUSE}{{cluster=\\"%s\\",ceph_daemon=\\"%s\\",'
    'class=\\"%s\\"}" $labels.cluster $labels.ceph_daemon $labels.class | query }}'
    '{{ with (. | first).Labels }}{{ if ne .cause "unknown" }} Likely cause: {{ .cause }}'
    "{{ with .by }} by {{ . }}{{ end }}.{{ end }}{{ end }}{{ end }}"
)
# Other causes that have lasted as well.
ALSO: Final = (
    f'{{{{ range printf "{PerClass.LASTING_EVIDENCE}{{cluster=\\"%s\\",'
    'ceph_daemon=\\"%s\\",class=\\"%s\\",cause!~\\"unknown|%s\\"}"'
    " $labels.cluster $labels.ceph_daemon $labels.class $labels.cause | query }}"
    " Also: {{ .Labels.cause }}{{ with .Labels.by }} by {{ . }}{{ end }}.{{ end }}"
)
BY: Final = "{{ with $labels.by }} by {{ . }}{{ end }}"
CAUSE: Final = (
    f'{{{{ if ne $labels.cause "unknown" }}}} (cause: {{{{ $labels.cause }}}}{BY}){{{{ end }}}}'
)
LIKELY: Final = (
    '{{ if ne $labels.cause "unknown" }} Likely cause: {{ $labels.cause }}'
    f"{BY}{host_of('by')}.{{{{ end }}}}"
)


def if_seen(series: str, text: str, otherwise: str, by: str = "") -> str:
    """One text or the other, by whether a series of the OSD is there, with this label `by`."""
    of_by = f',by=~\\"{by}\\"' if by else ""
    labels = f'{{cluster=\\"%s\\",ceph_daemon=\\"%s\\"{of_by}}}'
    of_it = f'printf "{series}{labels}" $labels.cluster $labels.ceph_daemon | query'
    return f"{{{{ with {of_it} }}}}{text}{{{{ else }}}}{otherwise}{{{{ end }}}}"
