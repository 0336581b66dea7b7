"""Which tenants an OSD worked for while a load ran, and which of them waited."""

from collections import defaultdict
from collections.abc import Mapping

from cephqos_base.series import ClusterSeries, TenantsSeries
from cephqos_base.tenant_shares import OsdSums, TenantKey, TenantShare
from cephqos_loadgen.report.arrays.samples import Samples
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.report.subject import Subject
from cephqos_loadgen.report.tables.of_reservations import LoadStep, load_steps
from cephqos_loadgen.report.tables.table import Cell, Table, text, text_columns

_NOTE = (
    "By samples of operations, with the 95 % interval of what samples saw: of bursts between two of"
    " them it knows nothing. The tenant with most of an OSD's work, and"
    " those that mostly waited. cephqos who --archive shows all of them."
)
_COLUMNS = tuple(text_columns("Point", "Load", "OSD", "Most work", "Waiting"))


def tenants_table(subject: Subject) -> Table:
    """A row for each load and OSD with samples; repeats add up."""
    lines: list[tuple[Cell, ...]] = []
    for run in subject.runs:
        pools = {  # names by id
            series.labels.get("pool_id", ""): series.labels.get("pool", "")
            for observed in run.finished
            for series in observed.samples.of(ClusterSeries.POOL_INFO)
        }
        for (point, phase, osd), sums in _sums(run).items():
            shares = sums.shares("", osd)
            if shares.largest is None:
                continue
            most_work = _in_words(shares.largest.key, shares.largest.working, pools)
            waiting = [_in_words(tenant.key, tenant.waiting, pools) for tenant in shares.victims]
            label = subject.point_label(run, point)
            words = (label, phase, osd, most_work, ", ".join(waiting) or "–")
            lines.append(tuple(map(text, words)))
    return Table("tenants", "Tenants by OSD", _COLUMNS, tuple(lines), _NOTE)


def _in_words(key: TenantKey, share: TenantShare, pools: Mapping[str, str]) -> str:
    """`image rbd/vm-1 40% (35% to 45%)`; `pools` are names by id."""
    name = f"{key.kind} {pools.get(key.pool_id) or f'pool {key.pool_id}'}/{key.tenant}"
    return f"{name} {share.share:.0%} ({share.low:.0%} to {share.high:.0%})"


def _sums(run: ReportRun) -> Mapping[tuple[str, str, str], OsdSums]:
    """Samples of operations by point, load and OSD, of all repeats together."""
    sums: dict[tuple[str, str, str], OsdSums] = defaultdict(OsdSums)
    for observed in run.finished:
        for load in load_steps(observed):
            for osd, sums_of_load in _by_osd(observed.samples, load).items():
                sums[load.point, load.phase, osd].add([sums_of_load])
    return sums


def _by_osd(samples: Samples, load: LoadStep) -> Mapping[str, OsdSums]:
    """The same of one load in one repeat. Of an OSD that several exporters show, the largest figure
    counts."""
    sums: dict[str, OsdSums] = defaultdict(OsdSums)
    for series in samples.of(TenantsSeries.SECONDS):
        seconds = sums[series.labels.get("ceph_daemon", "")].seconds
        names = (series.labels.get(name, "") for name in ("kind", "pool_id", "tenant"))
        key = TenantKey(*names), series.labels.get("state", "")
        seconds[key] = max(seconds.get(key, 0.0), series.growth(load.start, load.end))
    for series in samples.of(TenantsSeries.SQUARES):
        squares = sums[series.labels.get("ceph_daemon", "")].squares
        state = series.labels.get("state", "")
        squares[state] = max(squares.get(state, 0.0), series.growth(load.start, load.end))
    return sums
