"""The list of collectors, and what is made of it.

To add one: a file in this folder with a class (see `base.DaemonCollector`), and its line here.
`--collector.NAME` and `--no-collector.NAME` switch it.
"""

from collections.abc import Iterable
from typing import Any, Final

from cephqos_exporter.collectors.account import AccountCollector
from cephqos_exporter.collectors.base import CollectorInputs, DaemonCollector
from cephqos_exporter.collectors.cgroup import CgroupCollector
from cephqos_exporter.collectors.crimson import CrimsonCollector
from cephqos_exporter.collectors.disks import DisksCollector
from cephqos_exporter.collectors.histograms import HistogramsCollector
from cephqos_exporter.collectors.host import HostCollector
from cephqos_exporter.collectors.mclock.collector import MclockCollector
from cephqos_exporter.collectors.network import NetworkCollector
from cephqos_exporter.collectors.ops import OpsCollector
from cephqos_exporter.collectors.perf import PerfCollector
from cephqos_exporter.collectors.placement import PlacementCollector
from cephqos_exporter.collectors.recovery import RecoveryCollector
from cephqos_exporter.collectors.scrub import ScrubCollector
from cephqos_exporter.collectors.tenants import TenantsCollector
from cephqos_exporter.collectors.threads import ThreadsCollector
from cephqos_exporter.config import Option
from cephqos_exporter.daemon import Collector

COLLECTORS: Final[tuple[type[DaemonCollector[Any]], ...]] = (
    PerfCollector,
    HistogramsCollector,
    MclockCollector,
    OpsCollector,
    TenantsCollector,
    ScrubCollector,
    RecoveryCollector,
    NetworkCollector,
    AccountCollector,
    ThreadsCollector,
    DisksCollector,
    PlacementCollector,
    CgroupCollector,
    HostCollector,
    CrimsonCollector,
)


def all_options() -> tuple[Option[Any], ...]:
    """The switches and options of every collector, each once."""
    options: dict[str, Option[Any]] = {}
    for collector in COLLECTORS:
        for option in (collector.switch(), *collector.options):
            options.setdefault(option.name, option)
    return tuple(options.values())


def build_enabled(inputs: CollectorInputs) -> list[Collector]:
    """New instances of the collectors that the settings switch on."""
    return [c.build(inputs) for c in in_order(COLLECTORS) if inputs.settings[c.switch()]]


def in_order(collectors: Iterable[type[DaemonCollector[Any]]]) -> list[type[DaemonCollector[Any]]]:
    """The same, each after those whose clues it reads."""
    ordered: dict[type[DaemonCollector[Any]], None] = {}
    for collector in collectors:
        ordered |= dict.fromkeys((*in_order(collector.reads), collector))
    return list(ordered)
