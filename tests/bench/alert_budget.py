"""How many notifications a week: simulated fleets, all rules, and a model of Alertmanager.

promtool evaluates all rules on what the exporters of 50 OSDs would show in each situation, every
15 s for 80 minutes, and says which alerts fire. A larger fleet is so many copies of the 50, each
with its own names: alerts of OSDs and hosts are there once for each copy, and those of the cluster
are one. Where the situation is of one host or rack, the other copies are healthy. In a rolling
upgrade a copy follows another. From the alerts `notifications` makes what would be sent in a week.

Not simulated: log lines, SLOs, real networks, and loads that nobody thought of.
"""

import argparse
import dataclasses
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml
from tests.bench.notifications import AlertTimeline, notifications
from tests.release_tools import tool
from tests.rules.cases import promtool_document
from tests.rules.series import BUSY, CLUSTER, STEP, Series, SimulatedOsd, State, flat, merged

from cephqos_alerts.output.alertmanager import alertmanager_config
from cephqos_alerts.rules.findings import KEPT
from cephqos_alerts.rules.settings import RuleSettings

HOSTS: Final = 5
PER_HOST: Final = 10
OSDS: Final = HOSTS * PER_HOST
MINUTES: Final = 80
FLEETS: Final = (100, 1000, 3000)
WEEK: Final = 7 * 86400.0
# At most so many in a week, and so many critical ones of a name in a fault.
HEALTHY_CRITICAL, HEALTHY_WARNINGS, CRITICAL_OF_A_CAUSE = 0, 3, 1

_WORKS: Final = State(client=400, in_progress=(1, 2, 0, 1), replica_writes=200, recovery=0)
_BURST: Final = replace(BUSY, client=1900)
_FULL: Final = replace(BUSY, client=700, immediate=1400, replica_writes=700, replica_latency=0.02)
_FLOODED: Final = replace(BUSY, client=600, recovery=1400, replica_writes=300)
_RECOVERS: Final = replace(_WORKS, recovery=200)
# Much in progress that ends late, on OSDs with nothing to do: the network between them drops.
_DROPS: Final = replace(
    BUSY, client=70, store=0.5, store_latency=0.005, waiting=2, queue=(0, 0, 0, 0),
    write_latency=0.5, replica_writes=60, replica_latency=0.006,
)  # fmt: skip
_GONE: Final = replace(_WORKS, scrape=False)

Timeline = Sequence[tuple[float, State]]


@dataclass(frozen=True)
class FleetSituation:
    """What happens to 50 OSDs; `copies` of a fleet of n×50 have it, or all of them."""

    name: str
    timelines: Sequence[Timeline]  # of each OSD
    more: Series
    lasts: bool  # all week again and again, or once
    copies: int = 0
    one_after_another: bool = False
    up: Mapping[int, str] = dataclasses.field(default_factory=dict)  # of the map, by OSD
    answers: Mapping[int, str] = dataclasses.field(default_factory=dict)  # exporters, by host


def _all(*timeline: tuple[float, State]) -> list[Timeline]:
    return [timeline] * OSDS


def _healthy() -> list[Timeline]:
    """A burst on another host every few minutes."""
    return [
        (
            (5 + 2 * (osd % HOSTS), _WORKS),
            *((1.5, _BURST), (13.5, _WORKS)) * 4,
            (MINUTES - 65 - 2 * (osd % HOSTS), _WORKS),
        )
        for osd in range(OSDS)
    ]


