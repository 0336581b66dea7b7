"""Which tenants an OSD worked for while a load ran, and which of them waited."""

from collections.abc import Mapping

from cephqos_base.series import ClusterSeries, TenantsSeries
from cephqos_base.tenant_shares import OsdSums, TenantKey, TenantShare
from cephqos_loadgen.report.arrays.samples import Samples
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_reservations import LoadStep, load_steps
from cephqos_loadgen.report.tables.table import Cell, Table, TableColumn, text

_NOTE = (
    "By samples of operations, with the 95 % interval. The tenant with most of an OSD's work, and"
    " those that mostly waited. cephqos who --archive shows all of them."
)
_COLUMNS = tuple(
    TableColumn(name, numeric=False) for name in ("Point", "Load", "OSD", "Most work", "Waiting")
)


def tenants_table(subject: Subject) -> Table:
    """A row for each load and OSD with samples; repeats add up."""
    lines: list[tuple[Cell, ...]] = []
    for run in subject.runs:
        pools: dict[str, str] = {}
        sums: dict[tuple[str, str, str], OsdSums] = {}
        for observed in run.finished:
            for it in observed.samples.of(ClusterSeries.POOL_INFO):
                pools[it.labels.get("pool_id", "")] = it.labels.get("pool", "")
            for load in load_steps(observed):
                for osd, its_sums in _by_osd(observed.samples, load).items():
                    sums.setdefault((load.point, load.phase, osd), OsdSums()).add([its_sums])
        for (point, phase, osd), its in sums.items():
            shares = its.shares("", osd)
            if shares.largest is None:
                continue
            most = _said(shares.largest.key, shares.largest.working, pools)
            waiting = [_said(it.key, it.waiting, pools) for it in shares.victims]
            label = subject.point_label(run, point)
            lines.append(tuple(map(text, (label, phase, osd, most, ", ".join(waiting) or "–"))))
    return Table("tenants", "Tenants by OSD", _COLUMNS, tuple(lines), _NOTE)


def _said(key: TenantKey, share: TenantShare, pools: Mapping[str, str]) -> str:
    name = f"{key.kind} {pools.get(key.pool_id) or f'pool {key.pool_id}'}/{key.tenant}"
    return f"{name} {share.share:.0%} ({share.low:.0%} to {share.high:.0%})"


def _by_osd(samples: Samples, load: LoadStep) -> dict[str, OsdSums]:
    """Of an OSD that several exporters show, the largest figure."""
    sums: dict[str, OsdSums] = {}
    for it in samples.of(TenantsSeries.SECONDS):
        seconds = sums.setdefault(it.labels.get("ceph_daemon", ""), OsdSums()).seconds
        names = (it.labels.get(name, "") for name in ("kind", "pool_id", "tenant"))
        key = TenantKey(*names), it.labels.get("state", "")
        seconds[key] = max(seconds.get(key, 0.0), it.growth(load.start, load.end))
    for it in samples.of(TenantsSeries.SAMPLED):
        counts = sums.setdefault(it.labels.get("ceph_daemon", ""), OsdSums()).samples
        state = it.labels.get("state", "")
        counts[state] = max(counts.get(state, 0.0), it.growth(load.start, load.end))
    return sums
