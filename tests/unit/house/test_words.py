"""The check of words and sentences finds what it is for; `python -m tests.words` runs it."""

from pathlib import Path

import pytest
from tests.words import bars, replaced, texts
from tests.words.texts import Text


def page(folder: Path, text: str) -> Path:
    file = folder / "page.md"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_replaced_word_is_found_with_what_to_write() -> None:
    text = Text(Path("a.md"), 3, "Recovery  Reservations are full.")
    found = list(replaced.uses([text], [replaced.Replaced("recovery reservations", "slots")]))
    assert found == ["a.md:3: 'Recovery  Reservations': write 'slots'"]


def test_every_replaced_word_would_be_found_in_a_page(tmp_path: Path) -> None:
    words = replaced.read()
    file = page(tmp_path, "\n".join(f"- {one.word}" for one in words))
    lines = {line.split(":")[1] for line in replaced.uses(texts.of_page(file), words)}
    assert lines == {str(number + 1) for number in range(len(words))}


def test_code_is_no_prose(tmp_path: Path) -> None:
    file = page(tmp_path, "Type `promise`:\n```sh\npromise\n```\nthen wait.\n")
    assert [text.text for text in texts.of_page(file)] == ["Type code:", "then wait."]


def test_strings_of_a_module_are_read_and_its_docstrings_are_not(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('"""A docstring of it."""\nX = "what a user reads"\nY = "name"\n')
    assert [text.text for text in texts.of_module(file)] == ["what a user reads"]


def test_each_bar_fails_above_it(tmp_path: Path) -> None:
    hard = "Institutional internationalization necessitates organizational reconceptualization. "
    long = " ".join(["word"] * 41) + ". "
    cell = "| " + " ".join(["cell"] * 41) + " |\n"
    measured = bars.measure(page(tmp_path, hard * 600 + long + "\n\n" + cell))
    faults = "\n".join(measured.faults())
    assert "reading ease" in faults
    assert "more than 40 words" in faults
    assert "a cell above 40 words" in faults
    many = bars.measure(page(tmp_path, (" ".join(["word"] * 30) + ". ") * 1200))
    assert len(list(bars.faults_of_all([many]))) == 2


@pytest.mark.parametrize(
    "code",
    [
        'def f() -> None:\n    """{}\n    {}"""\n',
        'class C:\n    """One line.\n\n    {}\n    {}\n    """\n',
        "x = 1\n# {}\n# {}\n",
        "x = 1  # {} {}\n",
    ],
)
def test_docstrings_and_comments_of_the_product_are_read(tmp_path: Path, code: str) -> None:
    file = tmp_path / "loadgen" / "module.py"
    file.parent.mkdir()
    half = " ".join(["word"] * (bars.LONGEST // 2 + 1))
    file.write_text('"""Its head: a promise."""\n' + code.format("anew " + half, half), "utf-8")
    read = list(texts.of_code(tmp_path))
    (use,) = replaced.uses(read, replaced.read())
    assert use.endswith("'anew': write 'again'")
    assert len(list(bars.long_sentences(read))) == 1


@pytest.mark.parametrize("name", ["osd_class:cephqos_owed_ops", "CephQosHeldAtLimit"])
def test_a_name_has_no_word_that_is_replaced(tmp_path: Path, name: str) -> None:
    package = tmp_path / texts.PACKAGES[0]
    package.mkdir()
    (package / "a.py").write_text(f'NAME = "{name}"\n')
    assert len(list(replaced.uses(texts.of_names(tmp_path), replaced.read_of_names()))) == 1
