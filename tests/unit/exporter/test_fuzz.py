"""A thousandth of `make fuzz`, and that it would notice what it looks for."""

import random

import pytest
from tests.fuzz.replies import Figures, absurd, fuzz, refused

from cephqos_exporter.families import Family
from cephqos_exporter.labels import render_labels
from cephqos_exporter.scrape.exposition import Page
from cephqos_exporter.scrape.rendering import render

HEAD = "# HELP a Help.\n# TYPE a counter\n"


async def test_mutated_replies_lose_no_page_and_make_none_that_prometheus_refuses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    figures = Figures()
    await fuzz(1000, seed, figures)
    again = f"python -m tests.fuzz.replies --replies 1000 --seed {seed}"
    with capsys.disabled():
        print(f"\n{again}")
    assert not figures.bad, f"{figures.why}\nonce more: {again}"
    assert figures.replies >= 1000
    assert figures.failures > 100, "the mutations do hurt, and it shows"


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (HEAD + 'a{b="c"} 1\na{b="d"} 2\n', ""),
        (HEAD + "a 1\n" + HEAD.replace("a", "z") + "z 1\n", ""),
        (HEAD + 'a{b="c"} 1\na{b="c"} 2\n', "a series twice"),
        (HEAD + "a 1\n" + HEAD + 'a{b="c"} 2\n', "a family twice"),
        (HEAD + "a b 1\n", "not the format"),
        (HEAD + 'a{b="c\n"} 1\n', "not the format"),
        (HEAD + 'a{é="c"} 1\n', "not the format"),
        (HEAD + "a x\n", "not the format"),
        ("a 1\n", "not the format"),
    ],
)
def test_a_page_that_prometheus_would_refuse_is_noticed(page: str, why: str) -> None:
    found = refused(page, "", thorough=False)
    assert found.startswith(why) if why else found == ""


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "-1e-9"])
def test_an_absurd_sample_is_noticed(value: str) -> None:
    assert list(absurd(f"{HEAD}a 1\na{{}} {value}\n")) == [f"a{{}} {value}"]
    assert not list(absurd(f"{HEAD}a 1e-9\n"))
    assert not list(absurd(f"{HEAD}a 1\n".replace("counter", "gauge").replace(" 1\n", " -1\n")))


def test_what_the_exporter_writes_is_what_the_fuzz_takes_for_valid() -> None:
    page = Page()
    page.add(
        render(
            [Family("x", "gauge", 'a "b" \\ c', [("", render_labels({"a": 'b"\\\nc'}), 1.5e-300)])]
        )
    )
    text, openmetrics = (page.body(openmetrics=one).decode() for one in (False, True))
    assert refused(text, openmetrics, thorough=True) == ""
