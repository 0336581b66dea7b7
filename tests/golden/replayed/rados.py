"""Stands for Ceph's rados module: answers with the recorded replies of one cluster.

REPLAY names a directory with a folder of replies for each moment; in REPLAY_STATE the file `now`
says which moment it is, and `asked` is the log of what was asked. Options are such that what is due
does not depend on the day: all placement groups are overdue for a shallow scrub, none for a deep
one. Recorded scrubs are as of 2020, also where the clock is behind.
"""

import json
import os
import re
from pathlib import Path

REPLIES, STATE = Path(os.environ["REPLAY"]), Path(os.environ["REPLAY_STATE"])
OPTIONS = {
    "osd_scrub_min_interval": 1.0,
    "osd_scrub_max_interval": 2.0,
    "osd_deep_scrub_interval": 1e10,
    "mon_warn_pg_not_scrubbed_ratio": 0.5,
    "mon_warn_pg_not_deep_scrubbed_ratio": 0.75,
}
FILES = {
    "status": "status",
    "osd dump": "osd_dump",
    "osd tree": "osd_tree",
    "pg ls": "scrubbing",
}
DUMPS = {"pools": "pools", "pgs_brief": "brief", "osds": "osd_use"}


class Rados:
    """As much of a cluster as the exporter's child asks for."""

    def __init__(self, conffile: str, name: str, conf: dict[str, str]) -> None:
        self._name = name

    def connect(self, timeout: int) -> None:
        """There is nothing to connect to."""

    def mon_command(self, command: str, data: bytes) -> tuple[int, bytes, str]:
        asked = json.loads(command)
        with (STATE / "asked").open("a") as log:
            log.write(f"{self._name} {asked['prefix']}\n")
        if asked["prefix"] == "config get":
            return 0, json.dumps(OPTIONS[asked["key"]]).encode(), ""
        moment = REPLIES / (STATE / "now").read_text()
        if _file(asked) in ("osd_tree", "osd_use"):
            moment = REPLIES / "idle"
        if asked["prefix"] == "pg ls-by-primary":
            return 0, _of_primary(asked["osd"], moment), ""
        return 0, _long_ago((moment / f"{_file(asked)}.json").read_bytes()), ""

    mgr_command = mon_command


def _file(asked: dict[str, object]) -> str:
    if asked["prefix"] == "pg dump":
        return DUMPS[asked["dumpcontents"][0]]  # type: ignore[index]
    return FILES.get(str(asked["prefix"]), "")


def _of_primary(osd: int, moment: Path) -> bytes:
    """What an OSD leads was recorded at rest; what is being scrubbed is as of the moment."""
    reply = json.loads((REPLIES / "idle" / f"primary_{osd}.json").read_bytes())
    scrubbed = json.loads((moment / "scrubbing.json").read_bytes()).get("pg_stats", [])
    now = {row["pgid"]: row for row in scrubbed}
    rows = reply.get("pg_stats", [])  # absent where there are none
    reply["pg_stats"] = [now.get(row["pgid"], row) for row in rows]
    return _long_ago(json.dumps(reply).encode())


def _long_ago(reply: bytes) -> bytes:
    return re.sub(rb'(scrub_stamp": ?")20\d\d', rb"\g<1>2020", reply)
