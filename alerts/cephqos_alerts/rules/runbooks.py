"""On which page of docs/operate/runbooks an alert has its entry."""

from collections.abc import Mapping
from typing import Final

from cephqos_base.errors import UsageError

# Entries by page, in their order. An alert and its CanWait have one.
RUNBOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "reservations": (
        "CephQosReservationViolated",
        "CephQosReservationViolatedRepeatedly",
        "CephQosReservationViolatedUncounted",
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
        "CephQosOsdSlow",
        "CephQosDeviceSlowerThanBefore",
        "CephQosStoreSlow",
        "CephQosStoreSpilled",
        "CephQosStoreFragmented",
        "CephQosReactorShared",
        "CephQosHeartbeatsSlow",
        "CephQosHeartbeatMissed",
    ),
    "down": (
        "CephQosOsdStaysDown",
        "CephQosOsdFlapping",
        "CephQosDaemonCrashed",
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
        "CephQosSnapTrimBehind",
        "CephQosOsdFillsUp",
        "CephQosPgsUneven",
        "CephQosPiecesTooLarge",
        "CephQosPrimariesUneven",
    ),
    "health": (
        "CephQosMonitorDiskLow",
        "CephQosMonitorsUnwell",
        "CephQosPgsInactive",
        "CephQosManagerFailing",
        "CephQosFilesystemDown",
        "CephQosMdsBehind",
        "CephQosPoolFull",
        "CephQosHealthCheckFails",
    ),
    "hosts": (
        "CephQosPacketsLost",
        "CephQosLinkUnwell",
        "CephQosPgsLaggy",
        "CephQosOutOfMemory",
        "CephQosMemoryNearLimit",
        "CephQosPgLogLarge",
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

# Alerts with two severities. The warning has CanWait behind the name: kube-prometheus-stack lets a
# critical alert silence all warnings of its name, also those of other OSDs and clusters.
WARNING_SUFFIX: Final = "CanWait"
_TWO_SEVERITIES: Final = (
    "CephQosReservationViolated",
    "CephQosReservationViolatedWidely",
    "CephQosLatencySloBurn",
    "CephQosDaemonNotAnswering",
    "CephQosOsdFillsUp",
)
ALERTS: Final = (
    *(name for names in RUNBOOKS.values() for name in names),
    *(name + WARNING_SUFFIX for name in _TWO_SEVERITIES),
)

_PAGES: Final[Mapping[str, str]] = {
    name: page for page, names in RUNBOOKS.items() for name in names
}
# In a URL: where the name of the page goes. Without it, the pages are files of the built site.
PAGE: Final = "{page}"


def runbook_url(folder: str, alert: str) -> str:
    """The entry of an alert, in the folder or by the pattern that `--runbook-url` gave."""
    pattern = folder if PAGE in folder else f"{folder.rstrip('/')}/{PAGE}.html"
    return f"{pattern.replace(PAGE, runbook_page(alert))}#{_entry(alert).lower()}"


def runbook_page(alert: str) -> str:
    if _entry(alert) not in _PAGES:
        raise UsageError(f"{alert} has no runbook: add it to RUNBOOKS of {__name__}")
    return _PAGES[_entry(alert)]


def _entry(alert: str) -> str:
    """The alert whose entry this one has, too."""
    return alert.removesuffix(WARNING_SUFFIX)
