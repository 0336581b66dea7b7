"""The reference part of the documentation is what the code says today."""

import copy
import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.reference import figures, helm, metrics
from tests.reference.__main__ import FOLDER, PAGES
from tests.reference.files import READERS, faults, written

from cephqos_base.errors import ConfigError
from cephqos_loadgen.plan.planned import Plan


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_up_to_date(name: str) -> None:
    committed = (FOLDER / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "run: make generate"


def test_the_readme_of_the_chart_is_up_to_date() -> None:
    assert helm.README.read_text(encoding="utf-8") == helm.readme(), "run: make generate"


def test_a_figure_is_the_same_on_every_page_and_each_is_used() -> None:
    known, uses = figures.figures(), Counter[str]()
    for page in figures.pages():
        text = page.read_text(encoding="utf-8")
        assert text == figures.filled(text, known), f"{page}: run make generate"
        uses.update(figures.marks(text))
    assert not known.keys() - uses.keys()
    with pytest.raises(KeyError, match="gone"):
        figures.filled("It takes <!--=gone-->3 ms<!--/-->.", known)
    other = figures.filled("It takes <!--=osd-cpu-->9 ms<!--/-->.", known)
    assert known["osd-cpu"] in other
    assert "9 ms" not in other


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


def _holders(value: Any, names: list[str]) -> Iterator[dict[str, Any]]:
    """The mappings of a sample that have a key."""
    if isinstance(value, list):
        for item in value:
            yield from _holders(item, names)
    elif isinstance(value, dict) and names[0] in value:
        if len(names) == 1:
            yield value
        else:
            yield from _holders(value[names[0]], names[1:])


def _defaults() -> Iterator[tuple[str, str, str]]:
    """Those that are values; others are words, such as "no limit"."""
    for name in READERS:
        for key, entry in written(name)["keys"].items():
            default = str(entry[0]) if isinstance(entry, list) else ""
            if (default in _WORDS or default[:1].isdigit()) and key not in _OF_THE_LAB:
                yield name, key, default


_WORDS = ("true", "false", "interleaved", "file", "bluestore", "last", "TLS12", "TLS13")
# A plan leaves them open: the lab has the default.
_OF_THE_LAB = ("lab.rotational", "lab.one_budget", "lab.fs")


def _read(name: str, sample: Any) -> object:
    """What a reader makes of a sample. Keys that need each other: its error, without the line."""
    try:
        found = READERS[name](yaml.safe_dump(sample))
    except ConfigError as exc:
        return re.sub(r"^sample:\d+", "", str(exc))
    return dataclasses.replace(found, text="") if isinstance(found, Plan) else found


@pytest.mark.parametrize(("name", "key", "default"), [*_defaults()])
def test_a_default_is_what_the_reader_takes_where_the_key_is_not_there(
    name: str, key: str, default: str
) -> None:
    used = 0
    for sample in written(name)["samples"]:
        with_it, without = copy.deepcopy(sample), copy.deepcopy(sample)
        for holder in _holders(with_it, key.split(".")):
            holder[key.rpartition(".")[2]] = yaml.safe_load(default)
            used += 1
        for holder in _holders(without, key.split(".")):
            del holder[key.rpartition(".")[2]]
        assert _read(name, with_it) == _read(name, without)
    assert used


def test_every_metric_of_the_exporter_is_in_the_reference() -> None:
    files = Path("exporter/cephqos_exporter").rglob("*.py")
    written = {name for file in files for name in _METRIC.findall(file.read_text(encoding="utf-8"))}
    page = Path("docs/reference/metrics.md").read_text(encoding="utf-8")
    assert len(written) > 150
    assert not {name for name in written if f"`{name}`" not in page}


_METRIC = re.compile(rf'"({metrics.METRIC.pattern})"')
_COLLECTORS = sorted(Path("exporter/cephqos_exporter/collectors").rglob("*.py"))


@pytest.mark.parametrize("file", _COLLECTORS, ids=lambda file: file.stem)
def test_the_golden_host_shows_something_of_each_collector(file: Path) -> None:
    """The reference of metrics is made from its page."""
    names = re.findall(r'"(cephqos_[a-z0-9_]+)"', file.read_text(encoding="utf-8"))
    page = Path("docs/reference/metrics.md").read_text(encoding="utf-8")
    assert not names or any(f"`{name}" in page for name in names), (
        "add what it reads to example_host of tests/replay/host_tree.py, or a recorded reply"
    )
