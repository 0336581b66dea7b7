"""On which page of docs/operate/runbooks an alert has its entry."""

from collections.abc import Mapping
from typing import Final

from cephqos_base.errors import UsageError

# Every alert, by page, in the order of the entries.
RUNBOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "reservations": (
        "CephQosReservationViolated",
        "CephQosReservationViolatedRepeatedly",
        "CephQosReplicaSlow",
        "CephQosHostCpuTaken",
        "CephQosReservationViolatedWidely",
        "CephQosPolicyTargetViolated",
    ),
    "latency": (
        "CephQosLatencySloBurn",
        "CephQosSlowRequestBurst",
        "CephQosOperationsBlocked",
        "CephQosDaemonNotAnswering",
        "CephQosThreadAtCeiling",
        "CephQosDeviceSaturated",
        "CephQosDeviceSlowerThanBefore",
        "CephQosStoreSlow",
        "CephQosStoreSpilled",
        "CephQosStoreFragmented",
        "CephQosReactorShared",
        "CephQosHeartbeatMissed",
        "CephQosOsdFlapping",
    ),
    "configuration": (
        "CephQosCapacityOverstated",
        "CephQosCapacityUnderstated",
        "CephQosCapacityNeverMeasured",
        "CephQosBenchmarkRejected",
        "CephQosAtLimitWhileIdle",
        "CephQosSettingsDiffer",
        "CephQosSettingReverted",
        "CephQosSchedulersMixed",
        "CephQosReservationsExceedWhole",
        "CephQosSettingForgotten",
    ),
    "background": (
        "CephQosScrubStalled",
        "CephQosDeepScrubCannotKeepUp",
        "CephQosScrubsOverdueGrowing",
        "CephQosScrubErrors",
        "CephQosRecoveryStalled",
        "CephQosRecoveryTooSlow",
        "CephQosObjectsUnfound",
        "CephQosDaemonCrashed",
    ),
    "health": (
        "CephQosMonitorDiskLow",
        "CephQosManagerFailing",
        "CephQosFilesystemDown",
        "CephQosMdsBehind",
    ),
    "coverage": (
        "CephQosExporterDown",
        "CephQosNothingScraped",
        "CephQosOsdNotScraped",
        "CephQosClusterExporterAbsent",
        "CephQosClusterExporterDoubled",
        "CephQosScrapeNearDeadline",
        "CephQosCollectorFailing",
        "CephQosReplyNotUnderstood",
        "CephQosTooManySeries",
        "CephQosTooFewSamples",
        "CephQosFiguresMissing",
        "CephQosExporterRestarts",
        "CephQosClusterLabelTaken",
        "CephQosOsdDown",
        "CephQosMaintenance",
        "CephQosTestRun",
        "CephQosWatchdog",
    ),
}

_PAGES: Final[Mapping[str, str]] = {
    name: page for page, names in RUNBOOKS.items() for name in names
}
# In a URL: where the name of the page goes. Without it, the pages are files of the built site.
PAGE: Final = "{page}"


def runbook_url(folder: str, alert: str) -> str:
    """The entry of an alert, in the folder or by the pattern that `--runbook-url` gave."""
    pattern = folder if PAGE in folder else f"{folder.rstrip('/')}/{PAGE}.html"
    return f"{pattern.replace(PAGE, runbook_page(alert))}#{alert.lower()}"


def runbook_page(alert: str) -> str:
    if alert not in _PAGES:
        raise UsageError(f"{alert} has no runbook: add it to RUNBOOKS of {__name__}")
    return _PAGES[alert]
