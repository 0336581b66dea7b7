"""The reference part of the documentation is what the code says today."""

import pytest
from tests.reference.__main__ import FOLDER, PAGES
from tests.reference.files import READERS, faults, written


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_up_to_date(name: str) -> None:
    committed = (FOLDER / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "run: make generate"


def test_the_folder_has_no_other_page() -> None:
    assert {file.name for file in FOLDER.glob("*.md")} == set(PAGES)


@pytest.mark.parametrize("name", READERS)
def test_every_key_of_a_file_has_its_sentence_and_a_sample(name: str) -> None:
    assert not faults(name, written(name)), f"mend tests/reference/keys/{name}.yaml"


def test_a_key_without_a_sentence_and_a_sentence_without_a_key_are_told() -> None:
    about = written("policy")
    about["keys"]["targets.gone"] = about["keys"].pop("targets.class")
    assert faults("policy", about) == [
        "targets.class: has no sentence",
        "targets.gone: no reader allows it",
    ]
    del about["samples"][0]["targets"][0]["osds"]
    assert "targets.osds: no sample uses it" in faults("policy", about)
