"""How long clusters take to come up and go down, per release and all at once: `make bench-lab`."""

import asyncio
import secrets
import statistics
import time

from tests.by_signal import clean_up_when_ended
from tests.recorded import RELEASES

from cephqos_loadgen.lab.lab import Lab
from cephqos_loadgen.lab.spec import LabSpec

OSDS = 4
ROUNDS = 3
UP_BAR, DOWN_BAR = 45.0, 5.0


async def measure(release: str) -> tuple[float, float]:
    """Seconds until active, and until all is gone."""
    lab = Lab(LabSpec(name=f"bench-{release}-{secrets.token_hex(2)}", release=release, osds=OSDS))
    start = time.monotonic()
    async with lab:
        up = time.monotonic() - start
        start = time.monotonic()
    return up, time.monotonic() - start


def report(title: str, measured: list[tuple[float, float]]) -> None:
    ups, downs = zip(*measured, strict=True)
    for what, values, bar in (("up", ups, UP_BAR), ("down", downs, DOWN_BAR)):
        middle = statistics.median(values)
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(
            f"{title:26} {what:5} {middle:6.1f} s ({spread}, {len(values)} runs)"
            f"  {middle / bar:5.2f} of the bar of {bar:.0f} s"
        )


async def main() -> None:
    print(f"{OSDS} OSDs each, release trees cached")
    for release in RELEASES:
        report(release, [await measure(release) for _ in range(ROUNDS)])
    together = await asyncio.gather(*(measure(release) for release in RELEASES))
    for release, times in zip(RELEASES, together, strict=True):
        report(f"{release}, with the others", [times])


if __name__ == "__main__":
    clean_up_when_ended()
    asyncio.run(main())
