"""A renderer remembers what it found valid; that must never show."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cephqos_exporter.families import Family, FamilyType
from cephqos_exporter.labels import Labels, LabelText, render_labels
from cephqos_exporter.scrape import validity
from cephqos_exporter.scrape.rendering import Renderer, render
from cephqos_exporter.scrape.validity import Seen

OSD = render_labels({"ceph_daemon": "osd.0"})

LABELS = st.sampled_from(
    [
        OSD,
        LabelText(""),
        render_labels({"a": "100 %s"}),
        render_labels({"a": "\0"}),
        LabelText('a="1",a="2"'),
        LabelText("x"),
    ]
)
VALUES = st.sampled_from([0, 1, 2.5, -1, -0.0, True, 2**70, float("nan"), float("inf")])
SUFFIXES = st.sampled_from(["", "", "_sum", "_count", "_bucket", "_odd"])
NAMES = st.sampled_from(["x", "x_sum", "y", "bad name", "%s", "0"])
TYPES: st.SearchStrategy[FamilyType] = st.sampled_from(["gauge", "counter", "histogram"])
FAMILIES = st.builds(
    Family,
    NAMES,
    TYPES,
    st.sampled_from(["Help.", "Other help."]),
    st.lists(st.tuples(SUFFIXES, LABELS, VALUES), max_size=4),
)
# The same series come again with other values: what the renderer is made for.
SCRAPES = st.lists(st.lists(FAMILIES, max_size=4), min_size=1, max_size=3)


def with_values(families: Sequence[Family], values: Sequence[float]) -> list[Family]:
    return [
        Family(
            f.name,
            f.type,
            f.help,
            [(s, labels, v) for (s, labels, _), v in zip(f.samples, values, strict=False)],
        )
        for f in families
    ]


def test_what_was_found_valid_may_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels come and go for years; what has none, as the exporter's own figures, stays valid."""
    monkeypatch.setattr(validity, "VALID_BYTES_AT_MOST", 10_000)
    own = Family("x", "gauge", "Help.", [("", LabelText(""), 1.0)])
    for i in range(200):
        came = Family("y", "gauge", "Help.", [("", render_labels({"a": f"{i}" * 20}), 1.0)])
        assert render([came, own]).left_out == 0
    assert len(validity._valid_labels) < 200


def test_half_an_operation_is_left_out() -> None:
    """OpenMetrics has whole numbers in buckets and counts; a histogram goes as a whole."""
    one, rest = render_labels({"le": "1"}), render_labels({"le": "+Inf"})

    def families(bucket: float, count: float) -> list[Family]:
        buckets = [("_bucket", one, bucket), ("_bucket", rest, 9.0), ("_count", LabelText(""), 9)]
        summary = [("_sum", LabelText(""), 0.5), ("_count", LabelText(""), count)]
        return [Family("h", "histogram", "H.", buckets), Family("s", "summary", "S.", summary)]

    renderer = Renderer()
    for bucket, count, shown, left_out in (
        (5, 7, "hs", 0),
        (5.0, 7.0, "hs", 0),
        (5.5, 7, "s", 3),
        (5, 7.5, "hs", 1),
        (6, 8, "hs", 0),
    ):
        found = renderer.render(families(bucket, count), Seen())
        assert ("".join(found.heads.names), found.left_out) == (shown, left_out)


def test_labels_that_are_kept_have_a_bound() -> None:
    labels = Labels(OSD, most=10_000)
    for i in range(1000):
        text = labels.of("a", str(i))
        assert text == f'{OSD},a="{i}"'
        assert labels.of("a", str(i)) is text
    assert len(labels._kept) < 40


@settings(max_examples=300)
@given(SCRAPES, st.lists(VALUES, min_size=4, max_size=4), st.lists(FAMILIES, max_size=2))
def test_what_was_rendered_before_changes_nothing(
    scrapes: list[list[Family]], values: list[float], before: list[Family]
) -> None:
    renderer = Renderer()
    for families in scrapes:
        for given_now in (families, with_values(families, values), families):
            there, also_there = Seen(), Seen()
            render(before, there)
            render(before, also_there)
            assert renderer.render(given_now, there) == render(given_now, also_there)
            # and whatever follows on the page meets the same series
            assert render(families, there) == render(families, also_there)


def counts(*values: float) -> list[Family]:
    labels = [render_labels({"le": bound}) for bound in ("1", "2", "+Inf")]
    buckets = [("_bucket", own, value) for own, value in zip(labels, values, strict=True)]
    gauge = Family("g", "gauge", "Help.", [("", OSD, 1)])
    return [Family("h", "histogram", "Help.", buckets), gauge]


@pytest.mark.parametrize("values", [(1, 3, 2), (1, 2, float("nan")), (-1, 2, 3)])
def test_a_histogram_that_was_fit_is_looked_at_again(values: tuple[float, ...]) -> None:
    renderer = Renderer()
    assert renderer.render(counts(1, 2, 3), Seen()).left_out == 0
    rendered = renderer.render(counts(*values), Seen())
    assert rendered.heads.names == ("g",)
    assert rendered.left_out == 3
    assert renderer.render(counts(1, 2, 3), Seen()).left_out == 0


def test_a_gauge_below_0_stays_and_a_counter_that_was_fit_goes() -> None:
    def made(gauge: float, counter: float) -> list[Family]:
        return [
            Family("g", "gauge", "Help.", [("", OSD, gauge)]),
            Family("c", "counter", "Help.", [("", OSD, counter)]),
        ]

    renderer = Renderer()
    for gauge, counter, left_out in ((-1, 1, 0), (-2, 2, 0), (-3, -1, 1), (3, 3, 0)):
        assert renderer.render(made(gauge, counter), Seen()).left_out == left_out
