"""Every metric: from the pages of the golden tests, which real daemons of each release gave; those
that no page has, from the code; and those of test runs."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.reference.tables import code, page, table

from cephqos_exporter.collectors.mclock import in_force
from cephqos_exporter.config import Settings
from cephqos_exporter.flight_recorder.recorder import Recorder
from cephqos_loadgen.live.metrics import METRICS as OF_RUNS

_GOLDEN: Final = Path("tests/golden")
_HOST: Final = _GOLDEN / "example_host.prom"
_CLUSTER: Final = (
    _GOLDEN / "example_cluster_scrub.prom",
    _GOLDEN / "example_cluster_recovery.prom",
)
# The OSDs of the golden host, as tests/golden/test_exporter_page.py lists them.
_RELEASES: Final = {
    "osd.0": "18.2",
    "osd.1": "20.2",
    "osd.2": "16.2",
    "osd.3": "Crimson",
    "osd.4": "18.2",
}
_ORDER: Final = ("16.2", "18.2", "20.2", "Crimson")
_META: Final = re.compile(r"^# (HELP|TYPE) (\S+) (.*)$")
_SAMPLE: Final = re.compile(r"^(\w+)(?:\{(.*)\})? \S+$")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
METRIC: Final = re.compile(r"cephqos_[a-z0-9_]*[a-z0-9]")
_SUFFIX: Final = re.compile(r"_(?:bucket|sum|count)$")
# Every series of a daemon or cluster has these.
_COMMON: Final = frozenset({"ceph_daemon", "cluster", "le", "quantile"})


@dataclass
class Metric:
    """One family, as all pages together show it."""

    name: str
    type: str = "unknown"
    help: str = ""
    labels: set[str] = field(default_factory=set)
    releases: set[str] = field(default_factory=set)

    def row(self) -> tuple[str, ...]:
        known = [release for release in _ORDER if release in self.releases]
        labels = ", ".join(code(label) for label in sorted(self.labels - _COMMON))
        everywhere = len(known) == len(_ORDER) or not known
        return (
            code(self.name),
            self.type,
            labels,
            "" if everywhere else ", ".join(known),
            self.help,
        )


def read(pages: Iterable[Path]) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for file in pages:
        for line in file.read_text(encoding="utf-8").splitlines():
            if meta := _META.match(line):
                metric = found.setdefault(meta[2], Metric(meta[2]))
                setattr(metric, meta[1].lower(), meta[3].replace("\\n", " "))
            elif sample := _SAMPLE.match(line):
                labels = dict(_LABEL.findall(sample[2] or ""))
                name = sample[1] if sample[1] in found else _SUFFIX.sub("", sample[1])
                found[name].labels |= labels.keys()
                if release := _RELEASES.get(labels.get("ceph_daemon", "")):
                    found[name].releases.add(release)
    return found


_HEAD: Final = ("metric", "type", "labels", "only on", "what it is")


def _by_subsystem(metrics: Iterable[Metric]) -> str:
    """`cephqos_<subsystem>_…`: the subsystem is the collector's name."""
    groups: dict[str, list[Metric]] = defaultdict(list)
    for metric in metrics:
        own = metric.name.startswith("cephqos_")
        groups[metric.name.split("_")[1] if own else "the exporter's process"].append(metric)
    order = sorted(groups, key=lambda name: (" " in name, name))
    return "\n".join(
        f"### {name}\n" + table(_HEAD, (it.row() for it in groups[name])) for name in order
    )


def _host() -> dict[str, Metric]:
    """With the metrics of the recorder, which golden pages are without."""
    recorder = Recorder(Settings())
    recorder._lost["disk"] += 1
    found = read([_HOST])
    for it in recorder.families():
        labels = {label for _, text, _ in it.samples for label, _ in _LABEL.findall(text)}
        found[it.name] = Metric(it.name, it.type, it.help, labels)
    return found


def everything() -> dict[str, Metric]:
    """Of all roles."""
    return _host() | read([_HOST, *_CLUSTER])


def in_code() -> dict[str, tuple[str, str]]:
    """Type and help of each metric that is written as a name, perhaps its type, and a sentence."""
    found: dict[str, tuple[str, str]] = {
        family.name: (family.type, family.help)
        for names, where in (
            (in_force._TARGETS, "on this OSD"),
            (in_force._CLUSTER_TARGETS, "over all OSDs"),
        )
        for family in in_force._of_policy(names, where).values()
    }
    for file in sorted(Path("exporter/cephqos_exporter").rglob("*.py")):
        for name, kind, sentence in _written(ast.parse(file.read_text(encoding="utf-8"))):
            found.setdefault(name, (kind, sentence))
    return found


def _written(module: ast.Module) -> Iterator[tuple[str, str, str]]:
    texts = {
        node.targets[0].id: node.value.value
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(module):
        if not isinstance(node, ast.Call | ast.Tuple):
            continue
        parts = node.args if isinstance(node, ast.Call) else node.elts
        said = [texts.get(it.id) if isinstance(it, ast.Name) else it for it in parts]
        words = [it.value if isinstance(it, ast.Constant) else it for it in said]
        if not words or not isinstance(words[0], str) or not METRIC.fullmatch(words[0]):
            continue
        kind = (
            node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        )
        kinds = [it for it in (kind, *words[1:]) if it in ("counter", "gauge", "histogram")]
        sentences = [it for it in words[1:] if isinstance(it, str) and it not in kinds]
        if sentences:
            unit = "counter" if words[0].endswith("_total") else "gauge"
            yield words[0], kinds[0] if kinds else unit, sentences[0]


def _of_runs() -> Iterable[tuple[str, ...]]:
    for name, it in OF_RUNS.items():
        yield code(name), it.type, ", ".join(map(code, it.labels)), "", it.help


def metrics() -> str:
    host, cluster = _host(), read(_CLUSTER)
    ours = [it for it in host.values() if not it.name.startswith("ceph_")]
    cephs = [it for it in host.values() if it.name.startswith("ceph_")]
    known = {it.name for it in ours}
    return page(
        "Metrics",
        """
Every series of a daemon has the labels `ceph_daemon` and `cluster`; every series of a cluster has
`cluster`. They are not repeated below. *Only on* names the releases whose OSDs gave the metric when
they were recorded; empty: all of them, or it is not about an OSD.

## Role osd
""",
        _by_subsystem(ours),
        "\n## Role cluster\n",
        _by_subsystem(it for it in cluster.values() if it.name not in known),
        """
## On no recorded page

What the recorded daemons and clusters had no reason to show: options that are off, devices that
they lack, figures that are not there by chance.
""",
        table(
            ("metric", "type", "what it is"),
            (
                (code(name), kind, sentence)
                for name, (kind, sentence) in sorted(in_code().items())
                if name not in known | cluster.keys()
            ),
        ),
        f"""
## Ceph's own counters

The collector `perf` shows Ceph's counters with the names of Ceph's own exporter. These {len(cephs)}
have a priority of 5 or more, or are named in `--collector.perf.include`.
""",
        table(_HEAD, (it.row() for it in cephs)),
        """
## Test runs

What `cephqos run` serves while it runs. All have the labels `run` and `cluster` (the fsid). `load`
is the phase. `client` is one fio process, or the pool of one rados bench instance. Rates exist only
while the client works. The histogram has all bounds of the OSDs' own, so the two can be compared.
""",
        table(_HEAD, _of_runs()),
    )
