"""Which figure which release of Ceph has: from the contract in tests/contract."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.contract.releases import Release, releases
from tests.contract.verdict import Verdict, all_fields, all_shown, judge
from tests.reference.tables import code, page, table

CRIMSON: Final = "crimson"
_INTRODUCTION: Final = """
Which figures cephqos has on which release of Ceph. The page lists the figures that its rules,
dashboards, `cephqos top` and reports read. Tests compare it with what the exporter shows.
A release with * is written from Ceph's sources."""
_DIFFERING: Final = """
## Figures that some releases lack

*yes*: the figure is shown. A number: it is absent, and the second table says why."""


def by_release() -> str:
    every = sorted(releases(), key=lambda release: (release.name == CRIMSON, release.name))
    verdicts = {release.name: judge(release, all_shown()[release.name]) for release in every}
    differing = [
        field
        for field in sorted(all_fields())
        if any(field in v.absent for name, v in verdicts.items() if name != CRIMSON)
    ]
    reasons = sorted(
        {why for v in verdicts.values() for f, why in v.absent.items() if f in differing}
    )
    number = {why: str(n) for n, why in enumerate(reasons, 1)}
    same = {_series(field) for field in all_fields()} - {_series(field) for field in differing}
    no_crimson = same & {_series(field) for field in verdicts[CRIMSON].absent}
    return page(
        "Figures by release",
        _INTRODUCTION,
        table(("release", "OSD", "how it was tested"), (_row(release) for release in every)),
        _DIFFERING,
        table(
            ("figure", "class", "what it is", *(_title(release) for release in every)),
            [_cells(field, every, verdicts, number) for field in differing],
        ),
        table(("", "why a figure is absent"), [(number[why], why) for why in reasons]),
        "## On every release, but not on Crimson\n",
        _listed(no_crimson),
        "\n## On every release\n",
        _listed(same - no_crimson),
    )


def _listed(names: Iterable[str]) -> str:
    return "\n".join(f"- {code(name)}" for name in sorted(names))


def _title(release: Release) -> str:
    name = "Crimson" if release.name == CRIMSON else release.name
    return name if release.made == "recorded" else f"{name} *"


def _row(release: Release) -> Sequence[str]:
    version = release.osd_replies(release.moments[0])["version"]["version"]
    how = {
        "recorded": "replies of real daemons",
        "sources": "replies written from Ceph's sources; no such OSD was run",
    }[release.made]
    if release.name == CRIMSON:
        how = "replies in the shape of real ones"
    return _title(release), version, how


def _series(field: str) -> str:
    return field.partition("{")[0]


def _cells(
    field: str,
    every: Sequence[Release],
    verdicts: Mapping[str, Verdict],
    number: Mapping[str, str],
) -> Sequence[str]:
    absent = [verdicts[release.name].absent.get(field) for release in every]
    cls = field.partition('class="')[2].rstrip('"}')
    cells = ["yes" if why is None else number[why] for why in absent]
    return (code(_series(field)), cls, _about(_series(field)), *cells)


def _about(series: str) -> str:
    """The first sentence of its help."""
    text = next(found.help[series] for found in all_shown().values() if series in found.help)
    return text.partition(". ")[0].rstrip(".").replace("\n", " ")
