"""What a report of a long run costs: CPU time, memory, size of the page.

An archive is made with one-second samples of every OSD and of eight fio jobs, one hour of sixteen
OSDs and smaller ones, to see that cost grows with their product at most.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.synthetic_archive import Builder, Osds, SyntheticRepeat

CPU_SECONDS, MEMORY_BYTES, PAGE_BYTES = 20.0, 1 << 30, 5e6
SERIES_PER_OSD = 400
RUNS = ((900, 16), (3600, 4), (3600, 16))


def make(folder: Path, seconds: int, osds: int) -> Path:
    rates = [1000.0 + second % 60 for second in range(seconds)]
    repeat = SyntheticRepeat(rates, seconds=seconds, scrub_seconds=seconds / 2, jobs=8)
    groups = [f"group-{n}" for n in range(20)]
    shape = Osds(count=osds, waiting=3.0, groups=groups, fillers=SERIES_PER_OSD)
    return Builder(points={"balanced": [repeat]}, osds=shape).write(folder)


def main() -> None:
    for seconds, osds in RUNS:
        with tempfile.TemporaryDirectory() as base:
            archive = make(Path(base) / "archive", seconds, osds)
            out = Path(base) / "out"
            argv = [sys.executable, __file__, "--child", str(archive), str(out)]
            done = subprocess.run(argv, check=True, capture_output=True, text=True)
            cpu, memory = json.loads(done.stdout.splitlines()[-1])
            page = (out / "report.html").stat().st_size
            stored = sum(path.stat().st_size for path in archive.rglob("*") if path.is_file())
        print(
            f"{seconds:5} s, {osds:2} OSDs, archive {stored / 1e6:6.1f} MB: CPU {cpu:5.1f} s"
            f" ({cpu / CPU_SECONDS:.0%} of the bar), memory {memory / 1e6:4.0f} MB"
            f" ({memory / MEMORY_BYTES:.0%}), page {page / 1e6:.2f} MB ({page / PAGE_BYTES:.0%})",
            flush=True,
        )


def child(archive: str, out: str) -> None:
    from cephqos_base.command import main as command

    if status := command(["report", archive, "--out", out]):
        sys.exit(status)
    use = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([use.ru_utime + use.ru_stime, use.ru_maxrss * 1024]))


if __name__ == "__main__":
    child(*sys.argv[2:]) if sys.argv[1:2] == ["--child"] else main()
