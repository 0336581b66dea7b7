"""The answer to each question of docs/internals/questions.md is where the page says."""

from pathlib import Path

import pytest
from tests.questions import LINK, Question, anchors, read, target

QUESTIONS = list(read())
MOST_CLICKS = 3


def reached(start: Path, clicks: tuple[str, ...]) -> Path:
    """The page behind links with these texts, one after the other."""
    page = start
    for text in clicks:
        links = dict(LINK.findall(page.read_text(encoding="utf-8")))
        assert text in links, f"{page} has no link {text!r}"
        page, _ = target(page, links[text])
    return page


def test_there_are_twenty_questions() -> None:
    assert len({question.asked for question in QUESTIONS}) == len(QUESTIONS) == 20


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.asked)
def test_the_answer_is_there_after_at_most_three_clicks(question: Question) -> None:
    assert not question.anchor or question.anchor in anchors(question.answer)
    for start, clicks in (
        (Path("docs/index.md"), question.clicks),
        (Path("README.md"), question.from_readme),
    ):
        assert len(clicks) <= MOST_CLICKS
        assert reached(start, clicks) == question.answer


def test_a_search_finds_each_answer_among_the_results_that_are_shown_first() -> None:
    """`python -m tests.questions` measures the places."""
    assert [it.asked for it in QUESTIONS if not 1 <= int(it.place) <= 10] == []


def test_a_link_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[here](there.md)\n", "utf-8")
    with pytest.raises(AssertionError, match="has no link 'elsewhere'"):
        reached(page, ("elsewhere",))
