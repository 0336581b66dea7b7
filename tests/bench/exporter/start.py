"""How long starting takes, and what the exporter has before the first OSD."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.bench.exporter.processes import connect, exporter, scrape
from tests.bench.exporter.verdicts import Verdicts

_TIMES: Final = 7
NO_OSD: Final = "/nonexistent/ceph-osd.*.asok"
_MEGABYTE: Final = 1e6


def bench_start(verdicts: Verdicts) -> None:
    print("starting")
    command = [str(Path(sys.executable).with_name("cephqos")), "--help"]
    helped, started, resident = [], [], []
    for _ in range(_TIMES):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
        helped.append((time.perf_counter() - begun) * 1e3)
        begun = time.perf_counter()
        with exporter(NO_OSD) as (process, port):
            started.append((time.perf_counter() - begun) * 1e3)
            scrape(connect(port))
            resident.append(process.memory_info().rss / _MEGABYTE)
    verdicts.say("cephqos --help", helped, "ms", most=150)
    verdicts.say("start until it listens", started, "ms", most=300)
    verdicts.say("resident before the first OSD", resident, "MB", most=42)
