"""What real clusters and their programs once answered, and from which releases."""

import gzip
from pathlib import Path
from typing import Any, Final

from cephqos_loadgen.engines.fio_output import JsonStream

RELEASES: Final = ("pacific", "reef", "tentacle")
RECORDINGS: Final = Path(__file__).parent / "recordings"
CRIMSON: Final = RECORDINGS / "crimson"
# A run of a real cluster, in the format that is written today.
(ARCHIVE,) = (RECORDINGS / "archive" / "format-1").iterdir()


def client_output(release: str, name: str) -> bytes:
    """What fio or rados bench of a release printed."""
    return gzip.decompress((RECORDINGS / "clients" / release / f"{name}.out.gz").read_bytes())


def documents(output: bytes) -> list[dict[str, Any]]:
    """Those that a fio printed, also where the last newline is missing."""
    return JsonStream().feed(output + b"\n")