def _upgraded() -> tuple[list[Timeline], dict[int, str]]:
    """Each host in its turn is away for four minutes."""
    lines: list[Timeline] = []
    up: dict[int, str] = {}
    for osd in range(OSDS):
        before = 5 + 14 * (osd // PER_HOST)
        after = MINUTES - before - 4
        lines.append(((before, _WORKS), (4, _GONE), (after, _WORKS)))
        up[osd] = f"1x{before * 4 + 1} 0x13 1x{after * 4}"
    return lines, up


def _host_lost() -> FleetSituation:
    line = ((20, _WORKS), (60, _GONE))
    rest = ((20, _WORKS), (10, _WORKS), (50, _RECOVERS))
    return FleetSituation(
        "one host lost",
        [line if osd < PER_HOST else rest for osd in range(OSDS)],
        {},
        lasts=False,
        copies=1,
        up={osd: "1x82 0x238" for osd in range(PER_HOST)},
        answers={0: "1x79 0x240"},
    )


def _bad_rack() -> FleetSituation:
    """Two of five hosts: heartbeats to many peers are slow, and writes wait."""
    more: Series = {}
    for osd in range(2 * PER_HOST):
        peer = {"cluster": CLUSTER, "ceph_daemon": f"osd.{osd}", "instance": f"host{osd // 10}"}
        worst = f"osd.{(osd + 7) % 20}"
        more |= flat("cephqos_network_slow_peers", "0x80 15x240", interface="back", **peer)
        more |= flat("cephqos_network_worst_peer_info", 1, interface="back", peer=worst, **peer)
    bad = ((20, replace(_WORKS, client=1400, replica_writes=1000)), (60, _DROPS))
    good = ((20, replace(_WORKS, client=1400, replica_writes=1000)), (60, _WORKS))
    lines = [bad if osd < 2 * PER_HOST else good for osd in range(OSDS)]
    return FleetSituation("bad rack switch", lines, more, lasts=False, copies=2)


def situations() -> list[FleetSituation]:
    upgraded, up = _upgraded()
    return [
        FleetSituation("healthy", _healthy(), {}, lasts=True),
        FleetSituation(
            "saturated", _all((5, _WORKS), *((25, _FULL), (12.5, _WORKS)) * 2), {}, lasts=True
        ),
        FleetSituation("rolling upgrade", upgraded, {}, lasts=False, up=up, one_after_another=True),
        _host_lost(),
        FleetSituation(
            "flood of recovery", _all((15, _WORKS), (55, _FLOODED), (10, _WORKS)), {}, lasts=False
        ),
        _bad_rack(),
    ]


def series_of(situation: FleetSituation) -> Series:
    osds = [
        SimulatedOsd(line, id=osd, instance=f"host{osd // PER_HOST}")
        for osd, line in enumerate(situation.timelines)
    ]
    cluster = {"job": "cephqos", "instance": "mon1"}
    steady = f"1x{MINUTES * 4}"
    hosts = merged(
        *(
            flat("up", situation.answers.get(host, steady), job="cephqos", instance=f"host{host}")
            for host in range(HOSTS)
        ),
        flat("up", steady, **cluster),
        flat("cephqos_cluster_up", steady, cluster=CLUSTER, reason="", **cluster),
        *(
            flat(
                "cephqos_cluster_osd_up",
                situation.up.get(osd, steady),
                cluster=CLUSTER,
                ceph_daemon=f"osd.{osd}",
                **cluster,
            )
            for osd in range(OSDS)
        ),
    )
    return merged(*osds, hosts, situation.more)


_GOT: Final = re.compile(r"time: (\w+),\s+exp:[^\n]*\s+got:([^\n]*(?:\n {8,}[^\n]*)*)")
_SAMPLE: Final = re.compile(r"\{([^}]*)\}")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_EVERY: Final = 'ALERTS{alertstate="firing", alertname!="CephQosWatchdog"}'


def alerts_of(series: Series, minutes: int = MINUTES) -> list[AlertTimeline]:
    """What fires on these series, minute by minute, by all rules."""
    document = promtool_document("every", [])
    document["tests"] = [
        {
            "interval": f"{STEP}s",
            "input_series": [{"series": it, "values": values} for it, values in series.items()],
            # Nothing is expected, so promtool prints what there is.
            "promql_expr_test": [
                {"expr": _EVERY, "eval_time": f"{minute}m"} for minute in range(minutes + 1)
            ],
        }
    ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test.yml").write_text(yaml.dump(document, Dumper=yaml.CSafeDumper))
        argv = [*tool("tentacle", "promtool"), "test", "rules", "test.yml"]
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, timeout=3600, check=False
        )
    return _timelines(done.stdout + done.stderr, minutes)


def _timelines(said: str, minutes: int) -> list[AlertTimeline]:
    fires: dict[tuple[tuple[str, str], ...], set[int]] = {}
    for time, got in _GOT.findall(said):
        hours, mins = (re.search(rf"(\d+){unit}", time) for unit in "hm")
        at = 60 * int(hours[1] if hours else 0) + int(mins[1] if mins else 0)
        for sample in _SAMPLE.findall(got):
            labels = dict(_LABEL.findall(sample))
            del labels["__name__"], labels["alertstate"]
            fires.setdefault(tuple(sorted(labels.items())), set()).add(at)
    return [
        AlertTimeline(dict(labels), _intervals(at, minutes)) for labels, at in sorted(fires.items())
    ]


def _intervals(minutes: set[int], end: int) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for minute in sorted(minutes):
        begin, over = minute * 60.0, (minute + 1) * 60.0
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], over)
        else:
            found.append((begin, over))
    return found


