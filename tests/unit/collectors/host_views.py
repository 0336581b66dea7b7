"""Views of one OSD on a host whose files a test wrote, and what collectors make of them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cephqos_exporter.daemon import Daemon, DaemonView, Host
from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels

from .. import osd_views

PID = 4000


def view(
    host: Host,
    time: float = 1000.0,
    *,
    pid: int | None = PID,
    kind: str = "osd",
    replies: dict[str, Any] | None = None,
) -> DaemonView:
    daemon = Daemon(kind, "3", "c0ffee", Path("/run/ceph/osd.3.asok"), pid)
    return DaemonView(daemon, render_labels(daemon.labels), replies or {}, {}, time, host)


def samples(families: Iterable[Family]) -> dict[str, float]:
    return osd_views.samples(families, 'ceph_daemon="osd.3",cluster="c0ffee"')


def cpu(found: dict[str, float], group: str) -> tuple[float, float]:
    name = "cephqos_threads_cpu_seconds_total"
    return (
        found[f'{name}{{group="{group}",mode="user"}}'],
        found[f'{name}{{group="{group}",mode="system"}}'],
    )
