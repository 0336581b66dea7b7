"""Recordings as OpenMetrics text with timestamps, in parts that promtool can take one by one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from cephqos_exporter.scrape.rendering import number_text
from cephqos_loadgen.archive.run_samples import RecordedRun, Samples
from cephqos_loadgen.run_recording.columns import labelled, parse, render

_SUFFIXES: Final = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count", "")}


@dataclass(frozen=True, slots=True)
class TypeLine:
    """What one `# TYPE` line says."""

    name: str
    type: str


def family_of(name: str, types: Mapping[str, str]) -> TypeLine:
    """The family of a sample name.

    OpenMetrics wants `_total` at the end of a counter's samples, and no other family with the name
    before it. A family that it would refuse gets the type unknown: the samples are the same.
    """
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if base != name and suffix in _SUFFIXES.get(types.get(base, ""), ()):
            return TypeLine(base, types[base])
    kind = types.get(name, "unknown")
    if kind == "counter" and name.endswith("_total"):
        base = name.removesuffix("_total")
        return TypeLine(base, kind) if base and base not in types else TypeLine(name, "unknown")
    return TypeLine(name, kind if kind in ("gauge", "summary") else "unknown")


def pages(
    recording: RecordedRun, added: Mapping[str, str], shift_ms: int = 0, most_bytes: int = 256 << 20
) -> Iterator[Iterator[str]]:
    """Pages of about `most_bytes` at most, each as its lines; one at least. A series is on one page
    only. `added` labels are put on every series, times are moved by `shift_ms`."""
    families: dict[TypeLine, list[str]] = {}
    for series in recording.series:
        families.setdefault(family_of(parse(series)[0], recording.types), []).append(series)
    plan: list[list[tuple[TypeLine, list[str]]]] = [[]]  # pages of families with their series
    size = 0
    for family in sorted(families, key=lambda family: family.name):
        for series in sorted(families[family]):
            # A line repeats the series; value and time take up to 45 characters.
            cost = len(recording.series[series]) * (len(series) + 150)
            if size and size + cost > most_bytes:
                plan.append([])
                size = 0
            size += cost
            page = plan[-1]
            if not page or page[-1][0] != family:
                page.append((family, []))
            page[-1][1].append(series)
    return (_page(recording, page, added, shift_ms) for page in plan)


def _page(
    recording: RecordedRun,
    page: list[tuple[TypeLine, list[str]]],
    added: Mapping[str, str],
    shift_ms: int,
) -> Iterator[str]:
    for family, names in page:
        yield f"# TYPE {family.name} {family.type}\n"
        for series in names:
            name, labels = parse(series)
            with_added = render(name, labelled(labels, added)) if added else series
            yield from _lines(with_added, recording.series[series], shift_ms)
    yield "# EOF\n"


def _lines(series: str, samples: Samples, shift_ms: int) -> Iterator[str]:
    for time in sorted(samples):
        seconds, milliseconds = divmod(time + shift_ms, 1000)
        yield f"{series} {number_text(float(samples[time]))} {seconds}.{milliseconds:03d}\n"
