"""How right the time left of scrubs is, on real ones:

    python -m tests.recovery_times.scrubs watch FOLDER    # labs that are up, until interrupted
    python -m tests.recovery_times.scrubs judge FOLDER    # the figures of the documentation

`watch` writes a file of JSON lines for each lab: its placement groups, every two seconds. `judge`
takes them in as the exporter does, every fifth second, and lays what it says of the scrubs under
way beside how long it took until the last of them had ended.
"""

import asyncio
import contextlib
import gzip
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cephqos_base.errors import CephqosError
from cephqos_exporter.cluster import replies
from cephqos_exporter.not_understood import NotUnderstood
from cephqos_exporter.cluster.rates import time_left
from cephqos_exporter.cluster.scrub_progress import ScrubProgress
from cephqos_loadgen.lab.handle import LabHandle
from cephqos_loadgen.lab.state import lab_names, load_living

_EVERY: Final = 2.0
_KEPT: Final = (
    *("pgid", "state", "acting_primary", "last_scrub_stamp", "last_deep_scrub_stamp"),
    *("last_change", "objects_scrubbed", "last_scrub_duration", "scrub_duration"),
)


async def watch(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        for name in lab_names():
            with contextlib.suppress(CephqosError, OSError):
                await _watch_lab(LabHandle(*load_living(name)), folder / f"{name}.jsonl")
        await asyncio.sleep(_EVERY)


async def _watch_lab(lab: LabHandle, file: Path) -> None:
    print(file.name, flush=True)
    async with lab.client() as client:
        while True:
            began = time.monotonic()
            reply = await client.command("pg dump", target="mgr", dumpcontents=["pgs"])
            rows = [_brief(row) for row in reply["pg_stats"]]
            with file.open("a") as out:
                out.write(json.dumps({"time": time.time(), "groups": rows}) + "\n")
            await asyncio.sleep(max(0.5, _EVERY - (time.monotonic() - began)))


def _brief(row: Mapping[str, Any]) -> Mapping[str, Any]:
    sums = {key: row["stat_sum"][key] for key in ("num_objects", "num_bytes")}
    return {key: row[key] for key in _KEPT if key in row} | {"stat_sum": sums}


if __name__ == "__main__":
    asyncio.run(watch(Path(sys.argv[2])))
