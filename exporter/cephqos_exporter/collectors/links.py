"""Network of the host: what its interfaces carry and lose, and TCP segments that were sent again.

/proc/1/net is the network of the host's first process, also as seen from a container. Only
interfaces with hardware behind them, and bonds, are shown: a node has hundreds of virtual ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from cephqos_base.series import HostSeries
from cephqos_exporter import procfs
from cephqos_exporter.families import Family, counter, gauge
from cephqos_exporter.labels import LabelText, render_labels

# Of a line of /proc/net/dev, after the name: what is counted, and in which field.
_BYTES: Final = {"receive": 0, "transmit": 8}
_LOST: Final = {
    ("receive", "errors"): 2,
    ("receive", "drops"): 3,
    ("transmit", "errors"): 10,
    ("transmit", "drops"): 11,
}
_MEGABIT: Final = 125_000  # bytes
# Files of /sys/class/net/NAME, and how their value becomes that of the series.
_SETTINGS: Final[Mapping[str, tuple[str, int]]] = {
    "carrier": (HostSeries.LINK_UP, 1),
    "carrier_changes": (HostSeries.LINK_CHANGES, 1),
    "speed": (HostSeries.LINK_SPEED, _MEGABIT),
    "mtu": (HostSeries.LINK_MTU, 1),
}
# A driver counts packets that its card had no room for here or there, or at both.
_MISSED: Final = ("rx_missed_errors", "rx_fifo_errors")


def interfaces(sys: Path) -> Sequence[str]:
    """Those that have hardware, and bonds of them."""
    with suppress(OSError):
        return sorted(
            link.name
            for link in (sys / "class/net").iterdir()
            if (link / "device").exists() or (link / "bonding").exists()
        )
    return ()


def setting_families(sys: Path, names: Iterable[str]) -> Sequence[Family]:
    """What changes rarely. Some drivers take long to say their speed: not for every scrape."""
    families = {
        HostSeries.LINK_UP: gauge(
            HostSeries.LINK_UP,
            "1: the link of a network interface is up. 0: it has no signal. Absent while the "
            "interface is switched off, or gone.",
        ),
        HostSeries.LINK_CHANGES: counter(
            HostSeries.LINK_CHANGES,
            "How often the link of a network interface went down or came up.",
        ),
        HostSeries.LINK_SPEED: gauge(
            HostSeries.LINK_SPEED,
            "Speed of the link of a network interface. Absent while it is down, or if the driver "
            "does not say.",
        ),
        HostSeries.LINK_MTU: gauge(
            HostSeries.LINK_MTU, "Largest packet that a network interface sends (MTU)."
        ),
        HostSeries.LINK_MISSED: counter(
            HostSeries.LINK_MISSED,
            "Packets that came to a network interface while its card had no room: its ring is too "
            "small, or the host takes them too late. Most drivers count them as drops, too.",
        ),
    }
    for name in names:
        for file, (series, factor) in _SETTINGS.items():
            with suppress(OSError, ValueError):  # EINVAL: switched off; the driver knows no speed
                value = int(procfs.read_once(f"{sys}/class/net/{name}/{file}"))
                if value >= 0:  # -1: no link
                    families[series].add(_link(name), value * factor)
        if missed := list(_counts(f"{sys}/class/net/{name}/statistics", _MISSED)):
            families[HostSeries.LINK_MISSED].add(_link(name), max(missed))
    return [family for family in families.values() if family.samples]


def _counts(folder: str, files: Iterable[str]) -> Iterator[int]:
    for file in files:
        with suppress(OSError, ValueError):
            yield int(procfs.read_once(f"{folder}/{file}"))


def traffic_families(proc: Path, names: Sequence[str]) -> Sequence[Family]:
    """What interfaces carried, and what they lost."""
    carried = counter(
        HostSeries.LINK_BYTES, "Bytes that a network interface received or transmitted."
    )
    lost = counter(
        HostSeries.LINK_LOST,
        "Packets that a network interface lost, by direction and reason: errors (cable, optic, "
        "port) or drops (no room, or a protocol that the host does not use).",
    )
    with suppress(OSError, ValueError):
        for line in procfs.read_all(f"{proc}/1/net/dev").splitlines():
            raw, _, text = line.partition(b":")
            name = raw.strip().decode()
            if name not in names:
                continue
            counts = [int(field) for field in text.split()]
            if len(counts) <= max(_LOST.values()):
                continue
            for direction, at in _BYTES.items():
                carried.add(_link(name, direction=direction), counts[at])
            for (direction, reason), at in _LOST.items():
                lost.add(_link(name, direction=direction, reason=reason), counts[at])
    return [carried, lost] if lost.samples else []


def tcp_families(proc: Path) -> Iterable[Family]:
    """What TCP sent, and sent again as it was not acknowledged."""
    segments = counter(
        HostSeries.TCP_SEGMENTS,
        "TCP segments that the host sent to others and to itself: sent, and those of them that "
        "were sent again (retransmitted), as the network or the other side lost them.",
    )
    with suppress(OSError, ValueError, LookupError):
        lines = procfs.read_all(f"{proc}/1/net/snmp").splitlines()
        names, values = (line.split() for line in lines if line.startswith(b"Tcp:"))
        tcp = dict(zip(names, values, strict=True))
        sent, again = int(tcp[b"OutSegs"]), int(tcp[b"RetransSegs"])
        # OutSegs leaves out segments that are sent again.
        segments.add(render_labels({"kind": "sent"}), sent + again)
        segments.add(render_labels({"kind": "retransmitted"}), again)
    return [segments] if segments.samples else []


def _link(name: str, **labels: str) -> LabelText:
    return render_labels({"device": name, **labels})
