"""The two formats: read back by prometheus_client's parsers, and byte for byte where it matters."""

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from cephqos_exporter.families import Family
from cephqos_exporter.labels import LabelText, extend_labels, render_labels
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import render
from cephqos_exporter.scrape.validity import Seen

OSD = render_labels({"ceph_daemon": "osd.0", "cluster": "c"})
OTHER = extend_labels(OSD, {"a": "b"})


def parse_text(page: str) -> Iterable[Metric]:
    return text_parser.text_string_to_metric_families(page)


def parse_openmetrics(page: str) -> Iterable[Metric]:
    families: Iterable[Metric] = openmetrics_parser.text_string_to_metric_families(page)  # type: ignore[no-untyped-call]
    return families


def page(*families: Family) -> Page:
    made = Page()
    made.add(render(families))
    return made


def text(*families: Family) -> str:
    return page(*families).body(openmetrics=False).decode()


def openmetrics(*families: Family) -> str:
    return page(*families).body(openmetrics=True).decode()


def family(name: str, kind: str = "gauge", *samples: tuple[str, LabelText, float]) -> Family:
    return Family(name, kind, "Help.", list(samples))  # type: ignore[arg-type]


def test_a_gauge_is_written_as_both_formats_want_it() -> None:
    gauge = family("cephqos_x", "gauge", ("", OSD, 1.5))
    lines = (
        "# HELP cephqos_x Help.\n# TYPE cephqos_x gauge\n"
        'cephqos_x{ceph_daemon="osd.0",cluster="c"} 1.5\n'
    )
    assert text(gauge) == lines
    assert openmetrics(gauge) == lines + "# EOF\n"


def test_a_counter_of_ours_loses_total_in_the_openmetrics_header_only() -> None:
    counter = family("cephqos_x_total", "counter", ("", OSD, 2))
    assert "# TYPE cephqos_x_total counter\n" in text(counter)
    assert "# TYPE cephqos_x counter\n" in openmetrics(counter)
    assert 'cephqos_x_total{ceph_daemon="osd.0",cluster="c"} 2\n' in openmetrics(counter)


def test_a_counter_of_cephs_is_unknown_in_openmetrics_under_the_same_name() -> None:
    counter = family("ceph_osd_op", "counter", ("", OSD, 7))
    assert "# TYPE ceph_osd_op counter\n" in text(counter)
    assert "# TYPE ceph_osd_op unknown\n" in openmetrics(counter)
    (parsed,) = parse_openmetrics(openmetrics(counter))
    assert [(s.name, s.value) for s in parsed.samples] == [("ceph_osd_op", 7)]


def test_unknown_is_called_untyped_in_the_text_format() -> None:
    assert "# TYPE x untyped\n" in text(family("x", "unknown", ("", OSD, 1)))


@pytest.mark.parametrize(
    ("value", "written"), [(True, "1"), (2**63, str(2**63)), (2**64, str(2**64)), (-0.0, "-0.0")]
)
def test_unusual_numbers_are_spelled_as_the_formats_want(value: float, written: str) -> None:
    # Beside a usual one: the fast way must not be taken for half of a family.
    mixed = family("x", "gauge", ("", OSD, value), ("", OTHER, 0.25))
    lines = text(mixed).splitlines()
    assert lines[2].endswith(f" {written}")
    assert lines[3].endswith(" 0.25")
    assert len(list(parse_openmetrics(openmetrics(mixed)))) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, -(10**400)])
def test_what_is_not_finite_is_left_out_and_counted(value: float) -> None:
    mixed = family("x", "gauge", ("", OSD, value), ("", OTHER, 0.25))
    rendered = render([mixed])
    assert (rendered.samples, rendered.left_out) == (1, 1)
    assert rendered.lines[0].endswith(" 0.25\n")


def test_a_part_of_a_histogram_is_left_out_with_the_rest() -> None:
    bounds = [extend_labels(OSD, {"le": le}) for le in ("1", "2", "+Inf")]

    def rendered(*counts: float) -> int:
        buckets = [("_bucket", text, n) for text, n in zip(bounds, counts, strict=True)]
        return render([family("x", "histogram", *buckets, ("_count", OSD, 3))]).samples

    assert rendered(1, 2, 3) == 4
    for counts in ((1, 2, -1), (2, 1, 3), (math.nan, 2, 3)):
        assert rendered(*counts) == 0


@pytest.mark.parametrize("kind", ["counter", "summary"])
@pytest.mark.parametrize("value", [-1, -1e-9, -(2**70)])
def test_a_count_below_0_is_left_out_and_a_gauge_is_not(kind: str, value: float) -> None:
    counts = family("x", kind, ("", OSD, value), ("_count", OTHER, 25))
    assert render([counts]).left_out == 1
    assert render([family("y", "gauge", ("", OSD, value))]).left_out == 0
    assert render([family("z", kind, ("", OSD, 1e-9))]).left_out == 0


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("ceph_a\nb", "ceph_a_b"),
        ('ceph_a"b c@d', "ceph_a_b_c_d"),
        ("ceph_é", "ceph__"),
        ("ceph_x\udcff", "ceph_x_"),
        ("3rd", "_3rd"),
        ("", "_"),
        ('a="b"', "a__b_"),
        ("x" * 10_000, "x" * 300),
    ],
)
def test_a_name_is_made_valid(name: str, written: str) -> None:
    odd = family(name, "gauge", ("", render_labels({"a": "b"}), 1))
    assert text(odd).splitlines()[-1] == f'{written}{{a="b"}} 1'
    assert len(list(parse_text(text(odd)))) == len(list(parse_openmetrics(openmetrics(odd)))) == 1


