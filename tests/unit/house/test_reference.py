"""The reference part of the documentation is what the code says today."""

import pytest
from tests.reference.__main__ import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_up_to_date(name: str) -> None:
    committed = (FOLDER / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "run: python -m tests.reference"


def test_the_folder_has_no_other_page() -> None:
    assert {file.name for file in FOLDER.glob("*.md")} == set(PAGES)
