"""What evaluating all rules costs: a real Prometheus, and one recorded OSD shown many times over.

An OSD of the page in tests/golden is cut down to what rules read (the rest is ingested but never
evaluated) and multiplied; counters move, and clients of some OSDs want more than they get, for one
reason or another. Printed: how many series the rules record, by name and by level; the causes that
were found; CPU with rules less CPU without, at three sizes; and the line through them. Windows of
an hour and a day hold only what the bench lasts.
"""

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import yaml
from tests.by_signal import clean_up_when_ended

from cephqos_alerts.cli import DEFAULT_SLOS, load_slos
from cephqos_alerts.output.build import build_rules
from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.recorded import PerClass, PerOsd
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.programs import free_ports, tree_program

INTERVAL = 15.0
OSDS_PER_HOST = 50
_WARM = 420  # until violations have lasted their hold, so that alerts fire as well
BAR = 0.20  # of one core, for 1,000 OSDs
PAGE = Path("tests/golden/example_host.prom")
# Series of the recorded page that move at another speed: name and label, per second.
Rates = dict[tuple[str, str], float]
HEALTHY: Rates = {
    ("cephqos_cgroup_cpu_periods_total", ""): 10,
    ("cephqos_cgroup_cpu_throttled_periods_total", ""): 0,
    ("cephqos_qos_replica_writes_total", ""): 20,
    ("cephqos_qos_replica_write_seconds_total", ""): 0.4,
}
_WANTING: Rates = HEALTHY | {
    ("cephqos_qos_client_wait_seconds_total", ""): 3,
    ("cephqos_osd_op_latency_seconds_sum", 'op="write"'): 150,
}
_FULL: Rates = _WANTING | {("cephqos_qos_store_seconds_total", ""): 100}
# Why clients want more than they get. Every cause is looked at for them, whichever is found.
REASONS: tuple[Rates, ...] = (
    _FULL,
    # The device is slow, and others wait for it.
    _FULL
    | {
        ("cephqos_qos_store_kv_commit_seconds_total", ""): 2,
        ("cephqos_qos_replica_write_seconds_total", ""): 100,
    },
    # It waits for osd.1, which is of those.
    _WANTING | {("cephqos_ops_sampled_wait_seconds_total", 'event="subops"'): 30},
    # Recovery takes what clients lack.
    _FULL
    | {
        ("cephqos_qos_normalised_ops_total", 'class="background_recovery"'): 300,
        ("cephqos_qos_delivered_normalised_ops_total", ""): 350,
    },
    # All threads wait for a CPU, as a limit stops them.
    _FULL
    | {
        ("cephqos_threads_wait_seconds_total", 'group="tp_osd_tp"'): 4,
        ("cephqos_cgroup_cpu_throttled_periods_total", ""): 10,
    },
)
_SUBOPS = '{ceph_daemon="osd.0",cluster="c1",kind="client",event="subops",peer="osd.1"}'
_COUNTERS = ("_total", "_sum", "_count", "_bucket")
_LINE = re.compile(r"(\w+)(\{.*\})? (\S+)")
_CLUSTER = re.compile(r'cluster="[^"]*"')
_SHARD = re.compile(r'shard="(\d)"')

_OVER_TIME = (
    "process_cpu_seconds_total",
    "prometheus_rule_group_iterations_total",
    "prometheus_rule_group_iterations_missed_total",
)

Sample = tuple[str, str, float]  # name, labels, value


def _rate(sample: Sample, rates: Rates) -> float:
    """How fast it grows; without a speed of its own by its size."""
    name, labels, value = sample
    if not name.endswith(_COUNTERS):
        return 0
    for (moved, label), speed in rates.items():
        if moved == name and label in labels:
            return speed
    return max(value, 1.0) / 600


def used_names(rules: dict[str, str]) -> set[str]:
    """The metrics of exporters that rules read."""
    return set(re.findall(r"\b(?:cephqos|ceph)_[a-z0-9_]+", "".join(rules.values())))


