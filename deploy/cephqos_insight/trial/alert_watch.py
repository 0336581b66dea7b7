"""Alerts that end a trial, and whether the Prometheus that would send them still sees the cluster.

The label `cluster` is the FSID in our series. In those of Ceph's manager it is what the scrape jobs
say, such as Rook's namespace: an OSD's address tells which of them is this cluster.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from cephqos_base.errors import UsageError
from cephqos_base.prometheus import Prometheus
from cephqos_base.recorded import PerOsd
from cephqos_base.servers import NoAnswer
from cephqos_base.units import time_span

_SILENT_SECONDS: Final = 15.0  # without an answer, after which a trial ends
_OVER_SECONDS: Final = 120.0  # without an alert, after which it has ended
_OLD_SECONDS: Final = 120.0  # of the newest sample; some scrape once a minute
_ALERTS: Final = 'ALERTS{alertstate="firing",severity!~"info|none"}'
# What our rules record, and what Ceph's manager says, as long as all is well.
_SIGNS_OF_LIFE: Final = (PerOsd.INSTANCE, "ceph_health_status")

_Alert = tuple[tuple[str, str], ...]


class WatchedAlerts:
    """`begin` comes first."""

    def __init__(self, prometheus: Prometheus, fsid: str) -> None:
        self._prometheus = prometheus
        self._names = {fsid}  # values of the label `cluster`
        self._before: set[_Alert] = set()
        self._gone_since: dict[_Alert, float] = {}
        self._unheard_since: float | None = None
        self._newest: dict[str, float] = {}  # by sign of life: when its last sample was taken

    def now(self) -> float:
        return time.monotonic()

    async def begin(self, osd_dump: Mapping[str, Any]) -> str:
        """Says what is watched; UsageError if nothing of this cluster is there."""
        osd = next(osd for osd in osd_dump["osds"] if osd["up"])
        address = str(osd.get("public_addr", "")).rpartition(":")[0]
        metadata = f'ceph_osd_metadata{{ceph_daemon="osd.{osd["osd"]}"}}'
        for labels, _ in await self._prometheus.vector(metadata):
            if address and labels.get("public_addr") == address:
                self._names.add(labels.get("cluster", ""))
        self._newest = await self._samples()
        if not self._newest:
            raise UsageError(
                "--prometheus: expected"
                f" {' or '.join(_SIGNS_OF_LIFE)} of this cluster, younger than"
                f" {time_span(_OLD_SECONDS)}: without them no alert would end the trial"
            )
        self._before = await self._firing()
        names = " or ".join(sorted(filter(None, self._names)))
        return (
            f"an alert that begins to fire ends this trial: of cluster {names}, or Ceph* without a"
            f" cluster. Watched as long as there are new samples of {' and '.join(self._newest)}"
        )

    async def trouble(self) -> str:
        asked = self.now()
        try:
            firing = await self._firing()
            self._newest |= {k: v for k, v in (await self._samples()).items() if k in self._newest}
        except NoAnswer as error:
            self._unheard_since = self._unheard_since or asked
            silent = self.now() - self._unheard_since > _SILENT_SECONDS
            return f"Prometheus is lost: {error}" if silent else ""
        self._unheard_since = None
        # A Prometheus that restarts shows none for a while. One that was gone for longer is new.
        for alert in self._before:
            gone = asked if alert in firing else self._gone_since.get(alert, asked)
            self._gone_since[alert] = gone
        self._before = {it for it in self._before if asked - self._gone_since[it] < _OVER_SECONDS}
        if new := firing - self._before:
            return f"an alert fires: {dict(min(new))['alertname']}"
        name = min(self._newest, key=self._newest.__getitem__)
        age = self.now() - self._newest[name]
        old = f"Prometheus sees this cluster no more: the last {name} is {time_span(age)} old"
        return old if age > _OLD_SECONDS else ""

    async def _samples(self) -> dict[str, float]:
        """When the newest of each sign of life was taken; only of those that are not old."""
        found = {}
        for name in _SIGNS_OF_LIFE:
            ages = await self._prometheus.vector(f"min by (cluster) (time() - timestamp({name}))")
            own = [age for labels, age in ages if labels.get("cluster", "") in self._names]
            if own and min(own) < _OLD_SECONDS:
                found[name] = self.now() - min(own)
        return found

    async def _firing(self) -> set[_Alert]:
        return {
            tuple(sorted(labels.items()))
            for labels, _ in await self._prometheus.vector(_ALERTS)
            if self._is_ours(labels)
        }

    def _is_ours(self, labels: Mapping[str, str]) -> bool:
        cluster = labels.get("cluster", "")
        return cluster in self._names if cluster else labels["alertname"].startswith("Ceph")