@pytest.mark.parametrize(
    "labels",
    [
        {"": "x"},
        {"1st": "x"},
        {"a b": "x"},
        {"é": "x"},
        {"a\n": "x"},
        {"ceph_daemon": "osd.7"},
        {"__name__": "up"},
        {"a": "x" * 5000},
    ],
)
def test_a_sample_with_labels_that_no_page_can_have_is_left_out(labels: dict[str, str]) -> None:
    bad = extend_labels(OSD, labels)
    mixed = family("x", "gauge", ("", bad, 1), ("", OTHER, 0.25))
    assert render([mixed])[2:4] == (1, 1)
    assert list(parse_text(text(mixed)))
    assert LabelText('a="b",') not in text(family("x", "gauge", ("", LabelText('a="b",'), 1)))


def test_half_characters_in_a_labels_value_and_in_help_are_replaced() -> None:
    odd = family("x", "gauge", ("", render_labels({"a": "osd.\udcff"}), 1))
    odd.help = "half \ud800"
    assert text(odd) == '# HELP x half ?\n# TYPE x gauge\nx{a="osd.?"} 1\n'


@pytest.mark.parametrize("help_text", [None, 3, ["a"], {"a": 1}])
def test_a_help_that_is_no_text_is_replaced(help_text: object) -> None:
    odd = family("x", "gauge", ("", OSD, 1))
    odd.help = help_text  # type: ignore[assignment]
    assert text(odd).startswith("# HELP x No description.\n")
    assert openmetrics(odd).startswith("# HELP x No description.\n")


def test_a_series_comes_once_whichever_families_have_it() -> None:
    seen = Seen()
    twice = family("x", "gauge", ("", OSD, 1), ("", OSD, 2), ("", OTHER, 3))
    assert render([twice], seen)[2:4] == (2, 1)
    again = family("x", "counter", ("", OTHER, 4))
    sums = family("y", "summary", ("_sum", OSD, 1))
    of_the_same_name = family("y_sum", "gauge", ("", OSD, 1))
    assert render([again, sums, of_the_same_name], seen)[2:4] == (1, 2)


@pytest.mark.parametrize("value", ["12", "1,2", None, [1], {"a": 1}, object()])
def test_what_is_no_number_is_refused_and_never_written(value: object) -> None:
    with pytest.raises(TypeError):
        render([family("x", "gauge", ("", OSD, value))])  # type: ignore[arg-type]


def test_families_come_in_order_of_name_and_each_once() -> None:
    one, two = family("b", "gauge", ("", OSD, 1)), family("a", "gauge", ("", OSD, 2))
    again = family("b", "gauge", ("", render_labels({"ceph_daemon": "osd.1"}), 3))
    lines = text(one, two, again).splitlines()
    assert [line for line in lines if line.startswith("# TYPE")] == [
        "# TYPE a gauge",
        "# TYPE b gauge",
    ]
    assert lines[-2:] == [
        'b{ceph_daemon="osd.0",cluster="c"} 1',
        'b{ceph_daemon="osd.1"} 3',
    ]


def test_a_family_without_samples_leaves_no_header() -> None:
    assert text(family("x")) == ""
    assert openmetrics(family("x")) == "# EOF\n"


def test_a_sample_without_labels_has_no_braces() -> None:
    assert text(family("x", "gauge", ("", LabelText(""), 1))).endswith("\nx 1\n")


def test_help_texts_are_escaped() -> None:
    odd = Family("x", "gauge", 'a\\b\n"c"', [("", OSD, 1)])
    (in_text,) = parse_text(text(odd))
    (in_openmetrics,) = parse_openmetrics(openmetrics(odd))
    assert in_text.documentation == in_openmetrics.documentation == 'a\\b\n"c"'


label_values = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), max_size=20
)
numbers = st.one_of(
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 1e-9),
    st.booleans(),
)


@given(st.lists(st.tuples(label_values, numbers), min_size=1, max_size=6, unique_by=lambda s: s[0]))
def test_whatever_the_labels_and_values_both_parsers_read_back_what_was_written(
    samples: list[tuple[str, float]],
) -> None:
    made = Family("cephqos_x", "gauge", "Help.")
    for label, value in samples:
        made.add(render_labels({"l": label}), value)

    def read(families: Iterable[Metric]) -> list[tuple[str, float]]:
        (parsed,) = families
        return [(s.labels["l"], s.value) for s in parsed.samples]

    # The text format's parser strips blanks around a whole line's parts; OpenMetrics' does not.
    assert read(parse_openmetrics(openmetrics(made))) == samples
    assert read(parse_text(text(made))) == samples