def recorded_page(names: set[str]) -> list[Sample]:
    """One OSD of 18.2 under load, as far as rules read it, with the eight shards usual on SSDs."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        match = _LINE.fullmatch(line)
        if not match or match[1] not in names or 'ceph_daemon="osd.0"' not in (match[2] or ""):
            continue
        # What varies from scrape to scrape is not in the page.
        value = 0.1 if match[3] == "VARIES" else float(match[3])
        labels = _CLUSTER.sub('cluster="c1"', match[2]).replace("default", "mon")
        found.append((match[1], labels, value))
        if shard := _SHARD.search(labels):
            other = _SHARD.sub(f'shard="{int(shard[1]) + 4}"', labels)
            found.append((match[1], other, value))
    if "cephqos_ops_sampled_wait_seconds_total" in names:
        found.append(("cephqos_ops_sampled_wait_seconds_total", _SUBOPS, 1.0))
    return found


@contextlib.contextmanager
def served(samples: list[Sample], osds: int, wanting: float) -> Iterator[int]:
    """The port of a page for each host (/0, /1, …) on which the OSD stands so many times."""
    begin = time.monotonic()
    labels = [[text.replace("osd.0", f"osd.{i}") for _, text, _ in samples] for i in range(osds)]
    names = [name for name, _, _ in samples]
    speeds = [[_rate(it, rates) for it in samples] for rates in (HEALTHY, *REASONS)]

    def reason(osd: int) -> int:
        return 1 + osd % len(REASONS) if osd < wanting * osds else 0

    class RulesPage(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            elapsed = time.monotonic() - begin
            first = int(self.path.strip("/")) * OSDS_PER_HOST
            values = [
                [
                    f" {it[2] + speed * elapsed:.10g}\n"
                    for it, speed in zip(samples, own, strict=True)
                ]
                for own in speeds
            ]
            body = "".join(
                part
                for i, own in enumerate(labels[first : first + OSDS_PER_HOST], first)
                for line in zip(names, own, values[reason(i)], strict=True)
                for part in line
            ).encode()
            with contextlib.suppress(ConnectionError):  # a scrape that was given up
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with _running(ThreadingHTTPServer(("127.0.0.1", 0), RulesPage)) as port:
        yield port


@contextlib.contextmanager
def _running(server: ThreadingHTTPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def prometheus(rules: dict[str, str], target: int, osds: int) -> Iterator[str]:
    """A Prometheus of the reef tree on those pages with those rules; its address."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for file, text in rules.items():
            (directory / file).write_text(text)
        interval = f"{INTERVAL:g}s"
        config = {
            "global": {"scrape_interval": interval, "evaluation_interval": interval},
            "rule_files": [f"{directory}/*.yml"],
            "scrape_configs": [
                {
                    "job_name": "cephqos",
                    "static_configs": [
                        {
                            "targets": [f"127.0.0.1:{target}"],
                            "labels": {"__metrics_path__": f"/{host}", "instance": f"host{host}"},
                        }
                        for host in range(-(-osds // OSDS_PER_HOST))
                    ],
                }
            ],
        }
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(config))
        [port] = free_ports(1)
        argv = tree_program(find_release("reef"), "prometheus")
        argv += [f"--config.file={directory}/prometheus.yaml"]
        argv += [f"--storage.tsdb.path={directory}/data", "--log.level=error"]
        argv += [f"--web.listen-address=127.0.0.1:{port}"]
        process = subprocess.Popen(argv, process_group=0)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()  # nothing of it is kept, and a busy machine lets it take minutes to end
            process.wait(timeout=30)


def counted(url: str, label: str, series: str) -> dict[str, float]:
    """How many series there are, by one label."""
    query = urllib.parse.urlencode({"query": f"count by ({label}) ({series})"})
    with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=120) as reply:  # noqa: S310
        result = orjson.loads(reply.read())["data"]["result"]
    return {one["metric"].get(label, ""): float(one["value"][1]) for one in result}


def print_series(counts: Mapping[str, float], osds: int) -> None:
    """By name and by level; per OSD where a name is an OSD's."""
    levels: dict[str, float] = {}
    for name, count in sorted(counts.items()):
        level = name.split(":")[0]
        share = count / osds if level.startswith("osd") else count
        levels[level] = levels.get(level, 0) + share
        print(f"{'':8s}{name:58s} {share:8.2f}{' per OSD' if level.startswith('osd') else ''}")
    for level, share in sorted(levels.items()):
        print(f"{'':8s}{level:58s} {share:8.2f}{' per OSD' if level.startswith('osd') else ''}")


def line_through(points: Mapping[float, float]) -> tuple[float, float]:
    """Least squares: what there is at 0, and what each more adds."""
    count, total, cost = len(points), sum(points), sum(points.values())
    squares = sum(x * x for x in points)
    products = sum(x * y for x, y in points.items())
    slope = (count * products - total * cost) / (count * squares - total * total)
    return (cost - slope * total) / count, slope


