"""crimson: Seastar's metrics of a Crimson OSD, in base units and with the types that are right."""

from cephqos_exporter.collectors.crimson.collector import CrimsonCollector
from cephqos_exporter.collectors.crimson.reply import METRICS

__all__ = ["METRICS", "CrimsonCollector"]
