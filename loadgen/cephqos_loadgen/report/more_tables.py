"""Tables of what stands behind the loads: promises, cost, environment."""

from collections.abc import Iterator, Sequence

from cephqos_loadgen.report import metrics
from cephqos_loadgen.report.analysis import ReportRun
from cephqos_loadgen.report.causes import causes_within
from cephqos_loadgen.report.observe import WHOLE
from cephqos_loadgen.report.promises import KeptPromise, promises
from cephqos_loadgen.report.tables import (
    Cell,
    Subject,
    Table,
    TableColumn,
    count,
    figure,
    present,
    text,
)
from cephqos_loadgen.report.words import number
from cephqos_loadgen.results.phase import LoadResult


def more_tables(subject: Subject) -> Iterator[Table]:
    for table in (promises_table(subject), cost_table(subject), recording_table(subject)):
        if table.rows:
            yield table


def _plain(value: float | None) -> Cell:
    return Cell(number(value), value)


def promises_table(subject: Subject) -> Table:
    """What each class got on each OSD while a load ran; violated seconds add up over repeats."""
    lines = []
    evaluated = any(o.causes is not None for run in subject.runs for o in run.finished)
    for run in subject.runs:
        for (point, phase, osd, work), found in _by_class(run).items():
            row = next(row for row in run.rows if row.key.point == point)
            lines.append(
                (
                    text(subject.label(row.key)),
                    text(phase),
                    text(osd),
                    text(work),
                    *_promise_cells(found),
                    *([_causes_cell(run, point, phase, osd, work)] if evaluated else []),
                )
            )
    columns = (
        *(TableColumn(name, numeric=False) for name in ("Point", "Load", "OSD", "Class")),
        TableColumn("Reserved", "ops/s"), TableColumn("Limit", "ops/s"),
        TableColumn("Attained", "ops/s"),
        TableColumn("Attainment", "%"), TableColumn("Demand", "s"), TableColumn("Violated", "s"),
        TableColumn("Lag, most", "s"), TableColumn("Of", "s"),
        *([TableColumn("Main causes", "s", numeric=False)] if evaluated else []),
    )  # fmt: skip
    return Table(
        "promises",
        "Attainment by OSD and class",
        columns,
        tuple(lines),
        "Normalised operations, from the exporters' samples. Demand: seconds in which requests"
        " waited in the class's queue, or clients' operations waited before it or piled up in the"
        " store. Violated: of these, seconds in which it got less than 90 % of its reservation over"
        " 10 s. Both are sums over the repeats. Without demand nothing is"
        " violated. Classes that an OSD does not report are absent, as is everything with WPQ. "
        + (_CAUSES if evaluated else _NO_CAUSES),
    )


_CAUSES = (
    "Main causes: why a class with demand got no more, violated or not, in seconds, as the alerts'"
    " recording rules say it."
)
_NO_CAUSES = "Causes are not evaluated: cephqos report --causes."


def _causes_cell(run: ReportRun, point: str, phase: str, osd: str, work: str) -> Cell:
    """Seconds of each cause, the most first, summed over the repeats."""
    total: dict[str, float] = {}
    for observed in run.finished:
        record = observed.record.phases.get(phase)
        if observed.record.point == point and record:
            stretch = (record.start_unix_seconds, record.end_unix_seconds)
            for name, seconds in causes_within(observed, osd, work, *stretch).items():
                total[name] = total.get(name, 0.0) + seconds
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    words = ", ".join(f"{name} {seconds:.0f}" for name, seconds in ordered)
    return Cell(words or "–", words)


def _by_class(run: ReportRun) -> dict[tuple[str, str, str, str], list[KeptPromise]]:
    found: dict[tuple[str, str, str, str], list[KeptPromise]] = {}
    for observed in run.finished:
        for phase, record in observed.record.phases.items():
            if not isinstance(record.result, LoadResult):
                continue
            stretch = (record.start_unix_seconds, record.end_unix_seconds)
            for promise in promises(observed.samples, *stretch):
                key = (observed.record.point, phase, promise.osd, promise.work)
                found.setdefault(key, []).append(promise)
    return found