def own_metric(url: str, name: str) -> float:
    """The sum of one of Prometheus' own metrics."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as reply:  # noqa: S310
        lines = reply.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


@dataclass(frozen=True)
class RulesCost:
    """What a Prometheus took, and what it says of its rules."""

    cpu: float  # seconds per second
    resident: float
    failed: float
    evaluated: float  # share of the evaluations that were due: a busy machine skips some
    series: Mapping[str, float]  # recorded, by name
    conditions: Mapping[str, float]  # OSDs of which it is true, by condition
    causes: Mapping[str, float]  # classes of OSDs that have it, by cause
    firing: Mapping[str, float]  # alerts, by name


# Set when the bench is ended by a signal: what waits ends its servers, too.
_ENDED = threading.Event()


def _wait(seconds: float) -> None:
    if _ENDED.wait(seconds):
        raise RuntimeError("the bench was ended")


def measure(
    samples: list[Sample], osds: int, rules: dict[str, str], arguments: argparse.Namespace
) -> RulesCost:
    """The CPU time of a Prometheus, over whole intervals; wall time would count neighbours."""
    with served(samples, osds, arguments.wanting) as target, prometheus(rules, target, osds) as url:
        _wait(_WARM)
        before = [own_metric(url, name) for name in _OVER_TIME], time.monotonic()
        _wait(arguments.seconds)
        after = [own_metric(url, name) for name in _OVER_TIME], time.monotonic()
        cpu, due, missed = (b - a for a, b in zip(before[0], after[0], strict=True))
        return RulesCost(
            cpu=cpu / (after[1] - before[1]),
            evaluated=1 - missed / due if due else 1,
            resident=own_metric(url, "process_resident_memory_bytes"),
            failed=own_metric(url, "prometheus_rule_evaluation_failures_total"),
            series=counted(url, "__name__", '{__name__=~".+:cephqos_.+|cephqos_slo:.+"}'),
            conditions=counted(url, "condition", PerOsd.CONDITION),
            causes=counted(url, "cause", PerClass.CAUSE),
            firing=counted(url, "alertname", 'ALERTS{alertstate="firing"}'),
        )


def report(title: str, bare: RulesCost, whole: RulesCost) -> float:
    """Print what rules cost for so many OSDs; the CPU time that they take if none is skipped."""
    rules = (whole.cpu - bare.cpu) / max(whole.evaluated, 0.01)
    print(
        f"{title}: rules {100 * rules:5.2f} % of a core (Prometheus"
        f" {100 * whole.cpu:.1f} % with them, {100 * bare.cpu:.1f} % without);"
        f" {sum(whole.series.values()):.0f} series recorded; {whole.failed:.0f} failed evaluations,"
        f" {100 * whole.evaluated:.0f} % of those due were made;"
        f" {whole.resident / 2**20:.0f} MiB, {bare.resident / 2**20:.0f} MiB without",
        flush=True,
    )
    for what, found in (
        ("conditions", whole.conditions),
        ("causes", whole.causes),
        ("alerts", whole.firing),
    ):
        said = ", ".join(f"{count:.0f} {name}" for name, count in sorted(found.items()))
        print(f"{'':8s}{what}: {said or 'none'}")
    return rules


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osds", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument(
        "--wanting", type=float, default=0.1, help="share of OSDs whose clients want more"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="DIR",
        help="rules to measure beside them, at the same time",
    )
    return parser.parse_args()


def main() -> int:
    arguments = read_arguments()
    sets = {"without": {}, "rules": build_rules(RuleSettings(), load_slos(DEFAULT_SLOS))}
    if arguments.against:
        sets["against"] = {it.name: it.read_text() for it in arguments.against.glob("*.yml")}
    samples = recorded_page(set().union(*(used_names(rules) for rules in sets.values())))
    print(f"{len(samples)} series of each OSD are read by rules", flush=True)
    end = time.strftime("%H:%M:%S", time.localtime(time.time() + _WARM + arguments.seconds))
    print(
        f"alerts need {_WARM / 60:g} minutes to fire, then {arguments.seconds:g} s are measured:"
        f" figures come at about {end}",
        flush=True,
    )
    # All at once: CPU time does not depend on what else runs as wall time does.
    with ThreadPoolExecutor(len(sets) * len(arguments.osds)) as pool:
        runs = {
            (osds, name): pool.submit(measure, samples, osds, rules, arguments)
            for osds in arguments.osds
            for name, rules in sets.items()
        }
        try:
            wait(runs.values())
        finally:
            _ENDED.set()
    costs = {}
    for osds in arguments.osds:
        bare, whole = runs[osds, "without"].result(), runs[osds, "rules"].result()
        assert whole.causes, "no OSD wants more: causes cost nothing here"
        print_series(whole.series, osds)
        costs[osds] = report(f"{osds:6d} OSDs", bare, whole)
        if (osds, "against") in runs:
            other = report(f"{'against':>11s}", bare, runs[osds, "against"].result())
            print(f"{'':8s}{costs[osds] / other:.2f} times as much CPU time")
    if 1000 in costs:
        print(f"1,000 OSDs: {100 * costs[1000]:.2f} % of a core, bar {100 * BAR:.0f} %")
    if len(costs) > 1:
        base, slope = line_through(costs)
        print(f"10,000 OSDs by the line through all points: {100 * (base + slope * 10_000):.0f} %")
    return 0 if costs.get(1000, 0.0) <= BAR else 1


if __name__ == "__main__":
    clean_up_when_ended()
    sys.exit(main())