_KEPT: Final = {
    (rule["alert"], rule["labels"]["severity"])
    for rules in Path("alerts/rules").glob("*.yml")
    for group in yaml.safe_load(rules.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
    if "keep_firing_for" in rule
}


def of_fleet(
    osds: int, situation: FleetSituation, its: Sequence[AlertTimeline],
    healthy: Sequence[AlertTimeline],
) -> list[AlertTimeline]:  # fmt: skip
    """The alerts of a week on so many OSDs."""
    copies = osds // OSDS
    affected = min(situation.copies or copies, copies)
    found: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for copy in range(copies):
        wrong = copy < affected
        lasts = situation.lasts or not wrong
        begin = copy * MINUTES * 60.0 if wrong and situation.one_after_another else 0.0
        for alert in its if wrong else healthy:
            labels = tuple(sorted(_renamed(alert.labels, copy).items()))
            for offset in _rounds(begin, lasts):
                found.setdefault(labels, []).extend(
                    (a + offset, b + offset) for a, b in alert.fires
                )
    shared: dict[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]] = {}
    alerts = []
    for labels, spans in found.items():
        fires = tuple(_kept(dict(labels), spans))
        alerts.append(AlertTimeline(dict(labels), shared.setdefault(fires, fires)))
    return alerts


def _rounds(begin: float, lasts: bool) -> Iterator[float]:
    yield begin
    while lasts and (begin := begin + MINUTES * 60) < WEEK:
        yield begin


def _renamed(labels: Mapping[str, str], copy: int) -> dict[str, str]:
    def osd(text: str) -> str:
        return re.sub(r"^osd\.(\d+)$", lambda it: f"osd.{int(it[1]) + copy * OSDS}", text)

    own = {key: osd(value) for key, value in labels.items()}
    if "instance" in own:
        own["instance"] += f"-{copy}"
    return own


def _kept(
    labels: Mapping[str, str], spans: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Spans that touch are one; those of an alert that is kept are longer."""
    longer = KEPT if (labels["alertname"], labels["severity"]) in _KEPT else 0.0
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end + longer, found[-1][1]))
        else:
            found.append((begin, end + longer))
    return found


@dataclass(frozen=True)
class BudgetRow:
    """A week of a fleet in a situation."""

    situation: str
    osds: int
    alerts: int  # single ones, all week
    critical: Mapping[str, int]  # incidents, by name
    critical_sent: int
    warnings: Mapping[str, int]
    warnings_sent: int

    def verdict(self) -> str:
        if self.situation == "healthy":
            fine = sum(self.critical.values()) <= HEALTHY_CRITICAL
            return "" if fine and self.warnings_sent <= HEALTHY_WARNINGS else "over the budget"
        return "over the budget" if max(self.critical.values(), default=0) > 1 else ""


def row(situation: FleetSituation, osds: int, alerts: Sequence[AlertTimeline]) -> BudgetRow:
    config: Any = yaml.safe_load(alertmanager_config(RuleSettings()))
    sent = notifications(config, alerts, WEEK)

    def opened(receiver: str) -> dict[str, int]:
        counts: dict[str, int] = {}
        for one in sent:
            if one.receiver == receiver and one.opens:
                counts[one.group[2]] = counts.get(one.group[2], 0) + 1
        return dict(sorted(counts.items()))

    return BudgetRow(
        situation=situation.name,
        osds=osds,
        alerts=sum(alert.labels["severity"] != "none" for alert in alerts),
        critical=opened("critical"),
        critical_sent=sum(it.receiver == "critical" for it in sent),
        warnings=opened("warning"),
        warnings_sent=sum(it.receiver == "warning" for it in sent),
    )


def table(rows: Sequence[BudgetRow]) -> str:
    """As in docs/operate/noise.md."""
    lines = [
        "| situation | OSDs | alerts | critical incidents | sent | warnings | sent |",
        "|---|---|---|---|---|---|---|",
    ]
    for it in rows:
        critical, warnings = (
            ", ".join(f"{count} {name}" for name, count in of.items()) or "0"
            for of in (it.critical, it.warnings)
        )
        lines.append(
            f"| {it.situation} | {it.osds:,} | {it.alerts:,} | {critical} | {it.critical_sent}"
            f" | {warnings} | {it.warnings_sent} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="the name of one situation, besides healthy")
    parser.add_argument("--save", type=Path, help="write the alerts of each situation here")
    arguments = parser.parse_args()
    every = situations()
    chosen = [it for it in every if it.name in ("healthy", arguments.only or it.name)]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(
            (it.name for it in chosen),
            pool.map(lambda it: alerts_of(series_of(it)), chosen),
            strict=True,
        ))  # fmt: skip
    if arguments.save:
        said = {name: [dataclasses.asdict(it) for it in alerts] for name, alerts in found.items()}
        arguments.save.write_text(json.dumps(said, indent=1))
    rows = [
        row(it, osds, of_fleet(osds, it, found[it.name], found["healthy"]))
        for it in chosen
        for osds in FLEETS
    ]
    print(table(rows))
    wrong = [it for it in rows if it.verdict()]
    for it in wrong:
        print(f"{it.situation}, {it.osds} OSDs: over the budget")
    return 3 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