def _promise_cells(found: Sequence[KeptPromise]) -> list[Cell]:
    first = found[0]
    attained = sum(p.attained for p in found) / len(found)
    share = attained / first.reservation * 100 if first.reservation else None
    violated = [p.violated_seconds for p in found if p.violated_seconds is not None]
    lags = [p.lag_most_seconds for p in found if p.lag_most_seconds is not None]
    lost = sum(violated) if violated else None
    return [
        *(_plain(value) for value in (first.reservation, first.limit, attained, share)),
        _plain(sum(p.demand_seconds for p in found)),
        Cell(number(lost), lost, "worst" if lost else ""),
        _plain(max(lags) if lags else None),
        _plain(sum(p.seconds for p in found)),
    ]


def cost_table(subject: Subject) -> Table:
    rows = [
        row
        for row in subject.loads(curves=False)
        if row.key.op == "total" and row.key.window == WHOLE
    ]
    wanted = present(rows, metrics.COST)
    lines = [
        (
            text(subject.label(row.key)),
            text(row.key.phase),
            *(figure(metric, row.value(metric.key)) for metric in wanted),
        )
        for row in (rows if wanted else [])
    ]
    columns = (
        TableColumn("Point", numeric=False),
        TableColumn("Load", numeric=False),
        *(TableColumn(metric.title, metric.unit) for metric in wanted),
    )
    return Table(
        "cost",
        "CPU, memory and devices",
        columns,
        tuple(lines),
        "Means over repeats, while the load ran. OSD CPU is of all OSDs together. Devices are those"
        " that exporters see below OSDs.",
    )


def recording_table(subject: Subject) -> Table:
    lines = []
    for run in subject.runs:
        for observed in run.observations:
            record = observed.record
            row = next((row for row in run.rows if row.key.point == record.point), None)
            label = subject.label(row.key) if row else record.point
            lines.append(
                (
                    text(label),
                    count(record.repeat),
                    text(record.status),
                    _plain(record.cost.wall_seconds),
                    _plain(record.cost.core_share * 100),
                    _plain(record.cost.exporter_cpu_seconds),
                    count(record.metrics.scrapes),
                    count(sum(record.metrics.failures.values())),
                )
            )
    columns = (
        TableColumn("Point", numeric=False), TableColumn("Repeat"),
        TableColumn("Status", numeric=False),
        TableColumn("Time", "s"), TableColumn("Recording", "% of a core"),
        TableColumn("Exporter CPU", "s"),
        TableColumn("Samples"), TableColumn("Failed"),
    )  # fmt: skip
    return Table("repeats", "Repeats, and what recording cost", columns, tuple(lines))


def environment_table(runs: Sequence[ReportRun]) -> Table:
    """What the runs ran on."""
    facts = [environment_facts(run) for run in runs]
    names = list(dict.fromkeys(name for found in facts for name in found))
    lines = tuple(
        (text(name), *(text(found.get(name, "not recorded")) for found in facts)) for name in names
    )
    columns = (
        TableColumn("What", numeric=False),
        *(TableColumn(run.name, numeric=False) for run in runs),
    )
    return Table("environment", "Environment", columns, lines)


def environment_facts(run: ReportRun) -> dict[str, str]:
    """What decides whether two runs can be compared, in words."""
    environment = run.environment
    host, cluster = environment.get("host") or {}, environment.get("cluster") or {}
    osds = cluster.get("osds") or []
    found: dict[str, str] = {}
    if host:
        memory = int(host.get("memory_bytes", 0)) / (1 << 30)
        found["CPU"] = f"{host.get('cpus')} × {', '.join(host.get('cpu_models', [])) or 'unknown'}"
        found["Memory"] = f"{memory:.1f} GiB"
        found["Kernel"] = str(host.get("kernel"))
    versions = (cluster.get("versions") or {}).get("osd") or {}
    if versions:
        found["Ceph"] = ", ".join(sorted(versions))
    if osds:
        found["OSDs"] = str(len(osds))
        for title, key in (
            ("Object store", "osd_objectstore"),
            ("Device class", "default_device_class"),
            ("Device access", "bluestore_bdev_access_mode"),
        ):
            values = sorted({str(osd[key]) for osd in osds if key in osd})
            if values:
                found[title] = ", ".join(values)
        sizes = sorted({int(o["bluestore_bdev_size"]) for o in osds if "bluestore_bdev_size" in o})
        if sizes:
            found["OSD size"] = ", ".join(f"{size / (1 << 30):.1f} GiB" for size in sizes)
    tools = environment.get("tools") or {}
    if tools.get("fio"):
        found["fio"] = str(tools["fio"])
    found["cephqos"] = str(environment.get("cephqos", run.manifest.cephqos))
    return found
