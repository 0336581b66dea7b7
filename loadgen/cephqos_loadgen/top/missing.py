"""What cannot be shown, and why: a wrong address, an old exporter, no rules, no mClock."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from cephqos_base.version import __version__
from cephqos_loadgen.top.figures import FIGURES, Selection
from cephqos_loadgen.top.picture import Missing, TopSamples

_MCLOCK: Final = "mclock_scheduler"


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the view, the figure that it needs, and the exporter's collector of that figure."""

    what: str
    figure: str
    collector: str


_PARTS: Final = (
    _Part("schedulers and reservations", "scheduler", "mclock"),
    _Part("attained work", "attained", "mclock"),
    _Part("client latency", "latency", "histograms"),
    _Part("threads", "threads", "threads"),
)


def find_missing(samples: TopSamples, selection: Selection) -> tuple[Missing, ...]:
    """What cannot be shown, the most important first. `samples` are those of one cluster."""
    if not samples.of("up") and not samples.of("cluster_up"):
        return (*samples.troubles, _everything(samples, selection))
    return (
        *samples.troubles,
        *_rules(samples),
        *_rates(samples),
        *_parts(samples),
        *_without_mclock(samples),
        *_lag(samples),
        *_cluster(samples),
        *_versions(samples),
    )


def _everything(samples: TopSamples, selection: Selection) -> Missing:
    if selection.cluster is not None:
        return Missing("everything", f"no series of cluster {selection.cluster}")
    if samples.from_prometheus:
        return Missing(
            "everything",
            "this Prometheus has no series of cephqos-exporter: is the exporter in its"
            " scrape_configs, and up on its page /targets?",
        )
    return Missing("everything", "no exporter sees a daemon: does it run on a host with OSDs?")


def _rules(samples: TopSamples) -> Iterator[Missing]:
    if not samples.from_prometheus:
        yield Missing(
            "causes and alerts",
            "they come from rules in Prometheus: use --url. `behind` is judged from this moment",
        )
    elif not samples.rules and samples.with_rates:
        yield Missing(
            "violations and causes",
            "this Prometheus does not have the rules of cephqos (`cephqos rules build`)."
            " `behind` is judged from this moment",
        )


def _rates(samples: TopSamples) -> Iterator[Missing]:
    if samples.with_rates:
        return
    if not samples.from_prometheus:
        yield Missing("rates", "they need a second scrape, which follows")
    elif not all(samples.of(part.figure) for part in _PARTS):
        yield Missing(
            "rates and causes", "Prometheus began to scrape less than --window ago: they follow"
        )


def _parts(samples: TopSamples) -> Iterator[Missing]:
    """Series that every exporter of this version has for every OSD that is up."""
    up = [osd for (_, osd, _), value in samples.of("up").items() if value]
    if not any(osd.startswith("osd.") for osd in up):
        return
    for part in _PARTS:
        figure = FIGURES[part.figure]
        if samples.of(part.figure) or (figure.is_rate and not samples.with_rates):
            continue
        why = f"no {figure.metric}: the exporter is too old, or its collector {part.collector}"
        why += " is disabled or fails"
        if figure.is_rate and samples.from_prometheus:
            why += ", or --window is shorter than two scrape intervals"
        yield Missing(part.what, why)


def _without_mclock(samples: TopSamples) -> Iterator[Missing]:
    """WPQ reserves nothing, unless a policy file says what should be kept."""
    by_scheduler: dict[str, list[str]] = {}
    for _, osd, in_force, _, _, reservations in samples.of("scheduler"):
        if in_force != _MCLOCK and reservations == "none":
            by_scheduler.setdefault(in_force or "an unknown scheduler", []).append(osd)
    for scheduler, osds in sorted(by_scheduler.items()):
        yield Missing(
            f"reservations of {some(osds)}",
            f"they run {scheduler}, which has no reservations (a policy file can set targets)",
        )


def _lag(samples: TopSamples) -> Iterator[Missing]:
    """Nothing is read of the mClock of early releases."""
    up = {osd for (_, osd, _), value in samples.of("up").items() if value}
    with_mclock = [osd for _, osd, in_force, *_ in samples.of("scheduler") if in_force == _MCLOCK]
    with_lag = {osd for _, osd, _ in samples.of("lag")}
    if without_lag := [osd for osd in with_mclock if osd in up and osd not in with_lag]:
        yield Missing(
            f"queues and lag of {some(without_lag)}",
            "their release has an mClock that is not supported (16.2, early 17.2)",
        )


def _cluster(samples: TopSamples) -> Iterator[Missing]:
    states = samples.of("cluster_up")
    if not states:
        yield Missing("recovery and scrub", "no exporter runs with --role=cluster")
    for (_, reason), up in sorted(states.items()):
        if not up:
            yield Missing("recovery and scrub", f"no answer from the monitors: {reason}")


def _versions(samples: TopSamples) -> Iterator[Missing]:
    others = sorted(version for (version,) in samples.of("version") if version != __version__)
    if others:
        yield Missing(
            "some series, perhaps",
            f"exporters of version {', '.join(others)}; this is cephqos {__version__}",
        )


def some(osds: Iterable[str]) -> str:
    """`osd.0`, `osd.0, osd.1`, `24 OSDs`."""
    names = list(osds)
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} OSDs"
