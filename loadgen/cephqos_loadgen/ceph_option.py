"""One setting of Ceph, as scenarios, labs and the command line give it."""

import re
from dataclasses import dataclass

from cephqos_base.errors import UsageError


@dataclass(frozen=True, slots=True)
class CephOption:
    """`section` is global, osd, mon, mgr, client or a daemon such as osd.0.

    `optional`: left out where the release does not know it.
    """

    section: str
    name: str
    value: str
    optional: bool = False

    @classmethod
    def parse(cls, text: str) -> "CephOption":
        """From the text of `--set`."""
        match = re.fullmatch(r"([a-z0-9.]+):([A-Za-z0-9_ -]+)=(.*)", text)
        if not match:
            raise UsageError(
                f"--set {text!r}: expected section:option=value, as in osd:osd_max_backfills=2"
            )
        return cls(match[1], re.sub(r"[ -]", "_", match[2]), match[3])


def conf_line(name: str, value: str) -> str:
    """A line of ceph.conf; UsageError where the value would not stay on it as it is."""
    if not re.fullmatch(r"[A-Za-z0-9_]+", name):
        raise UsageError(f"ceph.conf: {name!r}: expected an option's name")
    if re.search(r"[\x00-\x1f\x7f#;\\]", value) or value != value.strip():
        raise UsageError(
            f"ceph.conf: {name} = {value!r}: expected a value of one line without # ; and \\"
        )
    return f"{name} = {value}"
