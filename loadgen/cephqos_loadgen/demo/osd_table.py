"""The demo's table of OSDs, computed from two scrapes: attained, reserved, delivered, latency."""

from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

from cephqos_loadgen.scraping import Scrape, quantile

DAEMON = "ceph_daemon"


@dataclass(frozen=True, slots=True)
class OsdRow:
    """One OSD over one interval; rates in normalised ops/s, None where nothing is known."""

    name: str
    up: bool
    client: float | None
    delivered: float | None
    reservation: float | None
    capacity: float | None
    queued: float
    lag: float | None
    write_p99: float | None


def rows(before: Scrape, now: Scrape) -> list[OsdRow]:
    """The state of every OSD between two scrapes."""
    qos = "cephqos_qos"
    up = now.by("cephqos_daemon_up", DAEMON)
    client = _rates(before, now, f"{qos}_normalised_ops_total", **{"class": "client"})
    delivered = _rates(before, now, f"{qos}_delivered_normalised_ops_total")
    reservation = now.by(
        f"{qos}_reservation_normalised_ops_per_second", DAEMON, **{"class": "client"}
    )
    capacity = now.by(f"{qos}_capacity_normalised_ops_per_second", DAEMON)
    queued = now.by(f"{qos}_queue_length", DAEMON, **{"class": "client"})
    lag = now.most(f"{qos}_reservation_lag_seconds", DAEMON, **{"class": "client"})
    return [
        OsdRow(
            name=name,
            up=up[name] == 1,
            client=client.get(name),
            delivered=delivered.get(name),
            reservation=reservation.get(name),
            capacity=capacity.get(name),
            queued=queued.get(name, 0),
            lag=lag.get(name),
            write_p99=_write_p99(before, now, name),
        )
        for name in sorted(up)
    ]


def table(title: str, caption: str, osds: list[OsdRow]) -> Table:
    """The rows as a table for the terminal."""
    view = Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    view.add_column("OSD")
    for column in (
        "client",
        "reserved",
        "delivered",
        "capacity",
        "queued",
        "lag",
        "write p99",
    ):
        view.add_column(column, justify="right")
    for osd in osds:
        view.add_row(
            osd.name if osd.up else f"[red]{osd.name} does not answer[/red]",
            _number(osd.client),
            _number(osd.reservation),
            _number(osd.delivered),
            _number(osd.capacity),
            _number(osd.queued),
            _duration(osd.lag),
            _duration(osd.write_p99),
        )
    return view


def _rates(before: Scrape, now: Scrape, name: str, **labels: str) -> dict[str, float]:
    old = before.by(name, DAEMON, **labels)
    seconds = now.time - before.time
    return {
        daemon: (value - old[daemon]) / seconds
        for daemon, value in now.by(name, DAEMON, **labels).items()
        if daemon in old and value >= old[daemon]
    }


def _write_p99(before: Scrape, now: Scrape, daemon: str) -> float | None:
    name = "cephqos_osd_op_latency_seconds_bucket"
    which = {DAEMON: daemon, "op": "write"}
    old, new = before.by(name, "le", **which), now.by(name, "le", **which)
    return quantile({float(le): count - old.get(le, 0) for le, count in new.items()}, 0.99)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"  # noqa: RUF001 - a dash for "unknown"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"  # noqa: RUF001
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
