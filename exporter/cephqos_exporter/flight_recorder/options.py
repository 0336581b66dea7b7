"""Options of the recorder."""

from typing import Any, Final

from cephqos_exporter.config import Option, integer, number, text, texts

MINUTES = number(
    "recorder.minutes",
    0.0,
    "Record the metrics pages of the last minutes on disk. 0: off.",
    least=0,
    most=120,
    unit="minutes",
)
PATH = text(
    "recorder.path",
    "/var/lib/cephqos-exporter",
    "Directory of what is recorded. Each exporter needs its own.",
    allowed="an absolute path",
)
MEGABYTES = integer(
    "recorder.megabytes",
    500,
    "Size of all that is recorded, at most. A quarter is for the last minutes, the rest for kept "
    "pieces. When these are full, nothing more is kept until you remove some.",
    least=10,
    most=1_000_000,
)
FORWARD = texts(
    "recorder.forward",
    (),
    "Other exporters that keep a piece when an alert or a user tells this one to; repeat for more "
    "than one. A name stands for all its addresses. They need the same web configuration.",
    allowed="addresses such as osd1:10130; only with recorder.minutes",
)
HOST = text(
    "recorder.host",
    "",
    "What recorded pieces say of where they are from. Empty: the name of the host.",
    allowed="the name of a host",
)

OPTIONS: Final[tuple[Option[Any], ...]] = (MINUTES, PATH, MEGABYTES, FORWARD, HOST)
