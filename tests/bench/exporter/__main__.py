import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench import exporter
from tests.bench.exporter.own_reader import bench_threads
from tests.bench.exporter.processes import exporter as one_exporter
from tests.bench.exporter.real import bench_lab, bench_real
from tests.bench.exporter.replayed import bench_growth, bench_sixty, remove_leftovers
from tests.bench.exporter.start import NO_OSD, bench_start
from tests.bench.exporter.verdicts import Verdicts
from tests.bench.exporter.writing import bench_exposition
from tests.by_signal import clean_up_when_ended


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.exporter",
        description=exporter.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--minutes", type=float, default=10, help="then fewer scrapes are enough")
    parser.add_argument("--no-real", action="store_true")
    parser.add_argument("--sockets", nargs="+", type=Path, help="real OSDs' sockets to use")
    names = ("start", "real", "replayed", "exposition", "threads", "growth")
    parser.add_argument("--only", choices=names)
    arguments = parser.parse_args()
    repeats, long = (20, 50) if arguments.quick else (60, 1000)
    verdicts = Verdicts()
    begun, limit = time.monotonic(), arguments.minutes * 60

    def real() -> None:
        until = begun + limit * 0.25
        if arguments.sockets:
            bench_real(verdicts, arguments.sockets, repeats, until)
        elif not arguments.no_real:
            asyncio.run(bench_lab(verdicts, repeats, until))

    parts: dict[str, Callable[[], None]] = {
        "start": lambda: bench_start(verdicts),
        "real": real,
        "replayed": lambda: bench_sixty(verdicts, repeats, long, begun + limit * 0.65),
        "exposition": lambda: bench_exposition(verdicts),
        "threads": lambda: bench_threads(verdicts, repeats),
        "growth": lambda: bench_growth(verdicts, repeats // 3, begun + limit * 0.9),
    }
    remove_leftovers()
    clean_up_when_ended()
    cpus = os.cpu_count() or 1
    print(f"{cpus} CPUs, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    with _compiled():
        for name, part in parts.items():
            if arguments.only in (None, name):
                try:
                    part()
                except Exception as exc:  # the next parts have their own figures
                    verdicts.failed(name, exc)
    print(f"verdict: {verdicts.worst.name.lower()}")
    return int(verdicts.worst)


@contextlib.contextmanager
def _compiled() -> Iterator[None]:
    """Modules are compiled before the first figure, as pip does it: an environment may keep Python
    from it. Compiling at each start takes 0.1 s and 2 MB."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="cephqos-compiled-") as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        with one_exporter(NO_OSD):
            pass
        yield


if __name__ == "__main__":
    sys.exit(main())
