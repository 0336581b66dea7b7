"""What a frame of `cephqos top` costs with a thousand OSDs: `make bench-top`.

A frame is what happens after a key: the view is drawn from the picture, and Textual shows it. The
picture is made once per refresh, in a thread.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tests.unit.top_samples import FakeSource, example

from cephqos_loadgen.top.build import build_picture
from cephqos_loadgen.top.figures import FIGURES, Selection, Values
from cephqos_loadgen.top.picture import TopSamples
from cephqos_loadgen.top.screen.app import Lines, Top
from cephqos_loadgen.top.screen.page import Status, draw
from cephqos_loadgen.top.screen.view import View
from cephqos_loadgen.top.watch import Watch

OSDS = 1000
ROUNDS = 50
FRAME_BAR = 0.050  # seconds
SIZES = ((80, 24), (160, 50), (240, 80))


def large() -> TopSamples:
    """The tests' example with osd.0 repeated."""
    small = example()
    return replace(small, values={name: _repeated(name, it) for name, it in small.values.items()})


def _repeated(name: str, values: Values) -> Values:
    by = FIGURES[name].by
    if "ceph_daemon" not in by:
        return values
    place = by.index("ceph_daemon")
    found = dict(values)
    for key, value in values.items():
        if key[place] == "osd.0":
            for number in range(12, OSDS):
                found[(*key[:place], f"osd.{number}", *key[place + 1 :])] = value
    return found


def cpu(work: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return taken


def report(what: str, taken: list[float], bar: float | None = None) -> None:
    middle, worst = statistics.median(taken), max(taken)
    line = f"{what:42} {middle * 1000:7.1f} ms CPU, worst {worst * 1000:7.1f} ms"
    print(line + (f"  {worst / bar:5.2f} of the bar of {bar * 1000:.0f} ms" if bar else ""))


async def shown(samples: TopSamples, size: tuple[int, int]) -> list[float]:
    """Frames through Textual: a key, the drawing, the strips of the whole screen."""
    app = Top(Watch(FakeSource(samples), 3600.0), View())
    taken = []
    async with app.run_test(size=size) as pilot:
        while app.feed.picture is None:
            await pilot.pause(0.1)
        lines = app.query_one(Lines)
        for _ in range(ROUNDS):
            start = time.process_time()
            app.view = app.view.next_sort()
            app._draw()
            lines.render_lines(lines.size.region)
            taken.append(time.process_time() - start)
    return taken


def main() -> None:
    samples = large()
    status = Status(source="Prometheus http://prometheus:9090", clock="12:00:00", interval=2)
    picture = build_picture(samples, Selection())
    print(f"{len(picture.osds)} OSDs, {sum(map(len, samples.values.values()))} values")
    report(
        "samples to picture, once per refresh", cpu(lambda: build_picture(samples, Selection()), 10)
    )
    for size in SIZES:
        name = f"{size[0]}x{size[1]}"
        work = partial(draw, picture, status, View(), size)
        report(f"picture to lines, {name}", cpu(work), FRAME_BAR)
        report(f"frame through Textual, {name}", asyncio.run(shown(samples, size)), FRAME_BAR)


if __name__ == "__main__":
    main()
