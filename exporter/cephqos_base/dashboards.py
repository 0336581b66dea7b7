"""Uids of our Grafana dashboards: alerts link to them, so they never change."""

from typing import Final

OVERVIEW: Final = "cephqos-overview"
LATENCY: Final = "cephqos-latency"
WAITING: Final = "cephqos-waiting"
BACKGROUND: Final = "cephqos-background"  # scrub and recovery
OSD: Final = "cephqos-osd"
CPU: Final = "cephqos-cpu"
DEVICES: Final = "cephqos-devices"
RUN: Final = "cephqos-run"
EXPORTER: Final = "cephqos-exporter"  # cephqos itself

# In the order in which they are read.
ALL: Final = (OVERVIEW, LATENCY, WAITING, BACKGROUND, OSD, CPU, DEVICES, RUN, EXPORTER)
